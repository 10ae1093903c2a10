/* The entries of a sparse matrix on the host, and matrices made of them. */
#ifndef KI_FACTOR_ENTRIES_H
#define KI_FACTOR_ENTRIES_H

#include "algorithms/algorithm.h"

struct ki_host_entries {
    int64_t rows, cols, nnz;
    int64_t *start;
    int32_t *col;
    double *value;
};
kiln_status ki_entries_get(struct ki_host_entries *entries, const kiln_matrix *X);
/* Arrays for a matrix of that shape, contents undefined. */
kiln_status ki_entries_new(struct ki_host_entries *entries, int64_t rows, int64_t cols, int64_t nnz);
void ki_host_entries_free(struct ki_host_entries *entries);
/* A matrix of them on like's device and of its type. */
kiln_status ki_entries_matrix(kiln_matrix **X, const struct ki_host_entries *entries,
                              const kiln_matrix *like);
/* ERR_DATA, as an error of `call`, that names the first entry that is not finite or, of `counts`, negative;
 * rows count from `row` on. */
kiln_status ki_entries_check(const struct ki_host_entries *entries, const char *call, int64_t row,
                             bool counts);
/* *T = X^T, on X's device, and the sum of X's entries; ERR_DATA, as an error of `call`, where one is not
 * finite. Of an X whose rows lie in processes or in a file T's rows do, too. */
kiln_status ki_entries_take(kiln_matrix **T, double *sum, const char *call, const kiln_matrix *X);
/* The sum alone, of any X; of `counts` none may be negative. */
kiln_status ki_entries_sum(double *sum, const char *call, const kiln_matrix *X, bool counts);
/* *sum = that of (x - mean)^2 over X's entries. */
kiln_status ki_entries_squares(double *sum, const kiln_matrix *X, double mean);
/* to = op(X) v, which is used up; v NULL: ones. */
kiln_status ki_entries_times(double *to, kiln_transpose op, const kiln_matrix *X, double *v);
/* *E = R - mean - row_i - column_j at R's entries, where R's lie; row and column may be NULL, for zeros. */
kiln_status ki_entries_centred(kiln_matrix **E, const kiln_matrix *R, double mean, const double *row,
                               const double *column);
/* ERR_ARGUMENT unless A (m x k) and B (n x k) are two matrices beside a sparse X (m x n), which messages call
 * `name`, and the entries held out, test, are NULL or sparse and of X's shape, type and device. */
kiln_status ki_factors_check(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *B,
                             const kiln_matrix *X, const kiln_matrix *test);

#endif
