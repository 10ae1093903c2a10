/* kiln_verify (verify.c: the sums, verify_criterion.c: gradients over D, verify_loss.c: a row's loss) and
 * kiln_verify_hits share this: slow reference code that shares nothing with the operations it judges. */
#ifndef KI_VERIFY_H
#define KI_VERIFY_H

#include "algorithms/algorithm.h"

/* Rows of a matrix on the host as doubles: all of them, or, where A lies in a file, those of a window about
 * the one that was asked for last. */
struct ki_copy_window {
    int64_t first, end, begin; /* rows; the entry that x begins with */
    int32_t *col;
    double *x;
    int64_t room; /* entries of a window */
    kiln_status status;
    struct ki_error_copy error;
};
struct ki_copy {
    int64_t rows, cols;
    int64_t *row_start;   /* NULL: dense */
    const kiln_matrix *A; /* NULL: all rows are there */
    struct ki_copy_window *window;
};
/* Into a zeroed copy. A that lies in a file is read again each time its rows are gone through, and has to
 * live as long; dense ones of `whole` are there at once. */
kiln_status ki_copy_take(struct ki_copy *copy, const kiln_matrix *A, bool whole);
/* The first error of reading, after which rows are zeros. */
kiln_status ki_copy_check(const struct ki_copy *copy);
void ki_copy_free(struct ki_copy *copy);
void ki_copy_move(const struct ki_copy *copy, int64_t row); /* the window, to begin with it */

static inline int64_t ki_row_begin(const struct ki_copy *A, int64_t i) {
    if (i < A->window->first || i >= A->window->end) ki_copy_move(A, i);
    return (A->row_start ? A->row_start[i] : i * A->cols) - A->window->begin;
}

static inline int64_t ki_row_size(const struct ki_copy *A, int64_t i) {
    return A->row_start ? A->row_start[i + 1] - A->row_start[i] : A->cols;
}

static inline const double *ki_row_values(const struct ki_copy *A, int64_t i) {
    const int64_t begin = ki_row_begin(A, i);
    return A->window->x + begin;
}

static inline int64_t ki_row_column(const struct ki_copy *A, int64_t i, int64_t e) {
    if (!A->row_start) return e;
    const int64_t begin = ki_row_begin(A, i);
    return A->window->col[begin + e];
}

kiln_status ki_copy_vector(double **values, const kiln_matrix *A); /* dense, of ki_alloc */

/* A row's loss and its derivative with respect to eta, with the curvature that training goes by, and the
 * expected one. size: of the terms that these are the sums of; short formulas lose some units of that to
 * rounding, whatever cancels. */
struct ki_verify_value {
    long double value, size;
};
struct ki_verify_slope {
    long double value, curvature, size, expected;
};
/* The loss at eta (k of them for SOFTMAX) with target y, and k slopes. INFINITY where eta is out of range,
 * with slopes of 0. HINGE: y is 1 or -1. */
struct ki_verify_value ki_verify_loss(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                                      const long double *eta, int64_t k);
/* A glm's mean mu, 1 - mu, the slope mu', the logarithms of the first two, and mu'' / mu'. */
struct ki_response {
    long double mu, nu, slope, log_mu, log_nu, bend;
};
struct ki_response ki_verify_response(const kiln_loss *loss, long double eta);
/* A family's loss at a mean, its variance, and the slope there of a link's loss. */
struct ki_verify_value ki_verify_likelihood(const kiln_loss *loss, double y, const struct ki_response *at);
long double ki_verify_variance(const kiln_loss *loss, const struct ki_response *at);
void ki_verify_score(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                     const struct ki_response *at);
/* Minus twice the row's log-likelihood, of families without a dispersion, and the size of what it has beside
 * the deviance, the terms of kiln_loss_deviance's third column. */
struct ki_verify_value ki_verify_minus_twice(const kiln_loss *loss, double y, double weight,
                                             const struct ki_response *at);
/* A row's deviance at a mean, and the terms whose difference it is: by the formula for y near mu, or by
 * that for others. */
long double ki_verify_deviance(const kiln_loss *loss, double y, const struct ki_response *at,
                               struct ki_verify_value best);
long double ki_verify_deviance_size(const kiln_loss *loss, double y, const struct ki_response *at,
                                    struct ki_verify_value best);
/* best: the least loss of y, which is computed for the family whose best mean is not y, beta, and else 0. */
struct ki_verify_value ki_verify_best(const kiln_loss *loss, double y);
/* eta at the mean mu, for a loss of kind GLM. */
double ki_verify_link(const kiln_loss *loss, double mu);

/* A coefficient, the gradient with respect to it (of columns about their means under an intercept), its
 * penalties, and what rounding may have made of the gradient. */
struct ki_verify_entry {
    long double w, g, l2, l1, blur;
    bool positive;
};
/* The least gap that these make; NaN where one has no penalty, and so nothing bounds the optimum. Moves g. */
long double ki_verify_optimality(struct ki_verify_entry *entries, int64_t count);

#endif
