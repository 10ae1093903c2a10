/* The linear models' rows of the registry: what their models hold, and what can be set.
 *
 * W n x k and, unless the model has no intercept, b 1 x k. A classifier has its classes, in ascending order,
 * K x 1, and one column of W for two of them, else one for each. */
#include "algorithms/linear_model.h"

#include "algorithms/path.h"
#include "algorithms/linreg/linreg.h"
#include "algorithms/newton/newton_dual.h"
#include "ops/linear/families.h"

enum { TARGETS_MOST = 65536 }; /* what kiln_multiply takes */

/* ------------------------------------------------------------------------------------------ the models */

#define WEIGHTS                                                                                              \
    {"W", 'n', 'k', false, false, false}, {                                                                  \
        "b", '1', 'k', true, false, false                                                                    \
    }

static kiln_status check_linear(const kiln_model *model) {
    const struct ki_tensor *W = ki_model_tensor(model, "W");
    if (W->cols >= 1 && W->cols <= TARGETS_MOST) return KILN_OK;
    return ki_fail(KILN_ERR_MODEL, "tensor 'W' has %lld columns, one for each target: 1 to %d are possible",
                   (long long)W->cols, TARGETS_MOST);
}

static kiln_status check_classifier(const kiln_model *model) {
    const struct ki_tensor *W = ki_model_tensor(model, "W"), *classes = ki_model_tensor(model, "classes");
    kiln_status status = check_linear(model);
    if (status != KILN_OK) return status;
    if (classes->rows < 2)
        return ki_fail(KILN_ERR_MODEL, "tensor 'classes' has %lld rows, but must have 2 or more",
                       (long long)classes->rows);
    for (int64_t i = 1; i < classes->rows; i++)
        if (!(ki_tensor_value(classes, i - 1) < ki_tensor_value(classes, i)))
            return ki_fail(KILN_ERR_MODEL, "tensor 'classes' does not ascend in row %lld", (long long)i + 1);
    if (W->cols != (classes->rows == 2 ? 1 : classes->rows))
        return ki_fail(KILN_ERR_MODEL, "tensor 'W' has %lld columns, which does not suit %lld classes",
                       (long long)W->cols, (long long)classes->rows);
    return ki_model_check_names(model, "class_names", classes->rows);
}

/* A regression has no classes, and a classifier no parameters. */
static kiln_status check_svm(const kiln_model *model) {
    if (!ki_model_tensor(model, "classes")) return check_linear(model);
    if (ki_model_tensor(model, "parameters"))
        return ki_fail(KILN_ERR_MODEL, "the model has classes, and parameters as only a regression has them");
    return check_classifier(model);
}

/* One target, whose loss is known; standard errors are those of W and, where there is one, of b. */
static kiln_status check_glm(const kiln_model *model) {
    const struct ki_tensor *W = ki_model_tensor(model, "W"),
                           *errors = ki_model_tensor(model, "standard_errors");
    kiln_loss loss = {.kind = KILN_LOSS_GLM};
    if (errors && errors->rows != W->rows + (ki_model_tensor(model, "b") != NULL))
        return ki_fail(KILN_ERR_MODEL,
                       "tensor 'standard_errors' has %lld rows, which does not suit %lld columns",
                       (long long)errors->rows, (long long)W->rows);
    return ki_loss_glm(&loss, model);
}

/* ----------------------------------------------------------------------------------------- the options */

#define PENALTY                                                                                              \
    "Strength of the penalty (l2/2)*||w||^2, alpha of Ridge in scikit-learn. The intercept is not "          \
    "penalised."
#define INTERCEPT "Fit no intercept: the prediction is x.w instead of x.w + b."
#define STANDARDIZE                                                                                          \
    "Penalise the coefficients of columns scaled to unit variance. The data are not copied, and the model "  \
    "is for the columns as they are."
#define TINY " 0 goes on until rounding or the limit of iterations ends it."
#define RELATIVE "Stop when the gradient, its columns scaled, is at most this times what it is at zero."
/* Says what all four have. */
#define SHARED(type, f64, f32, most, residual, steps)                                                        \
    KI_OPTION(type, no_intercept, FLAG, 0, 0, 0, 1, NULL, INTERCEPT),                                        \
        KI_OPTION(type, standardize, FLAG, 0, 0, 0, 1, NULL, STANDARDIZE),                                   \
        KI_OPTION(type, tolerance, REAL, f64, f32, 0, INFINITY, NULL, residual TINY),                        \
        KI_OPTION(type, max_iterations, INTEGER, most, most, 1, 9e18, NULL, steps)
#define NEWTON "Stop after this many steps of Newton's method, converged or not."
#define L2(type, standard) KI_OPTION(type, l2, REAL, standard, standard, 0, INFINITY, NULL, PENALTY)

#define L1(type, more)                                                                                       \
    KI_OPTION(type, l1, REAL, 0, 0, 0, INFINITY, NULL,                                                       \
              "Strength of the penalty l1*sum|w|, which makes coefficients exactly 0" more ".")

static const kiln_option linreg_options[] = {
    L2(kiln_linreg_options, 0),
    SHARED(
        kiln_linreg_options, 1e-12, 1e-5, 1000,
        "Stop when the residual of the normal equations, their columns scaled, is at most this times what it "
        "is at zero.",
        "Stop after this many iterations of conjugate gradient, converged or not; 10 a column where that is "
        "more, up to 10000, if it is not given."),
    KI_OPTION(kiln_linreg_options, no_preconditioner, FLAG, 0, 0, 0, 1, NULL,
              "Plain conjugate gradient, without scaling by the diagonal."),
    KI_OPTION(
        kiln_linreg_options, solver, CHOICE, 0, 0, 1, KILN_LINREG_CHOLESKY, "cg|cholesky",
        "Conjugate gradient, or a factor of the normal equations; the cheaper one for the data if it is "
        "not given."),
};

static const kiln_option logreg_options[] = {
    L2(kiln_logreg_options, 1),
    L1(kiln_logreg_options, "; l2 is then 0 if it is not given"),
    SHARED(kiln_logreg_options, 1e-8, 1e-4, 100, RELATIVE, NEWTON),
    KI_OPTION(kiln_logreg_options, balanced, FLAG, 0, 0, 0, 1, NULL,
              "Give all classes the same total weight."),
    KI_OPTION(
        kiln_logreg_options, solver, CHOICE, 0, 0, 1, KILN_CLASSIFIER_DUAL, "newton|dual",
        "Newton's method alone, or after coordinate descent in the dual, for a sparse X on the CPU, which "
        "takes no warm start; without it the one that is expected to be faster."),
};

static const kiln_option glm_options[] = {
    KI_OPTION(kiln_glm_options, family, CHOICE, KILN_GAUSSIAN, KILN_GAUSSIAN, 1, KI_FAMILY_LAST,
              ki_family_words,
              "Distribution of the target. binomial: 0 and 1, or proportions whose numbers of trials are the "
              "weights."),
    KI_OPTION(kiln_glm_options, link, CHOICE, 0, 0, 1, KI_LINK_LAST, ki_link_words,
              "The function of the mean that is linear in the columns. The family's own keeps means in its "
              "range: identity for gaussian, logit for binomial and beta, log for all others."),
    KI_OPTION(kiln_glm_options, link_power, REAL, 0, 0, -INFINITY, INFINITY, NULL,
              "With the link power: the linear predictor is mu^link_power."),
    KI_OPTION(kiln_glm_options, parameter, REAL, 0, 0, 0, INFINITY, NULL,
              "That of a family which has one, as of tweedie the power of its variance."),
    L2(kiln_glm_options, 0),
    L1(kiln_glm_options, ""),
    SHARED(
        kiln_glm_options, 1e-9, 1e-4, 100,
        "Stop when the gradient, its columns scaled, is at most this times what it is at the best constant "
        "mean.",
        NEWTON),
};

static const kiln_option svm_options[] = {
    KI_OPTION(kiln_svm_options, regression, FLAG, 0, 0, 0, 1, NULL,
              "Predict a number, with the squared epsilon-insensitive loss."),
    KI_OPTION(kiln_svm_options, epsilon, REAL, 0, 0, 0, INFINITY, NULL,
              "With regression: errors up to this cost nothing."),
    L2(kiln_svm_options, 0.5),
    SHARED(kiln_svm_options, 1e-8, 1e-4, 100, RELATIVE, NEWTON),
    KI_OPTION(kiln_svm_options, balanced, FLAG, 0, 0, 0, 1, NULL, "Give all classes the same total weight."),
    KI_OPTION(
        kiln_svm_options, solver, CHOICE, 0, 0, 1, KILN_CLASSIFIER_DUAL, "newton|dual",
        "Newton's method alone, or after coordinate descent in the dual, for a sparse X on the CPU, which "
        "takes no warm start; without it the one that is expected to be faster."),
};

/* ------------------------------------------------------------------------------------------- the paths */

#define TRAIN(name)                                                                                          \
    static kiln_status train_##name(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X,                    \
                                    const kiln_matrix *y, const void *options, kiln_report *report) {        \
        return kiln_##name(W, b, X, y, options, report);                                                     \
    }
TRAIN(linreg)
TRAIN(logreg)
TRAIN(glm)
TRAIN(svm)

#define PATH(name)                                                                                           \
    .train = train_##name, .layout = KI_LAYOUT(kiln_##name##_options),                                       \
    .weights = offsetof(kiln_##name##_options, weights),                                                     \
    .warm_start = offsetof(kiln_##name##_options, warm_start),                                               \
    .control = offsetof(kiln_##name##_options, control)
static const struct ki_path_rule linreg_path = {PATH(linreg), .together = ki_linreg_together},
                                 logreg_path = {PATH(logreg), .together = ki_logreg_together},
                                 svm_path = {PATH(svm), .together = ki_svm_together},
                                 glm_path = {PATH(glm), .together = ki_glm_together,
                                             .errors = offsetof(kiln_glm_options, standard_errors)};

/* -------------------------------------------------------------------------------------------- the rows */

const struct ki_algorithm ki_algorithm_linreg = {.shown = {"linreg", "Train a linear regression",
                                                           KI_OPTIONS(linreg_options, kiln_linreg_options),
                                                           .predicts = 1},
                                                 .given = offsetof(kiln_linreg_options, given),
                                                 .tensors = {WEIGHTS},
                                                 .check = check_linear,
                                                 .loss = ki_loss_linreg,
                                                 .predict = ki_predict_linear,
                                                 .choose = ki_linreg_explain,
                                                 .path = &linreg_path,
                                                 .passes = {40, 5, true}};

const struct ki_algorithm ki_algorithm_logreg = {
    .shown = {"logreg", "Train a logistic regression", KI_OPTIONS(logreg_options, kiln_logreg_options),
              .predicts = 1},
    .given = offsetof(kiln_logreg_options, given),
    .tensors = {WEIGHTS, {"classes", 'c', '1', false, true, false}},
    .check = check_classifier,
    .loss = ki_loss_logreg,
    .predict = ki_predict_logreg,
    .choose = ki_logreg_explain,
    .path = &logreg_path,
    .passes = {60, 10, false}};

const struct ki_algorithm ki_algorithm_glm = {.shown = {"glm", "Train a generalised linear model",
                                                        KI_OPTIONS(glm_options, kiln_glm_options),
                                                        .predicts = 1},
                                              .given = offsetof(kiln_glm_options, given),
                                              .tensors = {{"W", 'n', '1', false, false, false},
                                                          {"b", '1', '1', true, false, false},
                                                          {"parameters", '1', '2', false, false, false},
                                                          {"standard_errors", 'e', '1', true, false, false}},
                                              .texts = {"family", "link"},
                                              .check = check_glm,
                                              .loss = ki_loss_glm,
                                              .predict = ki_predict_glm,
                                              .path = &glm_path,
                                              .passes = {60, 10, false}};

const struct ki_algorithm ki_algorithm_svm = {.shown = {"svm", "Train a linear support vector machine",
                                                        KI_OPTIONS(svm_options, kiln_svm_options),
                                                        .predicts = 1},
                                              .given = offsetof(kiln_svm_options, given),
                                              .tensors = {WEIGHTS,
                                                          {"classes", 'c', '1', true, true, false},
                                                          {"parameters", '1', '2', true, false, false}},
                                              .check = check_svm,
                                              .loss = ki_loss_svm,
                                              .predict = ki_predict_linear,
                                              .choose = ki_svm_explain,
                                              .path = &svm_path,
                                              .passes = {60, 10, false}};
