/* This header has what topic models share. */
#ifndef KI_TOPICS_H
#define KI_TOPICS_H

#include "algorithms/factor/entries.h"
#include "algorithms/run/run.h"

enum { KI_TOPICS_MOST = 4096 };

/* ERR_ARGUMENT unless A is m x k, B n x k, and test (may be NULL) a sparse matrix of X's shape; all of X's
 * device and type. */
kiln_status ki_topics_check(const char *call, const kiln_matrix *A, const kiln_matrix *B,
                            const kiln_matrix *X, const kiln_matrix *test);
/* Sums over the entries x: of x, of x log x - x, of log(x!); the first or all of them. ERR_DATA unless the
 * entries are finite, not negative, and not all 0. */
enum { KI_TOPICS_WORDS, KI_TOPICS_ENTROPY, KI_TOPICS_FACTORIALS, KI_TOPICS_SUMS };
kiln_status ki_topics_counts(const char *call, double *sums, int many, const kiln_matrix *X);

/* Holds what the perplexity of entries held out takes, made once in the arena. */
struct ki_topics_test {
    const kiln_matrix *test;
    kiln_matrix *theta, *phi, *totals, *ones;
    double words, *sums; /* of test; k numbers */
};
kiln_status ki_topics_begin(struct ki_topics_test *t, struct ki_arena *arena, const char *call,
                            const kiln_matrix *test, int64_t topics);
/* weighted: a topic's share of a document is A's entry times the sum of B's column, else A's entry itself. */
kiln_status ki_topics_perplexity(double *perplexity, struct ki_topics_test *t, const kiln_matrix *A,
                                 const kiln_matrix *B, bool weighted);
/* Rows of A divided by their sums, in a new matrix: mixtures of topics. B as above, NULL: not weighted. */
kiln_status ki_topics_mixtures(kiln_matrix **theta, const kiln_matrix *A, const kiln_matrix *B);

/* sums[c] = the sum of column c; ones: as many rows as A, 1 column. */
static inline kiln_status ki_topics_sums(double *sums, const kiln_matrix *A, const kiln_matrix *ones) {
    return kiln_dot(sums, A, ones);
}
/* W_ij = a_j X_ij for a on the host; W may be X. */
static inline kiln_status ki_topics_scale(kiln_matrix *W, const double *a, const kiln_matrix *X) {
    return kiln_combine(W, a, X, NULL, NULL);
}

#endif
