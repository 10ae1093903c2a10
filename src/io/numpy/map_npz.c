/* An .npz file with a CSR matrix whose members are stored as they are: row starts are read, columns and
 * values are checked where they lie, checksums too. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/numpy/map.h"
#include "io/numpy/npz.h"
#include "io/ordered.h"

/* An array that can stay where it is: stored, of that kind and size. */
static kiln_status find(struct ki_npz_array *array, struct ki_npz *s, const struct ki_mapping *m,
                        const char *name, int64_t nnz) {
    kiln_status status = ki_npz_open(array, s, name);
    if (status != KILN_OK) return status;
    if (array->member->method != 0)
        return ki_mapping_refuse(m, "the archive is compressed",
                                 "scipy.sparse.save_npz(name, A, compressed=False), or leave --map out");
    if (array->npy.dimensions != 1 || array->count != nnz)
        return ki_npz_fail(s, KILN_ERR_PARSE, "indices or data have not the length that indptr states");
    return KILN_OK;
}

static kiln_status map_columns(struct ki_npz *s, const struct ki_mapping *m, const int64_t *row_start) {
    struct ki_ordered c = ki_ordered_begin(row_start, s->rows, s->cols);
    const struct ki_place place = {s->file, 0, 0, -1};
    kiln_status status;
    TRY(find(&s->indices, s, m, "indices.npy", c.nnz));
    const struct ki_npy *npy = &s->indices.npy;
    if (npy->kind != 'i' || npy->itemsize != 4 || npy->swapped)
        return ki_mapping_refuse(m, "its indices are no 32-bit integers of this machine",
                                 "A.indices = A.indices.astype('i4'), or leave --map out");
    m->file->at[KI_COL] = s->indices.member->begin + s->indices.header;
    TRY(ki_npz_elements(&s->indices, s, NULL, ki_ordered_use, &c));
    if (c.outside == INT64_MAX) TRY(ki_ordered_seams(&c, m->file));
    if (c.outside < INT64_MAX)
        TRY(ki_fail_at(KILN_ERR_PARSE, &place, "indices[%lld] is outside 0 to %lld", (long long)c.outside,
                       (long long)s->cols - 1));
    if (c.unordered < INT64_MAX)
        TRY(ki_mapping_refuse(m, "columns do not ascend in each row",
                              "A.sum_duplicates() before saving it, or leave --map out"));
done:
    return status;
}

static kiln_status map_values(struct ki_npz *s, const struct ki_mapping *m, int64_t nnz) {
    const kiln_type type = m->options->type;
    struct ki_numbers numbers = {&s->data.npy, type, NULL, 0, nnz, m->options->allow_nonfinite,
                                 INT64_MAX,    false};
    const struct ki_place place = {s->file, 0, 0, -1};
    kiln_status status;
    TRY(find(&s->data, s, m, "data.npy", nnz));
    if (!ki_npy_native(&s->data.npy, type))
        return ki_mapping_refuse(m, "its data are not of the wanted type", ki_npy_remedy(&s->data.npy, type));
    m->file->at[KI_VALUES] = s->data.member->begin + s->data.header;
    TRY(ki_npz_elements(&s->data, s, NULL, ki_numbers_use, &numbers));
    if (numbers.bad < INT64_MAX) {
        ki_fail_at(KILN_ERR_PARSE, &place, "data[%lld] is not a finite %s", (long long)numbers.bad,
                   type == KILN_F32 ? "f32" : "f64");
        TRY(ki_hint("repair or remove the row; --allow-nonfinite accepts such values"));
    }
done:
    return status;
}

kiln_status ki_map_npz(struct ki_table *table, struct ki_mapping *m) {
    kiln_status status;
    struct ki_npz s = {.options = m->options, .file = m->file->name, .watch = &m->watch};
    int64_t *row_start = NULL;
    s.left = m->options->limit > 0 ? m->options->limit : INT64_MAX;
    TRY(ki_zip_open_file(&s.zip, &s.bytes, m->file, m->bytes));
    TRY(ki_npz_outline(&row_start, &s));
    if (s.by_column)
        TRY(ki_mapping_refuse(
            m, "it is stored by columns",
            "scipy.sparse.save_npz(name, A.tocsr(), compressed=False), or leave --map out"));
    TRY(map_columns(&s, m, row_start));
    TRY(map_values(&s, m, row_start[s.rows]));
    table->format = KILN_CSR;
    table->rows = s.rows;
    table->cols = s.cols;
    table->nnz = row_start[s.rows];
    table->row_start = row_start;
    row_start = NULL;
done:
    ki_free(row_start);
    ki_npz_clear(&s);
    return status;
}
