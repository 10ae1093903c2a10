/* What a side of the bound is made of, and its step given the other. Factors T and U are scaled by rows, which cancels in the quotient
 * times a factor, and comes back in the logarithm: log(sum_k T U) + scale_d + scale_w. */
#include "algorithms/topics/lda.h"

kiln_status ki_lda_documents_new(struct ki_lda_documents *d, const kiln_matrix *X, int64_t k, bool logs) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t m = kiln_matrix_rows(X);
    kiln_matrix *words = NULL, **const all[] = {&d->gamma, &d->T, &d->Y, &d->logs};
    kiln_status status = KILN_OK;
    d->X = X;
    for (int i = 0; i < (logs ? 4 : 3); i++) TRY(kiln_matrix_dense(all[i], device, type, m, k, NULL));
    TRY(kiln_matrix_dense(&d->scale, device, type, m, 1, NULL));
    TRY(kiln_matrix_dense(&d->length, device, type, m, 1, NULL));
    TRY(ki_topics_ones(&d->ones, X, m));
    TRY(ki_topics_ones(&words, X, kiln_matrix_cols(X)));
    TRY(kiln_multiply(d->length, 1, KILN_PLAIN, X, words, 0, NULL));
done:
    kiln_matrix_free(words);
    return status;
}

void ki_lda_documents_free(struct ki_lda_documents *d) {
    kiln_matrix *const all[] = {d->gamma, d->T, d->Y, d->logs, d->scale, d->length, d->ones};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

kiln_status ki_lda_topics_new(struct ki_lda_topics *t, const kiln_matrix *X, int64_t k, double eta) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t n = kiln_matrix_cols(X);
    kiln_matrix *documents = NULL, **const wide[] = {&t->lambda, &t->U, &t->Z},
                **const row[] = {&t->prior, &t->shift, &t->alpha};
    double **const lists[] = {&t->sums, &t->a, &t->b};
    kiln_status status = KILN_OK;
    t->eta = eta;
    for (int i = 0; i < 3; i++) {
        TRY(kiln_matrix_dense(wide[i], device, type, n, k, NULL));
        TRY(kiln_matrix_dense(row[i], device, type, 1, k, NULL));
        if (!(*lists[i] = ki_alloc((size_t)k * sizeof(double))))
            TRY(ki_fail_nomem((size_t)k * sizeof(double), "the topics' sums"));
    }
    TRY(kiln_fill(t->prior, eta));
    TRY(kiln_matrix_dense(&t->scale, device, type, n, 1, NULL));
    TRY(kiln_matrix_dense(&t->length, device, type, n, 1, NULL));
    TRY(ki_topics_ones(&t->ones, X, n));
    TRY(ki_topics_ones(&documents, X, kiln_matrix_rows(X)));
    TRY(kiln_multiply(t->length, 1, KILN_TRANSPOSED, X, documents, 0, NULL));
done:
    kiln_matrix_free(documents);
    return status;
}

void ki_lda_topics_free(struct ki_lda_topics *t) {
    kiln_matrix *const all[] = {t->lambda, t->U,     t->Z,     t->scale, t->length,
                                t->ones,   t->prior, t->shift, t->alpha};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    ki_free(t->sums);
    ki_free(t->a);
    ki_free(t->b);
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
