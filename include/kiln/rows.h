/* Kiln: a few rows at a time, in the caller's memory, for servers.
 *
 * These calls make no matrix and no copy, allocate nothing and take no lock: several threads may make them
 * at once, with one model, too. The device is a CPU and gives them its instruction set and its number of
 * threads, which share only work of a million products or more. They read models where these lie, so that
 * what the caller writes there between two calls counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_ROWS_H
#define KILN_ROWS_H

#include "kiln/models.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A linear model, prepared: eta = X W + 1 b for rows X (m x n), W n x k, b 1 x k. */
typedef struct kiln_row_model {
    size_t size;
    kiln_type type;  /* of W, b, rows and results */
    int64_t inputs;  /* n */
    int64_t outputs; /* k */
    const void *W;   /* column j's number for output c lies at W[j * input_step + c * output_step] */
    int64_t input_step, output_step; /* in numbers; one of them is 1 */
    const void *b;                   /* outputs numbers; NULL: zeros */
    int has_mean; /* 1: the result is the loss's mean at eta (kiln_loss_mean), of a logistic one both classes'
                   * probabilities; 0: the result is eta */
    kiln_loss_kind kind; /* these as kiln_loss has them; they count where there is a mean */
    kiln_family family;
    kiln_link link;
    double parameter, link_power;
} kiln_row_model;

/* A linear model (linreg, logreg, glm, svm) as kiln_predict_rows takes it, over the model's own tensors: the
 * model must outlive *rows, and its tensors must not be set anew. rows->size is the caller's sizeof.
 * Errors: ERR_ARGUMENT; ERR_MODEL (a damaged model, or of another algorithm); ERR_UNSUPPORTED (W and b of two
 * types). Cost: the model's check; nothing is copied. */
KILN_API kiln_status kiln_row_model_of(kiln_row_model *rows, const kiln_model *model);

/* The columns of kiln_predict_rows' results: outputs; 2 for means of a logistic loss; 0 for NULL. */
KILN_API int64_t kiln_row_model_columns(const kiln_row_model *model);

/* out, m x kiln_row_model_columns(model) by rows: the results for the rows X, dense or CSR, in host memory.
 * Each sum over a row's columns is in the model's type.
 * Errors: ERR_ARGUMENT (NULL, sizes or steps that do not fit, other types than the model's, device memory);
 * ERR_UNSUPPORTED (the device is no CPU); ERR_MODEL (X has other columns than the model); ERR_DATA (row_start
 * or col of a sparse X; numbers that are not finite become results that are not). On failure out is
 * untouched. Cost: 2 nnz k flops, one read of W for each four rows or entries at most. Determinism: the same
 * bits for any number of threads; they may differ from kiln_predict's by rounding. */
KILN_API kiln_status kiln_predict_rows(void *out, const kiln_device *device, const kiln_row_model *model,
                                       const kiln_memory *X);

/* The rows of B (n x r) that are best for each row of A (m x r): the score of b_j for a_i is
 *   a_i . b_j + offsets_j,  or with cosines  a_i . b_j / (||a_i|| ||b_j||), which is 0 where a length is. */
typedef struct kiln_row_lists {
    size_t size;
    kiln_type type;        /* of A, B and offsets */
    int64_t rows, columns; /* m and n */
    int64_t factors;       /* r */
    const void *A, *B;     /* by rows */
    const void *offsets;   /* n, such as items' biases; NULL: zeros. Not with cosines */
    int cosines;
    const kiln_memory *seen; /* m x n CSR, whose stored entries are left out, columns ascending in each row;
                              * its values are not looked at; NULL: none */
    const unsigned char *allowed; /* n: 0 where a row of B is left out for all; NULL: none is */
    int64_t top;                  /* places of a list, from 1 on */
} kiln_row_lists;

/* columns[i * top + t], scores[i * top + t]: the t-th best for row i, ties by number; -1 and NaN where there
 * are fewer. A score that is NaN counts for nothing.
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED (the device is no CPU), ERR_DATA (row_start or col of seen). On
 * failure nothing is written. Cost: 2 m n r flops (with cosines 4) and one read of B a row: from some dozens
 * of rows on kiln_top_products is faster. Determinism: the same bits for any number of threads. */
KILN_API kiln_status kiln_list_rows(int64_t *columns, double *scores, const kiln_device *device,
                                    const kiln_row_lists *lists);

#ifdef __cplusplus
}
#endif
#endif
