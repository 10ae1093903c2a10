/* X of a packed file, in memory: what lies there as codes, narrow or without values becomes entries. */
#include "core/codes/entries.h"
#include "core/matrix.h"
#include "core/seams.h"
#include "io/panels/panels.h"

enum { CODES_PIECE = 1 << 20 };

kiln_status ki_panels_values_of(void **to, struct ki_panels_reader *r, enum ki_panels_name name,
                                int64_t first, int64_t count) {
    const struct ki_panels_array *a = &r->p.array[name];
    const struct ki_npy npy = ki_panels_npy(a);
    const kiln_read_options *options = r->options;
    const size_t bytes = (size_t)(count * ki_type_bytes(options->type));
    struct ki_numbers numbers = {.npy = &npy,
                                 .type = options->type,
                                 .values = ki_alloc(bytes),
                                 .wanted = count,
                                 .any = options->allow_nonfinite,
                                 .bad = INT64_MAX};
    const int64_t offset = a->begin + first * npy.itemsize;
    void *straight = ki_npy_native(&npy, options->type) ? numbers.values : NULL;
    kiln_status status = KILN_OK;
    if (!numbers.values) return ki_fail_nomem(bytes, ki_panels_name(name));
    *to = numbers.values;
    if (count * npy.itemsize == a->bytes) {
        TRY(ki_panels_run(r, name, straight, ki_numbers_use, &numbers));
    } else {
        struct ki_chunks chunks = {.file = r->file,
                                   .offset = offset,
                                   .memory = ki_panels_memory(r, offset),
                                   .count = count,
                                   .element = npy.itemsize,
                                   .threads = options->threads,
                                   .straight = straight,
                                   .use = ki_numbers_use,
                                   .of = &numbers,
                                   .watch = r->watch};
        TRY(ki_chunks_run(&chunks));
    }
    if (numbers.bad < INT64_MAX) TRY(ki_panels_nonfinite(r, name, first + numbers.bad));
done:
    return status;
}

static kiln_status read_dense(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    table->format = KILN_DENSE;
    table->nnz = table->rows * table->cols;
    return ki_panels_values_of(&table->values, r, KI_PANELS_VALUES, first * table->cols, table->nnz);
}

static kiln_status check_order(const struct ki_table *table, const struct ki_panels_reader *r) {
    bool good = true;
    for (int64_t i = 0; i < table->rows; i++)
        for (int64_t e = table->row_start[i], before = -1; e < table->row_start[i + 1];
             before = table->col[e++])
            good = good && table->col[e] > before && table->col[e] < table->cols;
    return good ? KILN_OK
                : ki_panels_fail(r, KI_PANELS_COLUMNS, "columns of a row do not ascend, or lie outside of X");
}

static kiln_status read_sparse(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    int64_t *start = NULL;
    void *col = NULL;
    const bool all = table->rows == r->p.rows;
    kiln_status status;
    table->format = KILN_CSR;
    TRY(ki_panels_starts(&start, r));
    const int64_t begin = start[first], real = ki_type_bytes(r->options->type);
    table->nnz = start[first + table->rows] - begin;
    for (int64_t i = 0; i <= table->rows; i++) start[i] = start[first + i] - begin;
    table->row_start = start;
    start = NULL;
    if (all) {
        if (!(table->col = ki_alloc((size_t)table->nnz * 4)))
            TRY(ki_fail_nomem((size_t)table->nnz * 4, "columns"));
        TRY(ki_panels_run(r, KI_PANELS_COLUMNS, table->col, NULL, NULL));
    } else {
        TRY(ki_panels_load(&col, r, KI_PANELS_COLUMNS, begin * 4, table->nnz * 4));
        table->col = col;
    }
    TRY(check_order(table, r));
    if (r->p.array[KI_PANELS_VALUES].type)
        return ki_panels_values_of(&table->values, r, KI_PANELS_VALUES, begin, table->nnz);
    if (!(table->values = ki_alloc((size_t)(table->nnz * real))))
        TRY(ki_fail_nomem((size_t)(table->nnz * real), "values"));
    for (int64_t e = 0; e < table->nnz; e++)
        if (r->options->type == KILN_F32)
            ((float *)table->values)[e] = 1;
        else
            ((double *)table->values)[e] = 1;
done:
    ki_free(start);
    return status;
}

/* Categories ascend without overlapping, and leave the columns that rows have numbers for. */
static kiln_status read_categories(struct ki_table *table, struct ki_panels_reader *r) {
    const struct ki_panels_array *a = r->p.array;
    const int64_t count = a[KI_PANELS_CATEGORIES].shape[0];
    int64_t next = 0, levels = 0, bytes = 0;
    void *made = NULL;
    const kiln_status status =
        ki_panels_load(&made, r, KI_PANELS_CATEGORIES, 0, a[KI_PANELS_CATEGORIES].bytes);
    if (status != KILN_OK) return status;
    table->categories = made;
    table->category_count = count;
    for (int64_t c = 0; c < count; c++) {
        const struct ki_category *own = &table->categories[c];
        if (own->first < next || own->levels < 1 || own->levels > table->cols - own->first)
            return ki_panels_fail(r, KI_PANELS_CATEGORIES,
                                  "a category overlaps another one, or lies outside of X");
        next = own->first + own->levels;
        levels += own->levels;
        bytes += ki_code_bytes(own->levels);
    }
    return bytes == a[KI_PANELS_CODES].shape[1] && table->cols - levels == a[KI_PANELS_VALUES].shape[1]
               ? KILN_OK
               : ki_panels_fail(r, KI_PANELS_CATEGORIES, "codes or numbers are not those of the categories");
}

static int64_t code_at(const unsigned char *from, int bytes) {
    uint64_t code = 0;
    for (int i = bytes; i-- > 0;) code = code << 8 | from[i];
    return (int64_t)code;
}

static bool is_zero(const char *value, int64_t real) {
    static const double zero = 0;
    return real == 4 ? *(const float *)(const void *)value == 0
                     : *(const double *)(const void *)value == zero;
}

struct expanding {
    struct ki_table *table;
    const char *numbers; /* rows x width, or NULL: entries are only counted */
    int64_t width, real, place;
};

static void put_entry(struct expanding *x, int64_t col, const char *value) {
    const double one = 1;
    const float narrow = 1;
    struct ki_table *table = x->table;
    if (table->col) {
        table->col[x->place] = (int32_t)col;
        memcpy((char *)table->values + x->place * x->real,
               value          ? value
               : x->real == 4 ? (const char *)&narrow
                              : (const char *)&one,
               (size_t)x->real);
    }
    x->place++;
}

/* A row's entries; false if a code is none. */
static bool expand_row(struct expanding *x, const unsigned char *codes, int64_t row) {
    const struct ki_table *table = x->table;
    const char *number = x->numbers + row * x->width * x->real;
    int64_t j = 0;
    for (int64_t c = 0; c <= table->category_count; c++) {
        const int64_t until = c < table->category_count ? table->categories[c].first : table->cols;
        for (; j < until; j++, number += x->real)
            if (!is_zero(number, x->real)) put_entry(x, j, number);
        if (c == table->category_count) break;
        const int64_t levels = table->categories[c].levels;
        const int bytes = ki_code_bytes(levels);
        const int64_t code = code_at(codes, bytes);
        if (code > levels) return false;
        if (code < levels) put_entry(x, j + code, NULL);
        codes += bytes;
        j += levels;
    }
    return true;
}

/* Entries of all rows, which are counted the first time, when there is no room for them yet. */
static kiln_status expand(struct expanding *x, struct ki_panels_reader *r, int64_t first) {
    struct ki_table *table = x->table;
    const int64_t bytes = r->p.array[KI_PANELS_CODES].shape[1], most = ki_max(CODES_PIECE / bytes, 1);
    kiln_status status = KILN_OK;
    x->place = 0;
    for (int64_t row = 0, count; row < table->rows; row += count) {
        void *codes = NULL;
        count = ki_min(most, table->rows - row);
        TRY(ki_panels_load(&codes, r, KI_PANELS_CODES, (first + row) * bytes, count * bytes));
        bool good = true;
        for (int64_t i = 0; i < count && good; i++) {
            good = expand_row(x, (unsigned char *)codes + i * bytes, row + i);
            table->row_start[row + i + 1] = x->place;
        }
        ki_free(codes);
        if (!good) TRY(ki_panels_fail(r, KI_PANELS_CODES, "a code is none of its category"));
    }
done:
    return status;
}

static kiln_status read_coded(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    struct expanding x = {.table = table,
                          .width = r->p.array[KI_PANELS_VALUES].shape[1],
                          .real = ki_type_bytes(r->options->type)};
    void *numbers = NULL;
    kiln_status status;
    table->format = KILN_CSR;
    TRY(read_categories(table, r));
    TRY(ki_panels_values_of(&numbers, r, KI_PANELS_VALUES, first * x.width, table->rows * x.width));
    x.numbers = numbers;
    table->row_start = ki_calloc((size_t)(table->rows + 1) * sizeof *table->row_start);
    if (!table->row_start) TRY(ki_fail_nomem((size_t)table->rows * 8, "row starts"));
    TRY(expand(&x, r, first));
    table->nnz = x.place;
    table->values = ki_alloc((size_t)(table->nnz * x.real));
    table->col = ki_alloc((size_t)table->nnz * sizeof *table->col);
    if (!table->col || !table->values) TRY(ki_fail_nomem((size_t)(table->nnz * (4 + x.real)), "entries"));
    TRY(expand(&x, r, first));
done:
    ki_free(numbers);
    return status;
}

kiln_status ki_panels_matrix(struct ki_table *table, struct ki_panels_reader *r, int64_t first) {
    const struct ki_panels_array *a = r->p.array;
    return (a[KI_PANELS_CODES].type       ? read_coded
            : a[KI_PANELS_ROW_START].type ? read_sparse
                                          : read_dense)(table, r, first);
}
