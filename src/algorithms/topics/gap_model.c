/* This file says what a model of gap holds, and the factors of new rows under it: the update of A until it
 * rests, B as it is. */
#include "algorithms/topics/gap.h"

#include "algorithms/factor/factor_model.h"

enum { PRIOR, SHAPE, RATE, SETTINGS };
enum { STEPS_MOST = 1000 };

static kiln_status check_model(const kiln_model *model) {
    kiln_status status = ki_model_check_names(model, "columns", ki_model_tensor(model, "B")->rows);
    const double prior = ki_factor_setting(model, PRIOR), shape = ki_factor_setting(model, SHAPE),
                 rate = ki_factor_setting(model, RATE);
    if (status == KILN_OK && (!(prior == KILN_GAP_GAMMA || prior == KILN_GAP_NO_PRIOR) || !(shape >= 1) ||
                              isinf(shape) || !(rate >= 0) || isinf(rate)))
        status = ki_fail(KILN_ERR_MODEL, "tensor 'settings' has a prior %g of shape %g and rate %g", prior,
                         shape, rate);
    return status;
}

/* Holds what a transform works with. */
struct fold {
    kiln_matrix *B;
    struct ki_gap_side side;
    double *under;
};

static kiln_status begin(struct fold *f, struct ki_arena *arena, const kiln_model *model,
                         const kiln_matrix *X) {
    const bool gamma = ki_factor_setting(model, PRIOR) == KILN_GAP_GAMMA;
    kiln_status status;
    TRY(ki_arena_take(arena, &f->B, ki_factor_columns(&f->B, model, X)));
    const int64_t k = kiln_matrix_cols(f->B);
    kiln_matrix *const words = ki_arena_fill(arena, ki_arena_model(arena, X, kiln_matrix_cols(X), 1), 1);
    kiln_matrix *const rows = ki_arena_fill(arena, ki_arena_rows(arena, X, 1), 1);
    f->side = (struct ki_gap_side){.F = ki_arena_fill(arena, ki_arena_rows(arena, X, k), 1),
                                   .Y = ki_arena_rows(arena, X, k),
                                   .rows = rows,
                                   .a = ki_arena_reals(arena, k),
                                   .b = ki_arena_reals(arena, k),
                                   .shape = gamma ? ki_factor_setting(model, SHAPE) : 1};
    f->under = ki_arena_reals(arena, k);
    TRY(arena->status);
    TRY(ki_topics_sums(f->under, f->B, words));
    for (int64_t c = 0; gamma && c < k; c++) f->under[c] += ki_factor_setting(model, RATE);
done:
    return status;
}

/* Until a step raises the likelihood of X by less than 1e-7 of it: the objective's other parts are about as
 * large. */
static kiln_status transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct fold f = {0};
    double fit = 0, before = 0;
    TRY(begin(&f, &arena, model, X));
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = X, .A = f.side.F, .B = f.B};
    for (int64_t step = 0; step < STEPS_MOST; step++, before = fit) {
        TRY(kiln_sddmm_multiply(f.side.Y, &fit, 1, KILN_PLAIN, &sample, 0, NULL));
        TRY(ki_gap_product(&f.side, f.under, 0, NULL));
        TRY(ki_gap_divide(&f.side, f.under));
        if (step > 1 && fabs(fit - before) <= 1e-7 * fabs(fit)) break;
    }
    *A = ki_arena_give(&arena, f.side.F);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status mixtures(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_matrix *A = NULL, *B = NULL;
    struct ki_arena arena = {0};
    kiln_status status;
    TRY(ki_arena_take(&arena, &A, transform(&A, model, X)));
    TRY(ki_arena_take(&arena, &B,
                      kiln_model_tensor(&B, kiln_matrix_device(X), kiln_matrix_type(X), model, "B")));
    TRY(ki_topics_mixtures(P, A, B));
done:
    return ki_arena_free(&arena, status);
}

static bool no_biases(const kiln_model *model, double *mean) {
    (void)model;
    *mean = 0;
    return false;
}

static const kiln_option options_table[] = {
    KI_OPTION(
        kiln_gap_options, prior, CHOICE, 1, 1, 1, 2, "gamma|none",
        "Of a document's topics: a Gamma distribution; none is KL-NMF, whose topics may have any size."),
    KI_OPTION(kiln_gap_options, shape, REAL, 1.1, 1.1, 1, INFINITY, NULL,
              "Shape of the Gamma distribution, at least 1: the larger, the more topics a document has."),
    KI_OPTION(kiln_gap_options, rate, REAL, 1, 1, 0, INFINITY, NULL,
              "Rate of the Gamma distribution: the larger, the smaller a document's weights."),
    KI_OPTION(kiln_gap_options, init, CHOICE, 1, 1, 1, 3, "random|nndsvd|nndsvda",
              "Where to begin: at random, or at the singular vectors, of whose positive or negative parts "
              "the rest is 0 until the run comes to rest (nndsvd), or is the counts' mean (nndsvda)."),
    KI_OPTION_SHARE(kiln_gap_options, 1e-5),
    KI_OPTION_ITERATIONS(kiln_gap_options, 200, ""),
};

const struct ki_algorithm ki_algorithm_gap = {
    .shown = {"gap", "Find topics in counts by a Gamma-Poisson model, or by KL-NMF",
              KI_OPTIONS(options_table, kiln_gap_options), .predicts = 1, .components = 10,
              .trial = &ki_trial_gap},
    .given = offsetof(kiln_gap_options, given),
    .tensors = {{"A", 'm', 'r', false, false, false},
                {"B", 'n', 'r', false, false, false},
                {"settings", '1', '3', false, true, false}},
    .check = check_model,
    .predict = mixtures,
    .transform = transform,
    .biases = no_biases,
    .topics = KI_TOPICS_RATES,
    .passes = {60, 0, false}};

void ki_gap_fill(kiln_gap_options *o, kiln_type type) {
    ki_options_fill(o, &ki_algorithm_gap, type);
    if (o->prior == KILN_GAP_NO_PRIOR) {
        o->shape = 1;
        o->rate = 0;
    }
}

kiln_status kiln_gap_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                           const kiln_gap_options *options) {
    kiln_status status;
    kiln_gap_options o;
    if (!model || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "kiln_gap_model: an argument is NULL");
    TRY(KI_TAKE(kiln_gap_options, &o, options));
    ki_gap_fill(&o, kiln_matrix_type(A));
    const double values[SETTINGS] = {o.prior, o.shape, o.rate};
    status = ki_factor_model(model, "gap", A, B, values, SETTINGS);
done:
    return status;
}
