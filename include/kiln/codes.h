/* Kiln: matrices that are kept in fewer bytes: categories as codes, values as narrow as they are, and sparse
 * ones not at all where they are one number.
 * Apart from kiln.h, as few programs make them by hand: data become such matrices when they are
 * read.
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
/* Values as they lie in memory, where that takes fewer bytes than the matrix's type: whole numbers of 8 and
 * 16 bits, without (U) or with (I) a sign, and floating-point numbers of 16 and 32 bits (F: IEEE 754; BF: f32
 * without its last 16 bits). */
typedef enum kiln_element {
    KILN_ELEMENT_TYPE = 0, /* the matrix's type */
    KILN_ELEMENT_U8 = 1,
    KILN_ELEMENT_I8 = 2,
    KILN_ELEMENT_U16 = 3,
    KILN_ELEMENT_I16 = 4,
    KILN_ELEMENT_F16 = 5,
    KILN_ELEMENT_BF16 = 6,
    KILN_ELEMENT_F32 = 7, /* of an f64 matrix */
    KILN_ELEMENT_SAME = 8 /* of a sparse matrix: no values, but one number that all entries are */
} kiln_element;
/* Keeps a matrix's values in fewer bytes from now on, where each of them is a number of `element`;
 * KILN_ELEMENT_TYPE: of the narrowest that all of them are numbers of, if there is one. A sparse matrix has
 * KILN_ELEMENT_SAME alone: where all entries have the bits of one number c, X = c P for a pattern P of 0 and
 * 1, c is kept and no values are, so that an entry takes 4 bytes in place of 8 or 12. *narrowed (NULL is
 * allowed) says whether that is done. The matrix stays what it is to all calls: its type is what is computed
 * in, and results have the bits that they have of the wide matrix; on a GPU passes may add up in another
 * order. Multiplications, losses, squares, column sums and Gram matrices widen values as they read them;
 * before any other operation on the matrix all of them are widened, once and for good, as before it is
 * written. A matrix in processes or in a file, a dense one that has others' memory or for which a CPU's
 * budget has no room for both kinds, and a sparse one without entries stay as they are; others' sparse values
 * are no longer read. Data that are read, dense ones on a GPU if they are large, are kept so where they can
 * be; a matrix made by kiln_matrix_dense, kiln_matrix_csr or kiln_matrix_like is not, until this call.
 * Errors: ERR_ARGUMENT; ERR_NOMEM; of the operation that has values widened ERR_NOMEM or ERR_DEVICE_NOMEM,
 * where the budget has no room for them. Cost: a pass over the values for each element that is tried, which
 * ends at the first value that is none of its numbers, and their copy, on a GPU by way of host memory.
 * Deterministic, and exact: no value changes. */
KILN_API kiln_status kiln_matrix_narrow(kiln_matrix *A, kiln_element element, int *narrowed);
/* kiln_matrix_wrap of dense values in host memory that are numbers of `element`. A CPU reads them where they
 * lie until an operation has the matrix widened, which then has values of its own; a GPU gets a copy, of few
 * values a widened one, as processes do. Errors: those of kiln_matrix_wrap; ERR_ARGUMENT (a sparse matrix,
 * memory of a device, KILN_ELEMENT_SAME); of the operation that has it widened ERR_NOMEM, where the budget
 * has no room for wide values. Cost: none on a CPU. */
KILN_API kiln_status kiln_matrix_wrap_narrow(kiln_matrix **A, kiln_device *device, const kiln_memory *memory,
                                             kiln_element element);
/* A matrix is kept so. */
typedef struct kiln_storage {
    size_t size;
    int64_t bytes;        /* of all of its arrays, wherever they lie */
    int64_t numbers;      /* columns that are kept densely */
    int64_t categories;   /* kept as a code a row; entries if this is 0 and numbers is, too */
    kiln_element element; /* of the values, as they lie in memory */
    double same;          /* KILN_ELEMENT_SAME: what all entries are; else 0 */
} kiln_storage;
/* Errors: ERR_ARGUMENT. Cost: none. */
KILN_API kiln_status kiln_matrix_get_storage(kiln_storage *storage, const kiln_matrix *A);

#ifdef __cplusplus
}
#endif
#endif
