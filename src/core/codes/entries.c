/* The entries of a matrix with codes, which it becomes where these are wanted, and the matrix on another
 * device. */
#include "core/codes/entries.h"

#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"

enum { PARTS = 64 }; /* of the rows, for loops over all */

struct entries {
    const struct ki_codes *codes; /* whose columns have codes in host memory */
    const void *numbers;          /* in host memory, rows x width */
    int64_t width, rows, cols;
    kiln_type type;
    int threads;
    int64_t before[PARTS + 1]; /* entries of the parts before */
    int64_t *row_start;
    int32_t *col;
    void *values;
};

static bool is_entry(const struct entries *e, int64_t at) {
    return e->type == KILN_F32 ? ((const float *)e->numbers)[at] != 0 : ((const double *)e->numbers)[at] != 0;
}

static int64_t entries_of_row(const struct entries *e, int64_t row) {
    const struct ki_codes *codes = e->codes;
    int64_t count = 0;
    for (int64_t j = 0; j < e->width; j++) count += is_entry(e, row * e->width + j);
    for (int64_t c = 0; c < codes->count; c++)
        count += ki_code_at(&codes->column[c], row) < codes->column[c].levels;
    return count;
}

static void count_part(void *of, int part) {
    struct entries *e = of;
    const int64_t end = ki_part_begin(e->rows, part + 1, PARTS);
    int64_t count = 0;
    for (int64_t i = ki_part_begin(e->rows, part, PARTS); i < end; i++) count += entries_of_row(e, i);
    e->before[part + 1] = count;
}

static int64_t count_entries(struct entries *e) {
    e->before[0] = 0;
    ki_parallel(e->threads, PARTS, count_part, e);
    for (int part = 0; part < PARTS; part++) e->before[part + 1] += e->before[part];
    return e->before[PARTS];
}

/* number: where the entry's value stands among the numbers, or -1: it is a level. */
static void put_entry(const struct entries *e, int64_t at, int64_t column, int64_t number) {
    if (e->col) e->col[at] = (int32_t)column;
    if (!e->values) return;
    if (e->type == KILN_F32)
        ((float *)e->values)[at] = number < 0 ? 1 : ((const float *)e->numbers)[number];
    else
        ((double *)e->values)[at] = number < 0 ? 1 : ((const double *)e->numbers)[number];
}

/* The entries of a row from `at` on, in the order of their columns; returns where the next row's begin. */
static int64_t put_row(const struct entries *e, int64_t row, int64_t at) {
    const struct ki_codes *codes = e->codes;
    const int64_t n = e->width;
    int64_t j = 0;
    for (int64_t c = 0; c <= codes->count; c++) {
        const struct ki_code_column *column = codes->column + c;
        const int64_t until = c < codes->count ? column->first : e->cols;
        for (; j < n && codes->place[j] < until; j++)
            if (is_entry(e, row * n + j)) put_entry(e, at++, codes->place[j], row * n + j);
        const int64_t level = c < codes->count ? ki_code_at(column, row) : 0;
        if (c < codes->count && level < column->levels) put_entry(e, at++, column->first + level, -1);
    }
    return at;
}

static void fill_part(void *of, int part) {
    const struct entries *e = of;
    const int64_t end = ki_part_begin(e->rows, part + 1, PARTS);
    int64_t at = e->before[part];
    for (int64_t i = ki_part_begin(e->rows, part, PARTS); i < end; i++) {
        if (e->row_start) e->row_start[i] = at;
        at = put_row(e, i, at);
    }
}

int64_t ki_codes_count(const struct ki_codes *codes, const void *numbers, int64_t width, int64_t rows,
                       kiln_type type, int threads) {
    return count_entries(&(struct entries){
        .codes = codes, .numbers = numbers, .width = width, .rows = rows, .type = type, .threads = threads});
}

void ki_codes_point(struct ki_code_column *column, int64_t count, void *words) {
    for (int64_t c = 0; c < count; c++) column[c].codes = words ? (char *)words + column[c].at : NULL;
}

/* Copies of numbers and codes in host memory, of an A elsewhere. */
struct fetched {
    struct ki_codes codes;
    void *numbers, *words;
};

static kiln_status fetch(struct fetched *fetched, const kiln_matrix *A) {
    const struct ki_codes *codes = A->codes;
    const size_t columns = (size_t)codes->count * sizeof *codes->column,
                 numbers = (size_t)ki_matrix_bytes(codes->numbers),
                 words = (size_t)ki_matrix_bytes(codes->words);
    kiln_status status = KILN_OK;
    *fetched = (struct fetched){*codes, ki_alloc(numbers), ki_alloc(words)};
    fetched->codes.column = ki_alloc(columns);
    if (!fetched->codes.column || !fetched->numbers || !fetched->words)
        return ki_fail_nomem(columns + numbers + words, "a matrix's categories");
    memcpy(fetched->codes.column, codes->column, columns);
    TRY(kiln_matrix_get(fetched->numbers, codes->numbers));
    TRY(kiln_matrix_get(fetched->words, codes->words));
    ki_codes_point(fetched->codes.column, codes->count, fetched->words);
done:
    return status;
}

kiln_status ki_codes_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A) {
    const bool here = ki_on_cpu(A->device);
    struct fetched fetched = {.numbers = NULL};
    kiln_status status = KILN_OK;
    if (!here) TRY(fetch(&fetched, A));
    struct entries e = {.codes = here ? A->codes : &fetched.codes,
                        .numbers = here ? ki_host(&A->codes->numbers->values) : fetched.numbers,
                        .width = A->codes->numbers->cols,
                        .rows = A->rows,
                        .cols = A->cols,
                        .type = A->type,
                        .threads = A->device->threads,
                        .row_start = row_start,
                        .col = col,
                        .values = values};
    const int64_t nnz = count_entries(&e);
    ki_parallel(e.threads, PARTS, fill_part, &e);
    if (row_start) row_start[A->rows] = nnz;
done:
    if (!here) {
        ki_free(fetched.codes.column);
        ki_free(fetched.numbers);
        ki_free(fetched.words);
    }
    return status;
}

kiln_status ki_matrix_expand(const kiln_matrix *matrix) {
    kiln_matrix *A = (kiln_matrix *)(uintptr_t)matrix; /* how it is kept, not what it is */
    struct ki_codes *codes = A->codes;
    void *memory[KI_PARTS] = {0};
    kiln_status status = KILN_OK;
    if (!codes) return ki_matrix_widen(A);
    for (int part = 0; part < KI_PARTS; part++) {
        const int64_t bytes = ki_matrix_part_bytes(A, part);
        if (!(memory[part] = ki_alloc((size_t)bytes))) TRY(ki_fail_nomem((size_t)bytes, "a sparse matrix"));
    }
    TRY(ki_codes_entries(memory[KI_ROW_START], memory[KI_COL], memory[KI_VALUES], A));
    A->codes = NULL;
    status = ki_matrix_place(A, memory);
    if (status == KILN_OK) {
        ki_codes_free(codes);
        return KILN_OK;
    }
    A->codes = codes;
done:
    for (int part = 0; part < KI_PARTS; part++) ki_free(memory[part]);
    return status;
}

/* ---- elsewhere ---- */

kiln_status ki_codes_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A) {
    const struct ki_codes *from = A->codes;
    const size_t columns = (size_t)from->count * sizeof *from->column,
                 places = (size_t)from->numbers->cols * sizeof *from->place;
    kiln_status status;
    struct ki_codes *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "a matrix");
    *made = (struct ki_codes){.place = ki_alloc(places),
                              .column = ki_alloc(columns),
                              .count = from->count,
                              .slots = from->slots,
                              .nnz = from->nnz};
    if (!made->place || !made->column) TRY(ki_fail_nomem(places + columns, "a copy of a matrix"));
    memcpy(made->place, from->place, places);
    memcpy(made->column, from->column, columns);
    TRY(kiln_matrix_copy(&made->numbers, device, type, from->numbers));
    TRY(kiln_matrix_copy(&made->words, device, KILN_F32, from->words));
    ki_codes_point(made->column, made->count, ki_on_cpu(device) ? ki_host(&made->words->values) : NULL);
    TRY(ki_matrix_adopt_codes(B, device, type, A->rows, A->cols, made));
    made = NULL;
done:
    ki_codes_free(made);
    return status;
}

kiln_status ki_codes_move(kiln_matrix *A, kiln_device *device) {
    struct ki_codes *codes = A->codes;
    kiln_device *const before = A->device;
    kiln_status status = ki_matrix_move(codes->numbers, device);
    if (status != KILN_OK) return status;
    status = ki_matrix_move(codes->words, device);
    if (status != KILN_OK) {
        (void)ki_matrix_move(codes->numbers, before); /* where it came from, as far as that can be */
        return status;
    }
    ki_slots_drop(A);
    ki_memory_leave(A);
    A->device = device;
    ki_memory_join(A);
    ki_codes_point(codes->column, codes->count, ki_on_cpu(device) ? ki_host(&codes->words->values) : NULL);
    return KILN_OK;
}
