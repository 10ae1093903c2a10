/* Kiln: matrices. Dense or CSR, f32 or f64, on one device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_MATRIX_H
#define KILN_MATRIX_H

#include "kiln/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_matrix kiln_matrix;

typedef enum kiln_type { KILN_TYPE_DEFAULT = 0, KILN_F32 = 1, KILN_F64 = 2 } kiln_type;
typedef enum kiln_format { KILN_DENSE = 1, KILN_CSR = 2 } kiln_format;

/* A dense rows x cols matrix, row-major, copied from values; zeros if values is NULL.
 * cols < 2^31. Errors: ERR_ARGUMENT (negative or overflowing size), ERR_NOMEM, ERR_DEVICE_NOMEM. */
KILN_API kiln_status kiln_matrix_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                       int64_t cols, const void *values);
/* A sparse matrix in compressed sparse rows, copied. row_start has rows+1 entries, begins with 0 and does not
 * decrease; col holds column numbers in [0, cols), in any order, at most once in a row (else ERR_DATA).
 * values may be NULL: then every stored entry is 1. Empty rows and nnz = 0 are fine. */
KILN_API kiln_status kiln_matrix_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                     int64_t cols, const int64_t *row_start, const int32_t *col,
                                     const void *values);
/* B = A on another device and/or of another type. type KILN_TYPE_DEFAULT keeps A's. */
KILN_API kiln_status kiln_matrix_copy(kiln_matrix **B, kiln_device *device, kiln_type type,
                                      const kiln_matrix *A);
KILN_API void kiln_matrix_free(kiln_matrix *A); /* NULL is allowed */

KILN_API int64_t kiln_matrix_rows(const kiln_matrix *A);
KILN_API int64_t kiln_matrix_cols(const kiln_matrix *A);
KILN_API int64_t kiln_matrix_nnz(const kiln_matrix *A); /* stored entries; rows*cols if dense */
KILN_API kiln_type kiln_matrix_type(const kiln_matrix *A);
KILN_API kiln_format kiln_matrix_format(const kiln_matrix *A);
KILN_API kiln_device *kiln_matrix_device(const kiln_matrix *A);

/* Copies the values of a dense matrix out (get) or in (set), rows*cols elements of its type. */
KILN_API kiln_status kiln_matrix_get(void *values, const kiln_matrix *A);
KILN_API kiln_status kiln_matrix_set(kiln_matrix *A, const void *values);
/* Copies the three arrays of a CSR matrix out; any of them may be NULL. */
KILN_API kiln_status kiln_matrix_get_csr(int64_t *row_start, int32_t *col, void *values,
                                         const kiln_matrix *A);

#ifdef __cplusplus
}
#endif
#endif
