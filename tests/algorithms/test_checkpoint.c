/* A run that is stopped after each of its iterations in turn, and goes on, ends where the run that was
 * never stopped does: the same bits, and the same trace but for its times. For every algorithm. And what a
 * checkpoint is refused for. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdatomic.h>

#include "core/device.h"
#include "algorithms/on_cpu.h"
#include "io/scratch.h"

#include "io/model/model.h"

enum { TALL = 35000, NARROW = 15 }; /* of so many rows a sample is the first step */
enum { ROWS = 90, COLS = 12, WIDE = 300, MANY = 70, VALUES = 4096, STOPS_MOST = 12 };

static int64_t limit; /* of iterations; 0: a run's own */

static int64_t most(int64_t own) {
    return limit ? limit : own;
}

static kiln_matrix *X, *counts, *graph, *wide, *targets, *many, *classes, *three, *positive, *tall, *means;

/* Holds what a run ends with. */
struct outcome {
    double values[VALUES];
    int64_t count;
    kiln_report report;
};

/* A matrix's values behind those that are there. */
static void keep(struct outcome *outcome, kiln_matrix *A) {
    assert_true(outcome->count + kiln_matrix_nnz(A) <= VALUES);
    assert_int_equal(kiln_matrix_get(outcome->values + outcome->count, A), KILN_OK);
    outcome->count += kiln_matrix_nnz(A);
    kiln_matrix_free(A);
}

static kiln_matrix *room(int64_t rows, int64_t cols) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, rows, cols, NULL), KILN_OK);
    return A;
}

/* ---- the algorithms ---- */

static kiln_status hits_by(struct outcome *o, kiln_control control, kiln_hits_solver solver) {
    kiln_matrix *hubs = room(ROWS, 1), *authorities = room(COLS, 1);
    const kiln_status status =
        kiln_hits(hubs, authorities, counts,
                  &(kiln_hits_options){
                      .control = control, .solver = solver, .tolerance = 1e-14, .max_iterations = limit},
                  &o->report);
    keep(o, hubs);
    keep(o, authorities);
    return status;
}

static kiln_status hits(struct outcome *o, kiln_control control) {
    return hits_by(o, control, KILN_HITS_POWER);
}

static kiln_status hits_lobpcg(struct outcome *o, kiln_control control) {
    return hits_by(o, control, KILN_HITS_LOBPCG);
}

static kiln_status pagerank(struct outcome *o, kiln_control control) {
    kiln_matrix *ranks = room(ROWS, 2);
    const kiln_pagerank_options options = {.control = control, .tolerance = 1e-14, .max_iterations = limit};
    const kiln_status status = kiln_pagerank(ranks, graph, &options, &o->report);
    keep(o, ranks);
    return status;
}

static kiln_status kmeans_by(struct outcome *o, kiln_kmeans_options options, const kiln_matrix *data) {
    kiln_matrix *centres = room(7, kiln_matrix_cols(data)), *labels = room(ROWS, 1);
    options.labels = labels;
    options.tolerance = 1e-12;
    options.max_iterations = most(options.max_iterations);
    const kiln_status status = kiln_kmeans(centres, data, &options, &o->report);
    keep(o, centres);
    keep(o, labels);
    return status;
}

static kiln_status kmeans(struct outcome *o, kiln_control control) {
    return kmeans_by(o, (kiln_kmeans_options){.control = control, .restarts = 3}, X);
}

static kiln_status kmeans_bounds(struct outcome *o, kiln_control control) {
    return kmeans_by(o,
                     (kiln_kmeans_options){.size = sizeof(kiln_kmeans_options),
                                           .control = control,
                                           .restarts = 2,
                                           .algorithm = KILN_KMEANS_BOUNDS},
                     many);
}

static kiln_status kmeans_batch(struct outcome *o, kiln_control control) {
    return kmeans_by(o,
                     (kiln_kmeans_options){.size = sizeof(kiln_kmeans_options),
                                           .control = control,
                                           .restarts = 2,
                                           .batch = 20,
                                           .max_iterations = 18,
                                           .patience = 4},
                     X);
}

static kiln_status mds_by(struct outcome *o, kiln_mds_options options) {
    kiln_matrix *Y = room(ROWS, 2);
    options.max_iterations = most(8);
    const kiln_status status = kiln_mds(Y, X, &options, &o->report);
    keep(o, Y);
    return status;
}

static kiln_status mds(struct outcome *o, kiln_control control) {
    return mds_by(o, (kiln_mds_options){.control = control, .metric = KILN_MDS_RATIO, .restarts = 2});
}

static kiln_status mds_ordinal(struct outcome *o, kiln_control control) {
    return mds_by(o, (kiln_mds_options){.control = control, .metric = KILN_MDS_ORDINAL, .restarts = 2});
}

/* Starts that meet the tolerance, some of them where the caller asks to stop. */
static kiln_status mds_starts(struct outcome *o, kiln_control control) {
    return mds_by(o, (kiln_mds_options){.control = control, .restarts = 4, .tolerance = 0.05});
}

/* Keeps both of a model of two factors. */
static kiln_status keep_both(struct outcome *o, kiln_matrix *A, kiln_matrix *B, kiln_status status) {
    keep(o, A);
    keep(o, B);
    return status;
}

static kiln_status als_by(struct outcome *o, kiln_als_options options) {
    kiln_matrix *A = room(ROWS, 4), *B = room(COLS, 4);
    options.max_iterations = most(9);
    options.tolerance = 1e-14;
    return keep_both(o, A, B, kiln_als(A, B, counts, &options, &o->report));
}

static kiln_status als(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .biases = 1, .test = counts});
}

static kiln_status als_implicit(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .implicit = 1, .solver = KILN_FACTOR_CG});
}

static kiln_status als_ccd(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .biases = 1, .solver = KILN_FACTOR_CCD});
}

static kiln_status sfa(struct outcome *o, kiln_control control) {
    kiln_matrix *A = room(ROWS, 4), *B = room(COLS, 4);
    const kiln_sfa_options options = {
        .control = control, .max_iterations = most(9), .tolerance = 1e-14, .test = counts};
    return keep_both(o, A, B, kiln_sfa(A, B, counts, &options, &o->report));
}

static kiln_status lda_by(struct outcome *o, kiln_lda_options options) {
    kiln_matrix *A = room(ROWS, 3), *B = room(COLS, 3);
    options.max_iterations = most(8);
    options.tolerance = 1e-14;
    return keep_both(o, A, B, kiln_lda(A, B, counts, &options, &o->report));
}

static kiln_status lda(struct outcome *o, kiln_control control) {
    return lda_by(o, (kiln_lda_options){.control = control, .learn_alpha = 1, .test = counts});
}

static kiln_status lda_batch(struct outcome *o, kiln_control control) {
    return lda_by(o, (kiln_lda_options){.control = control, .batch = 25});
}

static kiln_status gap(struct outcome *o, kiln_control control) {
    kiln_matrix *A = room(ROWS, 3), *B = room(COLS, 3);
    const kiln_gap_options options = {
        .control = control, .max_iterations = most(9), .tolerance = 1e-14, .test = counts};
    return keep_both(o, A, B, kiln_gap(A, B, counts, &options, &o->report));
}

static kiln_status svd_by(struct outcome *o, kiln_svd_options options) {
    kiln_matrix *V = room(WIDE, 3), *s = room(3, 1);
    options.tolerance = 1e-13;
    options.max_iterations = limit;
    return keep_both(o, V, s, kiln_svd(NULL, s, V, wide, &options, &o->report));
}

static kiln_status svd(struct outcome *o, kiln_control control) {
    return svd_by(o, (kiln_svd_options){.control = control});
}

/* On the Gram matrix of the columns. */
static kiln_status pca(struct outcome *o, kiln_control control) {
    kiln_matrix *V = room(MANY, 3), *s = room(3, 1);
    const kiln_svd_options options = {.control = control, .solver = KILN_SVD_GRAM, .max_iterations = limit};
    return keep_both(o, V, s, kiln_pca(NULL, s, V, many, &options, &o->report));
}

static kiln_status spectral(struct outcome *o, kiln_control control) {
    kiln_matrix *V = room(ROWS, 3), *s = room(3, 1);
    const kiln_svd_options options = {.control = control, .tolerance = 1e-13, .max_iterations = limit};
    return keep_both(o, V, s, kiln_spectral(NULL, s, V, graph, &options, &o->report));
}

static kiln_status svd_centred(struct outcome *o, kiln_control control) {
    return svd_by(o, (kiln_svd_options){.control = control, .center = 1, .scale = 1});
}

static kiln_status linreg_by(struct outcome *o, kiln_linreg_options options, const kiln_matrix *y) {
    kiln_matrix *W = room(COLS, kiln_matrix_cols(y)), *b = room(1, kiln_matrix_cols(y));
    options.solver = KILN_LINREG_CG;
    options.no_preconditioner = 1;
    options.max_iterations = most(options.max_iterations);
    const kiln_status status = kiln_linreg(W, b, X, y, &options, &o->report);
    keep(o, W);
    keep(o, b);
    return status;
}

static kiln_status linreg(struct outcome *o, kiln_control control) {
    return linreg_by(o, (kiln_linreg_options){.control = control, .weights = classes}, targets);
}

static kiln_status linreg_blocks(struct outcome *o, kiln_control control) {
    return linreg_by(o, (kiln_linreg_options){.control = control, .l2 = 1, .max_iterations = 7}, many);
}

static kiln_status logreg_by(struct outcome *o, kiln_logreg_options options, const kiln_matrix *A,
                             const kiln_matrix *y) {
    const int64_t k = y == three ? 3 : 1;
    kiln_matrix *W = room(kiln_matrix_cols(A), k), *b = room(1, k);
    options.max_iterations = limit;
    const kiln_status status = kiln_logreg(W, b, A, y, &options, &o->report);
    keep(o, W);
    keep(o, b);
    return status;
}

static kiln_status logreg(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l2 = 1e-4}, X, classes);
}

/* More columns than rows: by conjugate gradient, without a factor. */
static kiln_status logreg_wide(struct outcome *o, kiln_control control) {
    return logreg_by(o,
                     (kiln_logreg_options){.control = control, .l2 = 1e-3, .solver = KILN_CLASSIFIER_NEWTON},
                     wide, classes);
}

static kiln_status logreg_softmax(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l2 = 1e-3}, X, three);
}

static kiln_status logreg_l1(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l1 = 0.3}, wide, classes);
}

static kiln_status logreg_softmax_l1(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l1 = 0.3}, X, three);
}

static kiln_status svm_by(struct outcome *o, kiln_svm_options options, const kiln_matrix *y) {
    const int64_t k = y == three ? 3 : 1;
    kiln_matrix *W = room(COLS, k), *b = room(1, k);
    options.max_iterations = limit;
    const kiln_status status = kiln_svm(W, b, X, y, &options, &o->report);
    keep(o, W);
    keep(o, b);
    return status;
}

static kiln_status svm(struct outcome *o, kiln_control control) {
    return svm_by(o, (kiln_svm_options){.control = control, .l2 = 1e-4}, three);
}

static kiln_status svm_regression(struct outcome *o, kiln_control control) {
    return svm_by(o, (kiln_svm_options){.control = control, .l2 = 1e-4, .regression = 1, .epsilon = 0.3},
                  targets);
}

static kiln_status glm_by(struct outcome *o, kiln_glm_options options, const kiln_matrix *y) {
    kiln_matrix *w = room(COLS, 1), *b = options.no_intercept ? NULL : room(1, 1);
    options.max_iterations = limit;
    const kiln_status status = kiln_glm(w, b, X, y, &options, &o->report);
    keep(o, w);
    if (b) keep(o, b);
    return status;
}

static kiln_status glm_poisson(struct outcome *o, kiln_control control) {
    return glm_by(o, (kiln_glm_options){.control = control, .family = KILN_POISSON}, three);
}

static kiln_status glm_gamma(struct outcome *o, kiln_control control) {
    return glm_by(o, (kiln_glm_options){.control = control, .family = KILN_GAMMA, .link = KILN_LINK_LOG},
                  positive);
}

static kiln_status glm_tall(struct outcome *o, kiln_control control) {
    kiln_matrix *w = room(NARROW, 1), *b = room(1, 1);
    const kiln_glm_options options = {
        .control = control, .family = KILN_GAMMA, .link = KILN_LINK_LOG, .max_iterations = limit};
    return keep_both(o, w, b, kiln_glm(w, b, tall, means, &options, &o->report));
}

/* A link that not every eta suits: the start is a regression, and the tolerance relative to its gradient. */
static kiln_status glm_without_intercept(struct outcome *o, kiln_control control) {
    return glm_by(o,
                  (kiln_glm_options){
                      .control = control, .family = KILN_POISSON, .link = KILN_LINK_SQRT, .no_intercept = 1},
                  three);
}

static const struct run {
    const char *name;
    kiln_status (*call)(struct outcome *o, kiln_control control);
} runs[] = {{"hits", hits},
            {"hits, lobpcg", hits_lobpcg},
            {"pagerank", pagerank},
            {"kmeans", kmeans},
            {"kmeans, bounds", kmeans_bounds},
            {"kmeans, batch", kmeans_batch},
            {"mds", mds},
            {"mds, ordinal", mds_ordinal},
            {"mds, starts", mds_starts},
            {"als", als},
            {"als, implicit", als_implicit},
            {"als, ccd", als_ccd},
            {"sfa", sfa},
            {"lda", lda},
            {"lda, batch", lda_batch},
            {"gap", gap},
            {"svd", svd},
            {"svd, centred", svd_centred},
            {"pca", pca},
            {"spectral", spectral},
            {"linreg", linreg},
            {"linreg, blocks", linreg_blocks},
            {"logreg", logreg},
            {"logreg, wide", logreg_wide},
            {"logreg, softmax", logreg_softmax},
            {"logreg, l1", logreg_l1},
            {"logreg, softmax, l1", logreg_softmax_l1},
            {"svm", svm},
            {"svm, regression", svm_regression},
            {"glm, poisson", glm_poisson},
            {"glm, gamma", glm_gamma},
            {"glm, tall", glm_tall},
            {"glm, no intercept", glm_without_intercept}};
enum { RUNS = sizeof runs / sizeof *runs };

/* ---- stopping and going on ---- */

/* Asks to stop when it is told of iteration `at`, or of one behind it. */
struct stopper {
    int64_t at, told;
};

static int stop_at(void *user, const kiln_progress *now) {
    struct stopper *stopper = user;
    if (now->done > stopper->told) stopper->told = now->done;
    return now->done >= stopper->at;
}

static void compare(const char *name, const struct outcome *whole, const struct outcome *part) {
    if (whole->count != part->count ||
        memcmp(whole->values, part->values, (size_t)whole->count * sizeof(double)) != 0)
        fail_msg("%s: other bits", name);
    const kiln_report *a = &whole->report, *b = &part->report;
    if (a->iterations != b->iterations || a->passes != b->passes || a->stopped_by != b->stopped_by ||
        a->converged != b->converged || memcmp(&a->objective, &b->objective, sizeof a->objective) != 0 ||
        memcmp(&a->residual, &b->residual, sizeof a->residual) != 0)
        fail_msg("%s: iterations %d and %d, passes %d and %d, objectives %.17g and %.17g", name,
                 (int)a->iterations, (int)b->iterations, (int)a->passes, (int)b->passes, a->objective,
                 b->objective);
    if (a->trace_count != b->trace_count)
        fail_msg("%s: traces of %d and %d", name, (int)a->trace_count, (int)b->trace_count);
    for (int64_t i = 0; i < a->trace_count; i++) {
        kiln_trace_row one = a->trace[i], other = b->trace[i];
        one.seconds = other.seconds = 0;
        if (memcmp(&one, &other, sizeof one) != 0) fail_msg("%s: another row %d of the trace", name, (int)i);
    }
}

static kiln_checkpoint *open_at(const char *path, bool resume) {
    kiln_checkpoint *checkpoint = NULL;
    const kiln_checkpoint_options options = {
        .checkpoint = path, .checkpoint_every = 1e-9, .resume = resume ? path : NULL};
    if (kiln_checkpoint_open(&checkpoint, &options) != KILN_OK) fail_msg("%s", kiln_last_error()->message);
    return checkpoint;
}

/* Stops after iteration `at`, again after the next one, and goes on. False: the run had ended before. */
static bool stop_and_go_on(const struct run *run, const struct outcome *whole, int64_t at) {
    static struct outcome part;
    const char *path = in_scratch("state");
    bool stopped = true;
    remove(path);
    for (int piece = 0; piece < 3; piece++) {
        struct stopper stopper = {.at = piece < 2 ? at + piece : INT64_MAX};
        kiln_checkpoint *checkpoint = open_at(path, access(path, F_OK) == 0);
        kiln_checkpoint_info info = {0};
        kiln_report_free(&part.report);
        part = (struct outcome){.count = 0};
        const kiln_control control = kiln_checkpoint_control(checkpoint, (kiln_control){stop_at, &stopper});
        if (run->call(&part, control) != KILN_OK) fail_msg("%s: %s", run->name, kiln_last_error()->message);
        assert_int_equal(kiln_checkpoint_get_info(&info, checkpoint), KILN_OK);
        kiln_checkpoint_close(checkpoint);
        if (part.report.stopped_by != KILN_STOP_CANCELLED) {
            stopped = piece > 0;
            break;
        }
        if (info.written == 0 && info.resumed < 0) /* of a start or a problem at its limit the state stays */
            fail_msg("%s: stopped after iteration %d without a state", run->name, (int)at + piece);
    }
    compare(run->name, whole, &part);
    kiln_report_free(&part.report);
    return stopped;
}

static void test_every_iteration(void **state) {
    (void)state;
    static struct outcome whole;
    for (int r = 0; r < RUNS; r++) {
        whole = (struct outcome){.count = 0};
        if (runs[r].call(&whole, (kiln_control){NULL, NULL}) != KILN_OK)
            fail_msg("%s: %s", runs[r].name, kiln_last_error()->message);
        int64_t stops = 0;
        for (int64_t at = 1; at < STOPS_MOST && stop_and_go_on(&runs[r], &whole, at); at++) stops++;
        if (stops < 3) fail_msg("%s was stopped %d times", runs[r].name, (int)stops);
        kiln_report_free(&whole.report);
    }
}

/* A run that has ended at a limit of iterations goes on under a higher one, in the start, or the problem,
 * that the limit has cut. */
static void test_limits(void **state) {
    (void)state;
    static struct outcome whole, part;
    const char *path = in_scratch("state");
    for (int r = 0; r < RUNS; r++) {
        whole = (struct outcome){.count = 0};
        assert_int_equal(runs[r].call(&whole, (kiln_control){NULL, NULL}), KILN_OK);
        for (int64_t at = 1; at < 5; at++) {
            remove(path);
            for (int piece = 0; piece < 2; piece++) {
                kiln_checkpoint *checkpoint = open_at(path, piece > 0);
                limit = piece == 0 ? at : 0;
                part = (struct outcome){.count = 0};
                const kiln_control control = kiln_checkpoint_control(checkpoint, (kiln_control){NULL, NULL});
                if (runs[r].call(&part, control) != KILN_OK)
                    fail_msg("%s: %s", runs[r].name, kiln_last_error()->message);
                kiln_checkpoint_close(checkpoint);
                if (at == 1 && piece == 0 && part.report.stopped_by != KILN_STOP_ITERATIONS)
                    fail_msg("%s: stopped by %s", runs[r].name, kiln_stop_name(part.report.stopped_by));
                if (piece > 0) compare(runs[r].name, &whole, &part);
                kiln_report_free(&part.report);
            }
        }
        kiln_report_free(&whole.report);
    }
}

/* ---- within a fit ---- */

/* Asks to stop when it is told anything for the `left`-th time. */
static int stop_after(void *user, const kiln_progress *now) {
    int *left = user;
    (void)now;
    return --*left <= 0;
}

/* A cycle's eigenvalues are so close that a step of the search has many products: stopped between two of
 * them, it ends as if it had not been. */
static void test_within_a_step(void **state) {
    enum { LENGTH = 400, K = 2, APART = 37 };
    (void)state;
    static struct outcome whole, part;
    static int64_t start[LENGTH + 1];
    static int32_t next[LENGTH];
    static double ones[LENGTH];
    kiln_matrix *cycle = NULL;
    const char *path = in_scratch("state");
    for (int i = 0; i < LENGTH; i++) start[i + 1] = i + 1, next[i] = (i + 1) % LENGTH, ones[i] = 1;
    assert_int_equal(kiln_matrix_csr(&cycle, device, KILN_F64, LENGTH, LENGTH, start, next, ones), KILN_OK);
    for (int at = 0, told = 1; told; at += APART) { /* until the run ends before it is asked to stop */
        remove(path);
        for (int piece = 0; piece < (at > 0 ? 2 : 1); piece++) {
            struct outcome *const o = at > 0 ? &part : &whole;
            int left = at > 0 && piece == 0 ? at : INT32_MAX;
            kiln_matrix *V = room(LENGTH, K), *s = room(K, 1);
            kiln_checkpoint *checkpoint = open_at(path, piece > 0);
            const kiln_svd_options options = {
                .control = kiln_checkpoint_control(checkpoint, (kiln_control){stop_after, &left})};
            *o = (struct outcome){.count = 0};
            if (kiln_spectral(NULL, s, V, cycle, &options, &o->report) != KILN_OK)
                fail_msg("%s", kiln_last_error()->message);
            keep(o, V), keep(o, s);
            kiln_checkpoint_close(checkpoint);
            if (piece == 0) told = at == 0 || left <= 0;
            if (piece == 0 && at > 0) {
                assert_int_equal(o->report.stopped_by == KILN_STOP_CANCELLED, told);
                kiln_report_free(&o->report);
            }
        }
        if (at > 0 && told) {
            compare("a cycle", &whole, &part);
            kiln_report_free(&part.report);
        }
    }
    assert_true(whole.report.converged && whole.report.passes > 2 * whole.report.iterations);
    kiln_report_free(&whole.report);
    kiln_matrix_free(cycle);
}

/* With so many columns a model's parameters are counted by another fit, which has no state: wherever the run
 * is stopped, its own stays. */
static void test_inner_fits(void **state) {
    enum { BROAD = 514, LONG = 560 };
    (void)state;
    kiln_matrix *A, *y, *w = room(BROAD, 1), *b = room(1, 1);
    const char *path = in_scratch("state");
    struct ki_container content = {0};
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, LONG, BROAD, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, LONG, 1, NULL), KILN_OK);
    assert_int_equal(kiln_fill_random(A, KILN_UNIFORM, 17, 0), KILN_OK);
    assert_int_equal(kiln_fill_random(y, KILN_UNIFORM, 18, 0), KILN_OK);
    remove(path);
    for (int told = 0, at = 4; told == 0; at += 5) { /* until the run ends before it is asked to stop */
        int left = at;
        kiln_checkpoint *checkpoint = open_at(path, false);
        const kiln_glm_options options = {
            .control = kiln_checkpoint_control(checkpoint, (kiln_control){stop_after, &left}),
            .family = KILN_GAMMA,
            .link = KILN_LINK_LOG,
            .tolerance = 1e-6};
        assert_int_equal(kiln_glm(w, b, A, y, &options, NULL), KILN_OK);
        kiln_checkpoint_close(checkpoint);
        told = left > 0;
        assert_int_equal(ki_container_read(&content, path), KILN_OK);
        assert_string_equal(ki_container_text(&content, "checkpoint"), "glm");
        ki_container_clear(&content);
    }
    kiln_matrix *const all[] = {A, y, w, b};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
}

/* ---- on another device ---- */

static kiln_matrix **const moving[] = {&X, &wide, &targets, &classes, &three, &positive, &tall, &means};
enum { MOVING = sizeof moving / sizeof *moving };

/* The data of these runs on a device, as the Newton engine takes a GPU, whatever OpenCL has found. */
struct place {
    kiln_device *on;
    kiln_matrix *data[MOVING];
};

static void go_to(const struct place *place) {
    device = place->on;
    for (int i = 0; i < MOVING; i++) *moving[i] = place->data[i];
}

/* The run begins in one place, is stopped after iteration `at`, and goes on in the other to the same end,
 * but for its last digits. */
static bool stop_and_move(const struct run *run, const struct place *from, const struct place *to,
                          const struct outcome *whole, int64_t at) {
    static struct outcome part;
    const char *path = in_scratch("state");
    struct stopper stopper = {.at = at};
    remove(path);
    for (int piece = 0; piece < 2; piece++) {
        kiln_checkpoint *checkpoint = open_at(path, piece > 0);
        const kiln_control control = kiln_checkpoint_control(checkpoint, (kiln_control){stop_at, &stopper});
        part = (struct outcome){.count = 0};
        go_to(piece ? to : from);
        if (run->call(&part, control) != KILN_OK) fail_msg("%s: %s", run->name, kiln_last_error()->message);
        kiln_checkpoint_close(checkpoint);
        kiln_report_free(&part.report);
        if (part.report.stopped_by != KILN_STOP_CANCELLED) break;
        stopper.at = INT64_MAX;
    }
    const double end = part.report.objective, want = whole->report.objective;
    if (part.report.converged != whole->report.converged || !(fabs(end - want) <= 1e-5 * fabs(want)))
        fail_msg("%s, stopped at %d: %.17g, not %.17g", run->name, (int)at, end, want);
    return stopper.at == INT64_MAX;
}

/* Which parts there are hangs on the device: the first steps, the factor, what adds up, the descent. */
static void test_other_device(void **state) {
    (void)state;
    static const struct run movers[] = {{"logreg", logreg},        {"logreg, wide", logreg_wide},
                                        {"logreg, l1", logreg_l1}, {"svm", svm},
                                        {"glm, gamma", glm_gamma}, {"glm, tall", glm_tall}};
    static struct outcome whole;
    struct place places[2] = {{.on = device}};
    if (kiln_device_open(&places[1].on, "opencl", NULL) != KILN_OK) skip();
    places[1].on->info.is_gpu = 1;
    for (int i = 0; i < MOVING; i++) {
        places[0].data[i] = *moving[i];
        assert_int_equal(kiln_matrix_copy(&places[1].data[i], places[1].on, KILN_TYPE_DEFAULT, *moving[i]),
                         KILN_OK);
    }
    for (size_t r = 0; r < sizeof movers / sizeof *movers; r++) {
        whole = (struct outcome){.count = 0};
        go_to(&places[0]);
        assert_int_equal(movers[r].call(&whole, (kiln_control){NULL, NULL}), KILN_OK);
        for (int from = 0; from < 2; from++)
            for (int at = 1; at < 4; at++)
                if (!stop_and_move(&movers[r], &places[from], &places[1 - from], &whole, at)) break;
        kiln_report_free(&whole.report);
    }
    go_to(&places[0]);
    for (int i = 0; i < MOVING; i++) kiln_matrix_free(places[1].data[i]);
    kiln_device_close(places[1].on);
}

/* ---- within a descent in the dual ---- */

static kiln_status logreg_dual(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l2 = 1e-3, .solver = KILN_CLASSIFIER_DUAL},
                     wide, classes);
}

static kiln_status logreg_softmax_dual(struct outcome *o, kiln_control control) {
    return logreg_by(o, (kiln_logreg_options){.control = control, .l2 = 1e-2, .solver = KILN_CLASSIFIER_DUAL},
                     wide, three);
}

static kiln_status svm_dual(struct outcome *o, kiln_control control) {
    kiln_matrix *W = room(WIDE, 3), *b = room(1, 3);
    const kiln_svm_options options = {.control = control, .l2 = 1e-3, .solver = KILN_CLASSIFIER_DUAL};
    const kiln_status status = kiln_svm(W, b, wide, three, &options, &o->report);
    keep(o, W);
    keep(o, b);
    return status;
}

static kiln_status svm_together_dual(struct outcome *o, kiln_control control) {
    kiln_matrix *W = room(WIDE, 3);
    const kiln_svm_options options = {
        .control = control, .l2 = 1e-3, .no_intercept = 1, .solver = KILN_CLASSIFIER_DUAL};
    const kiln_status status = kiln_svm(W, NULL, wide, three, &options, &o->report);
    keep(o, W);
    return status;
}

/* A clock that each look moves on, so that rounds end after a few sweeps. */
static double looked_at(void) {
    static atomic_int looks;
    return 0.03 * atomic_fetch_add(&looks, 1);
}

static bool has_part(const char *path, const char *name) {
    struct ki_container content = {0};
    assert_int_equal(ki_container_read(&content, path), KILN_OK);
    const bool has = ki_container_tensor(&content, name) != NULL;
    ki_container_clear(&content);
    return has;
}

/* Stopped at every call of the callback in turn, and again at the third one behind it. `part_name`: of
 * states that are kept between iterations. */
static void stop_within(const struct run *run, const char *part_name) {
    static struct outcome whole, part;
    const char *path = in_scratch("state");
    bool ended = false;
    whole = (struct outcome){.count = 0};
    assert_int_equal(run->call(&whole, (kiln_control){NULL, NULL}), KILN_OK);
    int within = 0;
    for (int at = 1; !ended && at < 3 * STOPS_MOST; at++) {
        remove(path);
        for (int piece = 0; piece < 3; piece++) {
            int left = piece == 0 ? at : piece == 1 ? 3 : INT_MAX;
            within += piece > 0 && has_part(path, part_name);
            kiln_checkpoint *checkpoint = open_at(path, piece > 0);
            part = (struct outcome){.count = 0};
            const kiln_control control =
                kiln_checkpoint_control(checkpoint, (kiln_control){stop_after, &left});
            if (run->call(&part, control) != KILN_OK)
                fail_msg("%s: %s", run->name, kiln_last_error()->message);
            kiln_checkpoint_close(checkpoint);
            ended = piece == 0 && part.report.stopped_by != KILN_STOP_CANCELLED;
            if (part.report.stopped_by != KILN_STOP_CANCELLED) break;
            kiln_report_free(&part.report);
        }
        compare(run->name, &whole, &part);
        kiln_report_free(&part.report);
    }
    if (within < 4) fail_msg("%s was stopped %d times with a part '%s'", run->name, within, part_name);
    kiln_report_free(&whole.report);
}

static void test_descents(void **state) {
    (void)state;
    static const struct run descents[] = {{"logreg, dual", logreg_dual},
                                          {"logreg, softmax, dual", logreg_softmax_dual},
                                          {"svm, dual", svm_dual},
                                          {"svm, dual, classes together", svm_together_dual}};
    const struct ki_seams former = ki_seams;
    ki_seams.clock = looked_at;
    for (size_t r = 0; r < sizeof descents / sizeof *descents; r++) stop_within(&descents[r], "dual.place");
    ki_seams = former;
}

/* ---- within a start ---- */

static kiln_status kmeans_weighted(struct outcome *o, kiln_control control) {
    return kmeans_by(o, (kiln_kmeans_options){.control = control, .restarts = 2, .weights = positive}, X);
}

static kiln_status kmeans_spherical(struct outcome *o, kiln_control control) {
    return kmeans_by(o, (kiln_kmeans_options){.control = control, .restarts = 2, .spherical = 1}, X);
}

static void test_starts(void **state) {
    (void)state;
    static const struct run starts[] = {{"kmeans", kmeans},
                                        {"kmeans, bounds", kmeans_bounds},
                                        {"kmeans, batch", kmeans_batch},
                                        {"kmeans, weighted", kmeans_weighted},
                                        {"kmeans, spherical", kmeans_spherical}};
    for (size_t r = 0; r < sizeof starts / sizeof *starts; r++) stop_within(&starts[r], "chosen");
}

/* Whoever adds an algorithm says what its state is. */
static void test_all_algorithms(void **state) {
    (void)state;
    const kiln_algorithm *algorithm;
    for (int64_t i = 0; (algorithm = kiln_algorithm_at(i)); i++) {
        bool found = false;
        for (int r = 0; r < RUNS; r++) {
            const size_t length = strcspn(runs[r].name, ",");
            found = found || (strlen(algorithm->name) == length &&
                              strncmp(runs[r].name, algorithm->name, length) == 0);
        }
        if (!found) fail_msg("no run of %s is stopped here", algorithm->name);
    }
}

/* ---- what is refused ---- */

static void stop_run(const char *path, kiln_status (*call)(struct outcome *o, kiln_control control)) {
    static struct outcome o;
    struct stopper stopper = {.at = 3};
    kiln_checkpoint *checkpoint = open_at(path, false);
    o = (struct outcome){.count = 0};
    assert_int_equal(call(&o, kiln_checkpoint_control(checkpoint, (kiln_control){stop_at, &stopper})),
                     KILN_OK);
    kiln_report_free(&o.report);
    kiln_checkpoint_close(checkpoint);
}

static void stop_als(const char *path) {
    stop_run(path, als);
}

/* The run that would go on from the file fails, and says `part`. */
static void refused(const char *path, kiln_status (*call)(struct outcome *o, kiln_control control),
                    const char *part) {
    static struct outcome o;
    kiln_checkpoint *checkpoint = NULL;
    o = (struct outcome){.count = 0};
    kiln_status status = kiln_checkpoint_open(&checkpoint, &(kiln_checkpoint_options){.resume = path});
    if (status == KILN_OK) status = call(&o, kiln_checkpoint_control(checkpoint, (kiln_control){NULL, NULL}));
    kiln_checkpoint_close(checkpoint);
    kiln_report_free(&o.report);
    if (status != KILN_ERR_MODEL) fail_msg("%d, not refused for '%s'", status, part);
    if (!strstr(kiln_last_error()->message, part))
        fail_msg("'%s' lacks '%s'", kiln_last_error()->message, part);
}

static kiln_status als_other_l2(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .biases = 1, .l2 = 7, .test = counts});
}

static kiln_status als_other_solver(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){
                         .control = control, .biases = 1, .test = counts, .solver = KILN_FACTOR_CHOLESKY});
}

static kiln_status als_other_seed(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .biases = 1, .test = counts, .seed = 5});
}

static kiln_status als_without_test(struct outcome *o, kiln_control control) {
    return als_by(o, (kiln_als_options){.control = control, .biases = 1});
}

static kiln_status als_more_factors(struct outcome *o, kiln_control control) {
    kiln_matrix *A = room(ROWS, 5), *B = room(COLS, 5);
    const kiln_als_options options = {.control = control, .biases = 1, .test = counts};
    return keep_both(o, A, B, kiln_als(A, B, counts, &options, &o->report));
}

/* One entry is another number. */
static kiln_status als_other_data(struct outcome *o, kiln_control control) {
    kiln_matrix *former = counts, *other = NULL;
    double *values = malloc((size_t)kiln_matrix_nnz(counts) * sizeof *values);
    assert_int_equal(kiln_matrix_get(values, counts), KILN_OK);
    values[kiln_matrix_nnz(counts) - 1] *= 1 + 1e-9;
    assert_int_equal(kiln_matrix_like(&other, counts, KILN_F64, values), KILN_OK);
    counts = other;
    const kiln_status status = als(o, control);
    counts = former;
    kiln_matrix_free(other);
    free(values);
    return status;
}

static void test_other_runs(void **state) {
    (void)state;
    const char *path = in_scratch("state");
    stop_als(path);
    refused(path, sfa, "is a checkpoint of als, and this run is one of sfa");
    refused(path, als_other_l2, "kiln_als_options.l2 is 7, but in ");
    refused(path, als_other_solver, "solver is cholesky, but in ");
    refused(path, als_other_seed, "kiln_als_options.seed is 5, but in ");
    refused(path, als_without_test, "was written with the entries held out, and this run is without");
    refused(path, als_more_factors, "part 'A' is f64, 90 x 4, but the run's is f64, 90 x 5");
    refused(path, als_other_data, "rows 90 to 90 of X are not those that ");
}

/* ---- files that are none ---- */

static void put_part(const char *path, const char *name, int64_t cols, const double *values) {
    struct ki_container content = {0};
    const struct ki_tensor tensor = {(char *)name, KILN_F64, 1, cols,
                                     ki_alloc((size_t)cols * sizeof *values)};
    memcpy(tensor.values, values, (size_t)cols * sizeof *values);
    assert_int_equal(ki_container_read(&content, path), KILN_OK);
    assert_int_equal(ki_container_set_tensor(&content, &tensor), KILN_OK);
    assert_int_equal(ki_container_write(NULL, &content, path), KILN_OK);
    ki_container_clear(&content);
}

/* Checksums are right, and what the file says is not. */
static void test_lies(void **state) {
    (void)state;
    static const struct {
        const char *name, *part;
        int64_t cols;
        double values[4];
    } lies[] = {{"report.counts", "holds -1", 4, {-1, 0, 0, 0}},
                {"report.counts", "holds 0.5", 4, {0.5, 0, 0, 0}},
                {"report.counts", "holds nan", 4, {0, NAN, 0, 0}},
                {"report.counts", "ended in a way", 4, {1, 1, 9, 0}},
                {"report.counts", "is f64, 1 x 3", 3, {1, 1, 0}},
                {"report.trace", "is f64, 1 x 3", 3, {1, 1, 1}},
                {"objective", "is f64, 1 x 2", 2, {1, 1}},
                {"data X", "is f64, 1 x 2", 2, {1, 1}}};
    const char *path = in_scratch("state");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        stop_als(path);
        put_part(path, lies[i].name, lies[i].cols, lies[i].values);
        refused(path, als, lies[i].part);
    }
}

/* A search cannot go on with a polynomial of too many terms or without a bound, nor with part of a block. */
static void test_lies_of_a_search(void **state) {
    (void)state;
    static const struct {
        double degree, beta, known;
        const char *part;
    } lies[] = {{300, 1, 8, "holds 300"},         {2, 0, 8, "bound is 0"},
                {2, -1, 8, "bound is -1"},        {2, NAN, 8, "bound is nan"},
                {2, INFINITY, 8, "bound is inf"}, {1, 0, 3, "3 vectors are known"}};
    const char *path = in_scratch("state");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        stop_run(path, svd);
        put_part(path, "degree", 1, &lies[i].degree);
        put_part(path, "beta", 1, &lies[i].beta);
        put_part(path, "known", 1, &lies[i].known);
        refused(path, svd, lies[i].part);
    }
}

static void test_damage(void **state) {
    (void)state;
    const char *path = in_scratch("state"), *damaged = in_scratch("damaged");
    size_t size;
    kiln_model *model = NULL;
    stop_als(path);
    assert_int_equal(kiln_model_load(&model, path), KILN_ERR_MODEL);
    assert_non_null(strstr(kiln_last_error()->message, "is a checkpoint of a run, not a model"));
    char *bytes = file_bytes(path, &size);
    put_file(damaged, bytes, size - 100);
    refused(damaged, als, "cut short");
    bytes[size - 100] ^= 1;
    put_file(damaged, bytes, size);
    refused(damaged, als, "checksum does not match");
    free(bytes);
    assert_int_equal(kiln_model_create(&model, "hits"), KILN_OK);
    assert_int_equal(ki_model_write(model, damaged), KILN_OK);
    refused(damaged, als, "is a model, not a checkpoint");
    kiln_model_free(model);
}

/* Whatever file call fails ends the run and leaves no temporary file, and the file is the checkpoint
 * before, or the new one. */
/* A failure to write the file is counted and told; the run comes to the same end, and the
 * former file goes on. */
static void test_full_disk(void **state) {
    (void)state;
    static struct outcome whole, part;
    const char *path = in_scratch("state");
    kiln_checkpoint *checkpoint;
    scratch_files(true);
    bool failed = true;
    int errors = 0; /* the folder's close may fail: nothing is lost by it */
    for (int countdown = 1; failed; countdown++) {
        stop_als(path);
        checkpoint = open_at(path, true);
        part = (struct outcome){.count = 0};
        kiln_checkpoint_info info = {.size = sizeof info};
        faults_begin(countdown, ENOSPC, 0);
        const kiln_status status =
            als(&part, kiln_checkpoint_control(checkpoint, (kiln_control){NULL, NULL}));
        failed = faults_end();
        assert_int_equal(status, KILN_OK);
        assert_int_equal(kiln_checkpoint_get_info(&info, checkpoint), KILN_OK);
        assert_true(info.failed == 0 || (failed && strstr(info.problem, "cannot")));
        errors += info.failed > 0;
        kiln_checkpoint_close(checkpoint);
        kiln_report_free(&part.report);
        assert_int_equal(scratch_files(false), 1);
    }
    assert_true(errors >= 5);
    checkpoint = open_at(path, true);
    part = (struct outcome){.count = 0};
    assert_int_equal(als(&part, kiln_checkpoint_control(checkpoint, (kiln_control){NULL, NULL})), KILN_OK);
    kiln_checkpoint_close(checkpoint);
    whole = (struct outcome){.count = 0};
    assert_int_equal(als(&whole, (kiln_control){NULL, NULL}), KILN_OK);
    compare("als", &whole, &part);
    kiln_report_free(&whole.report);
    kiln_report_free(&part.report);
}

static void test_arguments(void **state) {
    (void)state;
    kiln_checkpoint *checkpoint = NULL;
    kiln_checkpoint_info info = {0};
    assert_int_equal(kiln_checkpoint_open(NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_checkpoint_open(&checkpoint, &(kiln_checkpoint_options){.checkpoint_every = -1}),
                     KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_checkpoint_open(&checkpoint, &(kiln_checkpoint_options){.checkpoint_every = NAN}),
                     KILN_ERR_ARGUMENT);
    assert_int_equal(
        kiln_checkpoint_open(&checkpoint, &(kiln_checkpoint_options){.resume = "/nowhere/at/all"}),
        KILN_ERR_IO);
    assert_null(checkpoint);
    assert_int_equal(kiln_checkpoint_get_info(&info, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_checkpoint_open(&checkpoint, NULL), KILN_OK);
    assert_int_equal(kiln_checkpoint_get_info(&info, checkpoint), KILN_OK);
    assert_int_equal(info.iteration, -1);
    assert_int_equal(info.resumed, -1);
    kiln_checkpoint_close(checkpoint);
    kiln_checkpoint_close(NULL);
}

/* ---- data ---- */

static void sparse(kiln_matrix **A, int64_t cols, uint64_t seed) {
    int64_t row_start[ROWS + 1] = {0}, nnz = 0;
    static int32_t col[ROWS * WIDE];
    static double values[ROWS * WIDE];
    for (int i = 0; i < ROWS; i++) {
        for (int32_t j = 0; j < cols; j++) {
            const double u = uniform(&seed);
            if (u > (cols > COLS ? 0.1 : 0.6) && j != i % COLS) continue;
            col[nnz] = j;
            values[nnz++] = 1 + floor(5 * uniform(&seed));
        }
        row_start[i + 1] = nnz;
    }
    assert_int_equal(kiln_matrix_csr(A, device, KILN_F64, ROWS, cols, row_start, col, values), KILN_OK);
}

/* Hundreds of files whose fate in a power cut matters to nobody. */
static int no_fsync(int fd) {
    (void)fd;
    return 0;
}

static int make_data(void **state) {
    uint64_t seed = 5;
    ki_seams.fsync = no_fsync;
    static double x[ROWS * COLS], y[ROWS], two[ROWS], kinds[ROWS], above[ROWS], tables[ROWS * MANY];
    const kiln_device_options options = {.deterministic = 1};
    if (scratch_make(state) || kiln_device_open(&device, "cpu", &options) != KILN_OK) return -1;
    for (int i = 0; i < ROWS; i++) {
        y[i] = uniform(&seed);
        for (int j = 0; j < COLS; j++) {
            x[i * COLS + j] = (uniform(&seed) - 0.5 + (j == i % 5)) * pow(8, j % 4);
            y[i] += x[i * COLS + j] * (j % 3 - 1) / pow(8, j % 4);
        }
        two[i] = y[i] > 0.5;
        kinds[i] = (y[i] > 0.2) + (y[i] > 0.8);
        above[i] = exp(y[i]);
        for (int j = 0; j < MANY; j++) tables[i * MANY + j] = y[i] + uniform(&seed) * j;
    }
    kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, x);
    kiln_matrix_dense(&targets, device, KILN_F64, ROWS, 1, y);
    kiln_matrix_dense(&classes, device, KILN_F64, ROWS, 1, two);
    kiln_matrix_dense(&three, device, KILN_F64, ROWS, 1, kinds);
    kiln_matrix_dense(&positive, device, KILN_F64, ROWS, 1, above);
    kiln_matrix_dense(&many, device, KILN_F64, ROWS, MANY, tables);
    sparse(&counts, COLS, 7);
    sparse(&graph, ROWS, 9);
    sparse(&wide, WIDE, 11);
    kiln_matrix_dense(&tall, device, KILN_F64, TALL, NARROW, NULL);
    kiln_matrix_dense(&means, device, KILN_F64, TALL, 1, NULL);
    kiln_matrix *ones = room(NARROW, 1);
    const bool made = kiln_fill_random(tall, KILN_UNIFORM, 13, 0) == KILN_OK &&
                      kiln_fill(ones, 1) == KILN_OK &&
                      kiln_multiply(means, 1, KILN_PLAIN, tall, ones, 0, NULL) == KILN_OK;
    kiln_matrix_free(ones);
    return made ? 0 : -1;
}

static int free_data(void **state) {
    kiln_matrix *const all[] = {X, targets, many, classes, three, positive, counts, graph, wide, tall, means};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    return close_device(state) | scratch_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_iteration),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_other_device),     cmocka_unit_test(test_descents),
        cmocka_unit_test(test_starts),           cmocka_unit_test(test_all_algorithms),
        cmocka_unit_test(test_other_runs),       cmocka_unit_test(test_lies),
        cmocka_unit_test(test_lies_of_a_search), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_full_disk),        cmocka_unit_test(test_inner_fits),
        cmocka_unit_test(test_within_a_step),    cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, make_data, free_data);
}
