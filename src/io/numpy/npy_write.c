/* A dense matrix as numpy.save writes it: magic, version 1.0, a Python dictionary as text padded to 64 bytes,
 * the values. */
#include "core/file.h"
#include "io/numpy/npy_write.h"
#include "io/output.h"

#include <stdio.h>
#include <string.h>

size_t ki_npy_print_header(char header[KI_NPY_HEADER_BYTES], const char *dtype, const char *shape) {
    enum { PREFIX = 10 };
    memset(header, ' ', KI_NPY_HEADER_BYTES);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    int length = snprintf(header + PREFIX, KI_NPY_HEADER_BYTES - PREFIX,
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, shape);
    header[PREFIX + length] = ' ';
    header[8] = (char)(KI_NPY_HEADER_BYTES - PREFIX);
    header[9] = 0;
    header[KI_NPY_HEADER_BYTES - 1] = '\n';
    return KI_NPY_HEADER_BYTES;
}

const char *ki_npy_dtype(kiln_type type) {
    return type == KILN_F32 ? "<f4" : "<f8";
}

kiln_status ki_write_npy(struct ki_output *output, const struct ki_table *table, kiln_type type,
                         int threads) {
    (void)threads;
    char header[KI_NPY_HEADER_BYTES], shape[64];
    kiln_status status;
    if (table->format != KILN_DENSE) {
        ki_fail(KILN_ERR_UNSUPPORTED, ".npy holds dense matrices, and this one is sparse");
        return ki_hint("write .npz, which scipy.sparse.load_npz reads");
    }
    snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)table->rows, (long long)table->cols);
    TRY(ki_output_write(output, header, ki_npy_print_header(header, ki_npy_dtype(type), shape)));
    const int64_t count = table->rows * table->cols;
    if (table->file)
        TRY(ki_output_copy(output, table->file, KI_VALUES, type, count));
    else
        TRY(ki_output_write(output, table->values, (size_t)(count * ki_type_bytes(type))));
done:
    return status;
}
