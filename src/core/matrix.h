/* A matrix: shape, element type, format, and its buffers on one device. */
#ifndef KI_MATRIX_H
#define KI_MATRIX_H

#include "core/device.h"

struct kiln_matrix {
    kiln_device *device;
    kiln_type type;
    kiln_format format;
    int64_t rows, cols, nnz;
    struct ki_buffer values;    /* dense: rows*cols, row-major; CSR: nnz */
    struct ki_buffer row_start; /* CSR: rows+1 of int64_t */
    struct ki_buffer col;       /* CSR: nnz of int32_t */
};

static inline int64_t ki_type_bytes(kiln_type type) {
    return type == KILN_F32 ? 4 : 8;
}

static inline const char *ki_type_name(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

/* A dense matrix whose values are not yet written. */
kiln_status ki_matrix_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows, int64_t cols);
/* Take host arrays from ki_alloc over (see ki_device_adopt); on success they belong to the matrix, on failure
 * to the caller. The CSR form trusts its arrays: the caller has checked them. */
kiln_status ki_matrix_adopt_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, void *values);
kiln_status ki_matrix_adopt_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                int64_t cols, int64_t nnz, int64_t *row_start, int32_t *col, void *values);

/* A to another device (core/move.c); from the CPU without a second copy in host memory. On failure A stays. */
kiln_status ki_matrix_move(kiln_matrix *A, kiln_device *device);

#endif
