/* This file says what the verbs do in C, from a file to predictions of a model that was saved and loaded,
 * with each allocation failing in turn, once and with all after it: the call says KILN_ERR_NOMEM and frees
 * what it has, or does without, and then all is right. Never a good model counts as damaged, and what stands
 * under a model's name is whole. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fake.h"
#include "faults/brutal.h"
#include "kiln/codes.h"

enum { ROWS = 24, COLS = 3, FACTORS = 2 };
static bool narrow; /* dense operands are kept as narrow as they are (kiln/codes.h) */

/* Holds what a verb leaves: some numbers that must not depend on a failure that was survived. */
struct found {
    double numbers[64];
    int count;
};

/* Everything of a run, freed at its end in whatever state it is. */
struct scene {
    kiln_device *device;
    kiln_matrix *matrices[16];
    int matrix_count;
    kiln_data *data, *again;
    kiln_model *model, *loaded;
    kiln_report report;
    struct found *found;
};

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const kiln_status check_status = (call);                                                             \
        if (check_status != KILN_OK) return check_status;                                                    \
    } while (0)

static double value_at(int i) {
    return (double)(i * i % 17) / 4 - 1.5 + (i % 3 ? 0 : i % 5);
}

static double number(int i) {
    return i;
}

static kiln_status keep(struct scene *s, kiln_status status, kiln_matrix *made) {
    if (made) s->matrices[s->matrix_count++] = made;
    return status;
}

static kiln_status dense(struct scene *s, kiln_matrix **made, int64_t rows, int64_t cols,
                         double (*value)(int)) {
    double values[ROWS * ROWS];
    for (int i = 0; value && i < rows * cols; i++) values[i] = value(i);
    *made = NULL;
    const kiln_status status =
        kiln_matrix_dense(made, s->device, KILN_F64, rows, cols, value ? values : NULL);
    CHECK(keep(s, status, *made));
    return narrow ? kiln_matrix_narrow(*made, KILN_ELEMENT_TYPE, NULL) : KILN_OK;
}

/* Counts between rows and columns, square where rows = cols: two of three entries are there. */
static kiln_status counts(struct scene *s, kiln_matrix **made, int rows, int cols) {
    double values[ROWS * ROWS];
    int32_t col[ROWS * ROWS];
    int64_t row_start[ROWS + 1] = {0}, nnz = 0;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            if ((i + 2 * j) % 3 == 0) continue;
            values[nnz] = 1 + (i * 7 + j * 3) % 5;
            col[nnz++] = j;
        }
        row_start[i + 1] = nnz;
    }
    *made = NULL;
    const kiln_status status = kiln_matrix_csr(made, s->device, KILN_F64, rows, cols, row_start, col, values);
    return keep(s, status, *made);
}

static kiln_status take(struct scene *s, const kiln_matrix *A) {
    double values[ROWS * ROWS];
    CHECK(kiln_matrix_get(values, A));
    for (int64_t i = 0; i < kiln_matrix_nnz(A) && s->found->count < 64; i++)
        s->found->numbers[s->found->count++] = values[i];
    return KILN_OK;
}

static const char *model_path(void) {
    return world_path("models/m.kiln");
}

/* Saves and loads again. */
static kiln_status through_a_file(struct scene *s) {
    CHECK(kiln_model_save(s->model, model_path()));
    return kiln_model_load(&s->loaded, model_path());
}

/* ---------------------------------------------------------------------------------- linear models */

static const char table[] = "a,b,c,y\n1,2,x,no\n2,1,y,yes\n0,3,x,no\n4,1,z,yes\n2,2,z,no\n5,0,y,yes\n"
                            "1,1,x,yes\n3,3,z,no\n0,1,y,no\n2,5,x,yes\n";

static kiln_status read_table(struct scene *s, kiln_data **data, const char *target,
                              const kiln_model *model) {
    const kiln_read_options options = {.size = sizeof options,
                                       .type = KILN_F64,
                                       .target = target,
                                       .text_targets = target && *target == 'y' ? KILN_TARGETS_LABELS : 0,
                                       .model = model};
    return kiln_data_read(data, s->device, world_path("table.csv"), &options);
}

/* A model with a schema of names and levels, which reads the table again. */
static kiln_status finish_linear(struct scene *s, const char *name, const kiln_matrix *W,
                                 const kiln_matrix *b) {
    kiln_matrix *P = NULL, *more;
    CHECK(kiln_model_create(&s->model, name));
    CHECK(kiln_model_set_tensor(s->model, "W", W));
    CHECK(kiln_model_set_tensor(s->model, "b", b));
    CHECK(kiln_model_set_text(s->model, "schema", kiln_data_schema(s->data)));
    if (strcmp(name, "glm") == 0) CHECK(kiln_model_set_text(s->model, "family", "poisson"));
    if (strcmp(name, "glm") == 0) CHECK(kiln_model_set_text(s->model, "link", "log"));
    if (strcmp(name, "glm") == 0) CHECK(dense(s, &more, 1, 2, NULL));
    if (strcmp(name, "glm") == 0) CHECK(kiln_model_set_tensor(s->model, "parameters", more));
    if (strcmp(name, "logreg") == 0) CHECK(dense(s, &more, 2, 1, number));
    if (strcmp(name, "logreg") == 0) CHECK(kiln_model_set_tensor(s->model, "classes", more));
    if (strcmp(name, "svm") == 0) CHECK(kiln_model_set_text(s->model, "loss", "squared_hinge"));
    CHECK(through_a_file(s));
    CHECK(read_table(s, &s->again, NULL, s->loaded));
    const kiln_status status = kiln_predict(&P, s->loaded, kiln_data_X(s->again));
    CHECK(keep(s, status, P));
    return take(s, P);
}

static kiln_status linear(struct scene *s, const char *name, const char *target) {
    kiln_matrix *W, *b;
    CHECK(read_table(s, &s->data, target, NULL));
    const kiln_matrix *X = kiln_data_X(s->data), *y = kiln_data_y(s->data);
    CHECK(dense(s, &W, kiln_matrix_cols(X), 1, NULL));
    CHECK(dense(s, &b, 1, 1, NULL));
    const kiln_linreg_options linreg = {.size = sizeof linreg, .l2 = 1};
    const kiln_logreg_options logreg = {.size = sizeof logreg, .l2 = 1};
    const kiln_glm_options glm = {.size = sizeof glm, .family = KILN_POISSON, .l2 = 1};
    const kiln_svm_options svm = {.size = sizeof svm, .l2 = 1};
    if (strcmp(name, "linreg") == 0) CHECK(kiln_linreg(W, b, X, y, &linreg, &s->report));
    if (strcmp(name, "logreg") == 0) CHECK(kiln_logreg(W, b, X, y, &logreg, &s->report));
    if (strcmp(name, "glm") == 0) CHECK(kiln_glm(W, b, X, y, &glm, &s->report));
    if (strcmp(name, "svm") == 0) CHECK(kiln_svm(W, b, X, y, &svm, &s->report));
    return finish_linear(s, name, W, b);
}

static kiln_status run_linreg(struct scene *s) {
    return linear(s, "linreg", "b");
}

static kiln_status run_logreg(struct scene *s) {
    return linear(s, "logreg", "y");
}

static kiln_status run_glm(struct scene *s) {
    return linear(s, "glm", "b");
}

static kiln_status run_svm(struct scene *s) {
    return linear(s, "svm", "y");
}

/* ---------------------------------------------------------------------------------------- others */

static kiln_status run_kmeans(struct scene *s) {
    kiln_matrix *X, *centres, *clusters, *P = NULL;
    CHECK(dense(s, &X, ROWS, COLS, value_at));
    CHECK(dense(s, &centres, 3, COLS, NULL));
    CHECK(dense(s, &clusters, 3, 3, NULL));
    const kiln_kmeans_options options = {.size = sizeof options, .clusters = clusters};
    CHECK(kiln_kmeans(centres, X, &options, &s->report));
    CHECK(kiln_model_create(&s->model, "kmeans"));
    CHECK(kiln_model_set_tensor(s->model, "centres", centres));
    CHECK(kiln_model_set_tensor(s->model, "clusters", clusters));
    CHECK(through_a_file(s));
    const kiln_status status = kiln_predict(&P, s->loaded, X);
    CHECK(keep(s, status, P));
    return take(s, P);
}

static kiln_status run_pagerank(struct scene *s) {
    kiln_matrix *A, *ranks;
    CHECK(counts(s, &A, ROWS, ROWS));
    CHECK(dense(s, &ranks, ROWS, 1, NULL));
    CHECK(kiln_pagerank(ranks, A, NULL, &s->report));
    return take(s, ranks);
}

static kiln_status run_hits(struct scene *s) {
    kiln_matrix *A, *hubs, *authorities;
    CHECK(counts(s, &A, ROWS, ROWS));
    CHECK(dense(s, &hubs, ROWS, 1, NULL));
    CHECK(dense(s, &authorities, ROWS, 1, NULL));
    CHECK(kiln_hits(hubs, authorities, A, NULL, &s->report));
    return take(s, authorities);
}

static kiln_status run_mds(struct scene *s) {
    kiln_matrix *X, *Y;
    CHECK(dense(s, &X, 9, COLS, value_at));
    CHECK(dense(s, &Y, 9, FACTORS, NULL));
    const kiln_mds_options options = {.size = sizeof options, .max_iterations = 5};
    CHECK(kiln_mds(Y, X, &options, &s->report));
    s->found->numbers[s->found->count++] = s->report.objective;
    return KILN_OK;
}

static kiln_status finish_factors(struct scene *s, const kiln_matrix *R, kiln_status made) {
    kiln_matrix *A = NULL;
    CHECK(made);
    CHECK(kiln_model_set_text(s->model, "columns", "[\"i0\",\"i1\",\"i2\",\"i3\",\"i4\",\"i5\",\"i6\"]"));
    CHECK(through_a_file(s));
    const kiln_status status = kiln_transform(&A, s->loaded, R);
    CHECK(keep(s, status, A));
    return take(s, A);
}

enum { ITEMS = 7 };

static kiln_status begin_factors(struct scene *s, kiln_matrix **R, kiln_matrix **A, kiln_matrix **B) {
    CHECK(counts(s, R, ROWS, ITEMS));
    CHECK(dense(s, A, ROWS, FACTORS, NULL));
    return dense(s, B, ITEMS, FACTORS, NULL);
}

static kiln_status run_als(struct scene *s) {
    kiln_matrix *R, *A, *B;
    CHECK(begin_factors(s, &R, &A, &B));
    const kiln_als_options options = {.size = sizeof options, .l2 = 1, .max_iterations = 4};
    CHECK(kiln_als(A, B, R, &options, &s->report));
    return finish_factors(s, R, kiln_als_model(&s->model, A, B, 0, &options));
}

static kiln_status run_sfa(struct scene *s) {
    kiln_matrix *R, *A, *B;
    CHECK(counts(s, &R, ROWS, ITEMS));
    CHECK(dense(s, &A, ROWS, FACTORS + 1, NULL));
    CHECK(dense(s, &B, ITEMS, FACTORS + 1, NULL));
    const kiln_sfa_options options = {.size = sizeof options, .l2 = 1, .max_iterations = 4};
    CHECK(kiln_sfa(A, B, R, &options, &s->report));
    return finish_factors(s, R, kiln_sfa_model(&s->model, A, B, 0, &options));
}

static kiln_status run_gap(struct scene *s) {
    kiln_matrix *R, *A, *B;
    CHECK(begin_factors(s, &R, &A, &B));
    const kiln_gap_options options = {.size = sizeof options, .max_iterations = 4};
    CHECK(kiln_gap(A, B, R, &options, &s->report));
    return finish_factors(s, R, kiln_gap_model(&s->model, A, B, &options));
}

static kiln_status run_lda(struct scene *s) {
    kiln_matrix *R, *A, *B;
    CHECK(begin_factors(s, &R, &A, &B));
    const kiln_lda_options options = {.size = sizeof options, .max_iterations = 4};
    CHECK(kiln_lda(A, B, R, &options, &s->report));
    return finish_factors(s, R, kiln_lda_model(&s->model, A, B, NULL, &options));
}

static kiln_status run_svd(struct scene *s) {
    kiln_matrix *X, *V, *sigma, *mean, *deviation, *P = NULL;
    CHECK(dense(s, &X, ROWS, COLS, value_at));
    CHECK(dense(s, &V, COLS, 2, NULL));
    CHECK(dense(s, &sigma, 2, 1, NULL));
    CHECK(dense(s, &mean, COLS, 1, NULL));
    CHECK(dense(s, &deviation, COLS, 1, NULL));
    const kiln_svd_options options = {
        .size = sizeof options, .center = 1, .scale = 1, .mean = mean, .deviation = deviation};
    CHECK(kiln_svd(NULL, sigma, V, X, &options, &s->report));
    CHECK(kiln_svd_model(&s->model, V, sigma, &options, &s->report));
    CHECK(through_a_file(s));
    const kiln_status status = kiln_predict(&P, s->loaded, X);
    CHECK(keep(s, status, P));
    return take(s, P);
}

static kiln_status run_spectral(struct scene *s) {
    kiln_matrix *X, *V, *sigma, *deviation;
    CHECK(counts(s, &X, ROWS, ROWS));
    CHECK(dense(s, &V, ROWS, 2, NULL));
    CHECK(dense(s, &sigma, 2, 1, NULL));
    CHECK(dense(s, &deviation, ROWS, 1, NULL));
    const kiln_svd_options options = {.size = sizeof options, .graph = 1, .deviation = deviation};
    CHECK(kiln_spectral(NULL, sigma, V, X, &options, &s->report));
    CHECK(kiln_svd_model(&s->model, V, sigma, &options, &s->report));
    CHECK(through_a_file(s));
    return take(s, sigma);
}

/* ------------------------------------------------------------------------------------------- runs */

typedef kiln_status run_of_verb(struct scene *s);

static kiln_status play(run_of_verb *run, struct found *found) {
    struct scene s = {.report = {.size = sizeof s.report}, .found = found};
    *found = (struct found){.count = 0};
    kiln_status status = kiln_device_open(
        &s.device, "cpu", &(kiln_device_options){.size = sizeof(kiln_device_options), .threads = 1});
    if (status == KILN_OK) status = run(&s);
    kiln_report_free(&s.report);
    kiln_model_free(s.model);
    kiln_model_free(s.loaded);
    kiln_data_free(s.data);
    kiln_data_free(s.again);
    while (s.matrix_count > 0) kiln_matrix_free(s.matrices[--s.matrix_count]);
    kiln_device_close(s.device);
    return status;
}

static bool same(const struct found *a, const struct found *b) {
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (!(fabs(a->numbers[i] - b->numbers[i]) <= 1e-3 * (1 + fabs(b->numbers[i])))) return false;
    return true;
}

/* Nothing stands under the name, or a model that loads; and nothing beside it. */
static void check_file(void) {
    kiln_model *model = NULL;
    int count = 0;
    DIR *folder = opendir(world_path("models"));
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    assert_int_equal(count, access(model_path(), F_OK) == 0 ? 3 : 2); /* "." and ".." among them */
    if (access(model_path(), F_OK) != 0) return;
    assert_int_equal(kiln_model_load(&model, model_path()), KILN_OK);
    kiln_model_free(model);
    assert_int_equal(unlink(model_path()), 0);
}

/* Returns whether the allocation was reached. */
static bool one_failure(run_of_verb *run, const char *name, long n, bool persistent,
                        const struct found *good) {
    struct found found;
    brutal_start(n, persistent);
    const kiln_status status = play(run, &found);
    const bool fired = brutal_fired();
    if (fired) brutal_relent(); /* told, or survived, which is judged here */
    const kiln_error error = *kiln_last_error();
    brutal_stop();
    if (status != KILN_OK && (!fired || status != KILN_ERR_NOMEM || error.status != KILN_ERR_NOMEM))
        fail_msg("%s: allocation %ld: %s: %s", name, n, kiln_status_name(status), error.message);
    if (status == KILN_OK && !same(&found, good)) fail_msg("%s: allocation %ld: another result", name, n);
    check_file();
    return fired;
}

/* The same bits come of narrow operands, results among them. */
static void check_narrow(run_of_verb *run, const char *name, const struct found *good) {
    struct found found;
    narrow = true;
    if (play(run, &found) != KILN_OK) fail_msg("%s, narrow: %s", name, kiln_last_error()->message);
    narrow = false;
    assert_int_equal(found.count, good->count);
    assert_memory_equal(found.numbers, good->numbers, (size_t)good->count * sizeof *found.numbers);
}

static void sweep(run_of_verb *run, const char *name) {
    struct found good;
    brutal_start(LONG_MAX, false);
    if (play(run, &good) != KILN_OK) fail_msg("%s: %s", name, kiln_last_error()->message);
    const long count = brutal_calls();
    brutal_stop();
    check_file();
    check_narrow(run, name, &good);
    check_file();
    assert_true(good.count > 0 && count > 20);
    for (long n = 0; n < 2 * count; n++) assert_true(one_failure(run, name, n / 2, n % 2, &good));
    print_message("    %s: each of %ld allocations failed\n", name, count);
}

#define VERBS(X)                                                                                             \
    X(linreg)                                                                                                \
    X(logreg)                                                                                                \
    X(glm) X(svm) X(kmeans) X(pagerank) X(hits) X(mds) X(als) X(sfa) X(gap) X(lda) X(svd) X(spectral)
#define TEST(name)                                                                                           \
    static void name##_without_memory(void **state) {                                                        \
        (void)state;                                                                                         \
        sweep(run_##name, #name);                                                                            \
    }
VERBS(TEST)

static int setup(void **state) {
    world_make(state);
    FILE *file = fopen(world_path("table.csv"), "w");
    if (!file || mkdir(world_path("models"), 0700) != 0) return 1;
    fputs(table, file);
    return fclose(file);
}

int main(void) {
#define ROW(name) cmocka_unit_test(name##_without_memory),
    const struct CMUnitTest tests[] = {VERBS(ROW)};
    return cmocka_run_group_tests(tests, setup, world_clear);
}
