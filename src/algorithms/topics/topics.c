/* The perplexity of words held out: mixtures and topics are normalised on the device, then one sampled
 * product has all probabilities and adds up their logarithms. */
#include "algorithms/topics/topics.h"

#include "ops/vectors/reduce.h"

#define LEAST 1e-12 /* probability */

kiln_status ki_topics_check(const char *call, const kiln_matrix *A, const kiln_matrix *B,
                            const kiln_matrix *X, const kiln_matrix *test) {
    kiln_status status;
    TRY(ki_factors_check(call, "X", A, B, X, test));
    if (kiln_matrix_cols(A) < 1 || kiln_matrix_cols(A) > KI_TOPICS_MOST)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld topics, but 1 to %d are possible", call,
                       (long long)kiln_matrix_cols(A), KI_TOPICS_MOST);
done:
    return status;
}

kiln_status ki_topics_counts(const char *call, double *sums, int many, const kiln_matrix *X) {
    static const enum ki_reduce_kind kinds[] = {
        [KI_TOPICS_ENTROPY] = KI_REDUCE_ENTROPY, [KI_TOPICS_FACTORIALS] = KI_REDUCE_FACTORIALS};
    kiln_status status;
    TRY(ki_entries_sum(&sums[KI_TOPICS_WORDS], call, X, true));
    if (!(sums[KI_TOPICS_WORDS] > 0)) TRY(ki_fail(KILN_ERR_DATA, "%s: there are no words in X", call));
    for (int i = KI_TOPICS_ENTROPY; i < many; i++) TRY(ki_reduce_entries(&sums[i], X, kinds[i]));
done:
    return status;
}

kiln_status ki_topics_begin(struct ki_topics_test *t, struct ki_arena *arena, const char *call,
                            const kiln_matrix *test, int64_t topics) {
    const int64_t n = kiln_matrix_cols(test);
    kiln_status status;
    t->test = test;
    TRY(ki_topics_counts(call, &t->words, 1, test));
    t->theta = ki_arena_rows(arena, test, topics);
    t->phi = ki_arena_model(arena, test, n, topics);
    t->totals = ki_arena_rows(arena, test, 1);
    t->ones = ki_arena_fill(arena, ki_arena_model(arena, test, n, 1), 1);
    t->sums = ki_arena_reals(arena, topics);
    TRY(arena->status);
done:
    return status;
}

/* theta = A diag(weight), its rows divided by their sums; weight NULL: ones. totals m x 1 is work space. */
static kiln_status mix(kiln_matrix *theta, kiln_matrix *totals, const kiln_matrix *A, double *weight) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *const ones = ki_arena_fill(&arena, ki_arena_model(&arena, A, kiln_matrix_cols(A), 1), 1);
    TRY(arena.status);
    if (weight) TRY(ki_topics_scale(theta, weight, A));
    TRY(kiln_multiply(totals, 1, KILN_PLAIN, weight ? theta : A, ones, 0, NULL));
    TRY(kiln_map(totals, KILN_MAP_RECIPROCAL, totals));
    TRY(kiln_times(theta, weight ? theta : A, totals));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_topics_perplexity(double *perplexity, struct ki_topics_test *t, const kiln_matrix *A,
                                 const kiln_matrix *B, bool weighted) {
    const int64_t k = kiln_matrix_cols(A);
    kiln_sample sample = {
        .kind = KILN_SAMPLE_QUOTIENT, .floor = LEAST, .S = t->test, .A = t->theta, .B = t->phi};
    kiln_status status;
    double sum = 0;
    TRY(ki_topics_sums(t->sums, B, t->ones));
    TRY(mix(t->theta, t->totals, A, weighted ? t->sums : NULL));
    for (int64_t c = 0; c < k; c++) t->sums[c] = t->sums[c] > 0 ? 1 / t->sums[c] : 0;
    TRY(ki_topics_scale(t->phi, t->sums, B));
    TRY(kiln_sddmm(NULL, &sum, 1, &sample, 0));
    *perplexity = exp(-sum / t->words);
done:
    return status;
}

kiln_status ki_topics_mixtures(kiln_matrix **theta, const kiln_matrix *A, const kiln_matrix *B) {
    const int64_t k = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    kiln_matrix *const made = ki_arena_rows(&arena, A, k), *const totals = ki_arena_rows(&arena, A, 1),
                       *ones = NULL;
    double *sums = NULL;
    kiln_status status;
    if (B) {
        ones = ki_arena_fill(&arena, ki_arena_model(&arena, B, kiln_matrix_rows(B), 1), 1);
        sums = ki_arena_reals(&arena, k);
    }
    TRY(arena.status);
    if (B) TRY(ki_topics_sums(sums, B, ones));
    TRY(mix(made, totals, A, sums));
    *theta = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

kiln_status kiln_perplexity(double *perplexity, const kiln_model *model, const kiln_matrix *A,
                            const kiln_matrix *test) {
    static const char call[] = "kiln_perplexity";
    struct ki_topics_test t = {0};
    struct ki_arena arena = {0};
    kiln_matrix *B = NULL;
    kiln_status status;
    if (!perplexity || !model || !A || !test)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->topics)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s has no topics", call, algorithm->shown.name));
    TRY(ki_arena_take(&arena, &B,
                      kiln_model_tensor(&B, kiln_matrix_device(test), kiln_matrix_type(test), model, "B")));
    TRY(ki_topics_check(call, A, B, test, NULL));
    TRY(ki_topics_begin(&t, &arena, call, test, kiln_matrix_cols(A)));
    TRY(ki_topics_perplexity(perplexity, &t, A, B, algorithm->topics == KI_TOPICS_RATES));
done:
    return ki_arena_free(&arena, status);
}
