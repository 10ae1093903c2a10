/* kiln_verify agrees with what solvers report and notices a model that was changed; kiln_predict of every
 * model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

enum { ROWS = 200, COLS = 5 };

static kiln_device *device;
static kiln_matrix *X, *numbers, *counts, *pair, *three, *weights, *offset;

static double uniform(void) {
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

static kiln_matrix *column(const double *values) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, ROWS, 1, values), KILN_OK);
    return A;
}

static int setup(void **state) {
    (void)state;
    static double x[ROWS * COLS], y[5][ROWS], s[ROWS];
    if (kiln_device_open(&device, "cpu", NULL) != KILN_OK) return 1;
    for (int i = 0; i < ROWS; i++) {
        double eta = 0.2;
        for (int j = 0; j < COLS; j++) {
            x[i * COLS + j] = uniform() < 0.3 ? 0 : 4 * uniform() - 1.5;
            eta += x[i * COLS + j] * (0.4 - 0.2 * j);
        }
        y[0][i] = eta + uniform() - 0.5;
        y[1][i] = floor(exp(0.5 * eta) + 2 * uniform());
        y[2][i] = eta + uniform() > 0.7;
        y[3][i] = y[2][i] + (uniform() < 0.3 && y[2][i] > 0);
        y[4][i] = 0.3 * uniform();
        s[i] = i % 7 ? 0.5 + uniform() : 0;
    }
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, x), KILN_OK);
    numbers = column(y[0]);
    counts = column(y[1]);
    pair = column(y[2]);
    three = column(y[3]);
    offset = column(y[4]);
    weights = column(s);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kiln_matrix *const all[] = {X, numbers, counts, pair, three, weights, offset};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
    return 0;
}

/* A trained model and what must be told to verify it. */
struct fit {
    kiln_matrix *W, *b;
    kiln_report report;
    kiln_loss loss;
    kiln_verify_options penalty;
};

static struct fit fit_new(int k, kiln_loss loss, kiln_verify_options penalty) {
    struct fit fit = {.loss = loss, .penalty = penalty};
    assert_int_equal(kiln_matrix_dense(&fit.W, device, KILN_F64, COLS, k, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&fit.b, device, KILN_F64, 1, k, NULL), KILN_OK);
    return fit;
}

static void fit_free(struct fit *fit) {
    kiln_report_free(&fit->report);
    kiln_matrix_free(fit->W);
    kiln_matrix_free(fit->b);
}

/* The claims hold; with one coefficient a little off they do not. */
static void verify(struct fit *fit) {
    kiln_verification found = {0};
    const int64_t count = kiln_matrix_rows(fit->W) * kiln_matrix_cols(fit->W);
    double W[COLS * 3];
    assert_true(fit->report.converged);
    assert_int_equal(kiln_verify(&found, &fit->loss, X, fit->W, fit->b, &fit->penalty), KILN_OK);
    assert_true(fabs(found.objective - fit->report.objective) <= 1e-10 * fabs(fit->report.objective));
    assert_true(found.gradient <= 2 * fit->report.tolerance && found.gradient_norm >= 0);
    const double scale = fit->report.residual > 1e-12 ? fit->report.residual : 1e-12;
    assert_true(fabs(found.gradient - fit->report.residual) <= 0.01 * scale + 1e-13);
    if (!isnan(kiln_report_figure(&fit->report, "gap"))) assert_true(found.gap <= 1e-9 && found.gap >= 0);
    assert_int_equal(kiln_matrix_get(W, fit->W), KILN_OK);
    W[count - 1] += 1e-3;
    assert_int_equal(kiln_matrix_set(fit->W, W), KILN_OK);
    assert_int_equal(kiln_verify(&found, &fit->loss, X, fit->W, fit->b, &fit->penalty), KILN_OK);
    assert_true(found.objective > fit->report.objective && found.gradient > 1e-6);
    if (!isnan(kiln_report_figure(&fit->report, "gap"))) assert_true(found.gap > 1e-9);
    fit_free(fit);
}

static void least_squares(void **state) {
    (void)state;
    for (int standardize = 0; standardize < 2; standardize++) {
        struct fit fit = fit_new(1, (kiln_loss){.kind = KILN_LOSS_SQUARED, .y = numbers, .weights = weights},
                                 (kiln_verify_options){.l2 = 0.7, .standardize = standardize});
        const kiln_linreg_options options = {.l2 = 0.7, .standardize = standardize, .weights = weights};
        assert_int_equal(kiln_linreg(fit.W, fit.b, X, numbers, &options, &fit.report), KILN_OK);
        verify(&fit);
    }
}

/* A perfect fit leaves rounding, which is taken for that; a coefficient that is off by more is not. */
static void perfect_fits(void **state) {
    (void)state;
    double W[COLS] = {3, -2, 0.5, 1e3, 1e-3}, b = -7, x[ROWS * COLS], y[ROWS];
    assert_int_equal(kiln_matrix_get(x, X), KILN_OK);
    for (int i = 0; i < ROWS; i++) {
        y[i] = b;
        for (int j = 0; j < COLS; j++) y[i] += x[i * COLS + j] * W[j];
    }
    kiln_matrix *exact = column(y);
    struct fit fit = fit_new(1, (kiln_loss){.kind = KILN_LOSS_SQUARED, .y = exact}, (kiln_verify_options){0});
    assert_int_equal(kiln_linreg(fit.W, fit.b, X, exact, NULL, &fit.report), KILN_OK);
    for (int off = 0; off < 2; off++) {
        kiln_verification found = {.size = sizeof found};
        if (off) {
            W[3] *= 1 + 1e-12;
            assert_int_equal(kiln_matrix_set(fit.W, W), KILN_OK);
            assert_int_equal(kiln_matrix_set(fit.b, &b), KILN_OK);
        }
        assert_int_equal(kiln_verify(&found, &fit.loss, X, fit.W, fit.b, &fit.penalty), KILN_OK);
        assert_true((found.objective <= found.objective_rounding) == !off);
        assert_true((found.gradient <= found.gradient_rounding) == !off);
    }
    kiln_matrix_free(exact);
    fit_free(&fit);
}

static void logistic(void **state) {
    (void)state;
    const double penalties[] = {0, 1.5}; /* l1 */
    for (int i = 0; i < 2; i++) {
        struct fit fit = fit_new(1, (kiln_loss){.kind = KILN_LOSS_LOGISTIC, .y = pair, .weights = weights},
                                 (kiln_verify_options){.l2 = 0.3, .l1 = penalties[i]});
        const kiln_logreg_options options = {.l2 = 0.3, .l1 = penalties[i], .weights = weights};
        assert_int_equal(kiln_logreg(fit.W, fit.b, X, pair, &options, &fit.report), KILN_OK);
        verify(&fit);
    }
    struct fit fit = fit_new(3, (kiln_loss){.kind = KILN_LOSS_SOFTMAX, .y = three},
                             (kiln_verify_options){.l2 = 2, .standardize = 1});
    const kiln_logreg_options options = {.l2 = 2, .standardize = 1};
    assert_int_equal(kiln_logreg(fit.W, fit.b, X, three, &options, &fit.report), KILN_OK);
    verify(&fit);
}

static void machines(void **state) {
    (void)state;
    struct fit two = fit_new(1, (kiln_loss){.kind = KILN_LOSS_SQUARED_HINGE, .y = pair, .weights = weights},
                             (kiln_verify_options){.l2 = 1});
    assert_int_equal(
        kiln_svm(two.W, two.b, X, pair, &(kiln_svm_options){.l2 = 1, .weights = weights}, &two.report),
        KILN_OK);
    verify(&two);
    struct fit rest =
        fit_new(3, (kiln_loss){.kind = KILN_LOSS_SQUARED_HINGE, .y = three}, (kiln_verify_options){.l2 = 1});
    assert_int_equal(kiln_svm(rest.W, rest.b, X, three, &(kiln_svm_options){.l2 = 1}, &rest.report), KILN_OK);
    verify(&rest);
    struct fit line =
        fit_new(1, (kiln_loss){.kind = KILN_LOSS_SQUARED_EPSILON, .parameter = 0.1, .y = numbers},
                (kiln_verify_options){.l2 = 1});
    const kiln_svm_options options = {.l2 = 1, .regression = 1, .epsilon = 0.1};
    assert_int_equal(kiln_svm(line.W, line.b, X, numbers, &options, &line.report), KILN_OK);
    verify(&line);
}

static void generalised(void **state) {
    (void)state;
    static const struct {
        kiln_family family;
        kiln_link link;
        double parameter;
    } models[] = {{KILN_POISSON, 0, 0},
                  {KILN_NEGATIVE_BINOMIAL, 0, 0.8},
                  {KILN_TWEEDIE, 0, 1.4},
                  {KILN_BINOMIAL, 0, 0},
                  {KILN_BINOMIAL, KILN_LINK_PROBIT, 0},
                  {KILN_BINOMIAL, KILN_LINK_CLOGLOG, 0},
                  {KILN_BINOMIAL, KILN_LINK_CAUCHIT, 0}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const kiln_matrix *y = models[i].family == KILN_BINOMIAL ? pair : counts;
        struct fit fit = fit_new(1,
                                 (kiln_loss){.kind = KILN_LOSS_GLM,
                                             .family = models[i].family,
                                             .link = models[i].link,
                                             .parameter = models[i].parameter,
                                             .y = y,
                                             .weights = weights,
                                             .offset = offset},
                                 (kiln_verify_options){.l2 = 0.5});
        const kiln_glm_options options = {.family = models[i].family,
                                          .link = models[i].link,
                                          .parameter = models[i].parameter,
                                          .l2 = 0.5,
                                          .weights = weights,
                                          .offset = offset};
        assert_int_equal(kiln_glm(fit.W, fit.b, X, y, &options, &fit.report), KILN_OK);
        verify(&fit);
    }
}

/* Rows of weight 0 might as well not be there: the trick of cross-validation's folds. */
/* Rows so far from the boundary that their means are 0 or 1 have a loss and a deviance, by their
 * predictors. */
static void far_from_the_boundary(void **state) {
    enum { FAR = 4 };
    static const double x[] = {-1, 1, 1, -0.25}, y[] = {0, 1, 0, 1}, scales[] = {1, 2e4, 1e12};
    (void)state;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        const double w = scales[i];
        const long double won[] = {w, w, -w, -w / 4}; /* a row's loss is log(1 + exp(- won)) */
        kiln_matrix *A = NULL, *W = NULL, *targets = NULL;
        kiln_verification found = {.size = sizeof found};
        kiln_glm_verification glm = {.size = sizeof glm};
        long double sum = 0;
        for (int r = 0; r < FAR; r++) sum += fmaxl(-won[r], 0) + log1pl(expl(-fabsl(won[r])));
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, FAR, 1, x), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&targets, device, KILN_F64, FAR, 1, y), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, 1, 1, &w), KILN_OK);
        const kiln_loss loss = {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL, .y = targets};
        assert_int_equal(kiln_verify(&found, &loss, A, W, NULL, NULL), KILN_OK);
        assert_int_equal(kiln_verify_glm(&glm, &loss, A, W, NULL, NULL, NULL), KILN_OK);
        assert_true(fabs(found.objective - (double)sum) <= 1e-15 * (double)sum);
        assert_true(fabs(glm.deviance - 2 * (double)sum) <= 1e-15 * 2 * (double)sum);
        assert_true(glm.deviance_low <= glm.deviance && glm.deviance <= glm.deviance_high);
        assert_true(glm.aic_low <= glm.aic && glm.aic <= glm.aic_high);
        kiln_matrix_free(A);
        kiln_matrix_free(W);
        kiln_matrix_free(targets);
    }
}

/* Three rows under an intercept have two dimensions, also where one column is ten thousand times as far from
 * 0 as its values from each other. */
static void rank_of_few_rows(void **state) {
    static const double days[] = {2462493.5, 2463516.5, 2462830.5}, one[] = {0, 1, 1}, two[] = {1, 1, 0};
    static const double s[] = {0.081149424, 0.055740548, 0.57369191};
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int weighted = 0; weighted < 2; weighted++) {
            double x[9], zeros[3] = {0};
            kiln_matrix *all[5] = {NULL}, *made[5] = {NULL};
            const double *const values[] = {x, zeros, zeros, zeros, s};
            const int64_t shapes[][2] = {{3, 3}, {3, 1}, {1, 1}, {3, 1}, {3, 1}}; /* X, W, b, y, s */
            kiln_glm_verification found = {.size = sizeof found};
            for (int i = 0; i < 3; i++) x[3 * i] = days[i], x[3 * i + 1] = one[i], x[3 * i + 2] = two[i];
            for (int i = 0; i < 5; i++) {
                assert_int_equal(
                    kiln_matrix_dense(&all[i], device, KILN_F64, shapes[i][0], shapes[i][1], values[i]),
                    KILN_OK);
                assert_int_equal(kiln_matrix_copy(&made[i], device, type, all[i]), KILN_OK);
            }
            const kiln_loss loss = {
                .kind = KILN_LOSS_SQUARED, .y = made[3], .weights = weighted ? made[4] : NULL};
            assert_int_equal(kiln_verify_glm(&found, &loss, made[0], made[1], made[2], NULL, NULL), KILN_OK);
            assert_true(found.parameters == 3);
            for (int i = 0; i < 5; i++) {
                kiln_matrix_free(all[i]);
                kiln_matrix_free(made[i]);
            }
        }
}

/* Standardised without an intercept, columns that are constant but for rounding count as one: what training
 * says of its gradient is found again, whatever the method, and whether there are classes or not. */
static void constants_that_are_one(void **state) {
    (void)state;
    double x[ROWS * COLS];
    for (int classes = 2; classes <= 3; classes++) {
        kiln_matrix *A = NULL;
        assert_int_equal(kiln_matrix_get(x, X), KILN_OK);
        for (int i = 0; i < ROWS; i++) x[i * COLS] = x[i * COLS + 2] = i % 3 ? 0.1 : nextafter(0.1, 1);
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, ROWS, COLS, x), KILN_OK);
        kiln_matrix *y = classes == 2 ? pair : three;
        const kiln_loss loss = {.kind = classes == 2 ? KILN_LOSS_LOGISTIC : KILN_LOSS_SOFTMAX, .y = y};
        const kiln_verify_options penalty = {.l2 = 0.001, .standardize = 1};
        struct fit fit = fit_new(classes == 2 ? 1 : 3, loss, penalty);
        const kiln_logreg_options options = {
            .l2 = 0.001, .standardize = 1, .no_intercept = 1, .tolerance = 1e-3};
        kiln_verification found = {0};
        assert_int_equal(kiln_logreg(fit.W, NULL, A, y, &options, &fit.report), KILN_OK);
        assert_true(fit.report.converged && fit.report.residual > 1e-9);
        assert_int_equal(kiln_verify(&found, &fit.loss, A, fit.W, NULL, &penalty), KILN_OK);
        assert_true(fabs(found.gradient - fit.report.residual) <= 1e-6 * fit.report.residual);
        kiln_matrix_free(A);
        fit_free(&fit);
    }
}

static void weight_zero_leaves_out(void **state) {
    (void)state;
    double x[ROWS * COLS], y[ROWS], fold[ROWS], without[COLS + 1], with[COLS + 1];
    int kept = 0;
    assert_int_equal(kiln_matrix_get(x, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(y, pair), KILN_OK);
    for (int i = 0; i < ROWS; i++) {
        fold[i] = i % 5 != 2;
        if (!fold[i]) continue;
        memmove(x + (ptrdiff_t)kept * COLS, x + (ptrdiff_t)i * COLS, COLS * sizeof *x);
        y[kept++] = y[i];
    }
    kiln_matrix *part = NULL, *labels = NULL, *in = column(fold);
    assert_int_equal(kiln_matrix_dense(&part, device, KILN_F64, kept, COLS, x), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&labels, device, KILN_F64, kept, 1, y), KILN_OK);
    for (int standardize = 0; standardize < 2; standardize++) {
        struct fit a = fit_new(1, (kiln_loss){0}, (kiln_verify_options){0});
        struct fit b = fit_new(1, (kiln_loss){0}, (kiln_verify_options){0});
        const kiln_logreg_options plain = {.standardize = standardize, .tolerance = 1e-12};
        kiln_logreg_options weighted = plain;
        weighted.weights = in;
        assert_int_equal(kiln_logreg(a.W, a.b, part, labels, &plain, &a.report), KILN_OK);
        assert_int_equal(kiln_logreg(b.W, b.b, X, pair, &weighted, &b.report), KILN_OK);
        assert_true(fabs(a.report.objective - b.report.objective) < 1e-11 * a.report.objective);
        assert_int_equal(kiln_matrix_get(without, a.W), KILN_OK);
        assert_int_equal(kiln_matrix_get(with, b.W), KILN_OK);
        for (int j = 0; j < COLS; j++) assert_true(fabs(without[j] - with[j]) < 1e-10);
        fit_free(&a);
        fit_free(&b);
    }
    kiln_matrix_free(part);
    kiln_matrix_free(labels);
    kiln_matrix_free(in);
}

/* ---- prediction ---- */

static kiln_model *model_of(const char *algorithm, const double *W, const double *b, int k,
                            const double *classes, int class_count) {
    kiln_model *model = NULL;
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_model_create(&model, algorithm), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, COLS, k, W), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "W", A), KILN_OK);
    kiln_matrix_free(A);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 1, k, b), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "b", A), KILN_OK);
    kiln_matrix_free(A);
    if (!classes) return model;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, class_count, 1, classes), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "classes", A), KILN_OK);
    kiln_matrix_free(A);
    return model;
}

static const double W_three[COLS * 3] = {0.5, -1, 0.2, 0.1, 0, 0.7, -0.3, 0.4, 1, 2, -0.6, 0, 0, 0.9, -0.8},
                                   b_three[3] = {0.1, -0.2, 0.3}, labels[3] = {-1, 0, 5};

/* eta of row i, column c, by plain loops. */
static double eta_at(int i, int c, int k, const double *x) {
    double eta = b_three[c];
    for (int j = 0; j < COLS; j++) eta += x[i * COLS + j] * W_three[j * k + c];
    return eta;
}

static void predictions(void **state) {
    (void)state;
    double x[ROWS * COLS], p[ROWS * 3];
    kiln_matrix *P = NULL;
    assert_int_equal(kiln_matrix_get(x, X), KILN_OK);
    kiln_model *model = model_of("logreg", W_three, b_three, 3, labels, 3);
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(p, P), KILN_OK);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int c = 0; c < 3; c++) sum += exp(eta_at(i, c, 3, x));
        for (int c = 0; c < 3; c++) assert_true(fabs(p[i * 3 + c] - exp(eta_at(i, c, 3, x)) / sum) < 1e-13);
    }
    kiln_matrix_free(P);
    kiln_model_free(model);
    model = model_of("logreg", W_three, b_three, 1, labels, 2);
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_cols(P), 2);
    assert_int_equal(kiln_matrix_get(p, P), KILN_OK);
    for (int i = 0; i < ROWS; i++) {
        assert_true(fabs(p[2 * i + 1] - 1 / (1 + exp(-eta_at(i, 0, 1, x)))) < 1e-13);
        assert_true(fabs(p[2 * i] - 1 / (1 + exp(eta_at(i, 0, 1, x)))) < 1e-13);
    }
    kiln_matrix_free(P);
    kiln_model_free(model);
    model = model_of("svm", W_three, b_three, 3, labels, 3);
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(p, P), KILN_OK);
    for (int i = 0; i < 3 * ROWS; i++) assert_true(fabs(p[i] - eta_at(i / 3, i % 3, 3, x)) < 1e-13);
    kiln_matrix_free(P);
    kiln_model_free(model);
}

static void prediction_of_glm(void **state) {
    (void)state;
    double x[ROWS * COLS], p[ROWS];
    const double parameters[2] = {0, 0};
    kiln_matrix *P = NULL, *A = NULL;
    kiln_loss loss = {0};
    assert_int_equal(kiln_matrix_get(x, X), KILN_OK);
    kiln_model *model = model_of("glm", W_three, b_three, 1, NULL, 0);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 1, 2, parameters), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "parameters", A), KILN_OK);
    assert_int_equal(kiln_predict(&P, model, X), KILN_ERR_MODEL); /* of no family */
    assert_int_equal(kiln_model_set_text(model, "family", "poisson"), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "link", "of a chain"), KILN_OK);
    assert_int_equal(kiln_predict(&P, model, X), KILN_ERR_MODEL);
    assert_int_equal(kiln_model_set_text(model, "link", "log"), KILN_OK);
    assert_int_equal(kiln_model_loss(&loss, model), KILN_OK);
    assert_true(loss.kind == KILN_LOSS_GLM && loss.family == KILN_POISSON && loss.link == KILN_LINK_LOG);
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(p, P), KILN_OK);
    for (int i = 0; i < ROWS; i++)
        assert_true(fabs(p[i] - exp(eta_at(i, 0, 1, x))) <= 1e-13 * exp(eta_at(i, 0, 1, x)));
    kiln_matrix_free(P);
    kiln_matrix_free(A);
    kiln_model_free(model);
}

/* A model that was trained with the loss, as far as its kind goes. */
static kiln_model *start_of(const kiln_loss *loss) {
    static const char *const names[] = {
        [KILN_LOSS_SQUARED] = "linreg",      [KILN_LOSS_LOGISTIC] = "logreg",
        [KILN_LOSS_SOFTMAX] = "logreg",      [KILN_LOSS_SQUARED_HINGE] = "svm",
        [KILN_LOSS_SQUARED_EPSILON] = "svm", [KILN_LOSS_GLM] = "glm"};
    const int two = loss->kind == KILN_LOSS_LOGISTIC || loss->kind == KILN_LOSS_SQUARED_HINGE;
    const double parameters[2] = {loss->parameter, loss->link_power};
    kiln_matrix *A = NULL;
    kiln_model *model =
        loss->kind == KILN_LOSS_SOFTMAX
            ? model_of(names[loss->kind], W_three, b_three, 3, labels, 3)
            : model_of(names[loss->kind], W_three, b_three, 1, two ? labels : NULL, two ? 2 : 0);
    if (loss->kind != KILN_LOSS_GLM) return model;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 1, 2, parameters), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "parameters", A), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "family", kiln_family_name(loss->family)), KILN_OK);
    assert_int_equal(kiln_model_set_text(model, "link", kiln_link_name(loss->link)), KILN_OK);
    kiln_matrix_free(A);
    return model;
}

static void starts_mean_the_same(void **state) {
    (void)state;
    /* Those with the same group are starts for each other. */
    static const struct {
        int group;
        kiln_loss loss;
        const char *name;
    } kinds[] = {
        {1, {.kind = KILN_LOSS_SQUARED}, "linreg"},
        {1, {.kind = KILN_LOSS_SQUARED_EPSILON, .parameter = 0.1}, "svm for regression"},
        {1, {.kind = KILN_LOSS_GLM, .family = KILN_GAUSSIAN}, "glm with the link identity"},
        {1, {.kind = KILN_LOSS_GLM, .family = KILN_POISSON, .link = KILN_LINK_IDENTITY}, "link identity"},
        {2, {.kind = KILN_LOSS_GLM, .family = KILN_POISSON}, "glm with the link log"},
        {2, {.kind = KILN_LOSS_GLM, .family = KILN_GAMMA, .link = KILN_LINK_LOG}, "glm with the link log"},
        {3, {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL}, "glm with the link logit"},
        {4,
         {.kind = KILN_LOSS_GLM, .family = KILN_GAMMA, .link = KILN_LINK_POWER, .link_power = 2},
         "link power 2"},
        {5,
         {.kind = KILN_LOSS_GLM, .family = KILN_GAMMA, .link = KILN_LINK_POWER, .link_power = 0.5},
         "link power 0.5"},
        {6, {.kind = KILN_LOSS_LOGISTIC}, "logreg"},
        {6, {.kind = KILN_LOSS_SOFTMAX}, "logreg"},
        {7, {.kind = KILN_LOSS_SQUARED_HINGE}, "svm"},
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int i = 0; i < KINDS; i++) {
        kiln_model *model = start_of(&kinds[i].loss);
        for (int j = 0; j < KINDS; j++) {
            const int suits = kinds[i].group == kinds[j].group;
            assert_int_equal(kiln_model_check_start(model, &kinds[j].loss), suits ? KILN_OK : KILN_ERR_MODEL);
            if (suits) continue;
            assert_non_null(strstr(kiln_last_error()->message, kinds[i].name));
            assert_non_null(strstr(kiln_last_error()->message, kinds[j].name));
        }
        const kiln_loss none = {.kind = 0}, beyond = {.kind = KILN_LOSS_GLM + 1};
        assert_int_equal(kiln_model_check_start(model, &none), KILN_ERR_ARGUMENT);
        assert_int_equal(kiln_model_check_start(model, &beyond), KILN_ERR_ARGUMENT);
        assert_int_equal(kiln_model_check_start(model, NULL), KILN_ERR_ARGUMENT);
        kiln_model_free(model);
    }
    assert_int_equal(kiln_model_check_start(NULL, &kinds[0].loss), KILN_ERR_ARGUMENT);
}

static void no_prediction_of_hits(void **state) {
    (void)state;
    kiln_model *model = NULL;
    kiln_matrix *P = NULL;
    kiln_loss loss = {0};
    assert_int_equal(kiln_model_create(&model, "hits"), KILN_OK);
    assert_int_equal(kiln_predict(&P, model, X), KILN_ERR_MODEL);
    assert_int_equal(kiln_model_loss(&loss, model), KILN_ERR_MODEL);
    assert_int_equal(kiln_model_check_start(model, &(kiln_loss){.kind = KILN_LOSS_SQUARED}), KILN_ERR_MODEL);
    assert_int_equal(kiln_model_save(model, "/nowhere"), KILN_ERR_MODEL); /* without its tensors */
    kiln_model_free(model);
    model = model_of("logreg", W_three, b_three, 3, labels, 2); /* columns and classes do not fit */
    assert_int_equal(kiln_model_save(model, "/nowhere"), KILN_ERR_MODEL);
    kiln_model_free(model);
    model = model_of("logreg", W_three, b_three, 3, (double[]){1, 1, 2}, 3);
    assert_int_equal(kiln_model_save(model, "/nowhere"), KILN_ERR_MODEL);
    assert_non_null(strstr(kiln_last_error()->message, "ascend"));
    kiln_model_free(model);
}

/* a -> b (2), a -> c, b -> c: hubs and authorities by hand are the leading eigenvectors; a shifted one is
 * found out. */
static void rankings(void **state) {
    (void)state;
    const int64_t row_start[] = {0, 2, 3, 3};
    const int32_t col[] = {1, 2, 2};
    const double values[] = {2, 1, 1};
    kiln_matrix *A = NULL, *hubs = NULL, *authorities = NULL;
    kiln_report report = {0};
    kiln_hits_verification found = {0};
    assert_int_equal(kiln_matrix_csr(&A, device, KILN_F64, 3, 3, row_start, col, values), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&hubs, device, KILN_F64, 3, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&authorities, device, KILN_F64, 3, 1, NULL), KILN_OK);
    for (int norm = 1; norm <= 2; norm++) {
        const kiln_hits_options options = {.norm = norm};
        assert_int_equal(kiln_hits(hubs, authorities, A, &options, &report), KILN_OK);
        assert_int_equal(kiln_verify_hits(&found, A, hubs, authorities, &options), KILN_OK);
        assert_true(fabs(found.eigenvalue - report.objective) < 1e-9 * report.objective);
        assert_true(found.authorities <= report.tolerance && found.hubs < 1e-14);
        kiln_report_free(&report);
    }
    /* A^T A = [[4 2] [2 2]]: 3 + sqrt(5), in the 2-norm */
    assert_true(fabs(found.eigenvalue - (3 + sqrt(5))) < 1e-9);
    const double one = 1, other[] = {0, 0.5, 0.5};
    kiln_matrix *shifted = NULL;
    assert_int_equal(kiln_matrix_dense(&shifted, device, KILN_F64, 3, 1, other), KILN_OK);
    assert_int_equal(kiln_combine(authorities, &one, shifted, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_verify_hits(&found, A, hubs, authorities, NULL), KILN_OK);
    assert_true(found.authorities > 0.1 && found.hubs > 0.1);
    assert_int_equal(kiln_fill(authorities, 0), KILN_OK);
    assert_int_equal(kiln_verify_hits(&found, A, hubs, authorities, NULL), KILN_ERR_DATA);
    assert_int_equal(kiln_verify_hits(&found, A, hubs, numbers, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_verify_hits(&found, NULL, hubs, authorities, NULL), KILN_ERR_ARGUMENT);
    kiln_matrix_free(shifted);
    kiln_matrix_free(authorities);
    kiln_matrix_free(hubs);
    kiln_matrix_free(A);
}

static void bad_questions(void **state) {
    (void)state;
    kiln_verification found = {0};
    struct fit fit =
        fit_new(1, (kiln_loss){.kind = KILN_LOSS_SQUARED, .y = numbers}, (kiln_verify_options){0});
    assert_int_equal(kiln_verify(NULL, &fit.loss, X, fit.W, fit.b, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_verify(&found, NULL, X, fit.W, fit.b, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_verify(&found, &fit.loss, X, fit.b, fit.b, NULL), KILN_ERR_ARGUMENT);
    fit.loss.y = X;
    assert_int_equal(kiln_verify(&found, &fit.loss, X, fit.W, fit.b, NULL), KILN_ERR_ARGUMENT);
    fit_free(&fit);
    struct fit classes =
        fit_new(3, (kiln_loss){.kind = KILN_LOSS_SOFTMAX, .y = numbers}, (kiln_verify_options){0});
    assert_int_equal(kiln_verify(&found, &classes.loss, X, classes.W, classes.b, NULL), KILN_ERR_DATA);
    fit_free(&classes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_squares),
        cmocka_unit_test(perfect_fits),
        cmocka_unit_test(logistic),
        cmocka_unit_test(machines),
        cmocka_unit_test(generalised),
        cmocka_unit_test(far_from_the_boundary),
        cmocka_unit_test(rank_of_few_rows),
        cmocka_unit_test(constants_that_are_one),
        cmocka_unit_test(weight_zero_leaves_out),
        cmocka_unit_test(predictions),
        cmocka_unit_test(prediction_of_glm),
        cmocka_unit_test(starts_mean_the_same),
        cmocka_unit_test(no_prediction_of_hits),
        cmocka_unit_test(rankings),
        cmocka_unit_test(bad_questions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
