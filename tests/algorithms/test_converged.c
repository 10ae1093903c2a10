/* "Converged" is a promise: with a penalty, the objective is above its optimum by no more than the
 * tolerance's share of what the model has gained over the best constant. The criterion alone does not keep
 * it: it goes by the columns one by one and by the curvature at the origin. A path of penalties is trained
 * together where it can be, and promises the same. */
#include "algorithms/promises.h"

/* The models of a path, one penalty after the other. */
struct path {
    const struct problem *p;
    const struct question *questions; /* of each value */
    const double *least;
    kiln_type type;
    uint64_t seed;
    int models, converged;
};

static int take(void *user, const kiln_path_models *models) {
    struct path *path = user;
    const int n = path->p->n, count = (int)models->count;
    double *W = values_of(models->W), *b = values_of(models->b);
    for (int i = 0; i < count; i++) {
        const int64_t v = models->first + i;
        double w[8], constant = b[i];
        for (int j = 0; j < n; j++) w[j] = W[j * count + i];
        const struct solution s = {.n = n, .k = 1, .W = w, .b = &constant};
        path->converged += keeps_its_word(path->p, &path->questions[v], path->type, &s,
                                          models->reports[i]->converged != 0, path->least[v], path->seed);
        path->models++;
    }
    free(W);
    free(b);
    return 0;
}

static void run_path(struct path *path, const double *l2, const double *l1, int64_t count) {
    const struct problem *p = path->p;
    kiln_matrix *X = dense(devices[0], path->type, p->m, p->n, p->X);
    kiln_matrix *y = dense(devices[0], path->type, p->m, 1, p->y);
    const kiln_svm_options svm = {.regression = path->questions[0].kind == SVR,
                                  .epsilon = path->questions[0].epsilon};
    assert_ok(kiln_path(
        path->questions[0].kind == LOGREG ? "logreg" : "svm", path->questions[0].kind == LOGREG ? NULL : &svm,
        X, y, 1, &(kiln_path_options){.l2 = l2, .l1 = l1, .count = count, .take = take, .user = path}));
    kiln_matrix_free(X);
    kiln_matrix_free(y);
}

static void check_paths(enum kind kind, int classes, bool l1) {
    enum { VALUES = 3 };
    static const double penalties[VALUES] = {100, 1, 1e-3}, none[VALUES] = {0};
    int converged = 0, models = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct question questions[VALUES];
        double least[VALUES];
        bool proved;
        for (int v = 0; v < VALUES; v++)
            questions[v] = (struct question){.kind = kind,
                                             .classes = classes,
                                             .l2 = l1 ? 0 : penalties[v],
                                             .l1 = l1 ? penalties[v] : 0,
                                             .epsilon = 0.1};
        struct problem p = draw(&questions[0], seed);
        for (int v = 0; v < VALUES; v++) least[v] = least_of(&proved, &p, &questions[v]);
        for (int type = 0; type < 2; type++) {
            struct path path = {&p, questions, least, type ? KILN_F32 : KILN_F64, seed, 0, 0};
            run_path(&path, l1 ? none : penalties, l1 ? penalties : NULL, VALUES);
            converged += path.converged;
            models += path.models;
        }
        problem_free(&p);
    }
    assert_int_equal(models, 60 * 2 * VALUES);
    assert_true(converged > models / 3);
}

static void check(enum kind kind, int classes, bool l1) {
    static const double penalties[] = {1e-3, 1, 100};
    int converged = 0, proofs = 0, all = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct question q = {.kind = kind,
                             .classes = classes,
                             .l2 = l1 ? 0 : penalties[seed % 3],
                             .l1 = l1 ? penalties[seed % 3] : 0,
                             .epsilon = 0.1};
        struct problem p = draw(&q, seed);
        bool proved;
        const double least = least_of(&proved, &p, &q);
        proofs += proved;
        for (int type = 0; type < 2; type++) {
            const struct run run = {devices[0], type ? KILN_F32 : KILN_F64, KILN_DENSE, NULL};
            kiln_report report = {0};
            struct solution s = answer(&report, &run, &p, &q);
            converged += keeps_its_word(&p, &q, run.type, &s, report.converged != 0, least, seed);
            all++;
            kiln_report_free(&report);
            solution_free(&s);
        }
        problem_free(&p);
    }
    assert_true(kind != LOGREG || l1 || proofs > all / 4);
    assert_true(converged > all / 3); /* rows of 1e12 and f32 leave some at rounding */
}

static void two_classes(void **state) {
    (void)state;
    check(LOGREG, 2, false);
}

static void three_classes(void **state) {
    (void)state;
    check(LOGREG, 3, false);
    check(LOGREG, 3, true);
}

static void margins(void **state) {
    (void)state;
    check(SVM, 2, false);
    check(SVM, 3, false);
}

static void tubes(void **state) {
    (void)state;
    check(SVR, 0, false);
}

static void paths(void **state) {
    (void)state;
    check_paths(LOGREG, 2, false);
    check_paths(LOGREG, 2, true);
    check_paths(SVM, 2, false);
    check_paths(SVR, 0, false);
}

/* A constant that has every target in its tube is the optimum, and W is 0. */
static void a_tube_for_all(void **state) {
    (void)state;
    struct question q = {.kind = SVR, .l2 = 1e-3, .epsilon = 1};
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int type = 0; type < 2; type++) {
            const struct run run = {devices[0], type ? KILN_F32 : KILN_F64, KILN_DENSE, NULL};
            struct problem p = draw(&q, seed);
            uint64_t random = seed;
            kiln_report report = {0};
            for (int i = 0; i < p.m; i++) p.y[i] = 1000 + 1.9 * random_uniform(&random);
            struct solution s = answer(&report, &run, &p, &q);
            assert_true(report.converged && report.objective == 0);
            for (int j = 0; j < p.n; j++) assert_true(s.W[j] == 0);
            assert_true(fabs(s.b[0] - 1001) < 1.1);
            kiln_report_free(&report);
            solution_free(&s);
            problem_free(&p);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes), cmocka_unit_test(three_classes), cmocka_unit_test(margins),
        cmocka_unit_test(tubes),       cmocka_unit_test(paths),         cmocka_unit_test(a_tube_for_all),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
