/* kiln_path where X is sparse and of many columns: the models of all folds, trained side by side, against
 * trainings of their own. */
#include "algorithms/on_cpu.h"

enum { ROWS = 90, COLS = 1100, ENTRIES = 20, FOLDS = 4, VALUES = 5 };

static const double strengths[VALUES] = {30, 4, 0.7, 0.1, 0.02};

struct sample {
    int64_t start[ROWS + 1];
    int32_t col[ROWS * ENTRIES], fold[ROWS];
    double values[ROWS * ENTRIES], y[ROWS], weights[ROWS];
};

/* Words, the first ones in many rows; targets are classes, or counts. */
static void make(struct sample *s) {
    uint64_t seed = 14;
    for (int i = 0; i < ROWS; i++) {
        double eta = 0;
        for (int e = 0; e < ENTRIES; e++) {
            const int width = COLS / ENTRIES, skew = e < 5 ? 3 : width;
            s->col[i * ENTRIES + e] = e * width + (int)(skew * uniform(&seed));
            s->values[i * ENTRIES + e] = 1 + (e < 5 ? 4 : 1) * uniform(&seed);
            eta += (s->col[i * ENTRIES + e] % 3 - 1) * s->values[i * ENTRIES + e];
        }
        s->start[i + 1] = (int64_t)(i + 1) * ENTRIES;
        s->y[i] = eta + 3 * uniform(&seed) > 1;
        s->weights[i] = i % 9 == 0 ? 0 : 0.5 + uniform(&seed);
        s->fold[i] = (int32_t)(i * 7 % FOLDS);
    }
}

static kiln_matrix *matrix_of(const struct sample *s, kiln_type type) {
    kiln_matrix *wide = NULL, *A = NULL;
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, ROWS, COLS, s->start, s->col, s->values),
                     KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    return A;
}

union options {
    kiln_logreg_options logreg;
    kiln_glm_options glm;
    kiln_svm_options svm;
};

static const double heavier[] = {1, 2.5};
static const struct setting {
    const char *algorithm;
    bool weighted;
    union options options;
} settings[] = {
    {"logreg", false, {.logreg = {.l2 = 0}}},
    {"logreg", true, {.logreg = {.no_intercept = 1, .class_weights = heavier}}},
    {"logreg", true, {.logreg = {.standardize = 1}}},
    {"svm", false, {.svm = {.l2 = 0}}},
    {"svm", true, {.svm = {.no_intercept = 1}}},
    {"svm", false, {.svm = {.regression = 1, .epsilon = 0.1}}},
    {"glm", true, {.glm = {.family = KILN_POISSON}}},
};

struct comparison {
    const struct setting *setting;
    const struct sample *sample;
    kiln_matrix *X, *y;
    int64_t next;
};

static double objective_alone(const struct comparison *of, int64_t fold, int64_t value) {
    const struct setting *s = of->setting;
    const kiln_type type = kiln_matrix_type(of->X);
    union options options = s->options;
    double weights[ROWS];
    for (int i = 0; i < ROWS; i++)
        weights[i] = of->sample->fold[i] == fold ? 0 : s->weighted ? of->sample->weights[i] : 1;
    kiln_matrix *v = dense_matrix(type, ROWS, 1, weights), *W = dense_matrix(type, COLS, 1, NULL),
                *b = dense_matrix(type, 1, 1, NULL);
    kiln_report report = {0};
    kiln_status status = KILN_ERR_ARGUMENT;
#define TRAIN(name)                                                                                          \
    if (strcmp(s->algorithm, #name) == 0) {                                                                  \
        options.name.l2 = strengths[value];                                                                  \
        options.name.weights = v;                                                                            \
        status = kiln_##name(W, b, of->X, of->y, &options.name, &report);                                    \
    }
    TRAIN(logreg)
    TRAIN(glm)
    TRAIN(svm)
    assert_int_equal(status, KILN_OK);
    if (!report.converged)
        fail_msg("%s alone, fold %d, value %d: residual %g, stopped by %d", s->algorithm, (int)fold,
                 (int)value, report.residual, (int)report.stopped_by);
    const double objective = report.objective;
    kiln_matrix *const all[] = {v, W, b};
    for (int i = 0; i < 3; i++) kiln_matrix_free(all[i]);
    kiln_report_free(&report);
    return objective;
}

static int take(void *user, const kiln_path_models *models) {
    struct comparison *of = user;
    const bool narrow = kiln_matrix_type(models->W) == KILN_F32;
    /* in f32 rounding may leave a fold to be trained alone */
    assert_true(models->count == VALUES || (narrow && models->count == 1));
    for (int64_t i = 0; i < models->count; i++) {
        const kiln_report *report = models->reports[i];
        const double alone = objective_alone(of, models->fold, models->first + i);
        assert_int_equal(of->next++, models->fold * VALUES + models->first + i);
        if (!report->converged || report->residual > report->tolerance ||
            report->passes < report->iterations ||
            fabs(report->objective - alone) > (narrow ? 1e-3 : 1e-9) * (1 + alone))
            fail_msg("%s, fold %d, value %d: residual %g, objective %.15g, alone %.15g",
                     of->setting->algorithm, (int)models->fold, (int)i, report->residual, report->objective,
                     alone);
    }
    return 0;
}

static void models_are_those_of_their_own_trainings(void **state) {
    (void)state;
    struct sample sample = {.start = {0}};
    make(&sample);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            struct comparison of = {&settings[i], &sample, matrix_of(&sample, type),
                                    dense_matrix(type, ROWS, 1, sample.y), 0};
            kiln_matrix *v = settings[i].weighted ? dense_matrix(type, ROWS, 1, sample.weights) : NULL;
            union options options = settings[i].options;
            if (strcmp(of.setting->algorithm, "logreg") == 0) options.logreg.weights = v;
            if (strcmp(of.setting->algorithm, "glm") == 0) options.glm.weights = v;
            if (strcmp(of.setting->algorithm, "svm") == 0) options.svm.weights = v;
            assert_int_equal(kiln_path(of.setting->algorithm, &options, of.X, of.y, 1,
                                       &(kiln_path_options){.l2 = strengths,
                                                            .count = VALUES,
                                                            .fold = sample.fold,
                                                            .folds = FOLDS,
                                                            .take = take,
                                                            .user = &of}),
                             KILN_OK);
            assert_int_equal(of.next, VALUES * FOLDS);
            kiln_matrix *const all[] = {of.X, of.y, v};
            for (int m = 0; m < 3; m++) kiln_matrix_free(all[m]);
        }
}

static int stop(void *user, const kiln_progress *now) {
    (void)now;
    return ++*(int *)user > 9;
}

static int no_model(void *user, const kiln_path_models *models) {
    (void)user;
    (void)models;
    return 1;
}

static void a_path_can_be_ended_within_a_step(void **state) {
    (void)state;
    struct sample sample = {.start = {0}};
    int calls = 0;
    make(&sample);
    kiln_matrix *X = matrix_of(&sample, KILN_F64), *y = dense_matrix(KILN_F64, ROWS, 1, sample.y);
    const kiln_path_options path = {
        .l2 = strengths, .count = VALUES, .fold = sample.fold, .folds = FOLDS, .take = no_model};
    assert_int_equal(kiln_path("logreg", &(kiln_logreg_options){.control = {stop, &calls}}, X, y, 1, &path),
                     KILN_ERR_CANCELLED);
    assert_int_equal(calls, 10);
    assert_int_equal(kiln_path("logreg", NULL, X, y, 1, &path), KILN_ERR_CANCELLED);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_those_of_their_own_trainings),
        cmocka_unit_test(a_path_can_be_ended_within_a_step),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
