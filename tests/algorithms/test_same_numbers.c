/* The same numbers: a deterministic CPU gives a model file of the same bytes with any number of threads and
 * in every run, and training that was broken off goes on from its saved model as it would have from memory,
 * to the same optimum.
 *
 * KILN_TEST_RUNS repeats each number of threads, 2 without it. */
#define _GNU_SOURCE
#include "io/scratch.h"

#include <math.h>

#include "kiln.h"

enum { ROWS = 6007, COLS = 61, CLASSES = 3 };

/* Says what a trainer learns from; y is its kind of target. */
enum target { NUMBERS, TWO_CLASSES, THREE_CLASSES, COUNTS, TARGETS };

struct start {
    bool warm;
    int64_t most; /* iterations; 0: until done */
};

struct trainer {
    const char *name, *algorithm;
    enum target target;
    int64_t columns; /* of W */
    kiln_status (*train)(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                         struct start start, kiln_report *report);
};

static kiln_status linreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                          struct start start, kiln_report *report) {
    const kiln_linreg_options options = {
        .l2 = 0.1, .warm_start = start.warm, .max_iterations = start.most, .solver = KILN_LINREG_CG};
    return kiln_linreg(W, b, X, y, &options, report);
}

static kiln_status logreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                          struct start start, kiln_report *report) {
    const kiln_logreg_options options = {.warm_start = start.warm, .max_iterations = start.most};
    return kiln_logreg(W, b, X, y, &options, report);
}

static kiln_status logreg_l1(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                             struct start start, kiln_report *report) {
    const kiln_logreg_options options = {
        .l1 = 30, .l2 = 0.5, .warm_start = start.warm, .max_iterations = start.most};
    return kiln_logreg(W, b, X, y, &options, report);
}

static kiln_status glm(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                       struct start start, kiln_report *report) {
    const kiln_glm_options options = {
        .family = KILN_POISSON, .warm_start = start.warm, .max_iterations = start.most};
    return kiln_glm(W, b, X, y, &options, report);
}

static kiln_status svm(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                       struct start start, kiln_report *report) {
    const kiln_svm_options options = {.warm_start = start.warm, .max_iterations = start.most};
    return kiln_svm(W, b, X, y, &options, report);
}

static const struct trainer trainers[] = {{"linreg", "linreg", NUMBERS, 1, linreg},
                                          {"logreg", "logreg", TWO_CLASSES, 1, logreg},
                                          {"softmax", "logreg", THREE_CLASSES, CLASSES, logreg},
                                          {"logreg with l1", "logreg", TWO_CLASSES, 1, logreg_l1},
                                          {"glm", "glm", COUNTS, 1, glm},
                                          {"svm", "svm", TWO_CLASSES, 1, svm},
                                          {"svm of three", "svm", THREE_CLASSES, CLASSES, svm}};
enum { TRAINERS = sizeof trainers / sizeof *trainers };

/* ---------------------------------------------------------------------------------------- the data */

static double X_values[ROWS * COLS], y_values[TARGETS][ROWS];

/* A quarter of the entries is not zero. */
static int make_values(void **state) {
    for (int i = 0; i < ROWS; i++) {
        double eta = 0.3;
        for (int j = 0; j < COLS; j++) {
            uint32_t r[4];
            kiln_random(r, 5, (uint64_t)j, (uint64_t)i);
            X_values[i * COLS + j] = r[0] < 1u << 30 ? (float)r[1] / 4294967296.0 - 0.4 : 0;
            eta += X_values[i * COLS + j] * sin(j);
        }
        uint32_t r[4];
        kiln_random(r, 6, 0, (uint64_t)i);
        const double noise = r[0] / 4294967296.0 - 0.5;
        y_values[NUMBERS][i] = eta + noise;
        y_values[TWO_CLASSES][i] = eta + 2 * noise > 0.3;
        y_values[THREE_CLASSES][i] = (eta + noise > 0) + (eta - noise > 0.6);
        y_values[COUNTS][i] = floor(exp(eta) * (1 + noise));
    }
    return scratch_make(state);
}

static kiln_matrix *make_X(kiln_device *device, bool sparse) {
    static double values[ROWS * COLS];
    static int64_t row_start[ROWS + 1];
    static int32_t col[ROWS * COLS];
    kiln_matrix *X = NULL;
    int64_t nnz = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++)
            if (X_values[i * COLS + j] != 0) {
                values[nnz] = X_values[i * COLS + j];
                col[nnz++] = j;
            }
        row_start[i + 1] = nnz;
    }
    assert_int_equal(sparse ? kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLS, row_start, col, values)
                            : kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, X_values),
                     KILN_OK);
    return X;
}

/* A training's matrices on a device of so many threads. */
struct job {
    const struct trainer *trainer;
    kiln_device *device;
    kiln_matrix *W, *b, *X, *y;
};

static struct job job_new(const struct trainer *trainer, int threads, bool sparse) {
    const kiln_device_options options = {.threads = threads, .deterministic = 1};
    struct job job = {.trainer = trainer};
    assert_int_equal(kiln_device_open(&job.device, "cpu", &options), KILN_OK);
    job.X = make_X(job.device, sparse);
    assert_int_equal(kiln_matrix_dense(&job.y, job.device, KILN_F64, ROWS, 1, y_values[trainer->target]),
                     KILN_OK);
    assert_int_equal(kiln_matrix_dense(&job.W, job.device, KILN_F64, COLS, trainer->columns, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&job.b, job.device, KILN_F64, 1, trainer->columns, NULL), KILN_OK);
    return job;
}

static void job_free(struct job *job) {
    kiln_matrix *const all[] = {job->W, job->b, job->X, job->y};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_device_close(job->device);
}

static void train(kiln_report *report, struct job *job, struct start start) {
    *report = (kiln_report){0};
    if (job->trainer->train(job->W, job->b, job->X, job->y, start, report) != KILN_OK)
        fail_msg("%s: %s", job->trainer->name, kiln_last_error()->message);
    kiln_report_free(report);
}

/* Adds what a model of its kind must hold beside W and b. */
static void describe(kiln_model *model, const struct job *job) {
    static const double labels[] = {0, 1, 2}, parameters[] = {0, 0};
    const enum target target = job->trainer->target;
    kiln_matrix *A = NULL;
    if (target == TWO_CLASSES || target == THREE_CLASSES) {
        assert_int_equal(
            kiln_matrix_dense(&A, job->device, KILN_F64, target == TWO_CLASSES ? 2 : 3, 1, labels), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "classes", A), KILN_OK);
    } else if (target == COUNTS) {
        assert_int_equal(kiln_matrix_dense(&A, job->device, KILN_F64, 1, 2, parameters), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "parameters", A), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "family", "poisson"), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "link", "log"), KILN_OK);
    }
    kiln_matrix_free(A);
}

static void save(const struct job *job, const char *path) {
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_create(&model, job->trainer->algorithm), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "W", job->W), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "b", job->b), KILN_OK);
    describe(model, job);
    if (kiln_model_save(model, path) != KILN_OK) fail_msg("%s", kiln_last_error()->message);
    kiln_model_free(model);
}

static bool same_file(const char *a, const char *b) {
    size_t size_a, size_b;
    char *bytes_a = file_bytes(a, &size_a), *bytes_b = file_bytes(b, &size_b);
    const bool same = size_a == size_b && memcmp(bytes_a, bytes_b, size_a) == 0;
    free(bytes_a);
    free(bytes_b);
    return same;
}

/* --------------------------------------------------------------------------------------- the tests */

static void any_threads_any_run(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 4, 7, 8, 16};
    const char *wanted = getenv("KILN_TEST_RUNS");
    const int runs = wanted ? atoi(wanted) : 2;
    for (int t = 0; t < 2 * TRAINERS; t++)
        for (size_t c = 0; c < sizeof threads / sizeof *threads; c++)
            for (int run = 0; run < runs; run++) {
                struct job job = job_new(&trainers[t / 2], threads[c], t % 2);
                const bool first = c == 0 && run == 0;
                kiln_report report = {0};
                train(&report, &job, (struct start){0});
                save(&job, in_scratch(first ? "first" : "again"));
                if (!first && !same_file(in_scratch("first"), in_scratch("again")))
                    fail_msg("%s, %s: run %d with %d threads gave another model", job.trainer->name,
                             t % 2 ? "csr" : "dense", run, threads[c]);
                job_free(&job);
            }
    print_message("    %d trainings of each model and format\n", 7 * runs);
}

/* W and b from the file. */
static void load(struct job *job, const char *path) {
    kiln_model *model = NULL;
    assert_int_equal(kiln_model_load(&model, path), KILN_OK);
    kiln_matrix_free(job->W);
    kiln_matrix_free(job->b);
    job->W = job->b = NULL;
    assert_int_equal(kiln_model_tensor(&job->W, job->device, KILN_F64, model, "W"), KILN_OK);
    assert_int_equal(kiln_model_tensor(&job->b, job->device, KILN_F64, model, "b"), KILN_OK);
    kiln_model_free(model);
}

/* Broken off after so many iterations, saved, loaded on a device of another number of threads, and
 * continued. */
static void resume(const struct trainer *trainer, int64_t broken_off, bool sparse, const kiln_report *whole) {
    struct job stays = job_new(trainer, 2, sparse), other = job_new(trainer, 3, sparse);
    kiln_report from_memory = {0}, from_file = {0};
    train(&from_memory, &stays, (struct start){.most = broken_off});
    save(&stays, in_scratch("half"));
    load(&other, in_scratch("half"));
    train(&from_memory, &stays, (struct start){.warm = true});
    train(&from_file, &other, (struct start){.warm = true});
    save(&stays, in_scratch("stays"));
    save(&other, in_scratch("other"));
    if (!same_file(in_scratch("stays"), in_scratch("other")))
        fail_msg("%s: from its saved model it ended elsewhere than from memory", trainer->name);
    assert_true(from_file.iterations == from_memory.iterations && from_file.converged);
    if (!(fabs(from_file.objective - whole->objective) <= 1e-9 * fabs(whole->objective)))
        fail_msg("%s: objective %.17g after a break at %lld, else %.17g", trainer->name, from_file.objective,
                 (long long)broken_off, whole->objective);
    job_free(&stays);
    job_free(&other);
}

static void a_break_changes_nothing(void **state) {
    (void)state;
    for (int t = 0; t < 2 * TRAINERS; t++) {
        struct job job = job_new(&trainers[t / 2], 2, t % 2);
        kiln_report whole = {0};
        train(&whole, &job, (struct start){0});
        assert_true(whole.converged && whole.iterations > 2);
        for (int64_t at = 1; at < whole.iterations; at += 1 + whole.iterations / 4)
            resume(&trainers[t / 2], at, t % 2, &whole);
        job_free(&job);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(any_threads_any_run, scratch_empty),
        cmocka_unit_test_teardown(a_break_changes_nothing, scratch_empty),
    };
    return cmocka_run_group_tests(tests, make_values, scratch_remove);
}
