/* A sparse matrix as scipy.sparse.save_npz writes it: a zip archive of the arrays format, shape, indptr,
 * indices, data.
 *
 * The end of a zip archive must be read first and the input may be a pipe, so the whole file is read into
 * memory. Nothing in it is trusted: lengths must fit each other, indptr must not decrease, indices must lie
 * within the shape. The result is canonical: columns ascend in each row, and entries of one place are summed,
 * as SciPy does. CSC is turned into CSR. */
#include <math.h>
#include <stdlib.h>

#include "core/threads.h"
#include "io/bytes.h"
#include "io/data.h"
#include "io/npz.h"
#include "io/text.h"

enum {
    FIRST_READ = 64 << 10,
    LAST_READ = 8 << 20,
    BLOCK = 1024,
    WORTH_A_PART = 1 << 14,
    ROWS_FREE = 1 << 20,
    ROWS_PER_BYTE = 8
};

kiln_status ki_npz_fail(const struct ki_npz *s, kiln_status status, const char *reason) {
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(status, &place, "%s", reason);
    return ki_hint("write the matrix again with scipy.sparse.save_npz");
}

/* ----------------------------------------------------------------------------------------- arrays */

static kiln_status read_all(struct ki_npz *s, struct ki_input *input) {
    for (int64_t most = FIRST_READ;; most = ki_min(2 * most, LAST_READ)) {
        size_t got;
        if (!ki_bytes_room(&s->bytes, most)) return ki_fail_nomem((size_t)s->bytes.size, "the .npz file");
        kiln_status status = ki_input_read(input, s->bytes.data + s->bytes.size, (size_t)most, &got);
        if (status != KILN_OK) return status;
        s->bytes.size += (int64_t)got;
        if ((int64_t)got < most) return KILN_OK;
    }
}

static kiln_status load(struct ki_npz_array *array, struct ki_npz *s, const char *name) {
    kiln_status status = KILN_OK;
    const struct ki_zip_member *member = ki_zip_find(&s->zip, name);
    struct ki_place place = {s->file, 0, 0, -1};
    int64_t header;
    if (!member) {
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "the .npz archive has no member '%s'", name);
        return ki_hint(
            "a sparse matrix is read from .npz, as scipy.sparse.save_npz writes it; a dense one from .npy");
    }
    place.offset = member->begin;
    TRY(ki_zip_extract(&array->elements, &s->zip, member, &array->room, &s->left));
    TRY(ki_npy_header_size(&header, array->elements, (size_t)member->size, &place));
    TRY(ki_npy_header(&array->npy, array->elements, (size_t)member->size, &place));
    if (array->npy.bytes != member->size - header)
        TRY(ki_npz_fail(s, KILN_ERR_PARSE, "an array has not the length of its shape"));
    array->elements += header;
    array->count = array->npy.shape[0] * array->npy.shape[1];
done:
    return status;
}

/* A one-dimensional array of integers ('i') or of any numbers ('f'). */
static kiln_status load_numbers(struct ki_npz_array *array, struct ki_npz *s, const char *name, char kind) {
    kiln_status status = load(array, s, name);
    if (status != KILN_OK) return status;
    char found = array->npy.kind;
    bool number = found == 'i' || found == 'u' || (kind == 'f' && (found == 'f' || found == 'b'));
    if (array->npy.dimensions == 1 && number) return KILN_OK;
    return ki_npz_fail(s, KILN_ERR_PARSE,
                       kind == 'i' ? "shape, indptr or indices is not a list of integers"
                                   : "data is not a list of real numbers");
}

/* "csr" or "csc", in bytes or in UTF-32. */
static kiln_status read_format(struct ki_npz *s) {
    char name[16] = "";
    kiln_status status = load(&s->format, s, "format.npy");
    if (status != KILN_OK) return status;
    const struct ki_npy *npy = &s->format.npy;
    int64_t step = npy->kind == 'U' ? 4 : 1, last = npy->swapped ? step - 1 : 0;
    if ((npy->kind != 'S' && npy->kind != 'U') || npy->dimensions != 0)
        return ki_npz_fail(s, KILN_ERR_PARSE, "the member 'format.npy' is not a text");
    for (int64_t i = 0; i < npy->itemsize && i < (int64_t)sizeof name - 1; i++)
        name[i] = (char)s->format.elements[i * step + last];
    s->by_column = strcmp(name, "csc") == 0;
    if (s->by_column || strcmp(name, "csr") == 0) return KILN_OK;
    struct ki_excerpt shown = ki_word(name, name + strlen(name));
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "a sparse matrix of format '%s'; csr and csc are read",
               shown.text);
    return ki_hint("save it as CSR: scipy.sparse.save_npz(name, A.tocsr())");
}

static kiln_status read_shape(struct ki_npz *s) {
    int64_t shape[2];
    kiln_status status = load_numbers(&s->shape, s, "shape.npy", 'i');
    if (status != KILN_OK) return status;
    if (s->shape.count != 2 || !ki_npy_integers(shape, &s->shape.npy, s->shape.elements, 2) || shape[0] < 0 ||
        shape[1] < 0)
        return ki_npz_fail(s, KILN_ERR_PARSE, "the member 'shape.npy' is not a pair of lengths");
    s->rows = shape[0];
    s->cols = shape[1];
    if (s->cols > INT32_MAX || (s->by_column && s->rows > INT32_MAX))
        return ki_npz_fail(s, KILN_ERR_LIMIT, "the matrix has 2^31 columns or more");
    s->lines = s->by_column ? s->cols : s->rows;
    s->across = s->by_column ? s->rows : s->cols;
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------------- matrix */

static kiln_status read_indptr(int64_t **start, struct ki_npz *s) {
    kiln_status status = load_numbers(&s->indptr, s, "indptr.npy", 'i');
    if (status != KILN_OK) return status;
    int64_t count = s->indptr.count;
    if (count - 1 != s->lines)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr has not one entry more than the shape has lines");
    *start = ki_alloc((size_t)count * sizeof **start);
    if (!*start) return ki_fail_nomem((size_t)count * sizeof **start, "the row starts");
    bool fine = ki_npy_integers(*start, &s->indptr.npy, s->indptr.elements, count) && (*start)[0] == 0;
    for (int64_t i = 1; i < count; i++) fine &= (*start)[i - 1] <= (*start)[i];
    if (!fine) return ki_npz_fail(s, KILN_ERR_PARSE, "indptr does not begin with 0, or decreases");
    return KILN_OK;
}

kiln_status ki_npz_outline(int64_t **start, struct ki_npz *s) {
    kiln_status status;
    TRY(read_format(s));
    TRY(read_shape(s));
    TRY(read_indptr(start, s));
done:
    return status;
}

struct indices {
    const struct ki_npz *source;
    int32_t *col;
    _Atomic int64_t bad; /* the first that lies outside the matrix */
};

static void read_index_range(void *of, int64_t begin, int64_t end) {
    struct indices *x = of;
    const struct ki_npz_array *array = &x->source->indices;
    for (int64_t from = begin; from < end; from += BLOCK) {
        int64_t wide[BLOCK], count = ki_min(BLOCK, end - from);
        bool fine = ki_npy_integers(wide, &array->npy, array->elements + from * array->npy.itemsize, count);
        for (int64_t i = 0; i < count; i++) {
            if (!fine || wide[i] < 0 || wide[i] >= x->source->across) ki_lower(&x->bad, from + i);
            x->col[from + i] = fine ? (int32_t)wide[i] : 0;
        }
    }
}

static kiln_status read_indices(int32_t **indices, struct ki_npz *s, int64_t nnz) {
    kiln_status status = load_numbers(&s->indices, s, "indices.npy", 'i');
    if (status != KILN_OK) return status;
    if (s->indices.count < nnz)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr points behind the end of indices");
    *indices = ki_alloc((size_t)nnz * sizeof **indices);
    if (!*indices) return ki_fail_nomem((size_t)nnz * sizeof **indices, "the columns");
    struct indices x = {s, *indices, nnz};
    ki_parallel_ranges(s->options->threads, nnz, WORTH_A_PART, read_index_range, &x);
    if (x.bad == nnz) return KILN_OK;
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_PARSE, &place, "indices[%lld] is outside 0 to %lld", (long long)x.bad,
               (long long)s->across - 1);
    return ki_hint("scipy's A.check_format() finds this too");
}

static kiln_status read_values(void **values, struct ki_npz *s, int64_t nnz) {
    kiln_type type = s->options->type;
    kiln_status status = load_numbers(&s->data, s, "data.npy", 'f');
    if (status != KILN_OK) return status;
    if (s->data.count != s->indices.count)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indices and data differ in length");
    int64_t bytes = nnz * (type == KILN_F32 ? 4 : 8);
    *values = ki_alloc((size_t)bytes);
    if (!*values) return ki_fail_nomem((size_t)bytes, "the values");
    return ki_npy_convert(*values, type, &s->data.npy, s->data.elements, nnz, s->options->threads);
}

/* Where a CSC matrix states many more rows than it has bytes, its row starts would cost memory that nobody
 * sent. */
static kiln_status check_rows(const struct ki_npz *s) {
    int64_t file_bytes = s->bytes.size;
    if (s->rows <= ROWS_FREE || s->rows / ROWS_PER_BYTE <= file_bytes) return KILN_OK;
    struct ki_place place = {s->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_LIMIT, &place, "a csc matrix of %lld rows in a file of %lld bytes",
               (long long)s->rows, (long long)file_bytes);
    return ki_hint("save it as CSR: scipy.sparse.save_npz(name, A.tocsr())");
}

/* table: rows from columns. The entries of a row come out in the order of their columns. */
static kiln_status from_columns(struct ki_table *table, const struct ki_npz *s,
                                const struct ki_table *columns) {
    bool narrow = s->options->type == KILN_F32;
    int64_t nnz = columns->nnz, *next = ki_calloc((size_t)(s->rows + 1) * sizeof *next);
    table->row_start = next;
    table->col = ki_alloc((size_t)nnz * sizeof *table->col);
    table->values = ki_alloc((size_t)nnz * (narrow ? 4 : 8));
    if (!next || !table->col || !table->values) return ki_fail_nomem((size_t)nnz * 12, "the matrix by rows");
    for (int64_t i = 0; i < nnz; i++) next[columns->col[i]]++;
    for (int64_t i = 0, sum = 0; i <= s->rows; i++) {
        int64_t count = next[i];
        next[i] = sum;
        sum += count;
    }
    for (int64_t j = 0; j < s->cols; j++)
        for (int64_t i = columns->row_start[j]; i < columns->row_start[j + 1]; i++) {
            int64_t at = next[columns->col[i]]++;
            table->col[at] = (int32_t)j;
            if (narrow)
                ((float *)table->values)[at] = ((float *)columns->values)[i];
            else
                ((double *)table->values)[at] = ((double *)columns->values)[i];
        }
    memmove(next + 1, next,
            (size_t)s->rows * sizeof *next); /* each start had moved to the next one's place */
    next[0] = 0;
    return KILN_OK;
}

static kiln_status read_matrix(struct ki_table *table, struct ki_npz *s) {
    kiln_status status = KILN_OK;
    struct ki_table found = {0};
    TRY(ki_npz_outline(&found.row_start, s));
    found.nnz = found.row_start[s->lines];
    TRY(read_indices(&found.col, s, found.nnz));
    TRY(read_values(&found.values, s, found.nnz));
    if (s->by_column) {
        TRY(check_rows(s));
        TRY(from_columns(table, s, &found));
    } else {
        table->row_start = found.row_start;
        table->col = found.col;
        table->values = found.values;
        found.row_start = NULL;
        found.col = NULL;
        found.values = NULL;
    }
    table->format = KILN_CSR;
    table->rows = s->rows;
    table->cols = s->cols;
    table->nnz = found.nnz;
done:
    ki_table_clear(&found);
    return status;
}

/* -------------------------------------------------------------------------------------- canonical */

static double value_at(const struct ki_table *table, kiln_type type, int64_t i) {
    return type == KILN_F32 ? (double)((float *)table->values)[i] : ((double *)table->values)[i];
}

static void set_value(struct ki_table *table, kiln_type type, int64_t i, double value) {
    if (type == KILN_F32)
        ((float *)table->values)[i] = (float)value;
    else
        ((double *)table->values)[i] = value;
}

/* Sorts a row whose columns do not ascend; false if there is no memory. */
static bool sort_row(struct ki_table *table, kiln_type type, int64_t row, struct ki_bytes *wide,
                     struct ki_bytes *scratch) {
    int64_t begin = table->row_start[row], count = table->row_start[row + 1] - begin, i = 1;
    while (i < count && table->col[begin + i - 1] <= table->col[begin + i]) i++;
    if (i >= count) return true;
    if (!ki_bytes_room(wide, count * (int64_t)sizeof(double))) return false;
    double *values = (double *)(void *)wide->data;
    for (i = 0; i < count; i++) values[i] = value_at(table, type, begin + i);
    if (!ki_sort_row(table->col + begin, values, count, scratch)) return false;
    for (i = 0; i < count; i++) set_value(table, type, begin + i, values[i]);
    return true;
}

struct sorting {
    struct ki_table *table;
    kiln_type type;
    atomic_bool failed;
    _Atomic int64_t twice; /* the first row with two entries in one column */
};

static void sort_range(void *of, int64_t begin, int64_t end) {
    struct sorting *s = of;
    const int64_t *row_start = s->table->row_start;
    const int32_t *col = s->table->col;
    struct ki_bytes wide = {0}, scratch = {0};
    for (int64_t row = begin; row < end; row++) {
        if (!sort_row(s->table, s->type, row, &wide, &scratch)) s->failed = true;
        for (int64_t i = row_start[row] + 1; i < row_start[row + 1]; i++)
            if (col[i - 1] == col[i]) ki_lower(&s->twice, row);
    }
    ki_bytes_free(&wide);
    ki_bytes_free(&scratch);
}

/* Sorts all rows; *twice is the first row with two entries in one column, or rows. */
static kiln_status sort_rows(struct ki_table *table, const kiln_read_options *options, int64_t *twice) {
    struct sorting s = {.table = table, .type = options->type, .twice = table->rows};
    int64_t row_length = 1 + table->nnz / ki_max(table->rows, 1);
    ki_parallel_ranges(options->threads, table->rows, 1 + WORTH_A_PART / row_length, sort_range, &s);
    *twice = s.twice;
    return s.failed ? ki_fail_nomem((size_t)table->nnz, "sorting a row") : KILN_OK;
}

/* Adds up entries of one place, from row `row` on; the arrays close up. */
static void merge(struct ki_table *table, kiln_type type, int64_t row) {
    int64_t to = table->row_start[row], from = to;
    for (; row < table->rows; row++) {
        int64_t begin = to;
        for (; from < table->row_start[row + 1]; from++) {
            double value = value_at(table, type, from);
            if (to > begin && table->col[to - 1] == table->col[from]) {
                set_value(table, type, to - 1, value_at(table, type, to - 1) + value);
                continue;
            }
            table->col[to] = table->col[from];
            set_value(table, type, to++, value);
        }
        table->row_start[row + 1] = to;
    }
    table->nnz = to;
}

static int64_t row_of(const struct ki_table *table, int64_t entry) {
    int64_t low = 0, high = table->rows - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (table->row_start[middle + 1] > entry)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static kiln_status canonical(struct ki_table *table, const struct ki_npz *s) {
    const kiln_read_options *options = s->options;
    struct ki_place place = {s->file, 0, 0, -1};
    int64_t twice;
    kiln_status status = sort_rows(table, options, &twice);
    if (status != KILN_OK) return status;
    if (twice < table->rows && options->strict) {
        ki_fail_at(KILN_ERR_PARSE, &place, "row %lld (counted from 1) has two entries in one column",
                   (long long)twice + 1);
        return ki_hint("without strict reading they are summed; in SciPy: A.sum_duplicates()");
    }
    if (twice < table->rows) merge(table, options->type, twice);
    if (options->allow_nonfinite) return KILN_OK;
    int64_t bad = ki_first_nonfinite(table->values, options->type, table->nnz, options->threads);
    if (bad == table->nnz) return KILN_OK;
    ki_fail_at(KILN_ERR_PARSE, &place,
               "value %g at row %lld, column %lld (counted from 1) is not a finite %s",
               value_at(table, options->type, bad), (long long)row_of(table, bad) + 1,
               (long long)table->col[bad] + 1, options->type == KILN_F32 ? "f32" : "f64");
    return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
}

void ki_npz_clear(struct ki_npz *s) {
    ki_bytes_free(&s->bytes);
    struct ki_npz_array *const arrays[] = {&s->format, &s->shape, &s->indptr, &s->indices, &s->data};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) ki_bytes_free(&arrays[i]->room);
}

kiln_status ki_read_npz(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_npz s = {.options = options, .file = ki_input_name(input)};
    s.left = options->limit > 0 ? options->limit : INT64_MAX;
    TRY(read_all(&s, input));
    TRY(ki_zip_open(&s.zip, (const unsigned char *)s.bytes.data, s.bytes.size, s.file));
    TRY(read_matrix(table, &s));
    TRY(canonical(table, &s));
done:
    ki_npz_clear(&s);
    return status;
}
