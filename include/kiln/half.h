/* Kiln: dense factors of half precision. Sampled products wait for the rows that their entries gather, and in
 * half precision these are half as long. Such a factor is an object of its own and no type of matrix, so that
 * no call can be given one that does not take it. kiln.h does not include this header.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_HALF_H
#define KILN_HALF_H

#include "kiln/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_half_type {
    KILN_F16 = 1, /* IEEE 754: 11 binary digits, up to 65504 */
    KILN_BF16 = 2 /* bfloat16: 8 binary digits, the range of f32 */
} kiln_half_type;
typedef struct kiln_half kiln_half;

/* A dense rows x cols factor, row-major, copied from values, 16 bits each. 1 <= cols <= 4096.
 * Errors: ERR_ARGUMENT (NULL, type, size), ERR_UNSUPPORTED (a group of devices), ERR_NOMEM,
 * ERR_DEVICE_NOMEM, device errors. */
KILN_API kiln_status kiln_half_dense(kiln_half **half, kiln_device *device, kiln_half_type type, int64_t rows,
                                     int64_t cols, const uint16_t *values);
/* The same on A's device, with the numbers of a dense f32 or f64 matrix: each becomes the nearest of half
 * precision, ties to even, and infinity beyond the largest. Errors: also ERR_ARGUMENT (A is sparse).
 * Cost: A to the host and back, one pass on one thread. */
KILN_API kiln_status kiln_half_copy(kiln_half **half, kiln_half_type type, const kiln_matrix *A);
KILN_API void kiln_half_free(kiln_half *half); /* NULL is allowed */

/* kiln_sddmm with factors A (m x k) and B (n x k) of one half precision: P_ij = alpha * f(s_ij, a_i . b_j) +
 * beta * P_ij and *sum, where S and P are f32, and products are of f32 and added up in f32. sample names
 * kind, floor and S; its A and B are NULL.
 * Cost: as kiln_sddmm, of half the bytes of A and B. Determinism: as kiln_sddmm. Errors: as kiln_sddmm;
 * ERR_ARGUMENT also where S is not f32, or A and B differ in type; ERR_UNSUPPORTED (a group of devices). */
KILN_API kiln_status kiln_sddmm_half(kiln_matrix *P, double *sum, double alpha, const kiln_sample *sample,
                                     const kiln_half *A, const kiln_half *B, double beta);
/* kiln_sddmm_multiply with such factors: Y = alpha * Q B + beta * Z, or alpha * Q^T A + beta * Z, and *sum,
 * where S, Y and Z are f32, and all sums, too. Y may be Z.
 * Cost: as kiln_sddmm_multiply, of half the bytes of A and B. Determinism: as kiln_sddmm. Errors: as
 * kiln_sddmm_multiply and kiln_sddmm_half. */
KILN_API kiln_status kiln_sddmm_multiply_half(kiln_matrix *Y, double *sum, double alpha, kiln_transpose op,
                                              const kiln_sample *sample, const kiln_half *A,
                                              const kiln_half *B, double beta, const kiln_matrix *Z);

#ifdef __cplusplus
}
#endif
#endif
