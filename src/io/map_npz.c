/* An .npz file with a CSR matrix whose members are stored as they are: row starts are read, columns and values are checked where
 * they lie, checksums too. */
#include <zlib.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/map.h"
#include "io/npz.h"

struct walk {
    struct ki_mapping *mapping;
    struct ki_npz *npz;
    const int64_t *row_start;
    int64_t nnz, row; /* that the next column belongs to */
    int32_t previous; /* column in this row, or -1 */
};

/* A member's elements: their header in `npy`, and where they begin. Its checksum begins with the header. */
static kiln_status find_elements(struct ki_npy *npy, int64_t *begin, uLong *crc, const struct walk *walk,
                                 const struct ki_zip_member *member) {
    const struct ki_place place = {walk->npz->file, 0, 0, member->begin};
    const int64_t most = ki_min(member->size, KI_NPY_HEADER_LIMIT);
    int64_t header = 0;
    kiln_status status;
    if (member->method != 0)
        return ki_mapping_refuse(walk->mapping, "the archive is compressed",
                                 "scipy.sparse.save_npz(name, A, compressed=False), or leave --map out");
    TRY(ki_file_read(walk->mapping->file, walk->mapping->piece, member->begin, most));
    TRY(ki_npy_header_size(&header, walk->mapping->piece, (size_t)most, &place));
    TRY(ki_npy_header(npy, walk->mapping->piece, (size_t)ki_min(header, most), &place));
    if (npy->bytes != member->size - header || npy->dimensions != 1 || npy->shape[0] != walk->nnz)
        TRY(ki_npz_fail(walk->npz, KILN_ERR_PARSE, "indices or data have not the length that indptr states"));
    *crc = crc32(crc32(0, Z_NULL, 0), walk->mapping->piece, (uInt)header);
    *begin = member->begin + header;
done:
    return status;
}

/* Columns in range, ascending in each row. */
static kiln_status check_columns(struct walk *walk, int64_t first, int64_t count) {
    const int32_t *col = walk->mapping->piece;
    for (int64_t e = first; e < first + count; e++) {
        const int32_t c = col[e - first];
        while (e >= walk->row_start[walk->row + 1]) {
            walk->row++;
            walk->previous = -1;
        }
        if (c < 0 || c >= walk->npz->cols) {
            const struct ki_place place = {walk->npz->file, 0, 0, -1};
            return ki_fail_at(KILN_ERR_PARSE, &place, "indices[%lld] is outside 0 to %lld", (long long)e,
                              (long long)walk->npz->cols - 1);
        }
        if (c <= walk->previous)
            return ki_mapping_refuse(walk->mapping, "columns do not ascend in each row",
                                     "A.sum_duplicates() before saving it, or leave --map out");
        walk->previous = c;
    }
    return KILN_OK;
}

static kiln_status check_values(struct walk *walk, int64_t first, int64_t count) {
    const kiln_read_options *options = walk->mapping->options;
    if (options->allow_nonfinite) return KILN_OK;
    const int64_t bad = ki_first_nonfinite(walk->mapping->piece, options->type, count, options->threads);
    if (bad == count) return KILN_OK;
    const struct ki_place place = {walk->npz->file, 0, 0, -1};
    ki_fail_at(KILN_ERR_PARSE, &place, "data[%lld] is not a finite %s", (long long)first + (long long)bad,
               options->type == KILN_F32 ? "f32" : "f64");
    return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
}

/* Checks a member piece by piece; *begin is where its elements lie. */
static kiln_status check_member(int64_t *begin, struct walk *walk, const char *name, char kind,
                                int64_t element,
                                kiln_status (*check)(struct walk *walk, int64_t first, int64_t count)) {
    const struct ki_zip_member *member = ki_zip_find(&walk->npz->zip, name);
    struct ki_npy npy;
    uLong crc = 0;
    kiln_status status;
    if (!member)
        return ki_npz_fail(walk->npz, KILN_ERR_UNSUPPORTED, "the .npz archive lacks indices or data");
    TRY(find_elements(&npy, begin, &crc, walk, member));
    if (npy.kind != kind || npy.itemsize != element || npy.swapped)
        return kind == 'i'
                   ? ki_mapping_refuse(walk->mapping, "its indices are no 32-bit integers of this machine",
                                       "A.indices = A.indices.astype('i4'), or leave --map out")
                   : ki_mapping_refuse(walk->mapping, "its data are not of the wanted type",
                                       "the other --type, A.astype('f8'), or leave --map out");
    const int64_t most = KI_MAP_PIECE / element;
    for (int64_t first = 0; first < walk->nnz; first += most) {
        const int64_t count = ki_min(most, walk->nnz - first);
        TRY(ki_mapping_read(walk->mapping, *begin + first * element, count * element));
        crc = crc32(crc, walk->mapping->piece, (uInt)(count * element));
        TRY(check(walk, first, count));
    }
    if ((uint32_t)crc != member->crc)
        TRY(ki_npz_fail(walk->npz, KILN_ERR_PARSE,
                        "the .npz archive is damaged: a member's checksum is wrong"));
done:
    return status;
}

kiln_status ki_map_npz(struct ki_table *table, struct ki_mapping *m) {
    kiln_status status;
    const int64_t element = m->options->type == KILN_F32 ? 4 : 8;
    struct ki_npz s = {.options = m->options, .file = m->file->name};
    struct walk walk = {.mapping = m, .npz = &s, .previous = -1};
    int64_t *row_start = NULL;
    s.left = m->options->limit > 0 ? m->options->limit : INT64_MAX;
    TRY(ki_zip_open_file(&s.zip, &s.bytes, m->file, m->bytes));
    TRY(ki_npz_outline(&row_start, &s));
    if (s.by_column)
        TRY(ki_mapping_refuse(
            m, "it is stored by columns",
            "scipy.sparse.save_npz(name, A.tocsr(), compressed=False), or leave --map out"));
    walk.row_start = row_start;
    walk.nnz = row_start[s.rows];
    TRY(check_member(&m->file->at[KI_COL], &walk, "indices.npy", 'i', 4, check_columns));
    TRY(check_member(&m->file->at[KI_VALUES], &walk, "data.npy", 'f', element, check_values));
    table->format = KILN_CSR;
    table->rows = s.rows;
    table->cols = s.cols;
    table->nnz = walk.nnz;
    table->row_start = row_start;
    row_start = NULL;
done:
    ki_free(row_start);
    ki_npz_clear(&s);
    return status;
}
