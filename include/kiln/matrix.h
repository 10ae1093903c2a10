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
/* Memory that holds a matrix already: a NumPy or SciPy array's, or what DLPack hands over. */
typedef struct kiln_memory {
    size_t size;
    kiln_type type; /* of values */
    int64_t rows, cols;
    void *values;                /* dense: rows*cols, row-major; sparse: one for each entry */
    const void *row_start;       /* rows+1 numbers as for kiln_matrix_csr; NULL = dense */
    const int32_t *col;          /* of each entry; NULL if dense */
    int row_start_bits;          /* 32, as SciPy has them, or 64; 0 = 64 */
    int on_device;               /* the arrays lie in the memory of a CUDA device; 0 = in host memory */
    int trusted;                 /* row_start and col are right and need no check; 0 = they are checked */
    void (*release)(void *user); /* told once that Kiln is done with the arrays; NULL = nobody is */
    void *user;
} kiln_memory;
/* A matrix over the caller's memory, without a copy of values and columns; row starts of 32 bits are widened.
 * The arrays must stay, and row_start and col must not change, until release is called: by kiln_matrix_free,
 * after the last of the matrices that share the structure. For memory of a CUDA device the call waits until
 * all work that this process has queued there is done. On the CPU, and in device memory, an operation that
 * writes the matrix writes the caller's values, and what the caller writes between two calls is seen; after a
 * sparse matrix has been used, only through kiln_matrix_set. Host memory for a GPU is uploaded when it is
 * needed, and results do not go back to it. Host arrays begin at multiples of their element's size, device
 * memory at multiples of 256 bytes, as allocators give it. Lent memory counts against no budget. Errors:
 * those of kiln_matrix_csr; ERR_UNSUPPORTED (on_device for an OpenCL device or a group of GPUs). On failure
 * release is not called. Cost: the check of a sparse structure, one pass over col; in device memory the
 * device makes it, and where the columns of a row do not ascend, they are downloaded, too. */
KILN_API kiln_status kiln_matrix_wrap(kiln_matrix **A, kiln_device *device, const kiln_memory *memory);
/* The reverse: where a dense matrix's values lie, for others to use in place, as DLPack hands them over.
 * Fills type, rows, cols, values and on_device; all work on them is done. From then on the matrix stays where
 * it is until it is freed, which must be after the last use, and which waits for all work that this process
 * has queued on the device. Others may write the values while no call takes the matrix, and their work must
 * have ended before the next.
 * Errors: ERR_ARGUMENT (A is sparse); ERR_UNSUPPORTED (an OpenCL device or a group of GPUs; the values lie in
 * a file); ERR_DEVICE_NOMEM (A was driven out and finds no room). */
KILN_API kiln_status kiln_matrix_lend(kiln_memory *memory, kiln_matrix *A);
/* A sparse matrix with the row starts and columns of `pattern`, which it shares, and values of its own: nnz
 * of them, copied, in the order of pattern's; NULL: ones. type: KILN_TYPE_DEFAULT is pattern's. The structure
 * takes memory once, and both matrices may be freed in any order. A pattern whose values lie in a file stays
 * there: with values its structure is read once more, into memory; ones lie with theirs in a temporary file,
 * in TMPDIR, else in /var/tmp.
 * Errors: ERR_ARGUMENT (pattern is dense), ERR_NOMEM, ERR_DEVICE_NOMEM, device errors. Cost: the values'
 * copy; on a GPU, what passes have derived from a pattern that shared nothing so far is made anew when it is
 * next due. */
KILN_API kiln_status kiln_matrix_like(kiln_matrix **A, const kiln_matrix *pattern, kiln_type type,
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

/* Copies the values out (get) or in (set), nnz elements of its type: rows*cols of a dense matrix, of a sparse
 * one those of its entries. Set makes anew, when it is next due, what passes have derived from the values of
 * a sparse matrix. Errors: ERR_ARGUMENT, ERR_UNSUPPORTED (set; the values lie in a file), device errors. */
KILN_API kiln_status kiln_matrix_get(void *values, const kiln_matrix *A);
KILN_API kiln_status kiln_matrix_set(kiln_matrix *A, const void *values);
/* Copies the three arrays of a CSR matrix out; any of them may be NULL. */
KILN_API kiln_status kiln_matrix_get_csr(int64_t *row_start, int32_t *col, void *values,
                                         const kiln_matrix *A);

#ifdef __cplusplus
}
#endif
#endif
