/* Kiln: topic models of sparse counts. Documents are the rows of X, words its columns; a topic is a
 * distribution over words, a document a mixture of topics.
 *
 * Training fills A, documents x topics, and B, words x topics. kiln_transform finds the rows of A of new
 * documents; kiln_perplexity says how well a model predicts words that it has not seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_TOPICS_H
#define KILN_TOPICS_H

#include "kiln/factors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* exp(- sum x_dw log p(w|d) / sum x_dw) over the entries of `test`, whose row d belongs to row d of A, from
 * kiln_transform or from training:
 *   p(w|d) = sum_k theta_dk phi_wk,  each document's theta and each topic's phi divided by their sums over
 * all topics and all words, so that p(.|d) adds up to 1 over the whole vocabulary, and models of different
 * kinds can be compared. gap: theta_dk = A_dk sum_w B_wk, phi = B; lda: means of the Dirichlet distributions,
 * theta = A, phi = B. A p(w|d) below 1e-12 counts as 1e-12, as a word that training has not seen may have no
 * probability at all. 1 <= perplexity; the number of words is what guessing reaches.
 * Errors: ERR_ARGUMENT (shapes, types, devices, test dense), ERR_DATA (no words in test), ERR_MODEL (no topic
 * model), memory and device errors. Cost: as one kiln_sddmm of test. */
KILN_API kiln_status kiln_perplexity(double *perplexity, const kiln_model *model, const kiln_matrix *A,
                                     const kiln_matrix *test);

/* ------------------------------------------------------------------------- Dirichlet expectations */

/* Parameters of Dirichlet distributions, and what sampled products need of them. */
typedef struct kiln_dirichlet {
    size_t size;
    kiln_matrix *G;           /* r x k, the parameters, > 0 */
    kiln_matrix *T;           /* r x k */
    const kiln_matrix *Y;     /* r x k, or NULL */
    const kiln_matrix *prior; /* 1 x k */
    const kiln_matrix *shift; /* 1 x k, or NULL: zeros */
    int rows;                 /* a row is a distribution; else a column */
    kiln_matrix *scale;       /* r x 1, or NULL */
    kiln_matrix *logs;        /* r x k, or NULL */
} kiln_dirichlet;

/* With Y first  G_ic = prior_c + T_ic Y_ic,  and then
 *   E_ic = digamma(G_ic) - shift_c - (rows ? digamma(sum_c G_ic) : 0),   logs = E
 *   scale_i = max_c E_ic,  T_ic = exp(E_ic - scale_i)
 * so that exp(E) = T times exp(scale) by rows, and T, whose rows have a largest entry of 1, underflows only
 * where it does not matter. For columns the shift is digamma of their sums.
 *   *bound = sum_ic [(prior_c - G_ic) E_ic + log gamma(G_ic)] - (rows ? sum_i log gamma(sum_c G_ic) : 0),
 *   *change = sum_ic |G_ic - what it was|; 0 without Y.  Either may be NULL.
 * Cost: one read of G, T and Y, one write of G and T. On a GPU a sum that is wanted waits for it.
 * Determinism: run to run.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing), memory and device errors.
 * Source: Blei, Ng and Jordan, "Latent Dirichlet allocation", JMLR 2003, appendix A. */
KILN_API kiln_status kiln_dirichlet_expect(const kiln_dirichlet *dirichlet, double *bound, double *change);

/* --------------------------------------------------------------------------- Gamma-Poisson, KL-NMF */

typedef enum kiln_gap_prior {
    KILN_GAP_GAMMA =
        1, /* entries of A come from Gamma(shape, rate); each topic's B sums to 1 over the words */
    KILN_GAP_NO_PRIOR = 2 /* nothing of the kind: KL-NMF */
} kiln_gap_prior;

typedef enum kiln_gap_init {
    KILN_GAP_RANDOM = 1,
    KILN_GAP_NNDSVD =
        2, /* from X's leading singular vectors, as in scikit-learn; its zeros stay until the run comes to
              rest: not with a prior */
    KILN_GAP_NNDSVDA = 3 /* the same with X's mean in place of zeros */
} kiln_gap_init;

/* Counts as Poisson variables with means A B^T (m x k times k x n): minimises over A, B >= 0
 *   sum_ij [x_ij log(x_ij / l_ij) - x_ij + l_ij]  +  sum_dk [rate a_dk - (shape - 1) log a_dk],   l = A B^T,
 * over all cells of X, of which zeros count through column sums alone. By multiplicative updates, which
 * never raise the objective but for rounding: A first, then B, two fused passes over X an iteration; nothing
 * of X's size times k is stored. Without a prior these are the steps of Lee and Seung as in scikit-learn's
 * NMF(solver="mu", beta_loss="kullback-leibler"). They leave a zero as it is, and hardly move what is near
 * it. So a run whose objective falls by no more than the tolerance has converged only if the conditions of
 * Karush, Kuhn and Tucker bound what the best A given B, and the best B given A, would take off the
 * objective: by the square root of the tolerance of it in all, but for rounding. Otherwise entries that have
 * to grow are lifted from then on, which takes another pass an iteration. Where a mean is 0 the quotient's
 * floor stands for it, where a topic has no words its column becomes 0. report->objective is that of the A
 * and B that are returned, report->residual its relative decrease in the last iteration. Figures:
 * "side_gain", that bound, as it was last taken, or NaN; "setbacks", iterations in which the objective rose
 * by more than rounding; "log_likelihood", sum_ij [x_ij log l_ij - l_ij - log(x_ij!)]; with a test
 * "test_perplexity" (kiln_perplexity). On failure A, B and the report are untouched. Errors: ERR_ARGUMENT;
 * ERR_DATA (X without entries, or with negative ones, NaN or infinity); memory and device errors.
 * Determinism: run to run. Cost: 8 nnz k flops an iteration (12 where zeros are lifted), two such passes
 * before; a start from singular vectors some ten products of X and X^T with k + 8 columns, and k^3 flops on
 * the host each. Source: Canny, "GaP: a factor model for discrete data", SIGIR 2004; Lee and Seung,
 * "Algorithms for non-negative matrix factorization", NIPS 2000; Lin, "On the convergence of multiplicative
 * update algorithms for nonnegative matrix factorization", IEEE TNN 2007; Nisa et al., HiPC 2018. */
typedef struct kiln_gap_options {
    size_t size;
    int prior;               /* enum kiln_gap_prior; default GAMMA */
    double shape;            /* of the prior, >= 1; default 1.1 */
    double rate;             /* of the prior, >= 0; default 1 */
    double tolerance;        /* on the relative decrease of the objective, twice if sudden; default 1e-5 */
    int64_t max_iterations;  /* default 200 */
    int warm_start;          /* go on from A and B; default: as init says */
    int64_t seed;            /* of the random start */
    const kiln_matrix *test; /* m x n CSR: entries that X does not have, whose perplexity is told; or NULL */
    kiln_control control;
    int init; /* enum kiln_gap_init, without warm_start; default RANDOM. NNDSVD and NNDSVDA: k <= min(m, n) */
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_gap_options;
KILN_API kiln_status kiln_gap(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X,
                              const kiln_gap_options *options, kiln_report *report);
/* The model that kiln_transform, kiln_recommend and kiln_perplexity take: tensors A, B and settings (1 x 3,
 * f64: prior, shape, rate). A text "columns", a JSON array of strings, may name the words. */
KILN_API kiln_status kiln_gap_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                                    const kiln_gap_options *options);
/* Holds what a topic model claims, again in plain loops with sums in long double: the objective, or the
 * bound, of A and B. options as in training. Errors: ERR_ARGUMENT, ERR_NOMEM. Cost: nnz k on one thread. */
typedef struct kiln_topics_verification {
    size_t size;
    double objective;
    double rounding; /* what the rounding of the model's type may have made of the objective */
    double figure;   /* gap: "log_likelihood"; lda: "perplexity_bound" */
    double figure_rounding;
} kiln_topics_verification;
KILN_API kiln_status kiln_verify_gap(kiln_topics_verification *result, const kiln_matrix *X,
                                     const kiln_matrix *A, const kiln_matrix *B,
                                     const kiln_gap_options *options);

/* --------------------------------------------------------------------- latent Dirichlet allocation */

/* Variational Bayes for latent Dirichlet allocation: a document draws its mixture of topics from
 * Dirichlet(alpha), each word's topic from that mixture, and the word from the topic, which is drawn from
 * Dirichlet(eta). On return row d of A (m x k) holds the parameters gamma of the Dirichlet distribution that
 * stands for document d's mixture, column c of B (n x k) those (lambda) of topic c:
 *   gamma = alpha + T o ((X / (T U^T)) U),  lambda = eta + U o ((X / (T U^T))^T T),
 *   T = exp(E log theta), U = exp(E log phi),
 * `steps` of the first for all documents at once, then one of the second. Documents begin where they were,
 * but for the first five iterations after a random start, without `batch`: there they begin anew and take at
 * least ten steps, since random topics are no place to begin from. report->objective is the variational lower
 * bound of log p(X), of the gamma and lambda that are returned; without `batch` it never falls from then on
 * but for rounding (with learn_alpha neither). report->residual is its relative change in the last
 * iteration. With `batch` an iteration is a pass over batches of documents in an order of its own, each of
 * which moves lambda a part of the way; then `steps` for all documents, which the bound is of. Once a pass
 * has changed the bound by no more than the tolerance, iterations are as without `batch`, and one of these
 * ends the run: it has converged to what a run without batches would leave, too.
 * Figures: "perplexity_bound", exp(-bound / words); with `batch` "batches" taken, without it "setbacks",
 * iterations in which the bound fell by more than rounding, from where it never should; with a test
 * "test_perplexity" (kiln_perplexity). On failure A, B, alphas and the report are untouched.
 * Errors: ERR_ARGUMENT; ERR_DATA (X without words, or with negative entries, NaN or infinity; a warm start
 * that is not above 0); memory and device errors. Determinism: run to run. Cost: 4 nnz k (steps + 1) flops an
 * iteration; online more, as batches begin anew.
 * Source: Blei, Ng and Jordan, "Latent Dirichlet allocation", JMLR 2003; Hoffman, Blei and Bach, "Online
 * learning for latent Dirichlet allocation", NIPS 2010; Nisa et al., HiPC 2018, equation 3. */
typedef struct kiln_lda_options {
    size_t size;
    double alpha, eta; /* default 1/k */
    int learn_alpha;   /* a number for each topic, by Newton's method; not with batch */
    int64_t steps;     /* of the documents before each of the topics; default 2 */
    int64_t batch;     /* documents that lambda waits for; default all of them */
    double delay,
        /* batch t moves lambda by (delay + t)^-decay of the way; default 10 and 0.7; decay in (0.5, 1] */
        decay;
    double tolerance;        /* on the relative change of the bound, twice if sudden; default 1e-5 */
    int64_t max_iterations;  /* default 200 */
    int warm_start;          /* go on from A, B and alphas; default: lambda random */
    int64_t seed;            /* of the random start, and of the order of documents in batches */
    kiln_matrix *alphas;     /* 1 x k, or NULL: receives each topic's alpha */
    const kiln_matrix *test; /* m x n CSR: entries that X does not have, whose perplexity is told; or NULL */
    kiln_control control;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_lda_options;
KILN_API kiln_status kiln_lda(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X,
                              const kiln_lda_options *options, kiln_report *report);
/* The model that kiln_transform (gamma of new documents) and kiln_perplexity take, and kiln_predict, which
 * gives mixtures: tensors A, B, alpha (1 x k) and eta (1 x 1). alphas: as training left them; NULL =
 * options->alpha for each topic. */
KILN_API kiln_status kiln_lda_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                                    const kiln_matrix *alphas, const kiln_lda_options *options);
/* As kiln_verify_gap: the bound. alphas as in kiln_lda_model. */
KILN_API kiln_status kiln_verify_lda(kiln_topics_verification *result, const kiln_matrix *X,
                                     const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *alphas,
                                     const kiln_lda_options *options);

#ifdef __cplusplus
}
#endif
#endif
