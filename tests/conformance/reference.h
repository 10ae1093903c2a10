/* Every operation again, as naive loops in long double, knowing nothing of the library but its public types.
 *
 * Beside each value stands its gauge, the same sum with every term replaced by its magnitude. Rounding in any
 * order of summation moves a sum of k terms by at most about k * u * gauge (u = unit roundoff), so the
 * distance between what a device says and what the reference says is measured in units of u * gauge: that
 * ratio has a bound that follows from the operation and not from taste. */
#ifndef CONFORMANCE_REFERENCE_H
#define CONFORMANCE_REFERENCE_H

#include <stdbool.h>

#include "kiln.h"

/* A matrix in host memory. row_start NULL: dense. values NULL: every stored entry is 1. */
struct host_matrix {
    kiln_type type;
    int64_t rows, cols, nnz;
    void *values;
    int64_t *row_start;
    int32_t *col;
};

struct expected {
    int64_t count;
    long double *value, *gauge;
    double unit; /* unit roundoff of the type that the operation sums in */
    double gate; /* largest ratio |got - value| / (unit * gauge) that passes; 0: every bit must agree */
};

struct expected expected_new(kiln_type type, int64_t count); /* zeros */
void expected_free(struct expected *out);

/* 2^-24 or 2^-53. */
double unit_roundoff(kiln_type type);
double host_get(const struct host_matrix *A, int64_t e);
void host_set(struct host_matrix *A, int64_t e, double value);
/* The gate for values made of sums of `terms` terms: the proven bound while that is small, and the 4 *
 * sqrt(terms) that independent roundings stay below by far where it is not. */
double gate_for_terms(double terms);
/* The largest ratio over all elements; infinity where a NaN, an infinity or an exact zero does not agree.
 * *worst = the element it was found at. `type` is the type of got. */
double error_ratio(int64_t *worst, const struct expected *expected, kiln_type type, const void *got);

/* Halves of a pass over X: p += X y, and w += X^T p for k columns; w = alpha w + beta z. */
void reference_product(struct expected *p, const struct host_matrix *X, const struct host_matrix *y);
void reference_transposed_product(struct expected *w, const struct host_matrix *X, const struct expected *p,
                                  int64_t k);
void reference_scale_and_add(struct expected *w, double alpha, double beta, const struct host_matrix *z);
/* The most entries in one row, or one column: the terms of those sums. */
int64_t longest_row(const struct host_matrix *X);
int64_t longest_column(const struct host_matrix *X);

/* v, z NULL as in the operation. */
void reference_mmchain(struct expected *out, double alpha, const struct host_matrix *X,
                       const struct host_matrix *v, const struct host_matrix *y, double beta,
                       const struct host_matrix *z);
void reference_multiply(struct expected *out, double alpha, kiln_transpose op, const struct host_matrix *A,
                        const struct host_matrix *B, double beta, const struct host_matrix *Z);
void reference_gram_diagonal(struct expected *out, const struct host_matrix *X, const struct host_matrix *v);
/* kiln_gram: both results. v, c may be NULL. */
void reference_gram(struct expected *G, struct expected *g, const struct host_matrix *X,
                    const struct host_matrix *v, const struct host_matrix *c);
/* k columns of the result; X or Y with one column serves all of them. */
void reference_combine(struct expected *out, int64_t k, const double *a, const struct host_matrix *X,
                       const double *b, const struct host_matrix *Y);
void reference_times(struct expected *out, int64_t k, const struct host_matrix *X,
                     const struct host_matrix *Y);
void reference_map(struct expected *out, kiln_map_kind kind, const struct host_matrix *X);
void reference_fill(struct expected *out, kiln_type type, int64_t count, double value);
void reference_fill_random(struct expected *out, kiln_type type, int64_t count,
                           kiln_distribution distribution, uint64_t seed, uint64_t stream);
void reference_dot(struct expected *out, const struct host_matrix *X, const struct host_matrix *Y);
void reference_norm(struct expected *out, const struct host_matrix *X, kiln_norm_kind kind);

/* The losses of kiln.h on the host. */
struct host_loss {
    int kind, family, link; /* link is not the default */
    double parameter, power;
    const struct host_matrix *y, *weights, *offset; /* weights and offset may be NULL */
};

/* kiln_loss_gradient: all four results. b may be NULL. */
void reference_loss_gradient(struct expected *value, struct expected *G, struct expected *gb,
                             struct expected *C, const struct host_loss *loss, const struct host_matrix *X,
                             const struct host_matrix *W, const struct host_matrix *b);
/* kiln_cg_pass: Q = X^T t + Z with t = s .* (X P + 1 shift), the sums of t, and of each column's (X P + 1
 * shift) .* t. weights, shift may be NULL. */
void reference_cg_pass(struct expected *Q, struct expected *sums, struct expected *curvature,
                       const struct host_matrix *X, const struct host_matrix *weights,
                       const struct host_matrix *P, const struct host_matrix *shift,
                       const struct host_matrix *Z);
/* kiln_loss_hessian: both results. pb, Z may be NULL. */
void reference_loss_hessian(struct expected *Q, struct expected *qb, const struct host_loss *loss,
                            const struct host_matrix *C, const struct host_matrix *X,
                            const struct host_matrix *P, const struct host_matrix *pb, double beta,
                            const struct host_matrix *Z);
void reference_loss_mean(struct expected *M, const struct host_loss *loss, const struct host_matrix *Eta);
void reference_loss_deviance(struct expected *D, const struct host_loss *loss, const struct host_matrix *Eta);

/* Philox4x32-10 on the counter (index, stream) under the key seed, low words first. */
void reference_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t index);

#endif
