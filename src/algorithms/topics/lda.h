/* The two sides of LDA's variational bound: documents, with parameters gamma of their mixtures, and topics,
 * with parameters lambda of their words. Each is the best one given the other, so that alternating between
 * them never lowers the bound. */
#ifndef KI_LDA_H
#define KI_LDA_H

#include "algorithms/topics/topics.h"

void ki_lda_fill(kiln_lda_options *options, int64_t topics, kiln_type type); /* 0 becomes the default */

struct ki_lda_documents {
    const kiln_matrix *X;               /* m x n */
    kiln_matrix *gamma, *T, *Y, *logs;  /* m x k; T: exp(E log theta) up to scale; logs NULL if not wanted */
    kiln_matrix *scale, *length, *ones; /* m x 1; length: words of each document */
};
struct ki_lda_topics {
    kiln_matrix *lambda, *U, *Z;        /* n x k; U: exp(E log phi) up to scale */
    kiln_matrix *scale, *length, *ones; /* n x 1; length: times that each word stands in X */
    kiln_matrix *prior, *shift, *alpha; /* 1 x k: eta, digamma of lambda's sums, the documents' prior */
    double *sums, *a, *b;               /* on the host, k each */
    double eta, bound;                  /* bound: the topics' part */
};

/* In the arena; length is filled in. */
kiln_status ki_lda_documents_new(struct ki_lda_documents *d, struct ki_arena *arena, const kiln_matrix *X,
                                 int64_t k, bool logs);
kiln_status ki_lda_topics_new(struct ki_lda_topics *t, struct ki_arena *arena, const kiln_matrix *X,
                              int64_t k, double eta);

/* gamma_dc = alpha_c + length_d / k, the start without any knowledge; T of it. */
kiln_status ki_lda_documents_begin(struct ki_lda_documents *d, struct ki_lda_topics *t, const double *alpha);
/* T of the gamma that is there. */
kiln_status ki_lda_documents_ready(struct ki_lda_documents *d, const struct ki_lda_topics *t);
/* U, and the topics' part of the bound, of the lambda that is there. */
kiln_status ki_lda_topics_ready(struct ki_lda_topics *t);
/* Each document's gamma once more: gamma = alpha + T o (X / (T U^T)) U. bound, change: as
 * kiln_dirichlet_expect; may be NULL. */
kiln_status ki_lda_documents_step(struct ki_lda_documents *d, struct ki_lda_topics *t, double *bound,
                                  double *change);
/* Z = (X / (T U^T))^T T; *fit = sum x log(sum_k exp(E log theta + E log phi)). */
kiln_status ki_lda_words(double *fit, struct ki_lda_documents *d, struct ki_lda_topics *t);
/* lambda = kept lambda + share (eta + factor U o Z). */
kiln_status ki_lda_topics_update(struct ki_lda_topics *t, double kept, double share, double factor);

/* Raises sum_d log Dirichlet(theta_d | alpha), whose sufficient statistics are `logs`, the sums over m
 * documents of E log theta_dc. work: 2 k numbers. */
void ki_lda_learn_alpha(double *alpha, double *work, int64_t k, const double *logs, double m);

/* Passes over the documents in batches, in an order of its own. */
struct ki_lda_batches;
int64_t *ki_lda_batches_steps(struct ki_lda_batches *batches); /* of lambda so far; NULL for NULL */
/* In the arena. */
kiln_status ki_lda_batches_new(struct ki_lda_batches **batches, struct ki_arena *arena, const kiln_matrix *X,
                               int64_t k, const kiln_lda_options *options);
kiln_status ki_lda_batches_run(struct ki_lda_batches *batches, struct ki_lda_topics *t, const double *alpha);

#endif
