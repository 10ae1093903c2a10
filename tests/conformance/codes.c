/* An X of numbers and categories: its entries for the references, its codes for a device that keeps such.
 *
 * Columns go in turns: as many numbers as the problem has entries a row, or 3, a category of 2 levels, a
 * number, then categories that are each as wide as all columns before them together, so that codes of every
 * width and rows of every kind come up. A number in eight is 0, and a row in six has none of a category's
 * levels. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "kiln/codes.h"

enum { CATEGORIES = 32, STREAM_NUMBER = 50, STREAM_LEVEL };

struct columns {
    kiln_codes category[CATEGORIES];
    int64_t count, numbers;
};

static void cut(struct columns *columns, const struct problem *p) {
    const int64_t cols = p->cols, numbers = p->per_row ? p->per_row : 3;
    int64_t at = cols < numbers ? cols : numbers, levels = 2;
    *columns = (struct columns){.numbers = at};
    while (at < cols) {
        levels = levels < cols - at ? levels : cols - at;
        columns->category[columns->count++] = (kiln_codes){.column = at, .levels = levels};
        at += levels;
        if (columns->count == 1 && at < cols) {
            at++;
            columns->numbers++;
        }
        levels = at;
    }
}

static int64_t level_of(int64_t row, int64_t category, int64_t levels) {
    const double u = random_uniform(STREAM_LEVEL, (uint64_t)(row * CATEGORIES + category));
    return u < 1.0 / 6 ? -1 : (int64_t)((u - 1.0 / 6) * 6 / 5 * (double)levels);
}

static double number_of(int64_t row, int64_t column) {
    const double u = random_uniform(STREAM_NUMBER, ((uint64_t)row << 32) + (uint64_t)column);
    return u < 0.125 ? 0 : 2 * u - 1.125;
}

static void put(struct host_matrix *X, int64_t column, double value) {
    X->col[X->nnz] = (int32_t)column;
    host_set(X, X->nnz++, value);
}

/* A row's entries, and what of it goes to codes and numbers. */
static void make_row(struct host_matrix *X, struct host_matrix *numbers, const struct columns *columns,
                     int64_t row, int32_t *codes) {
    int64_t column = 0, number = row * columns->numbers;
    for (int64_t c = 0; c <= columns->count; c++) {
        const kiln_codes *category = columns->category + c;
        const int64_t until = c < columns->count ? category->column : X->cols;
        for (; column < until; column++, number++) {
            const double value = number_of(row, column);
            host_set(numbers, number, value);
            if (value != 0) put(X, column, value);
        }
        if (c == columns->count) continue;
        const int64_t level = level_of(row, c, category->levels);
        if (level >= 0) put(X, column + level, 1);
        codes[c * X->rows + row] = (int32_t)level;
        column += category->levels;
    }
    X->row_start[row + 1] = X->nnz;
}

static void *must(void *memory) {
    if (!memory) exit(1);
    return memory;
}

kiln_status make_codes(struct work *work) {
    const struct problem *p = work->problem;
    struct host_matrix *X = &work->X.host;
    struct columns columns;
    struct operand numbers;
    cut(&columns, p);
    const size_t element = work->type == KILN_F32 ? 4 : 8;
    const size_t most = (size_t)(p->rows * (columns.numbers + columns.count)) + 1;
    int32_t *codes = must(malloc((size_t)(p->rows * columns.count + 1) * sizeof *codes));
    *X = (struct host_matrix){.type = work->type, .rows = p->rows, .cols = p->cols};
    X->row_start = must(calloc((size_t)p->rows + 1, sizeof *X->row_start));
    X->col = must(malloc(most * sizeof *X->col));
    X->values = must(malloc(most * element));
    host_new(&numbers, work->type, p->rows, columns.numbers);
    for (int64_t i = 0; i < p->rows; i++) make_row(X, &numbers.host, &columns, i, codes);
    for (int64_t c = 0; c < columns.count; c++) columns.category[c].codes = codes + c * p->rows;
    kiln_status status = KILN_ERR_UNSUPPORTED;
    if (columns.count > 0)
        status = kiln_matrix_codes(&work->X.matrix, work->device, work->type, p->rows, p->cols,
                                   numbers.host.values, columns.category, columns.count);
    if (status == KILN_ERR_UNSUPPORTED) status = operand_upload(work, &work->X);
    free(numbers.host.values);
    free(codes);
    return status;
}
