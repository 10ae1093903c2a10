/* Consecutive rows of a CSR matrix in an .npz whose members are stored as they are: row starts are read, columns and values where the
 * rows lie. Checksums, which are of whole members, are not looked at. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/numpy/map.h"
#include "io/numpy/npz.h"

/* The elements of an array from `first` on. */
static kiln_status open_array(struct ki_npz_array *array, int64_t *begin, struct ki_npz *s, const char *name,
                              int64_t first) {
    kiln_status status;
    TRY(ki_npz_open(array, s, name));
    if (array->member->method != 0) return ki_npz_fail(s, KILN_ERR_UNSUPPORTED, "the archive is compressed");
    if (array->npy.dimensions != 1) return ki_npz_fail(s, KILN_ERR_PARSE, "indices or data are no vector");
    *begin = array->member->begin + array->header + first * array->npy.itemsize;
done:
    return status;
}

static kiln_status read_columns(struct ki_table *table, struct ki_npz *s, const struct ki_mapping *m,
                                int64_t first) {
    int64_t begin = 0;
    kiln_status status;
    TRY(open_array(&s->indices, &begin, s, "indices.npy", first));
    if (s->indices.npy.kind != 'i' || s->indices.npy.itemsize != 4 || s->indices.npy.swapped)
        return ki_npz_fail(s, KILN_ERR_UNSUPPORTED, "indices are no 32-bit integers of this machine");
    table->col = ki_alloc((size_t)table->nnz * 4);
    if (!table->col) return ki_fail_nomem((size_t)table->nnz * 4, "columns");
    TRY(ki_file_read(m->file, table->col, begin, table->nnz * 4));
    TRY(ki_csr_check_columns(table->row_start, table->col, table->rows, s->cols));
    for (int64_t r = 0; r < table->rows; r++)
        for (int64_t e = table->row_start[r] + 1; e < table->row_start[r + 1]; e++)
            if (table->col[e] <= table->col[e - 1])
                return ki_npz_fail(s, KILN_ERR_UNSUPPORTED, "columns do not ascend in each row");
done:
    return status;
}

static kiln_status read_values(struct ki_table *table, struct ki_npz *s, const struct ki_mapping *m,
                               int64_t first) {
    const kiln_read_options *options = m->options;
    const int64_t real = ki_type_bytes(options->type);
    struct ki_chunks chunks = {.file = m->file,
                               .count = table->nnz,
                               .threads = options->threads,
                               .use = ki_numbers_use,
                               .watch = &m->watch};
    kiln_status status;
    TRY(open_array(&s->data, &chunks.offset, s, "data.npy", first));
    table->values = ki_alloc((size_t)(table->nnz * real));
    if (!table->values) return ki_fail_nomem((size_t)(table->nnz * real), "values");
    const bool native = ki_npy_native(&s->data.npy, options->type);
    struct ki_numbers numbers = {
        &s->data.npy, options->type, table->values, 0, table->nnz, options->allow_nonfinite, INT64_MAX};
    chunks.element = s->data.npy.itemsize;
    chunks.straight = native ? table->values : NULL;
    chunks.of = &numbers;
    TRY(ki_chunks_run(&chunks));
    if (numbers.bad < INT64_MAX) return ki_npz_fail(s, KILN_ERR_PARSE, "data are not finite");
done:
    return status;
}

/* The part's rows: as many entries in each part as rows allow. */
static kiln_status cut_rows(struct ki_table *table, int64_t *first, const int64_t *start, int64_t rows,
                            int number, int count) {
    int64_t begin[2];
    for (int end = 0; end < 2; end++) {
        const int64_t entries = ki_part_begin(start[rows], number + end, count);
        begin[end] = number + end == count ? rows : ki_row_at(start, rows, entries, 0);
    }
    table->rows = begin[1] - begin[0];
    table->nnz = start[begin[1]] - start[begin[0]];
    *first = start[begin[0]];
    table->row_start = ki_alloc((size_t)(table->rows + 1) * 8);
    if (!table->row_start) return ki_fail_nomem((size_t)(table->rows + 1) * 8, "row starts");
    for (int64_t r = 0; r <= table->rows; r++) table->row_start[r] = start[begin[0] + r] - *first;
    return KILN_OK;
}

kiln_status ki_npz_read_part(struct ki_table *table, struct ki_mapping *m, int number, int count) {
    struct ki_npz s = {.options = m->options, .file = m->file->name, .watch = &m->watch};
    int64_t *start = NULL, first = 0;
    kiln_status status;
    s.left = INT64_MAX;
    TRY(ki_zip_open_file(&s.zip, &s.bytes, m->file, m->bytes));
    TRY(ki_npz_outline(&start, &s));
    if (s.by_column) TRY(ki_npz_fail(&s, KILN_ERR_UNSUPPORTED, "it is stored by columns"));
    table->format = KILN_CSR;
    table->cols = s.cols;
    TRY(cut_rows(table, &first, start, s.rows, number, count));
    TRY(read_columns(table, &s, m, first));
    TRY(read_values(table, &s, m, first));
done:
    ki_free(start);
    ki_npz_clear(&s);
    return status;
}
