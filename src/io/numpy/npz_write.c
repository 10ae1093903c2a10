/* A CSR matrix in the members that scipy.sparse.save_npz writes: indices, indptr, format, shape, data. */
#include <stdio.h>

#include "core/file.h"
#include "io/numpy/npy_write.h"
#include "io/numpy/zip_write.h"

static kiln_status add_array(struct ki_zip *zip, const char *name, const char *dtype, const char *shape,
                             const void *values, int64_t bytes) {
    char header[KI_NPY_HEADER_BYTES];
    size_t header_bytes = ki_npy_print_header(header, dtype, shape);
    return ki_zip_add(zip, name, header, header_bytes, values, (size_t)bytes);
}

/* Values or columns, which may lie in a file. */
static kiln_status add_part(struct ki_zip *zip, const char *name, const char *dtype, const char *shape,
                            const struct ki_table *table, int part, kiln_type type) {
    char header[KI_NPY_HEADER_BYTES];
    const size_t header_bytes = ki_npy_print_header(header, dtype, shape);
    if (table->file)
        return ki_zip_add_file(zip, name, header, header_bytes, table->file, part, type, table->nnz);
    if (part == KI_COL)
        return ki_zip_add(zip, name, header, header_bytes, table->col,
                          (size_t)table->nnz * sizeof *table->col);
    return ki_zip_add(zip, name, header, header_bytes, table->values,
                      (size_t)(table->nnz * ki_type_bytes(type)));
}

kiln_status ki_write_npz(struct ki_output *output, const struct ki_table *table, kiln_type type,
                         int threads) {
    (void)threads;
    struct ki_zip zip = {.output = output};
    char entries[32], starts[32];
    int64_t shape[2] = {table->rows, table->cols};
    kiln_status status;
    if (table->format != KILN_CSR) {
        ki_fail(KILN_ERR_UNSUPPORTED, ".npz holds sparse matrices, and this one is dense");
        return ki_hint("write .npy, which numpy.load reads");
    }
    snprintf(entries, sizeof entries, "(%lld,)", (long long)table->nnz);
    snprintf(starts, sizeof starts, "(%lld,)", (long long)table->rows + 1);
    TRY(add_part(&zip, "indices.npy", "<i4", entries, table, KI_COL, type));
    TRY(add_array(&zip, "indptr.npy", "<i8", starts, table->row_start,
                  (table->rows + 1) * (int64_t)sizeof(int64_t)));
    TRY(add_array(&zip, "format.npy", "|S3", "()", "csr", 3));
    TRY(add_array(&zip, "shape.npy", "<i8", "(2,)", shape, sizeof shape));
    TRY(add_part(&zip, "data.npy", ki_npy_dtype(type), entries, table, KI_VALUES, type));
    TRY(ki_zip_finish(&zip));
done:
    return status;
}
