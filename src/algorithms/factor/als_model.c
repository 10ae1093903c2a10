/* A model of als is held and used here: factors of new rows are one more half of a sweep. */
#include "algorithms/factor/als.h"
#include "algorithms/factor/confidence.h"
#include "algorithms/factor/factor_model.h"
#include "algorithms/factor/seen.h"

enum { MEAN, L2, ALPHA, BIASES, COUNTED, IMPLICIT, SETTINGS };

static kiln_status check_model(const kiln_model *model) {
    kiln_status status = ki_model_check_names(model, "rows", ki_model_tensor(model, "A")->rows);
    if (status == KILN_OK) status = ki_model_check_names(model, "columns", ki_model_tensor(model, "B")->rows);
    const struct ki_tensor *settings = ki_model_tensor(model, "settings");
    for (int i = 0; status == KILN_OK && i < SETTINGS; i++)
        if (!isfinite(ki_tensor_value(settings, i)) || (i > 0 && ki_tensor_value(settings, i) < 0))
            status =
                ki_fail(KILN_ERR_MODEL, "tensor 'settings' has the value %g", ki_tensor_value(settings, i));
    if (status == KILN_OK && ki_tensor_value(settings, BIASES) != 0 &&
        ki_tensor_value(settings, IMPLICIT) != 0)
        status = ki_fail(KILN_ERR_MODEL, "tensor 'settings' asks for biases in an implicit model");
    const struct ki_tensor *confidence = ki_model_tensor(model, "confidence");
    if (status == KILN_OK && confidence) {
        const double which = ki_tensor_value(confidence, 0), epsilon = ki_tensor_value(confidence, 1);
        if (!(which == 1 || which == 2 || which == 3) || !(epsilon > 0) || isinf(epsilon) ||
            (which == 2 && !(ki_tensor_value(settings, ALPHA) > 0)))
            status = ki_fail(KILN_ERR_MODEL, "tensor 'confidence' has the values %g and %g", which, epsilon);
    }
    return status == KILN_OK ? ki_check_seen(model, ki_model_tensor(model, "B")->rows) : status;
}

static bool has_biases(const kiln_model *model, double *mean) {
    *mean = ki_factor_setting(model, MEAN);
    return ki_factor_setting(model, BIASES) != 0;
}

/* The options that say what the model's entries are taken for. */
static kiln_als_options options_of(const kiln_model *model) {
    const struct ki_tensor *confidence = ki_model_tensor(model, "confidence");
    return (kiln_als_options){.implicit = ki_factor_setting(model, IMPLICIT) != 0,
                              .alpha = ki_factor_setting(model, ALPHA),
                              .confidence =
                                  confidence ? (int)ki_tensor_value(confidence, 0) : KILN_CONFIDENCE_LINEAR,
                              .epsilon = confidence ? ki_tensor_value(confidence, 1) : 1};
}

/* Exactly: there are few new rows, and they have no factors to begin with. */
static kiln_status transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    kiln_matrix *made = NULL, *B = NULL, *gram = NULL, *own = NULL;
    const kiln_als_options asked = options_of(model);
    TRY(ki_factor_columns(&B, model, X));
    TRY(ki_confidence(&X, &own, "kiln_transform", X, &asked));
    const int64_t n = kiln_matrix_cols(B);
    TRY(kiln_matrix_dense(&made, device, type, kiln_matrix_rows(X), n, NULL));
    if (ki_factor_setting(model, IMPLICIT) != 0) {
        TRY(kiln_matrix_dense(&gram, device, type, n, n, NULL));
        TRY(kiln_gram(gram, NULL, B, NULL, NULL));
    }
    const kiln_factor_rows rows = {.size = sizeof rows,
                                   .R = X,
                                   .B = B,
                                   .gram = gram,
                                   .mean = ki_factor_setting(model, MEAN),
                                   .l2 = ki_factor_setting(model, L2),
                                   .alpha = ki_factor_setting(model, ALPHA),
                                   .proportional = asked.confidence == KILN_CONFIDENCE_PROPORTIONAL,
                                   .biases = ki_factor_setting(model, BIASES) != 0,
                                   .counted = ki_factor_setting(model, COUNTED) != 0,
                                   .solver = KILN_FACTOR_CHOLESKY};
    TRY(kiln_factor_solve(made, &rows));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    kiln_matrix_free(B);
    kiln_matrix_free(gram);
    kiln_matrix_free(own);
    return status;
}

static const kiln_option options_table[] = {
    KI_OPTION(
        kiln_als_options, l2, REAL, 0, 0, 0, INFINITY, NULL,
        "Strength of the L2 penalty. By default 0.8 d (sqrt(entries a row) + sqrt(entries a column)), d "
        "the ratings' standard deviation, or 1 with implicit; with counted 0.1 d."),
    KI_OPTION(kiln_als_options, counted, FLAG, 0, 0, 0, 1, NULL,
              "Multiply a row's penalty by the number of its entries (ALS-WR)."),
    KI_OPTION(
        kiln_als_options, biases, FLAG, 1, 1, 0, 1, NULL,
        "Fit the mean and a bias for each row and column beside the factors, as is done by default unless "
        "implicit."),
    KI_OPTION(kiln_als_options, implicit, FLAG, 0, 0, 0, 1, NULL,
              "Take entries for how often something was seen: every absent entry is a weak no."),
    KI_OPTION(kiln_als_options, alpha, REAL, 1, 1, 0, INFINITY, NULL,
              "With implicit: the confidence in an entry r is 1 + alpha |r|, or as confidence says."),
    KI_OPTION(kiln_als_options, solver, CHOICE, 1, 1, 1, 3, "cg|cholesky|ccd",
              "How a row's problem is solved: a few steps of conjugate gradient, or exactly; or ccd, one "
              "factor of all rows and columns after the other (CCD++)."),
    KI_OPTION(kiln_als_options, steps, INTEGER, 3, 3, 1, 10000, NULL,
              "Steps of conjugate gradient for each row, of ccd for each factor."),
    KI_OPTION_SHARE(kiln_als_options, 1e-4),
    KI_OPTION_ITERATIONS(kiln_als_options, 100, ""),
    KI_OPTION(kiln_als_options, confidence, CHOICE, 1, 1, 1, 3, "linear|proportional|log",
              "With implicit: the confidence in an entry r is 1 + alpha |r|, or alpha |r| (the implicit "
              "package's), or 1 + alpha log(1 + |r| / epsilon)."),
    KI_OPTION(kiln_als_options, epsilon, POSITIVE, 1, 1, 0, INFINITY, NULL,
              "With the confidence log: what counts are divided by."),
};

const struct ki_algorithm ki_algorithm_als = {
    .shown = {"als", "Factor a matrix of ratings or counts by alternating least squares",
              KI_OPTIONS(options_table, kiln_als_options), .components = 32, .trial = &ki_trial_als},
    .given = offsetof(kiln_als_options, given),
    .tensors = {{"A", 'm', 'r', false, false, false},
                {"B", 'n', 'r', false, false, false},
                {"settings", '1', '6', false, true, false},
                {"confidence", '1', '2', true, true, false},
                KI_SEEN_TENSORS},
    .check = check_model,
    .transform = transform,
    .biases = has_biases,
    .instead = "kiln recommend shows what it recommends to a user",
    .passes = {20, 0, false}};

void ki_als_fill(kiln_als_options *o, kiln_type type) {
    ki_options_fill(o, &ki_algorithm_als, type);
}

kiln_status ki_factor_known(const char *call, const void *options, const struct ki_algorithm *algorithm) {
    if (ki_option_stands(options, algorithm, "l2")) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "%s: the penalty must be known: l2 is 0", call);
    return ki_hint("training reports the one that it took by default as its figure \"l2\"; kiln_option_give "
                   "says that none is meant");
}

kiln_status kiln_als_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B, double mean,
                           const kiln_als_options *options) {
    kiln_status status;
    kiln_als_options o;
    kiln_model *made = NULL;
    kiln_matrix *row = NULL;
    if (!model || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "kiln_als_model: an argument is NULL");
    TRY(KI_TAKE(kiln_als_options, &o, options));
    ki_als_fill(&o, kiln_matrix_type(A));
    TRY(ki_factor_known("kiln_als_model", &o, &ki_algorithm_als));
    const double values[SETTINGS] = {mean, o.l2, o.alpha, o.biases != 0, o.counted != 0, o.implicit != 0};
    TRY(ki_factor_model(&made, "als", A, B, values, SETTINGS));
    if (o.implicit && o.confidence != KILN_CONFIDENCE_LINEAR) {
        const double confidence[] = {o.confidence, o.epsilon};
        TRY(kiln_matrix_dense(&row, kiln_matrix_device(A), KILN_F64, 1, 2, confidence));
        TRY(kiln_model_set_tensor(made, "confidence", row));
        TRY(ki_model_check(made));
    }
    *model = made;
    made = NULL;
done:
    kiln_matrix_free(row);
    kiln_model_free(made);
    return status;
}
