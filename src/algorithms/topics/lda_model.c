/* This file says what a model of lda holds, and the mixtures of new documents under it: the documents' step
 * until it rests, lambda as it is. */
#include "algorithms/topics/lda.h"

#include "algorithms/factor/factor_model.h"

enum { STEPS_MOST = 200 };
#define REST 1e-4 /* mean change of gamma */

static double eta_of(const kiln_model *model) {
    return ki_tensor_value(ki_model_tensor(model, "eta"), 0);
}

/* digamma is wanted of all of them. */
static kiln_status check_positive(const kiln_model *model, const char *name) {
    const struct ki_tensor *tensor = ki_model_tensor(model, name);
    for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
        if (!(ki_tensor_value(tensor, i) > 0) || isinf(ki_tensor_value(tensor, i)))
            return ki_fail(KILN_ERR_MODEL, "tensor '%s' has the value %g", name, ki_tensor_value(tensor, i));
    return KILN_OK;
}

static kiln_status check_model(const kiln_model *model) {
    static const char *const names[] = {"A", "B", "alpha", "eta"};
    kiln_status status = ki_model_check_names(model, "columns", ki_model_tensor(model, "B")->rows);
    for (size_t i = 0; status == KILN_OK && i < sizeof names / sizeof *names; i++)
        status = check_positive(model, names[i]);
    return status;
}

static kiln_status take_topics(struct ki_lda_topics *t, double *alpha, struct ki_arena *arena,
                               const kiln_model *model, const kiln_matrix *X) {
    const struct ki_tensor *stored = ki_model_tensor(model, "alpha");
    kiln_matrix *lambda = NULL;
    kiln_status status;
    TRY(ki_arena_take(arena, &lambda, ki_factor_columns(&lambda, model, X)));
    TRY(ki_lda_topics_new(t, arena, X, stored->cols, eta_of(model)));
    for (int64_t c = 0; c < stored->cols; c++) {
        t->a[c] = 1;
        alpha[c] = t->b[c] = ki_tensor_value(stored, c);
    }
    TRY(ki_topics_scale(t->lambda, t->a, lambda));
    TRY(ki_vector_set(t->alpha, t->b));
    TRY(ki_lda_topics_ready(t));
    ki_arena_drop(arena, lambda);
done:
    return status;
}

static kiln_status transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X) {
    const int64_t k = ki_model_tensor(model, "alpha")->cols;
    struct ki_arena arena = {0};
    struct ki_lda_documents d = {0};
    struct ki_lda_topics t = {0};
    double change = INFINITY, *const alpha = ki_arena_reals(&arena, k);
    kiln_status status;
    TRY(arena.status);
    TRY(take_topics(&t, alpha, &arena, model, X));
    TRY(ki_lda_documents_new(&d, &arena, X, k, false));
    TRY(ki_lda_documents_begin(&d, &t, alpha));
    const double rest = REST * (double)kiln_matrix_rows(X) * (double)k;
    for (int step = 0; step < STEPS_MOST && change > rest; step++)
        TRY(ki_lda_documents_step(&d, &t, NULL, &change));
    *A = ki_arena_give(&arena, d.gamma);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status mixtures(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_matrix *A = NULL;
    kiln_status status;
    TRY(transform(&A, model, X));
    TRY(ki_topics_mixtures(P, A, NULL));
done:
    kiln_matrix_free(A);
    return status;
}

static const kiln_option options_table[] = {
    KI_OPTION(kiln_lda_options, alpha, POSITIVE, 0, 0, 0, INFINITY, NULL,
              "Prior of a document's topics: the smaller, the fewer. 1/K if it is not given."),
    KI_OPTION(kiln_lda_options, eta, POSITIVE, 0, 0, 0, INFINITY, NULL,
              "Prior of a topic's words: the smaller, the fewer. 1/K if it is not given."),
    KI_OPTION(kiln_lda_options, learn_alpha, FLAG, 0, 0, 0, 1, NULL,
              "Learn alpha, a number of each topic, beginning with --alpha."),
    KI_OPTION(kiln_lda_options, steps, INTEGER, 2, 2, 1, 10000, NULL,
              "Steps of the documents before each of the topics."),
    KI_OPTION(kiln_lda_options, batch, INTEGER, 0, 0, 0, 1e12, NULL,
              "Online: update the topics after this many documents. 0: after all of them, and the bound "
              "never falls."),
    KI_OPTION(kiln_lda_options, delay, REAL, 10, 10, 0, INFINITY, NULL,
              "Online: the larger, the less the first batches count."),
    KI_OPTION(kiln_lda_options, decay, REAL, 0.7, 0.7, 0.5, 1, NULL,
              "Online: batch t counts (delay + t)^-decay; above 0.5."),
    KI_OPTION(kiln_lda_options, tolerance, REAL, 1e-5, 1e-5, 0, INFINITY, NULL,
              "Stop when an iteration changes the bound by at most this share."),
    KI_OPTION_ITERATIONS(kiln_lda_options, 200, ""),
};

const struct ki_algorithm ki_algorithm_lda = {
    .shown = {"lda", "Find topics in documents by latent Dirichlet allocation",
              KI_OPTIONS(options_table, kiln_lda_options), .predicts = 1, .components = 10,
              .trial = &ki_trial_lda},
    .given = offsetof(kiln_lda_options, given),
    .tensors = {{"A", 'm', 'r', false, false, false},
                {"B", 'n', 'r', false, false, false},
                {"alpha", '1', 'r', false, true, false},
                {"eta", '1', '1', false, true, false}},
    .check = check_model,
    .predict = mixtures,
    .transform = transform,
    .topics = KI_TOPICS_SHARES,
    .passes = {50, 0, false}};

void ki_lda_fill(kiln_lda_options *o, int64_t topics, kiln_type type) {
    ki_options_fill(o, &ki_algorithm_lda, type);
    if (o->alpha == 0) o->alpha = 1 / (double)topics;
    if (o->eta == 0) o->eta = 1 / (double)topics;
}

kiln_status kiln_lda_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                           const kiln_matrix *alphas, const kiln_lda_options *options) {
    kiln_status status;
    kiln_lda_options o;
    kiln_model *made = NULL;
    kiln_matrix *alpha = NULL, *eta = NULL;
    if (!model || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_model: an argument is NULL");
    kiln_device *device = kiln_matrix_device(A);
    TRY(KI_TAKE(kiln_lda_options, &o, options));
    ki_lda_fill(&o, kiln_matrix_cols(A), kiln_matrix_type(A));
    if (alphas) {
        TRY(kiln_matrix_copy(&alpha, device, KILN_F64, alphas));
    } else {
        TRY(kiln_matrix_dense(&alpha, device, KILN_F64, 1, kiln_matrix_cols(A), NULL));
        TRY(kiln_fill(alpha, o.alpha));
    }
    TRY(kiln_matrix_dense(&eta, device, KILN_F64, 1, 1, &o.eta));
    TRY(kiln_model_create(&made, "lda"));
    TRY(kiln_model_set_tensor(made, "A", A));
    TRY(kiln_model_set_tensor(made, "B", B));
    TRY(kiln_model_set_tensor(made, "alpha", alpha));
    TRY(kiln_model_set_tensor(made, "eta", eta));
    TRY(ki_model_check(made));
    *model = made;
    made = NULL;
done:
    kiln_matrix_free(alpha);
    kiln_matrix_free(eta);
    kiln_model_free(made);
    return status;
}
