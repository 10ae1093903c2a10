/* Kiln: sparse matrices that keep categories as codes, on a CPU or a GPU. Apart from kiln.h, as few programs
 * make them by hand: tables with text columns become such matrices when they are read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_CODES_H
#define KILN_CODES_H

#include "kiln/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A category: of its `levels` columns a row has a 1 in one, or in none. */
typedef struct kiln_codes {
    size_t size;
    int64_t column;    /* of the matrix, where the first level stands; the other levels follow it */
    int64_t levels;    /* columns, 1 or more */
    const void *codes; /* of each row, with a sign: its level, in [0, levels), or -1 for none of them, as of a
                        * missing value or of a reference level */
    int code_bytes;    /* 1, 2 or 4; 0 = 4 */
} kiln_codes;
/* A sparse matrix of numbers and categories, copied, which keeps a category as a code a row, in 1, 2 or 4
 * bytes as its levels need, where a 1 in a column takes 8 or 12. codes: `count` categories, 1 or more, in the
 * order of their columns, which do not overlap. numbers: the other columns, dense, rows x (cols - all
 * levels), row-major, in the order of the columns; NULL if there are none.
 * To all calls it is the sparse matrix that has an entry for each number that is not 0 and for each code that
 * is not -1: kiln_matrix_format is KILN_CSR, and results are the same to rounding, but that a number that is
 * 0 takes part in products (0 times infinity is NaN). Multiplications, losses and Gram matrices read codes as
 * they are; before any other operation on it the matrix is expanded, once and for good.
 * Errors: ERR_ARGUMENT; ERR_DATA (a code outside of [-1, levels)); ERR_NOMEM; ERR_UNSUPPORTED (a device that
 * is no CPU, or a group: kiln_matrix_copy takes the entries there). Cost: a pass over the codes. Source:
 * column blocks by kind as in tabmat (Quantco, 2020) and compressed linear algebra (Elgohary et al., VLDB
 * 2016). */
KILN_API kiln_status kiln_matrix_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                       int64_t cols, const void *numbers, const kiln_codes *codes,
                                       int64_t count);
/* A matrix is kept so. */
typedef struct kiln_storage {
    size_t size;
    int64_t bytes;      /* of all of its arrays, wherever they lie */
    int64_t numbers;    /* columns that are kept densely */
    int64_t categories; /* kept as a code a row; entries if this is 0 and numbers is, too */
} kiln_storage;
/* Errors: ERR_ARGUMENT. Cost: none. */
KILN_API kiln_status kiln_matrix_get_storage(kiln_storage *storage, const kiln_matrix *A);

#ifdef __cplusplus
}
#endif
#endif
