/* kiln_metrics_of where the predictions lie: a GPU finds what the CPU finds, of hostile values too, fetches
 * no row, and finds the same bits again, and those of predictors that lie between other models'. */
#include <float.h>
#include <stdio.h>

#include "algorithms/on_cpu.h"

enum { ROWS = 20011, COLUMNS_MOST = 12 };

static const char *const names[] = {"opencl", "opencl*2", "cuda"};

/* ---------------------------------------------------------------------------------------------- values */

/* Says how a column is made of uniform numbers u. */
enum values { SMOOTH, TIED, EQUAL, EXTREME, INFINITE, HOLES, FAR };

static double value_of(enum values values, double u, int64_t e) {
    switch (values) {
    case SMOOTH: return 8 * u - 4;
    case TIED: return floor(8 * u) - 4;
    case EQUAL: return 0.25;
    case EXTREME: return (u - 0.5) * 1e5; /* probabilities of 0 and 1 */
    case INFINITE: return e % 3 == 0 ? INFINITY : e % 3 == 1 ? -INFINITY : u;
    case HOLES: return e % 7 == 0 ? (double)NAN : e % 7 == 1 ? -0.0 : e % 7 == 2 ? 0.0 : u - 0.5;
    default: return 1e9 + floor(4096 * u) / 4096;
    }
}

/* Targets: the classes 0 ... most, with `unknown` others, or one class alone; numbers are made as values are.
 * */
static double class_of(double u, int most, bool one, bool unknown, int64_t i) {
    if (unknown && i % 11 == 0) return i % 2 ? 0.5 : (double)NAN;
    return one ? most : floor((most + 1) * u);
}

struct problem {
    kiln_loss loss;
    int columns;
    enum values eta, y; /* y: of numbers */
    int classes;        /* 0: numbers */
    bool one, unknown, weighted, positive, proportions, means;
    kiln_metrics_options options;
};

struct made {
    double *eta, *y, *weights, *means;
};

static struct made make(const struct problem *p, int64_t rows) {
    const int targets = p->classes ? 1 : p->columns;
    struct made made = {calloc((size_t)(rows * p->columns) + 1, sizeof(double)),
                        calloc((size_t)(rows * targets) + 1, sizeof(double)),
                        calloc((size_t)rows + 1, sizeof(double)),
                        calloc((size_t)(rows * p->columns) + 1, sizeof(double))};
    uint64_t seed = 17;
    for (int64_t e = 0; e < rows * p->columns; e++) {
        made.eta[e] = value_of(p->eta, uniform(&seed), e);
        if (p->positive) made.eta[e] = fabs(made.eta[e]) + 0.1;
        made.means[e] = 0.05 + 0.9 * uniform(&seed);
    }
    for (int64_t e = 0; e < rows * targets; e++) {
        const double u = uniform(&seed);
        made.y[e] = p->classes ? class_of(u, p->classes - 1, p->one, p->unknown, e) : value_of(p->y, u, e);
        if (p->options.classes && made.y[e] == made.y[e]) made.y[e] = p->options.classes[(int)made.y[e]];
        if (p->proportions) made.y[e] = floor(5 * u) / 4;
        if (p->loss.kind == KILN_LOSS_GLM && !p->proportions) made.y[e] = 1 + fabs(made.y[e]);
    }
    for (int64_t i = 0; i < rows; i++)
        made.weights[i] = i % 5 == 0 ? 0 : i % 5 == 1 ? 1e-9 : 1e3 * uniform(&seed);
    return made;
}

static void forget(const struct made *made) {
    free(made->eta);
    free(made->y);
    free(made->weights);
    free(made->means);
}

/* --------------------------------------------------------------------------------------------- measures */

/* Eta's columns, with three of NaN before and two after them. */
static kiln_matrix *among_others(kiln_device *on, kiln_type type, int64_t rows, const struct problem *p,
                                 const double *eta) {
    const int64_t wide = p->columns + 5;
    double *all = malloc((size_t)(rows * wide) * sizeof *all);
    assert_non_null(all);
    for (int64_t e = 0; e < rows * wide; e++) all[e] = NAN;
    for (int64_t i = 0; i < rows; i++)
        memcpy(all + i * wide + 3, eta + i * p->columns, (size_t)p->columns * sizeof *all);
    kiln_matrix *Eta = dense_on(on, type, rows, wide, all);
    free(all);
    return Eta;
}

/* mixed: eta is f32, the others f64. Bytes that came home, or NULL: then its columns lie among others. */
static kiln_metrics *measure(const struct problem *p, const struct made *made, int64_t rows, kiln_device *on,
                             kiln_type type, bool mixed, int64_t *home) {
    const kiln_type others = mixed ? KILN_F64 : type;
    kiln_loss loss = p->loss;
    kiln_metrics_options options = p->options;
    kiln_metrics *metrics = NULL;
    kiln_device_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    kiln_matrix *Eta = home ? dense_on(on, type, rows, p->columns, made->eta)
                            : among_others(on, type, rows, p, made->eta),
                *y = dense_on(on, others, rows, p->classes ? 1 : p->columns, made->y),
                *weights = p->weighted ? dense_on(on, others, rows, 1, made->weights) : NULL,
                *means = p->means ? dense_on(on, others, rows, p->columns, made->means) : NULL;
    loss.y = y;
    loss.weights = weights;
    options.means = means;
    options.first = home ? 0 : 3;
    options.columns = home ? 0 : p->columns;
    assert_int_equal(kiln_device_get_statistics(on, &before), KILN_OK);
    if (kiln_metrics_of(&metrics, &loss, Eta, &options) != KILN_OK)
        fail_msg("%s", kiln_last_error()->message);
    assert_int_equal(kiln_device_get_statistics(on, &after), KILN_OK);
    if (home) *home = after.bytes_down - before.bytes_down;
    kiln_matrix_free(Eta);
    kiln_matrix_free(y);
    kiln_matrix_free(weights);
    kiln_matrix_free(means);
    return metrics;
}

/* Sums of as many terms round differently; `size`: of what cancels in it. */
static void assert_near(const char *name, double found, double wanted, double size) {
    if ((isnan(found) && isnan(wanted)) || found == wanted) return;
    if (!(fabs(found - wanted) <= 1e-13 * (fabs(wanted) + size)))
        fail_msg("%s is %.17g on the device, %.17g on the CPU", name, found, wanted);
}

static void compare(const kiln_metrics *found, const kiln_metrics *wanted, int parts) {
    static const char *const of_part[] = {"r2",     "rss",       "tss",    "mse", "mae", "mean_error",
                                          "weight", "precision", "recall", "f1",  "auc"};
    const char *name;
    int64_t classes = 0;
    for (int64_t i = 0; (name = kiln_metrics_name(wanted, i)); i++) {
        assert_string_equal(name, kiln_metrics_name(found, i));
        const double size = strcmp(name, "mean_error") == 0 ? kiln_metrics_value(wanted, "mae")
                            : strcmp(name, "r2") == 0 || strcmp(name, "d2") == 0 ? 1
                                                                                 : 0;
        assert_near(name, kiln_metrics_value(found, name), kiln_metrics_value(wanted, name), size);
    }
    assert_non_null(kiln_metrics_name(found, 0));
    for (int j = 0; j < parts; j++)
        for (size_t i = 0; i < sizeof of_part / sizeof *of_part; i++)
            assert_near(of_part[i], kiln_metrics_part(found, j, of_part[i]),
                        kiln_metrics_part(wanted, j, of_part[i]),
                        i == 5 ? kiln_metrics_part(wanted, j, "mae") : i == 0);
    const double *table = kiln_metrics_confusion(wanted, &classes),
                 *own = kiln_metrics_confusion(found, NULL);
    for (int64_t c = 0; c < (classes + 1) * classes; c++) assert_near("a cell", own[c], table[c], 0);
}

/* The same bits. */
static void assert_again(const kiln_metrics *first, const kiln_metrics *second) {
    const char *name;
    for (int64_t i = 0; (name = kiln_metrics_name(first, i)); i++) {
        const double a = kiln_metrics_value(first, name), b = kiln_metrics_value(second, name);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static void check(const struct problem *p, int64_t rows, kiln_device *on) {
    const struct made made = make(p, rows);
    for (int t = 0; t < 3; t++) {
        const kiln_type type = t == 1 ? KILN_F64 : KILN_F32;
        int64_t home = 0, unasked;
        kiln_metrics *wanted = measure(p, &made, rows, device, type, t == 2, &unasked),
                     *among = measure(p, &made, rows, device, type, t == 2, NULL),
                     *again = measure(p, &made, rows, on, type, t == 2, NULL),
                     *found = measure(p, &made, rows, on, type, t == 2, &home);
        compare(found, wanted, p->classes ? p->classes : p->columns);
        assert_again(found, again);
        assert_again(wanted, among);
        if (rows == ROWS && home > rows)
            fail_msg("%lld bytes of %lld rows came home", (long long)home, (long long)rows);
        kiln_metrics_free(wanted);
        kiln_metrics_free(among);
        kiln_metrics_free(found);
        kiln_metrics_free(again);
    }
    forget(&made);
}

static void check_all(const struct problem *problems, size_t count) {
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        kiln_device *on = NULL;
        if (kiln_device_open(&on, names[n], NULL) != KILN_OK) {
            printf("skip %s: %s\n", names[n], kiln_last_error()->message);
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (strchr(names[n], '*') == NULL || i == 0) check(&problems[i], ROWS, on);
            check(&problems[i], 3, on);
        }
        kiln_device_close(on);
    }
}

/* ------------------------------------------------------------------------------------------------ cases */

static const double apart[] = {-2, 7};

static void two_classes(void **state) {
    (void)state;
    const struct problem problems[] = {
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .weighted = true},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = TIED},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = EQUAL, .weighted = true},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = EXTREME},
        {.loss.kind = KILN_LOSS_LOGISTIC,
         .columns = 1,
         .classes = 2,
         .eta = EXTREME,
         .options.least_probability = 1e-9},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = INFINITE},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = HOLES, .weighted = true},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .one = true},
        {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .unknown = true},
        {.loss.kind = KILN_LOSS_LOGISTIC,
         .columns = 1,
         .classes = 2,
         .options = {.classes = apart, .class_count = 2}},
        {.loss.kind = KILN_LOSS_SQUARED_HINGE, .columns = 1, .classes = 2, .eta = TIED, .weighted = true},
    };
    check_all(problems, sizeof problems / sizeof *problems);
}

static void many_classes(void **state) {
    (void)state;
    const struct problem problems[] = {
        {.loss.kind = KILN_LOSS_SOFTMAX, .columns = 2, .classes = 2, .weighted = true},
        {.loss.kind = KILN_LOSS_SQUARED_HINGE, .columns = 2, .classes = 2, .eta = TIED},
        {.loss.kind = KILN_LOSS_SOFTMAX, .columns = 3, .classes = 3, .weighted = true},
        {.loss.kind = KILN_LOSS_SOFTMAX, .columns = 12, .classes = 12, .eta = TIED, .unknown = true},
        {.loss.kind = KILN_LOSS_SOFTMAX, .columns = 4, .classes = 4, .eta = EXTREME},
        {.loss.kind = KILN_LOSS_SOFTMAX, .columns = 3, .classes = 3, .eta = HOLES, .one = true},
        {.loss.kind = KILN_LOSS_SQUARED_HINGE, .columns = 3, .classes = 3, .weighted = true},
    };
    check_all(problems, sizeof problems / sizeof *problems);
}

static void numbers(void **state) {
    (void)state;
    const struct problem problems[] = {
        {.loss.kind = KILN_LOSS_SQUARED, .columns = 1, .weighted = true},
        {.loss.kind = KILN_LOSS_SQUARED, .columns = 3, .eta = TIED, .y = EXTREME, .weighted = true},
        {.loss.kind = KILN_LOSS_SQUARED, .columns = 1, .y = EQUAL},
        {.loss.kind = KILN_LOSS_SQUARED, .columns = 2, .eta = FAR, .y = FAR},
        {.loss.kind = KILN_LOSS_SQUARED, .columns = 1, .y = INFINITE},
        {.loss.kind = KILN_LOSS_SQUARED_EPSILON, .columns = 1, .y = TIED},
    };
    check_all(problems, sizeof problems / sizeof *problems);
}

/* Each family, links that fall and overflow, means of their own, and what the best intercept leaves. */
static void glm(void **state) {
    (void)state;
    const kiln_family families[] = {KILN_GAUSSIAN, KILN_POISSON, KILN_GAMMA, KILN_INVERSE_GAUSSIAN,
                                    KILN_NEGATIVE_BINOMIAL};
    struct problem problems[16];
    size_t count = 0;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        problems[count++] =
            (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = families[f], .parameter = 0.5},
                             .columns = 1,
                             .y = TIED,
                             .weighted = f % 2,
                             .options.explained = 1};
    problems[count++] =
        (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_TWEEDIE, .parameter = 1.5},
                         .columns = 1,
                         .options.explained = 1};
    problems[count++] = (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_POISSON},
                                         .columns = 1,
                                         .eta = EXTREME}; /* means overflow */
    problems[count++] =
        (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_GAMMA, .link = KILN_LINK_INVERSE},
                         .columns = 1,
                         .positive = true};
    problems[count++] =
        (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_GAMMA}, .columns = 1, .means = true};
    problems[count++] = (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL},
                                         .columns = 1,
                                         .proportions = true,
                                         .weighted = true,
                                         .options.explained = 1};
    problems[count++] = (struct problem){.loss = {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL},
                                         .columns = 1,
                                         .eta = TIED,
                                         .classes = 0,
                                         .options.unranked = 1};
    check_all(problems, count);
}

/* Outcomes of a binomial model have an area; by a link that falls, rows are ranked by -eta. */
static void outcomes(void **state) {
    (void)state;
    kiln_device *on = NULL;
    if (kiln_device_open(&on, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    const struct problem problem = {
        .columns = 1,
        .loss = {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL, .link = KILN_LINK_POWER, .link_power = -1},
        .positive = true,
        .weighted = true};
    struct made made = make(&problem, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        made.eta[i] += 1; /* the mean, 1 / eta, is below 1 */
        made.y[i] = made.y[i] > 3;
    }
    kiln_metrics *wanted = measure(&problem, &made, ROWS, device, KILN_F64, false, NULL),
                 *found = measure(&problem, &made, ROWS, on, KILN_F64, false, NULL);
    assert_false(isnan(kiln_metrics_value(found, "auc")));
    compare(found, wanted, 1);
    kiln_metrics_free(wanted);
    kiln_metrics_free(found);
    forget(&made);
    kiln_device_close(on);
}

/* If the device has no room for the ranks, rows are fetched, and the figures are the CPU's. */
static void narrow(void **state) {
    (void)state;
    kiln_device *on = NULL;
    const struct problem problem = {.loss.kind = KILN_LOSS_LOGISTIC, .columns = 1, .classes = 2, .eta = TIED};
    if (kiln_device_open(&on, "opencl", &(kiln_device_options){.memory = 40 * ROWS}) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    const struct made made = make(&problem, ROWS);
    int64_t home = 0;
    kiln_metrics *wanted = measure(&problem, &made, ROWS, device, KILN_F64, false, NULL),
                 *found = measure(&problem, &made, ROWS, on, KILN_F64, false, &home);
    compare(found, wanted, 2);
    assert_true(home >= 8 * ROWS);
    kiln_metrics_free(wanted);
    kiln_metrics_free(found);
    forget(&made);
    kiln_device_close(on);
}

/* A weight that is none is refused, and what lies on another device is fetched. */
static void refused(void **state) {
    (void)state;
    const double numbers_of[] = {1, 0}, none[] = {1, NAN}, negative[] = {-1, 1};
    kiln_device *on = NULL;
    if (kiln_device_open(&on, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    kiln_matrix *Eta = dense_on(on, KILN_F64, 2, 1, numbers_of),
                *y = dense_on(on, KILN_F64, 2, 1, numbers_of), *bad = dense_on(on, KILN_F64, 2, 1, none),
                *worse = dense_on(on, KILN_F64, 2, 1, negative),
                *here = dense_on(device, KILN_F64, 2, 1, numbers_of);
    const kiln_loss_kind kinds[] = {KILN_LOSS_LOGISTIC, KILN_LOSS_SQUARED, KILN_LOSS_GLM};
    kiln_metrics *metrics = NULL;
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < 2; w++) {
            const kiln_loss loss = {
                .kind = kinds[i], .family = KILN_POISSON, .y = y, .weights = w ? bad : worse};
            assert_int_equal(kiln_metrics_of(&metrics, &loss, Eta, NULL), KILN_ERR_DATA);
            assert_null(metrics);
        }
    const kiln_loss loss = {.kind = KILN_LOSS_LOGISTIC, .y = here};
    assert_int_equal(kiln_metrics_of(&metrics, &loss, Eta, NULL), KILN_OK);
    assert_true(kiln_metrics_value(metrics, "auc") == 1);
    kiln_metrics_free(metrics);
    kiln_matrix *const all[] = {Eta, y, bad, worse, here};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_device_close(on);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_classes), cmocka_unit_test(many_classes), cmocka_unit_test(numbers),
        cmocka_unit_test(glm),         cmocka_unit_test(outcomes),     cmocka_unit_test(narrow),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
