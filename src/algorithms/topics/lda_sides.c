/* This file says what a side of the bound is made of, and its step given the other. Factors T and U are
 * scaled by rows, which cancels in the quotient times a factor, and comes back in the logarithm: log(sum_k T
 * U) + scale_d + scale_w. */
#include "algorithms/topics/lda.h"

#include "ops/sampled/gamma.h"

kiln_status ki_lda_documents_new(struct ki_lda_documents *d, struct ki_arena *arena, const kiln_matrix *X,
                                 int64_t k, bool logs) {
    kiln_status status;
    kiln_matrix *const words = ki_arena_fill(arena, ki_arena_model(arena, X, kiln_matrix_cols(X), 1), 1);
    d->X = X;
    d->gamma = ki_arena_rows(arena, X, k);
    d->T = ki_arena_rows(arena, X, k);
    d->Y = ki_arena_rows(arena, X, k);
    d->logs = logs ? ki_arena_rows(arena, X, k) : NULL;
    d->scale = ki_arena_rows(arena, X, 1);
    d->length = ki_arena_rows(arena, X, 1);
    d->ones = ki_arena_fill(arena, ki_arena_rows(arena, X, 1), 1);
    TRY(arena->status);
    TRY(kiln_multiply(d->length, 1, KILN_PLAIN, X, words, 0, NULL));
    ki_arena_drop(arena, words);
done:
    return status;
}

kiln_status ki_lda_topics_new(struct ki_lda_topics *t, struct ki_arena *arena, const kiln_matrix *X,
                              int64_t k, double eta) {
    const int64_t n = kiln_matrix_cols(X);
    kiln_matrix *const documents = ki_arena_fill(arena, ki_arena_rows(arena, X, 1), 1);
    kiln_status status;
    t->eta = eta;
    t->lambda = ki_arena_model(arena, X, n, k);
    t->U = ki_arena_model(arena, X, n, k);
    t->Z = ki_arena_model(arena, X, n, k);
    t->prior = ki_arena_fill(arena, ki_arena_model(arena, X, 1, k), eta);
    t->shift = ki_arena_model(arena, X, 1, k);
    t->alpha = ki_arena_model(arena, X, 1, k);
    t->scale = ki_arena_model(arena, X, n, 1);
    t->length = ki_arena_model(arena, X, n, 1);
    t->ones = ki_arena_fill(arena, ki_arena_model(arena, X, n, 1), 1);
    t->sums = ki_arena_reals(arena, k);
    t->a = ki_arena_reals(arena, k);
    t->b = ki_arena_reals(arena, k);
    TRY(arena->status);
    TRY(kiln_multiply(t->length, 1, KILN_TRANSPOSED, X, documents, 0, NULL));
    ki_arena_drop(arena, documents);
done:
    return status;
}

kiln_status ki_lda_documents_ready(struct ki_lda_documents *d, const struct ki_lda_topics *t) {
    const kiln_dirichlet expect = {.G = d->gamma, .T = d->T, .prior = t->alpha, .rows = 1, .scale = d->scale};
    return kiln_dirichlet_expect(&expect, NULL, NULL);
}

kiln_status ki_lda_documents_begin(struct ki_lda_documents *d, struct ki_lda_topics *t, const double *alpha) {
    const int64_t k = kiln_matrix_cols(d->gamma);
    kiln_status status;
    for (int64_t c = 0; c < k; c++) t->a[c] = alpha[c], t->b[c] = 1 / (double)k;
    TRY(kiln_combine(d->gamma, t->a, d->ones, t->b, d->length));
    TRY(ki_lda_documents_ready(d, t));
done:
    return status;
}

kiln_status ki_lda_topics_ready(struct ki_lda_topics *t) {
    const kiln_dirichlet expect = {
        .G = t->lambda, .T = t->U, .prior = t->prior, .shift = t->shift, .scale = t->scale};
    const int64_t k = kiln_matrix_cols(t->lambda);
    const double n = (double)kiln_matrix_rows(t->lambda);
    kiln_status status;
    double bound, sums = 0;
    TRY(ki_topics_sums(t->sums, t->lambda, t->ones));
    for (int64_t c = 0; c < k; c++) {
        sums += ki_log_gamma(t->sums[c]);
        t->a[c] = ki_digamma(t->sums[c]);
    }
    TRY(ki_vector_set(t->shift, t->a));
    TRY(kiln_dirichlet_expect(&expect, &bound, NULL));
    t->bound = bound - sums + (double)k * (ki_log_gamma(n * t->eta) - n * ki_log_gamma(t->eta));
done:
    return status;
}

kiln_status ki_lda_documents_step(struct ki_lda_documents *d, struct ki_lda_topics *t, double *bound,
                                  double *change) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = d->X, .A = d->T, .B = t->U};
    const kiln_dirichlet expect = {.G = d->gamma,
                                   .T = d->T,
                                   .Y = d->Y,
                                   .prior = t->alpha,
                                   .rows = 1,
                                   .scale = d->scale,
                                   .logs = bound ? d->logs : NULL};
    kiln_status status;
    TRY(kiln_sddmm_multiply(d->Y, NULL, 1, KILN_PLAIN, &sample, 0, NULL));
    TRY(kiln_dirichlet_expect(&expect, bound, change));
done:
    return status;
}

kiln_status ki_lda_words(double *fit, struct ki_lda_documents *d, struct ki_lda_topics *t) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = d->X, .A = d->T, .B = t->U};
    kiln_status status;
    double of_documents, of_words;
    TRY(kiln_sddmm_multiply(t->Z, fit, 1, KILN_TRANSPOSED, &sample, 0, NULL));
    if (!fit) return KILN_OK;
    TRY(kiln_dot(&of_documents, d->length, d->scale));
    TRY(kiln_dot(&of_words, t->length, t->scale));
    *fit += of_documents + of_words;
done:
    return status;
}

kiln_status ki_lda_topics_update(struct ki_lda_topics *t, double kept, double share, double factor) {
    const int64_t k = kiln_matrix_cols(t->lambda);
    kiln_status status;
    TRY(kiln_times(t->Z, t->U, t->Z));
    for (int64_t c = 0; c < k; c++) t->a[c] = share * factor, t->b[c] = share * t->eta;
    TRY(kiln_combine(t->Z, t->a, t->Z, t->b, t->ones));
    for (int64_t c = 0; c < k; c++) t->a[c] = 1, t->b[c] = kept;
    TRY(kiln_combine(t->lambda, t->a, t->Z, t->b, t->lambda));
done:
    return status;
}
