/* kiln_metrics_of against plain loops in long double: each kind of prediction, f32 and f64, with and without
 * weights, ties and unknown classes, on several devices and for several numbers of threads; few rows, and
 * more than one level of the order takes. */
#include <stdio.h>

#include "algorithms/on_cpu.h"
#include "core/limits.h"
#include "faults/brutal.h"

enum { CLASSES_MOST = 4, TARGETS = 2 };

struct rows {
    int64_t count;
    double *eta, *y, *weights; /* eta: count x CLASSES_MOST */
};

/* Numbers that both types hold, with ties, and weights of which some are 0. */
static struct rows make(int64_t count) {
    struct rows rows = {count, malloc((size_t)(count * CLASSES_MOST) * sizeof(double) + 1),
                        malloc((size_t)(count * TARGETS) * sizeof(double) + 1),
                        malloc((size_t)count * sizeof(double) + 1)};
    uint64_t seed = (uint64_t)count + 3;
    for (int64_t e = 0; e < count * CLASSES_MOST; e++) {
        const double wide = 8 * (uniform(&seed) + uniform(&seed) + uniform(&seed)) - 12;
        rows.eta[e] = e % 3 ? (double)(float)wide : (double)(float)floor(8 * wide) / 8;
    }
    for (int64_t e = 0; e < count * TARGETS; e++) rows.y[e] = floor(5 * uniform(&seed));
    for (int64_t i = 0; i < count; i++) rows.weights[i] = i % 5 == 0 ? 0 : floor(64 * uniform(&seed)) / 16;
    return rows;
}

static void forget(struct rows *rows) {
    free(rows->eta);
    free(rows->y);
    free(rows->weights);
}

static const double *columns_of(double *to, const struct rows *rows, int k) {
    for (int64_t i = 0; i < rows->count; i++)
        for (int c = 0; c < k; c++) to[i * k + c] = rows->eta[i * CLASSES_MOST + c];
    return to;
}

static long double weight_of(const double *weights, int64_t i) {
    return weights ? weights[i] : 1;
}

/* A metric that a sum of about `size` goes into, whose terms have been rounded in double. */
static void assert_metric(const kiln_metrics *metrics, const char *name, long double wanted, double size) {
    const double found = kiln_metrics_value(metrics, name);
    if (isnan((double)wanted) && isnan(found)) return;
    if (found == (double)wanted) return; /* infinity too */
    if (!(fabs(found - (double)wanted) <= 64 * 2.3e-16 * (fabs((double)wanted) + size)))
        fail_msg("%s is %.17g, not %.17g", name, found, (double)wanted);
}

/* ------------------------------------------------------------------------------------------ references */

struct by_score {
    double score, positive, negative;
};

static int highest_first(const void *a, const void *b) {
    const double left = ((const struct by_score *)a)->score, right = ((const struct by_score *)b)->score;
    return (left < right) - (left > right);
}

/* This is of scores at stride `k`; rows are of the class where is[i]. */
static long double area(const double *scores, int k, const bool *is, const double *weights, int64_t count) {
    struct by_score *rows = calloc((size_t)count + 1, sizeof *rows);
    long double above = 0, pairs = 0, others = 0;
    for (int64_t i = 0; i < count; i++) {
        const double weight = (double)weight_of(weights, i);
        rows[i] = (struct by_score){scores[i * k], is[i] ? weight : 0, is[i] ? 0 : weight};
    }
    qsort(rows, (size_t)count, sizeof *rows, highest_first);
    for (int64_t i = 0, end; i < count; i = end) {
        long double positive = 0, negative = 0;
        for (end = i; end < count && rows[end].score == rows[i].score; end++) {
            positive += rows[end].positive;
            negative += rows[end].negative;
        }
        pairs += negative * (above + positive / 2);
        above += positive;
        others += negative;
    }
    free(rows);
    return above > 0 && others > 0 ? pairs / (above * others) : (long double)NAN;
}

/* The probability of class c as its logarithm; two classes of one column. */
static long double log_probability(const double *eta, int k, int c) {
    long double most = -INFINITY, sum = 0;
    if (k == 1) return -log1pl(expl(c ? -(long double)eta[0] : (long double)eta[0]));
    for (int j = 0; j < k; j++) most = fmaxl(most, eta[j]);
    for (int j = 0; j < k; j++) sum += expl(eta[j] - most);
    return eta[c] - most - logl(sum);
}

struct setting {
    kiln_type type;
    bool weighted;
    kiln_device *on;
};

static kiln_metrics *measure(const kiln_loss *loss, const struct setting *s, const double *eta, int64_t rows,
                             int k, const double *y, int targets, const double *weights,
                             const kiln_metrics_options *options) {
    kiln_metrics *metrics = NULL;
    kiln_loss own = *loss;
    kiln_matrix *Eta = dense_on(s->on, s->type, rows, k, eta),
                *Y = dense_on(s->on, s->type, rows, targets, y);
    kiln_matrix *W = weights ? dense_on(s->on, s->type, rows, 1, weights) : NULL;
    own.y = Y;
    own.weights = W;
    if (kiln_metrics_of(&metrics, &own, Eta, options) != KILN_OK) fail_msg("%s", kiln_last_error()->message);
    kiln_matrix_free(Eta);
    kiln_matrix_free(Y);
    kiln_matrix_free(W);
    return metrics;
}

/* ------------------------------------------------------------------------------------------ classes */

/* k = 1: two classes. Class 3 of y, and 4, are unknown to three and two classes. */
static void check_classes(const struct rows *rows, const struct setting *s, int k, bool curves) {
    const int count = k == 1 ? 2 : k;
    const int64_t m = rows->count;
    const double *weights = s->weighted ? rows->weights : NULL;
    const double values[] = {0, 1, 2, 3};
    double *eta = calloc((size_t)(m * k) + 1, sizeof *eta), *y = calloc((size_t)m + 1, sizeof *y);
    bool *is = calloc((size_t)m + 1, sizeof *is);
    long double total = 0, right = 0, lost = 0, brier = 0, table[CLASSES_MOST + 1][CLASSES_MOST] = {{0}};
    columns_of(eta, rows, k);
    for (int64_t i = 0; i < m; i++) {
        const long double weight = weight_of(weights, i);
        const double *own = eta + i * k;
        y[i] = rows->y[i * TARGETS];
        const int class = y[i] < count ? (int)y[i] : -1;
        int taken = k == 1 ? own[0] > 0 : 0;
        for (int c = 1; c < k; c++) taken = own[c] > own[taken] ? c : taken;
        if (weight == 0) continue;
        long double missed = class < 0;
        for (int c = 0; c < count; c++) {
            const long double p = expl(log_probability(own, k, c));
            missed += (p - (c == class)) * (p - (c == class));
        }
        total += weight;
        right += class == taken ? weight : 0;
        lost += weight * (class < 0 ? INFINITY : -log_probability(own, k, class));
        brier += weight * missed / (k == 1 ? 2 : 1);
        table[class < 0 ? count : class][taken] += weight;
    }
    const kiln_loss loss = {.kind = k == 1 ? KILN_LOSS_LOGISTIC : KILN_LOSS_SOFTMAX};
    kiln_metrics *metrics =
        measure(&loss, s, eta, m, k, y, 1, weights,
                &(kiln_metrics_options){.classes = values, .class_count = count, .curves = curves});
    assert_metric(metrics, "accuracy", total > 0 ? right / total : (long double)NAN, 0);
    assert_metric(metrics, "log_loss", total > 0 ? lost / total : (long double)NAN, 0);
    assert_metric(metrics, "brier", total > 0 ? brier / total : (long double)NAN, 0);
    int64_t side = 0;
    const double *confusion = kiln_metrics_confusion(metrics, &side);
    assert_int_equal(side, count);
    for (int i = 0; i <= count; i++)
        for (int c = 0; c < count; c++)
            assert_true(fabs(confusion[i * count + c] - (double)table[i][c]) <= 1e-12 * (double)total);
    if (k == 1) {
        for (int64_t i = 0; i < m; i++) is[i] = y[i] == 1;
        assert_metric(metrics, "auc", area(eta, 1, is, weights, m), 0);
        if (curves && m)
            assert_true(kiln_metrics_roc(metrics, 1)->area == kiln_metrics_value(metrics, "auc") || m < 5);
    }
    kiln_metrics_free(metrics);
    free(eta);
    free(y);
    free(is);
}

/* Support vector machines rank by scores: each class's area is that of its column. */
static void check_columns(const struct rows *rows, const struct setting *s) {
    enum { K = 3 };
    const int64_t m = rows->count;
    const double *weights = s->weighted ? rows->weights : NULL;
    double *eta = calloc((size_t)(m * K) + 1, sizeof *eta), *y = calloc((size_t)m + 1, sizeof *y);
    bool *is = calloc((size_t)m + 1, sizeof *is);
    columns_of(eta, rows, K);
    for (int64_t i = 0; i < m; i++) y[i] = rows->y[i * TARGETS];
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED_HINGE};
    kiln_metrics *metrics = measure(&loss, s, eta, m, K, y, 1, weights, &(kiln_metrics_options){.curves = 1});
    for (int c = 0; c < K; c++) {
        for (int64_t i = 0; i < m; i++) is[i] = y[i] == c;
        const double wanted = (double)area(eta + c, K, is, weights, m),
                     found = kiln_metrics_part(metrics, c, "auc");
        assert_true((isnan(wanted) && isnan(found)) || fabs(found - wanted) <= 1e-14);
    }
    assert_true(isnan(kiln_metrics_value(metrics, "log_loss")) &&
                !kiln_metrics_calibration(metrics, 0, NULL));
    kiln_metrics_free(metrics);
    free(eta);
    free(y);
    free(is);
}

/* ------------------------------------------------------------------------------------------ numbers */

static void check_numbers(const struct rows *rows, const struct setting *s) {
    const int64_t m = rows->count;
    const double *weights = s->weighted ? rows->weights : NULL;
    double *eta = calloc((size_t)(m * TARGETS) + 1, sizeof *eta);
    columns_of(eta, rows, TARGETS);
    long double total = 0, rss = 0, tss = 0, absolute = 0, error = 0;
    for (int64_t i = 0; i < m; i++) total += weight_of(weights, i);
    for (int j = 0; j < TARGETS; j++) {
        long double mean = 0;
        for (int64_t i = 0; i < m; i++) mean += weight_of(weights, i) * rows->y[i * TARGETS + j] / total;
        for (int64_t i = 0; i < m; i++) {
            const long double weight = weight_of(weights, i), y = rows->y[i * TARGETS + j],
                              e = y - eta[i * TARGETS + j];
            rss += weight * e * e;
            absolute += weight * fabsl(e);
            error -= weight * e;
            tss += weight * (y - mean) * (y - mean);
        }
    }
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED};
    kiln_metrics *metrics = measure(&loss, s, eta, m, TARGETS, rows->y, TARGETS, weights, NULL);
    const long double all = total * TARGETS;
    assert_metric(metrics, "rss", rss, 0);
    assert_metric(metrics, "mse", rss / all, 0);
    assert_metric(metrics, "rmse", sqrtl(rss / all), 0);
    assert_metric(metrics, "mae", absolute / all, 0);
    assert_metric(metrics, "mean_error", error / all, (double)(absolute / all));
    assert_metric(metrics, "r2", tss > 1e-9L ? 1 - rss / tss : (long double)NAN, (double)(rss / tss));
    kiln_metrics_free(metrics);
    free(eta);
}

/* A binomial model of outcomes by a link whose mean falls with eta is ranked by -eta: here of the Poisson
 * family, whose deviance is told by hand, and of the binomial one, whose log loss is. */
static void check_glm(const struct rows *rows, const struct setting *s) {
    const int64_t m = rows->count;
    const double *weights = s->weighted ? rows->weights : NULL;
    double *eta = calloc((size_t)m + 1, sizeof *eta), *y = calloc((size_t)m + 1, sizeof *y);
    bool *is = calloc((size_t)m + 1, sizeof *is);
    long double total = 0, deviance = 0, level = 0, null = 0, lost = 0;
    for (int64_t i = 0; i < m; i++) {
        const long double weight = weight_of(weights, i);
        eta[i] = rows->eta[i * CLASSES_MOST] / 4;
        y[i] = rows->y[i * TARGETS];
        total += weight;
        level += weight * y[i];
        if (y[i] > 0) deviance += 2 * weight * y[i] * (logl(y[i]) - eta[i]);
        deviance += 2 * weight * (expl(eta[i]) - y[i]);
    }
    level /= total;
    for (int64_t i = 0; i < m; i++)
        null += 2 * weight_of(weights, i) * ((y[i] > 0 ? y[i] * logl(y[i] / level) : 0) - (y[i] - level));
    const kiln_loss poisson = {.kind = KILN_LOSS_GLM, .family = KILN_POISSON},
                    binomial = {.kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL};
    kiln_metrics *metrics =
        measure(&poisson, s, eta, m, 1, y, 1, weights, &(kiln_metrics_options){.explained = 1});
    assert_metric(metrics, "deviance", deviance, 0);
    assert_metric(metrics, "mean_deviance", deviance / total, 0);
    if (m >= 5) assert_metric(metrics, "d2", 1 - deviance / null, (double)(deviance / null));
    kiln_metrics_free(metrics);
    for (int64_t i = 0; i < m; i++) {
        is[i] = y[i] > 1;
        y[i] = is[i];
        lost -= weight_of(weights, i) * log_probability(eta + i, 1, is[i]);
    }
    metrics = measure(&binomial, s, eta, m, 1, y, 1, weights, NULL);
    assert_metric(metrics, "log_loss", lost / total, 0);
    assert_metric(metrics, "deviance", 2 * lost, 0);
    assert_metric(metrics, "auc", area(eta, 1, is, weights, m), 0);
    kiln_metrics_free(metrics);
    free(eta);
    free(y);
    free(is);
}

static void check_all(int64_t count, kiln_device *on) {
    struct rows rows = make(count);
    for (int t = 0; t < 2; t++)
        for (int weighted = 0; weighted < 2; weighted++) {
            const struct setting s = {t ? KILN_F64 : KILN_F32, weighted, on};
            check_classes(&rows, &s, 1, true);
            for (int k = 1; k <= CLASSES_MOST; k++)
                if (k != 2) check_classes(&rows, &s, k, false);
            check_columns(&rows, &s);
            if (count > 1) check_numbers(&rows, &s);
            if (count > 1) check_glm(&rows, &s);
        }
    forget(&rows);
}

static void few_rows(void **state) {
    (void)state;
    const int64_t counts[] = {0, 1, 2, 3, 24, 25, 700};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_all(counts[i], device);
}

/* In order at once, and in slices. */
static void many_rows(void **state) {
    (void)state;
    const int64_t at_once = ki_limits.ordered_rows;
    check_all(40000, device);
    ki_limits.ordered_rows = 1 << 14;
    check_all(70000, device);
    ki_limits.ordered_rows = at_once;
}

/* Rows are of several lengths: none, less than a group of a GPU takes, and several groups and runs of a
 * sort. */
static void on_others(void **state) {
    (void)state;
    const int64_t counts[] = {0, 1, 700, 1025, 9000};
    static const char *const names[] = {"cpu*2", "opencl", "opencl*2"};
    for (int i = 0; i < 3; i++) {
        kiln_device *other = NULL;
        if (kiln_device_open(&other, names[i], NULL) != KILN_OK) {
            assert_true(i > 0);
            printf("skip %s: %s\n", names[i], kiln_last_error()->message);
            continue;
        }
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) check_all(counts[c], other);
        kiln_device_close(other);
    }
}

/* ------------------------------------------------------------------------------------- figures of a kind */

static const struct setting wide = {.type = KILN_F64};

static struct setting here(void) {
    struct setting s = wide;
    s.on = device;
    return s;
}

/* Scores that differ in their last bits alone, of all sizes, that are tied by the hundred, infinite, 0 of
 * either sign, and none. */
static void close_scores(void **state) {
    (void)state;
    enum { M = 60000 };
    static double eta[M], y[M], known[M];
    static bool is[M];
    uint64_t seed = 4;
    for (int wide_type = 0; wide_type < 2; wide_type++) {
        const struct setting s = {.type = wide_type ? KILN_F64 : KILN_F32, .on = device};
        const double last = wide_type ? 0x1p-52 : 0x1p-23, large = wide_type ? 300 : 37;
        const double odd[] = {INFINITY, -INFINITY, 0, -0.0, 1, NAN};
        int64_t count = 0;
        for (int i = 0; i < M; i++) {
            const double u = uniform(&seed), v = uniform(&seed);
            const double any = pow(10, large * (2 * u - 1)) * (v < 0.5 ? -1 : 1);
            eta[i] = i % 4 == 0   ? 1 + floor(30000 * u) * last
                     : i % 4 == 1 ? (wide_type ? any : (double)(float)any)
                     : i % 4 == 2 ? floor(4 * u)
                                  : odd[(int)(6 * u)];
            y[i] = uniform(&seed) < 0.3;
            if (isnan(eta[i])) continue;
            known[count] = eta[i];
            is[count++] = y[i] == 1;
        }
        kiln_metrics *metrics =
            measure(&(kiln_loss){.kind = KILN_LOSS_SQUARED_HINGE}, &s, eta, M, 1, y, 1, NULL, NULL);
        assert_metric(metrics, "auc", area(known, 1, is, NULL, count), 0);
        kiln_metrics_free(metrics);
    }
}

/* Far from 0 nothing cancels, and equal targets have no spread at all. */
static void spreads(void **state) {
    (void)state;
    enum { M = 10000 };
    static double y[M], eta[M], weights[M];
    uint64_t seed = 1;
    const struct setting s = here();
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED};
    long double mean = 0, tss = 0;
    for (int i = 0; i < M; i++) {
        y[i] = 1e9 + floor(4096 * uniform(&seed)) / 4096;
        eta[i] = 1e9 + 0.5;
        weights[i] = i < 300 ? 0 : uniform(&seed);
    }
    y[0] = 1e9 + 3000; /* the first says nothing of the others */
    for (int i = 0; i < M; i++) mean += (y[i] - 1e9L) / M;
    for (int i = 0; i < M; i++) tss += (y[i] - 1e9L - mean) * (y[i] - 1e9L - mean);
    kiln_metrics *metrics = measure(&loss, &s, eta, M, 1, y, 1, NULL, NULL);
    assert_true(fabs(kiln_metrics_part(metrics, 0, "tss") / (double)tss - 1) < 1e-14);
    kiln_metrics_free(metrics);
    for (int i = 0; i < M; i++) y[i] = i < 300 ? 7 : 0.1;
    metrics = measure(&loss, &s, eta, M, 1, y, 1, weights, NULL);
    assert_true(kiln_metrics_part(metrics, 0, "tss") == 0 && isnan(kiln_metrics_value(metrics, "r2")));
    kiln_metrics_free(metrics);
}

/* Rows of weight 0 are as good as none, whatever they hold: predictions that are none, targets that the
 * family has not, and squares beyond any double. */
static void rows_of_no_weight(void **state) {
    enum { M = 700 };
    static double y[2][M], eta[2][M], weights[2][M];
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e200};
    static const kiln_loss losses[] = {{.kind = KILN_LOSS_SQUARED},
                                       {.kind = KILN_LOSS_GLM, .family = KILN_POISSON},
                                       {.kind = KILN_LOSS_LOGISTIC}};
    const struct setting s = here();
    uint64_t seed = 3;
    int count = 0;
    (void)state;
    for (int i = 0; i < M; i++) {
        y[0][i] = floor(3 * uniform(&seed));
        eta[0][i] = uniform(&seed) - 0.5;
        weights[0][i] = i % 3 ? 1 + uniform(&seed) : 0;
        if (weights[0][i] > 0) {
            y[1][count] = y[0][i], eta[1][count] = eta[0][i], weights[1][count++] = weights[0][i];
        } else
            eta[0][i] = bad[i % 4], y[0][i] = bad[i / 3 % 4];
    }
    for (int l = 0; l < 3; l++) {
        kiln_metrics *with = measure(&losses[l], &s, eta[0], M, 1, y[0], 1, weights[0], NULL),
                     *without = measure(&losses[l], &s, eta[1], count, 1, y[1], 1, weights[1], NULL);
        const char *name;
        for (int i = 0; (name = kiln_metrics_name(without, i)); i++) {
            const double a = kiln_metrics_value(with, name), b = kiln_metrics_value(without, name);
            if (!(a == b || fabs(a - b) <= 1e-12 * fabs(b) || (isnan(a) && isnan(b))))
                fail_msg("loss %d: %s is %.17g, and %.17g without such rows", l, name, a, b);
        }
        kiln_metrics_free(with);
        kiln_metrics_free(without);
    }
}

/* Far out -log p is the margin, though p is 1 or 0 in double; a least probability bounds it. */
static void saturated(void **state) {
    (void)state;
    const double eta[] = {800, -900, 1e4, 0}, y[] = {0, 1, 1, 1};
    const struct setting s = here();
    const kiln_loss loss = {.kind = KILN_LOSS_LOGISTIC};
    kiln_metrics *metrics = measure(&loss, &s, eta, 4, 1, y, 1, NULL, NULL);
    assert_metric(metrics, "log_loss", (1700 + logl(2)) / 4, 0);
    kiln_metrics_free(metrics);
    metrics = measure(&loss, &s, eta, 4, 1, y, 1, NULL, &(kiln_metrics_options){.least_probability = 1e-10});
    assert_metric(metrics, "log_loss", (2 * logl(1e10L) + logl(2)) / 4, 0);
    kiln_metrics_free(metrics);
}

/* A loss of several classes next to 0 keeps its digits: -log p = log(1 + the other e^(eta_c - eta_class)). */
static void certain(void **state) {
    (void)state;
    const double eta[] = {50, 3, 1, -60, 0, -50, 0, 0, 45}, y[] = {0, 1, 2};
    const struct setting s = here();
    const kiln_loss loss = {.kind = KILN_LOSS_SOFTMAX};
    const long double lost = expl(-47) + expl(-49) + expl(-60) + expl(-50) + 2 * expl(-45);
    kiln_metrics *metrics = measure(&loss, &s, eta, 3, 3, y, 1, NULL, NULL);
    assert_metric(metrics, "log_loss", lost / 3, 0);
    kiln_metrics_free(metrics);
}

/* Four rows by hand: thresholds between them, and a tie. */
static void curve(void **state) {
    (void)state;
    const double eta[] = {3, 1, 1, -2, NAN}, y[] = {1, 1, 0, 0, 1};
    const double x[] = {0, 0, 0.5, 1}, up[] = {0, 0.5, 1, 1};
    const struct setting s = here();
    const kiln_loss loss = {.kind = KILN_LOSS_LOGISTIC};
    kiln_metrics *metrics = measure(&loss, &s, eta, 5, 1, y, 1, NULL, &(kiln_metrics_options){.curves = 1});
    const kiln_roc *roc = kiln_metrics_roc(metrics, 1);
    assert_int_equal(roc->count, 4);
    for (int i = 0; i < 4; i++) assert_true(roc->false_share[i] == x[i] && roc->true_share[i] == up[i]);
    assert_true(roc->area == 0.875);
    assert_null(kiln_metrics_roc(metrics, 0));
    kiln_metrics_free(metrics);
}

/* 40 rows in ten bins of four; predictions that are equal share one. */
static void calibration(void **state) {
    (void)state;
    double eta[40], y[40];
    const struct setting s = here();
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED};
    int64_t count;
    for (int i = 0; i < 40; i++) {
        eta[i] = (i * 7) % 40;
        y[i] = eta[i] + (i % 2 ? 1 : -1);
    }
    kiln_metrics *metrics = measure(&loss, &s, eta, 40, 1, y, 1, NULL, &(kiln_metrics_options){.curves = 1});
    const kiln_bin *bins = kiln_metrics_calibration(metrics, 0, &count);
    assert_int_equal(count, 10);
    for (int b = 0; b < 10; b++) {
        assert_true(bins[b].least == 4 * b && bins[b].most == 4 * b + 3 && bins[b].weight == 4);
        assert_true(fabs(bins[b].predicted - 4 * b - 1.5) < 1e-12 &&
                    fabs(bins[b].observed - bins[b].predicted) < 1e-12);
        assert_true(bins[b].residuals[0] == -1 && bins[b].residuals[1] == -1 && bins[b].residuals[2] == 1);
    }
    assert_null(kiln_metrics_roc(metrics, 0));
    kiln_metrics_free(metrics);
    for (int i = 0; i < 40; i++) eta[i] = i < 30;
    metrics = measure(&loss, &s, eta, 40, 1, y, 1, NULL, &(kiln_metrics_options){.curves = 1});
    bins = kiln_metrics_calibration(metrics, 0, &count);
    assert_true(count == 2 && bins[0].weight == 10 && bins[1].weight == 30);
    kiln_metrics_free(metrics);
}

/* The same bits, whatever the number of threads. */
static void threads(void **state) {
    (void)state;
    static const char *const names[] = {"auc", "log_loss", "brier", "accuracy"};
    const int counts[] = {1, 2, 7};
    double found[3][4];
    struct rows rows = make(100000);
    double *eta = malloc((size_t)rows.count * sizeof *eta), *y = malloc((size_t)rows.count * sizeof *y);
    columns_of(eta, &rows, 1);
    for (int64_t i = 0; i < rows.count; i++) y[i] = rows.y[i * TARGETS] > 2;
    for (int t = 0; t < 3; t++) {
        struct setting s = {.type = KILN_F32};
        assert_int_equal(kiln_device_open(&s.on, "cpu", &(kiln_device_options){.threads = counts[t]}),
                         KILN_OK);
        const kiln_loss loss = {.kind = KILN_LOSS_LOGISTIC};
        kiln_metrics *metrics = measure(&loss, &s, eta, rows.count, 1, y, 1, rows.weights, NULL);
        for (int i = 0; i < 4; i++) found[t][i] = kiln_metrics_value(metrics, names[i]);
        kiln_metrics_free(metrics);
        kiln_device_close(s.on);
    }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    assert_memory_equal(found[0], found[2], sizeof found[0]);
    free(eta);
    free(y);
    forget(&rows);
}

/* The two numbers of a row count by their difference: -8, -7, 0.5 and 0, whatever is asked for besides. */
static void two_columns_of_softmax(void **state) {
    (void)state;
    const double eta[] = {9, 1, 9, 2, 0, 0.5, 9, 9}, classes[] = {1, 0, 0, 1};
    kiln_matrix *Eta = dense_matrix(KILN_F64, 4, 2, eta), *y = dense_matrix(KILN_F64, 4, 1, classes);
    const kiln_loss loss = {.kind = KILN_LOSS_SOFTMAX, .y = y};
    for (int curves = 0; curves < 2; curves++) {
        kiln_metrics *metrics = NULL;
        const kiln_metrics_options options = {.curves = curves};
        assert_int_equal(kiln_metrics_of(&metrics, &loss, Eta, &options), KILN_OK);
        assert_true(kiln_metrics_value(metrics, "auc") == 0.25);
        kiln_metrics_free(metrics);
    }
    kiln_matrix_free(Eta);
    kiln_matrix_free(y);
}

/* ------------------------------------------------------------------------------------------ refusals */

static void refused(void **state) {
    (void)state;
    const double numbers[] = {1, 2, 3, 4}, negative[] = {1, -1}, nothing[] = {1, NAN}, falling[] = {1, 0};
    kiln_matrix *Eta = dense_matrix(KILN_F64, 2, 1, numbers), *two = dense_matrix(KILN_F64, 2, 2, numbers),
                *y = dense_matrix(KILN_F64, 2, 1, numbers), *tall = dense_matrix(KILN_F64, 3, 1, numbers),
                *bad = dense_matrix(KILN_F64, 2, 1, negative), *worse = dense_matrix(KILN_F64, 2, 1, nothing),
                *none = dense_matrix(KILN_F64, 2, 0, numbers);
    const struct {
        kiln_status status;
        kiln_loss loss;
        const kiln_matrix *Eta;
        kiln_metrics_options options;
    } cases[] = {
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED}, Eta, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, NULL, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = tall}, Eta, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, two, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y, .weights = tall}, Eta, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, Eta, {.means = tall}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_LOGISTIC, .y = y}, two, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SOFTMAX, .y = y}, Eta, {0}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, two, {.first = 2, .columns = 1}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, two, {.first = -1, .columns = 1}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = y}, two, {.first = 1}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_SQUARED, .y = none}, none, {0}},
        {KILN_ERR_ARGUMENT,
         {.kind = KILN_LOSS_LOGISTIC, .y = y},
         Eta,
         {.classes = numbers, .class_count = 3}},
        {KILN_ERR_ARGUMENT,
         {.kind = KILN_LOSS_LOGISTIC, .y = y},
         Eta,
         {.classes = falling, .class_count = 2}},
        {KILN_ERR_ARGUMENT, {.kind = KILN_LOSS_GLM, .family = (kiln_family)99, .y = y}, Eta, {0}},
        {KILN_ERR_DATA, {.kind = KILN_LOSS_SQUARED, .y = y, .weights = bad}, Eta, {0}},
        {KILN_ERR_DATA, {.kind = KILN_LOSS_LOGISTIC, .y = y, .weights = worse}, Eta, {0}},
        {KILN_ERR_DATA, {.kind = KILN_LOSS_GLM, .family = KILN_POISSON, .y = y, .weights = bad}, Eta, {0}},
    };
    kiln_metrics *metrics = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(kiln_metrics_of(&metrics, &cases[i].loss, cases[i].Eta, &cases[i].options),
                         cases[i].status);
        assert_null(metrics);
    }
    assert_int_equal(kiln_metrics_of(NULL, &cases[2].loss, Eta, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_metrics_of(&metrics, NULL, Eta, NULL), KILN_ERR_ARGUMENT);
    assert_true(isnan(kiln_metrics_value(NULL, "auc")) && isnan(kiln_metrics_part(NULL, 0, "auc")));
    assert_null(kiln_metrics_name(NULL, 0));
    assert_null(kiln_metrics_confusion(NULL, NULL));
    kiln_metrics_free(NULL);
    kiln_matrix *const all[] = {Eta, two, y, tall, bad, worse, none};
    for (int i = 0; i < 7; i++) kiln_matrix_free(all[i]);
}

static void measure_once(void *context) {
    (void)context;
    const double eta[] = {1, 2, 0, 3, 1, 0}, y[] = {0, 1}, offset[] = {0.5, 1};
    kiln_device *own = NULL;
    kiln_matrix *Eta = NULL, *Y = NULL, *O = NULL, *one = NULL;
    kiln_metrics *metrics = NULL;
    STEP(kiln_device_open(&own, "cpu", &(kiln_device_options){.threads = 1}));
    STEP(kiln_matrix_dense(&Eta, own, KILN_F64, 2, 3, eta));
    STEP(kiln_matrix_dense(&one, own, KILN_F64, 2, 1, eta));
    STEP(kiln_matrix_dense(&Y, own, KILN_F64, 2, 1, y));
    STEP(kiln_matrix_dense(&O, own, KILN_F64, 2, 1, offset));
    const kiln_metrics_options options = {.explained = 1, .curves = 1};
    const kiln_loss softmax = {.kind = KILN_LOSS_SOFTMAX, .y = Y},
                    poisson = {.kind = KILN_LOSS_GLM, .family = KILN_POISSON, .y = Y, .offset = O};
    STEP(kiln_metrics_of(&metrics, &softmax, Eta, &options));
    kiln_metrics_free(metrics);
    metrics = NULL;
    STEP(kiln_metrics_of(&metrics, &poisson, one, &options));
    kiln_metrics_free(metrics);
    kiln_matrix_free(Eta);
    kiln_matrix_free(one);
    kiln_matrix_free(Y);
    kiln_matrix_free(O);
    kiln_device_close(own);
}

static void no_memory(void **state) {
    (void)state;
    brutal_memory("metrics", 2, measure_once, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_columns_of_softmax),
                                       cmocka_unit_test(few_rows),
                                       cmocka_unit_test(many_rows),
                                       cmocka_unit_test(on_others),
                                       cmocka_unit_test(close_scores),
                                       cmocka_unit_test(spreads),
                                       cmocka_unit_test(rows_of_no_weight),
                                       cmocka_unit_test(saturated),
                                       cmocka_unit_test(certain),
                                       cmocka_unit_test(curve),
                                       cmocka_unit_test(calibration),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
