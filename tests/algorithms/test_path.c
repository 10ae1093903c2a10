/* kiln_path: every model of a path in folds against its own training, for each linear model, f32 and f64,
 * dense and CSR. */
#include "algorithms/on_cpu.h"

enum { ROWS = 120, COLS = 6, FOLDS = 3, VALUES = 4, TARGETS_MOST = 3 };

static const double strengths[VALUES] = {50, 3, 0.2, 0.01};

struct sample {
    double X[ROWS * COLS], y[ROWS * TARGETS_MOST], weights[ROWS];
    int32_t fold[ROWS];
};

static void make(struct sample *s, bool classes, int k) {
    uint64_t seed = 5;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++)
            s->X[i * COLS + j] = j % 2 && uniform(&seed) < 0.4 ? 0 : uniform(&seed) + j;
        for (int c = 0; c < k; c++) {
            const double eta =
                s->X[i * COLS] - 2 * s->X[i * COLS + 1] + 0.3 * (c + 1) * s->X[i * COLS + 3] + uniform(&seed);
            s->y[i * k + c] = classes ? eta + 2 * uniform(&seed) > -0.5 : eta;
        }
        s->weights[i] = i % 7 == 0 ? 0 : 0.5 + uniform(&seed);
        s->fold[i] = (int32_t)(i * 7 % FOLDS);
    }
}

static kiln_matrix *sparse(kiln_type type, const double *values) {
    int64_t start[ROWS + 1] = {0};
    int32_t col[ROWS * COLS];
    double kept[ROWS * COLS];
    float narrow[ROWS * COLS];
    int64_t count = 0;
    kiln_matrix *A = NULL;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            if (values[i * COLS + j] == 0) continue;
            col[count] = j;
            narrow[count] = (float)values[i * COLS + j];
            kept[count++] = values[i * COLS + j];
        }
        start[i + 1] = count;
    }
    assert_int_equal(kiln_matrix_csr(&A, device, type, ROWS, COLS, start, col,
                                     type == KILN_F64 ? (const void *)kept : narrow),
                     KILN_OK);
    return A;
}

/* Any of the four options structs. */
union options {
    kiln_linreg_options linreg;
    kiln_logreg_options logreg;
    kiln_glm_options glm;
    kiln_svm_options svm;
};

static const struct setting {
    const char *algorithm;
    int k;
    bool weighted, sparse, folded;
    union options options;
    const char *solver; /* that reports name; NULL: any */
    bool together;      /* in f64 all values of a fold come at once */
} settings[] = {
    {"linreg", 1, false, false, true, {.linreg = {.l2 = 0}}, "cholesky", true},
    {"linreg", 1, true, false, true, {.linreg = {.standardize = 1}}, "cholesky", true},
    {"linreg", 3, true, false, true, {.linreg = {.no_intercept = 1}}, "cholesky", true},
    {"linreg", 3, false, true, true, {.linreg = {.standardize = 1}}, "cholesky", true},
    {"linreg", 2, true, false, false, {.linreg = {.l2 = 0}}, "cholesky", true},
    {"linreg", 2, false, false, true, {.linreg = {.solver = KILN_LINREG_CG}}, "cg", false},
    {"linreg", 1, false, false, true, {.linreg = {.standardize = 1, .no_intercept = 1}}, NULL, false},
    {"logreg", 1, true, false, true, {.logreg = {.standardize = 1}}, "newton", true},
    {"logreg", 1, false, false, true, {.logreg = {.no_intercept = 1}}, "newton", true},
    {"logreg", 1, true, false, true, {.logreg = {.standardize = 1, .no_intercept = 1}}, "newton", false},
    {"logreg", 1, false, true, true, {.logreg = {.balanced = 1}}, NULL, false},
    {"logreg", 1, false, false, false, {.logreg = {.l1 = 0.5}}, "newton", true},
    {"logreg", 1, true, false, true, {.logreg = {.l1 = 2, .standardize = 1}}, "newton", true},
    {"logreg", 1, false, true, true, {.logreg = {.l1 = 4, .no_intercept = 1}}, "newton", true},
    {"logreg", 1, false, false, true, {.logreg = {.l1 = 1e4}}, "newton", true},
    {"glm", 1, true, false, true, {.glm = {.standardize = 1}}, NULL, true},
    {"glm", 1, true, false, true, {.glm = {.family = KILN_POISSON}}, NULL, true},
    {"glm", 1, true, false, true, {.glm = {.l1 = 3, .standardize = 1}}, NULL, true},
    {"glm", 1, false, false, true, {.glm = {.family = KILN_POISSON, .l1 = 1}}, NULL, true},
    {"glm", 1, false, true, true, {.glm = {.family = KILN_BINOMIAL, .link = KILN_LINK_PROBIT}}, NULL, true},
    {"glm", 1, false, false, true, {.glm = {.family = KILN_POISSON, .no_intercept = 1}}, NULL, false},
    {"svm", 1, false, false, true, {.svm = {.no_intercept = 1}}, "newton", true},
    {"svm", 1, true, false, true, {.svm = {.standardize = 1}}, "newton", true},
    {"svm", 1, true, false, true, {.svm = {.standardize = 1, .no_intercept = 1}}, "newton", false},
    {"svm", 1, true, false, true, {.svm = {.regression = 1, .epsilon = 0.1}}, "newton", true},
};

/* Returns whether y is one of two classes, which are counts and shares too. */
static bool has_classes(const struct setting *s) {
    if (strcmp(s->algorithm, "glm") == 0) return s->options.glm.family != 0;
    return strcmp(s->algorithm, "logreg") == 0 ||
           (strcmp(s->algorithm, "svm") == 0 && !s->options.svm.regression);
}

/* Holds what the callback compares with. */
struct comparison {
    const struct setting *setting;
    const struct sample *sample;
    kiln_matrix *X, *y;
    kiln_type type;
    int64_t next, stop_at; /* the number of the model that comes next; where to stop, or -1 */
};

/* *deviance: the report's, or NaN. */
static void train_alone(double *W, double *b, double *deviance, const struct comparison *of, int64_t fold,
                        int64_t value) {
    const struct setting *s = of->setting;
    union options options = s->options;
    double weights[ROWS];
    for (int i = 0; i < ROWS; i++)
        weights[i] = s->folded && of->sample->fold[i] == fold ? 0 : s->weighted ? of->sample->weights[i] : 1;
    kiln_matrix *v = dense_matrix(of->type, ROWS, 1, weights);
    kiln_matrix *mW = dense_matrix(of->type, COLS, s->k, NULL), *mb = dense_matrix(of->type, 1, s->k, NULL);
    kiln_report report = {0};
    kiln_status status = KILN_OK;
#define TRAIN(name)                                                                                          \
    if (strcmp(s->algorithm, #name) == 0) {                                                                  \
        options.name.l2 = strengths[value];                                                                  \
        options.name.weights = v;                                                                            \
        status = kiln_##name(mW, mb, of->X, of->y, &options.name, &report);                                  \
    }
    TRAIN(linreg)
    TRAIN(logreg)
    TRAIN(glm)
    TRAIN(svm)
    assert_int_equal(status, KILN_OK);
    assert_true(report.converged);
    *deviance = kiln_report_figure(&report, "deviance");
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, mW), KILN_OK);
    assert_int_equal(kiln_matrix_get(W, wide), KILN_OK);
    kiln_matrix_free(wide);
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, mb), KILN_OK);
    assert_int_equal(kiln_matrix_get(b, wide), KILN_OK);
    kiln_matrix *const all[] = {wide, mW, mb, v};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_report_free(&report);
}

static double *get(const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    double *values = malloc((size_t)kiln_matrix_nnz(wide) * sizeof *values);
    assert_non_null(values);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
    return values;
}

static int take(void *user, const kiln_path_models *models) {
    struct comparison *of = user;
    const struct setting *s = of->setting;
    const int k = s->k, wide = k * (int)models->count;
    const bool loose = of->type == KILN_F32;
    double W[COLS * TARGETS_MOST], b[TARGETS_MOST];
    double *given = get(models->W), *intercepts = models->b ? get(models->b) : NULL, deviance;
    if (s->together && !loose) assert_int_equal(models->count, VALUES);
    for (int64_t i = 0; i < models->count; i++) {
        assert_int_equal(of->next++, models->fold * VALUES + models->first + i);
        const kiln_report *report = models->reports[i];
        if (!report->converged || report->residual > report->tolerance)
            fail_msg("%s, fold %d, value %d: residual %g by %s", s->algorithm, (int)models->fold,
                     (int)(models->first + i), report->residual, report->solver);
        if (s->solver) assert_string_equal(report->solver, s->solver);
        train_alone(W, b, &deviance, of, models->fold, models->first + i);
        if (!isnan(deviance))
            assert_float_equal(kiln_report_figure(report, "deviance"), deviance,
                               (loose ? 1e-3 : 1e-7) * deviance);
        for (int j = 0; j < COLS; j++)
            for (int c = 0; c < k; c++)
                assert_float_equal(given[j * wide + i * k + c], W[j * k + c], loose ? 2e-2 : 1e-5);
        for (int c = 0; c < k && intercepts; c++)
            assert_float_equal(intercepts[i * k + c], b[c], loose ? 1e-1 : 1e-4);
        if (strcmp(s->algorithm, "linreg") == 0 && !loose) assert_true(report->objective > 0);
    }
    free(given);
    free(intercepts);
    return of->stop_at >= 0 && of->next > of->stop_at;
}

static kiln_status run(struct comparison *of, const kiln_path_options *extra) {
    const struct setting *s = of->setting;
    union options options = s->options;
    kiln_matrix *v = s->weighted ? dense_matrix(of->type, ROWS, 1, of->sample->weights) : NULL;
    if (strcmp(s->algorithm, "linreg") == 0) options.linreg.weights = v;
    if (strcmp(s->algorithm, "logreg") == 0) options.logreg.weights = v;
    if (strcmp(s->algorithm, "glm") == 0) options.glm.weights = v;
    if (strcmp(s->algorithm, "svm") == 0) options.svm.weights = v;
    kiln_path_options path = extra ? *extra : (kiln_path_options){.l2 = strengths, .count = VALUES};
    path.fold = s->folded ? of->sample->fold : NULL;
    path.folds = s->folded ? FOLDS : 0;
    path.take = take;
    path.user = of;
    const kiln_status status = kiln_path(s->algorithm, &options, of->X, of->y, s->k, &path);
    kiln_matrix_free(v);
    return status;
}

static void models_are_those_of_their_own_trainings(void **state) {
    (void)state;
    struct sample sample;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            const struct setting *s = &settings[i];
            make(&sample, has_classes(s), s->k);
            struct comparison of = {.setting = s, .sample = &sample, .type = type, .stop_at = -1};
            of.X = s->sparse ? sparse(type, sample.X) : dense_matrix(type, ROWS, COLS, sample.X);
            of.y = dense_matrix(type, ROWS, s->k, sample.y);
            assert_int_equal(run(&of, NULL), KILN_OK);
            assert_int_equal(of.next, VALUES * (s->folded ? FOLDS : 1));
            kiln_matrix_free(of.X);
            kiln_matrix_free(of.y);
        }
}

/* A column far from zero, and one that is constant in what a fold trains on: such folds are trained one model
 * after the other, and all models are right. */
static void what_sums_cannot_tell_is_trained_alone(void **state) {
    (void)state;
    struct sample sample;
    const struct setting setting = {"linreg", 1,    false, false, true, {.linreg = {.tolerance = 1e-10}},
                                    NULL,     false};
    make(&sample, false, 1);
    for (int i = 0; i < ROWS; i++) {
        sample.X[i * COLS + 4] = sample.fold[i] == 1 ? sample.X[i * COLS] : 7;
        sample.X[i * COLS + 5] += 1e5;
    }
    struct comparison of = {.setting = &setting, .sample = &sample, .type = KILN_F64, .stop_at = -1};
    of.X = dense_matrix(of.type, ROWS, COLS, sample.X);
    of.y = dense_matrix(of.type, ROWS, 1, sample.y);
    assert_int_equal(run(&of, NULL), KILN_OK);
    assert_int_equal(of.next, VALUES * FOLDS);
    kiln_matrix_free(of.X);
    kiln_matrix_free(of.y);
}

static int stop(void *user, const kiln_progress *now) {
    (void)now;
    return ++*(int *)user > 3;
}

static int count_models(void *user, const kiln_path_models *models) {
    *(int64_t *)user += models->count;
    return 0;
}

static void a_path_can_be_ended(void **state) {
    (void)state;
    struct sample sample;
    struct comparison of = {.setting = &settings[5], .sample = &sample, .type = KILN_F64, .stop_at = 5};
    make(&sample, false, 2);
    of.X = dense_matrix(of.type, ROWS, COLS, sample.X);
    of.y = dense_matrix(of.type, ROWS, 2, sample.y);
    assert_int_equal(run(&of, NULL), KILN_ERR_CANCELLED);
    assert_int_equal(of.next, 6);
    for (int cg = 0; cg < 2; cg++) {
        int calls = 0;
        int64_t models = 0;
        const kiln_linreg_options options = {.solver = cg ? KILN_LINREG_CG : 0, .control = {stop, &calls}};
        assert_int_equal(kiln_path("linreg", &options, of.X, of.y, 2,
                                   &(kiln_path_options){.l2 = strengths,
                                                        .count = VALUES,
                                                        .fold = sample.fold,
                                                        .folds = FOLDS,
                                                        .take = count_models,
                                                        .user = &models}),
                         KILN_ERR_CANCELLED);
        assert_true(models < VALUES * FOLDS);
    }
    kiln_matrix_free(of.X);
    kiln_matrix_free(of.y);
}

static int take_coefficients(void *user, const kiln_path_models *models) {
    *(double **)user = get(models->W);
    return 0;
}

/* Without penalties of its own a path has the options', and what these stand for where they are 0. */
static void a_start_and_the_options_own_penalty(void **state) {
    (void)state;
    struct sample sample;
    make(&sample, true, 1);
    int64_t models = 0;
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLS, sample.X),
                *y = dense_matrix(KILN_F64, ROWS, 1, sample.y);
    kiln_matrix *W = dense_matrix(KILN_F64, COLS, 1, NULL), *b = dense_matrix(KILN_F64, 1, 1, NULL);
    const kiln_path_options path = {.count = 1, .W = W, .b = b, .take = count_models, .user = &models};
    assert_int_equal(kiln_path("logreg", NULL, X, y, 1, &path), KILN_OK);
    assert_int_equal(models, 1);
    double *along = NULL;
    const kiln_path_options one = {.count = 1, .take = take_coefficients, .user = &along};
    assert_int_equal(kiln_path("logreg", NULL, X, y, 1, &one), KILN_OK);
    assert_int_equal(kiln_logreg(W, b, X, y, NULL, NULL), KILN_OK);
    double *const alone = get(W);
    for (int j = 0; j < COLS; j++) assert_true(fabs(along[j] - alone[j]) <= 1e-4);
    free(along);
    free(alone);
    const double both[] = {0.5, 0};
    assert_int_equal(
        kiln_path(
            "logreg", NULL, X, y, 1,
            &(kiln_path_options){.l2 = both, .l1 = both, .count = 2, .take = count_models, .user = &models}),
        KILN_OK);
    assert_int_equal(models, 3);
    kiln_matrix *const all[] = {X, y, W, b};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
}

static void bad_calls_are_refused(void **state) {
    (void)state;
    struct sample sample;
    make(&sample, false, 1);
    int64_t models = 0;
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLS, sample.X),
                *y = dense_matrix(KILN_F64, ROWS, 1, sample.y);
    const kiln_path_options good = {.l2 = strengths,
                                    .count = VALUES,
                                    .fold = sample.fold,
                                    .folds = FOLDS,
                                    .take = count_models,
                                    .user = &models};
    kiln_path_options no_take = good, no_count = good, few = good, none = good, l1 = good, bad = good;
    const double negative[VALUES] = {1, 1, -3, 1};
    no_take.take = NULL;
    no_count.count = 0;
    few.folds = 2;
    none.fold = NULL;
    l1.l1 = strengths;
    bad.l2 = negative;
    const kiln_path_options *const wrong[] = {&no_take, &no_count, &few, &none, &l1, &bad};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(kiln_path("linreg", NULL, X, y, 1, wrong[i]), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("hits", NULL, X, y, 1, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("alchemy", NULL, X, y, 1, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("linreg", NULL, NULL, y, 1, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("linreg", NULL, X, NULL, 1, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("linreg", NULL, X, y, 2, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("linreg", NULL, X, y, 0, &good), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_path("glm", &(kiln_glm_options){.standard_errors = y}, X, y, 1, &good),
                     KILN_ERR_ARGUMENT);
    assert_int_equal(models, 0);
    assert_int_equal(kiln_matrix_set(y, memset(sample.y, 0xff, sizeof sample.y)), KILN_OK);
    assert_int_equal(kiln_path("linreg", NULL, X, y, 1, &good), KILN_ERR_DATA);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_those_of_their_own_trainings),
        cmocka_unit_test(what_sums_cannot_tell_is_trained_alone),
        cmocka_unit_test(a_path_can_be_ended),
        cmocka_unit_test(a_start_and_the_options_own_penalty),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
