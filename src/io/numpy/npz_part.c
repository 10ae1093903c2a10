/* Consecutive rows of a CSR matrix in an .npz: row starts are read, columns and values where the rows lie. Of
 * a deflated member what comes before them is inflated and thrown away, unless it is read window by window.
 * Checksums, which are of whole members, are those of deflated ones that are read to their ends. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/numpy/map.h"
#include "io/numpy/npz.h"

/* The header of a deflated member, whose beginning alone is inflated. */
static kiln_status open_deflated(struct ki_npz_array *array, struct ki_npz *s) {
    const struct ki_zip_member *member = array->member;
    const struct ki_place place = {s->file, 0, 0, member->begin};
    const int64_t most = ki_min(member->size, KI_NPY_HEADER_LIMIT);
    char *begin = ki_alloc((size_t)most);
    kiln_status status;
    if (!begin) return ki_fail_nomem((size_t)most, "the .npy header");
    if (member->size > s->left)
        TRY(ki_npz_fail(s, KILN_ERR_LIMIT, "the archive unpacks to more bytes than the limit allows"));
    s->left -= member->size;
    TRY(ki_zip_inflate(&array->stream, begin, &s->zip, member, 0, most));
    TRY(ki_npy_header_size(&array->header, begin, (size_t)most, &place));
    TRY(ki_npy_header(&array->npy, begin, (size_t)most, &place));
    array->count = array->npy.shape[0] * array->npy.shape[1];
    if (array->npy.bytes != member->size - array->header)
        status = ki_npz_fail(s, KILN_ERR_PARSE, "a member has not the length of its shape");
done:
    ki_free(begin);
    return status;
}

/* An array of at least `least` elements. */
static kiln_status open_array(struct ki_npz_array *array, struct ki_npz *s, const char *name, int64_t least) {
    kiln_status status = KILN_OK;
    if (!array->member) {
        array->member = ki_zip_find(&s->zip, name);
        TRY(array->member && array->member->method != 0 ? open_deflated(array, s)
                                                        : ki_npz_open(array, s, name));
    }
    if (array->npy.dimensions != 1) return ki_npz_fail(s, KILN_ERR_PARSE, "indices or data are no vector");
    if (array->count < least)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indptr points behind the end of indices or data");
done:
    return status;
}

/* Elements [first, first + count) as they are. */
static kiln_status read_raw(void *to, const struct ki_npz *s, struct ki_npz_array *array, int64_t first,
                            int64_t count) {
    const int64_t from = array->header + first * array->npy.itemsize, bytes = count * array->npy.itemsize;
    if (array->member->method != 0)
        return ki_zip_inflate(&array->stream, to, &s->zip, array->member, from, bytes);
    return ki_file_read(s->zip.members_in, to, array->member->begin + from, bytes);
}

/* Integers of any width to columns; false if one lies outside the matrix. */
static bool convert_columns(int32_t *col, const struct ki_npz *s, const char *raw, int64_t count) {
    enum { BLOCK = 4096 };
    int64_t wide[BLOCK];
    for (int64_t from = 0; from < count; from += BLOCK) {
        const int64_t some = ki_min(BLOCK, count - from);
        if (!ki_npy_integers(wide, &s->indices.npy, raw + from * s->indices.npy.itemsize, some)) return false;
        for (int64_t i = 0; i < some; i++) {
            if ((uint64_t)wide[i] >= (uint64_t)s->cols) return false;
            col[from + i] = (int32_t)wide[i];
        }
    }
    return true;
}

static kiln_status read_columns(struct ki_table *table, struct ki_npz *s, int64_t first, int64_t all) {
    char *wide = NULL;
    kiln_status status;
    TRY(open_array(&s->indices, s, "indices.npy", all));
    const int64_t size = s->indices.npy.itemsize;
    const size_t bytes = (size_t)(table->nnz * size);
    if (s->indices.npy.kind != 'i' && s->indices.npy.kind != 'u')
        return ki_npz_fail(s, KILN_ERR_PARSE, "indices are no integers");
    table->col = ki_alloc((size_t)table->nnz * 4);
    if (size != 4) wide = ki_alloc(bytes); /* the others where they stay */
    if (!table->col || (size != 4 && !wide)) TRY(ki_fail_nomem(bytes, "columns"));
    char *raw = wide ? wide : (char *)table->col;
    TRY(read_raw(raw, s, &s->indices, first, table->nnz));
    if (!convert_columns(table->col, s, raw, table->nnz))
        status = ki_npz_fail(s, KILN_ERR_PARSE, "a column lies outside the matrix");
done:
    ki_free(wide);
    return status;
}

/* Values of a deflated member come to memory first; native ones to where they stay. */
static kiln_status read_values(struct ki_table *table, struct ki_npz *s, const struct ki_mapping *m,
                               int64_t first, int64_t all) {
    const kiln_read_options *options = m->options;
    const int64_t real = ki_type_bytes(options->type);
    struct ki_chunks chunks = {.file = m->file,
                               .count = table->nnz,
                               .threads = options->threads,
                               .use = ki_numbers_use,
                               .watch = &m->watch};
    void *raw = NULL;
    kiln_status status;
    TRY(open_array(&s->data, s, "data.npy", all));
    table->values = ki_alloc((size_t)(table->nnz * real));
    if (!table->values) return ki_fail_nomem((size_t)(table->nnz * real), "values");
    const bool native = ki_npy_native(&s->data.npy, options->type), deflated = s->data.member->method != 0;
    struct ki_numbers numbers = {
        &s->data.npy, options->type, table->values, 0, table->nnz, options->allow_nonfinite,
        INT64_MAX,    false};
    chunks.element = s->data.npy.itemsize;
    chunks.offset = s->data.member->begin + s->data.header + first * chunks.element;
    chunks.straight = native && !deflated ? table->values : NULL;
    chunks.of = &numbers;
    if (deflated) {
        if (native) numbers.values = NULL; /* only looked at */
        if (!native) raw = ki_alloc((size_t)(table->nnz * chunks.element));
        void *const unpacked = native ? table->values : raw;
        if (!unpacked) TRY(ki_fail_nomem((size_t)(table->nnz * chunks.element), "values"));
        chunks.file = NULL;
        chunks.memory = unpacked;
        TRY(read_raw(unpacked, s, &s->data, first, table->nnz));
    }
    TRY(ki_chunks_run(&chunks));
    if (numbers.bad < INT64_MAX) status = ki_npz_fail(s, KILN_ERR_PARSE, "data are not finite");
done:
    ki_free(raw);
    return status;
}

/* Rows [begin, end) of all; *first: their first entry. */
static kiln_status cut_rows(struct ki_table *table, int64_t *first, const int64_t *start, int64_t begin,
                            int64_t end) {
    table->rows = end - begin;
    table->nnz = start[end] - start[begin];
    *first = start[begin];
    table->row_start = ki_alloc((size_t)(table->rows + 1) * 8);
    if (!table->row_start) return ki_fail_nomem((size_t)(table->rows + 1) * 8, "row starts");
    for (int64_t r = 0; r <= table->rows; r++) table->row_start[r] = start[begin + r] - *first;
    return KILN_OK;
}

static kiln_status read_rows(struct ki_table *table, struct ki_npz *s, const struct ki_mapping *m,
                             const int64_t *start, int64_t begin, int64_t end) {
    int64_t first = 0;
    kiln_status status;
    table->format = KILN_CSR;
    table->cols = s->cols;
    TRY(cut_rows(table, &first, start, begin, end));
    TRY(read_columns(table, s, first, start[s->rows]));
    TRY(read_values(table, s, m, first, start[s->rows]));
    TRY(ki_npz_canonical(table, true, s));
done:
    return status;
}

static kiln_status open_rows(struct ki_npz *s, int64_t **start, struct ki_mapping *m) {
    kiln_status status;
    *s = (struct ki_npz){.options = m->options,
                         .file = m->file->name,
                         .watch = &m->watch,
                         .left = m->options->limit > 0 ? m->options->limit : INT64_MAX};
    TRY(ki_zip_open_file(&s->zip, &s->bytes, m->file, m->bytes));
    TRY(ki_npz_outline(start, s));
    if (s->by_column) TRY(ki_npz_fail(s, KILN_ERR_UNSUPPORTED, "it is stored by columns"));
done:
    return status;
}

/* The part's rows: as many entries in each part as rows allow. */
kiln_status ki_npz_read_part(struct ki_table *table, struct ki_mapping *m, int number, int count) {
    struct ki_npz s;
    int64_t *start = NULL, row[2];
    kiln_status status;
    TRY(open_rows(&s, &start, m));
    for (int end = 0; end < 2; end++) {
        const int64_t entries = ki_part_begin(start[s.rows], number + end, count);
        row[end] = number + end == count ? s.rows : ki_row_at(start, s.rows, entries, 0);
    }
    TRY(read_rows(table, &s, m, start, row[0], row[1]));
done:
    ki_free(start);
    ki_npz_clear(&s);
    return status;
}

kiln_status ki_npz_each_rows(struct ki_mapping *m, int64_t entries,
                             kiln_status (*take)(void *of, struct ki_table *rows), void *of) {
    struct ki_npz s;
    struct ki_table rows = {.rows = 0};
    int64_t *start = NULL;
    kiln_status status;
    TRY(open_rows(&s, &start, m));
    for (int64_t row = 0, end; row < s.rows || row == 0; row = ki_max(end, 1)) {
        for (end = ki_min(row + 1, s.rows); end < s.rows && end - row < entries;)
            if (start[++end] - start[row] > entries) {
                end--;
                break;
            }
        TRY(read_rows(&rows, &s, m, start, row, end));
        TRY(take(of, &rows));
        ki_table_clear(&rows);
    }
done:
    ki_table_clear(&rows);
    ki_free(start);
    ki_npz_clear(&s);
    return status;
}
