/* Sums over all rows, in one pass.
 *
 * Rows are cut into parts by their number alone, so that any number of threads finds the same bits; within a
 * part runs of 256 rows are added up plainly, and what comes of them with compensation. A target's spread
 * about its mean is that of each run about its own, joined by Chan, Golub and LeVeque's formula: a second
 * pass finds the run in the first cache level, and nothing cancels. */
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "metrics/metrics.h"

/* The formulas of losses, in double for data of either type: sums of many rows show what a row's float has
 * lost. */
#define real double
#define FN(name) ki_metrics_##name
#include "dialect/metric_rows.h"
#undef real
#undef FN

enum { RUN = 256, PARTS_MOST = 64, ROWS_A_PART = 4096, CONFUSION_MOST = 1 << 22 };

double ki_mean(const struct ki_measured *of, int64_t row, int64_t c) {
    if (of->means.values) return ki_at(&of->means, row * of->columns + c);
    return ki_metrics_mean_row((int)of->loss.kind, (int)of->loss.link, of->loss.link_power,
                               ki_eta(of, row, c));
}

/* ----------------------------------------------------------------------------------------- numbers */

/* Rows [first, end), a run of them. The mean is taken about the first target that counts: that of equal ones
 * is that one, and what they leave is 0, not rounding. */
static void add_number(struct ki_number_sums *to, const struct ki_measured *of, int64_t target, int64_t first,
                       int64_t end) {
    const int64_t k = of->columns;
    double square = 0, absolute = 0, error = 0, about = 0;
    struct ki_variation run = {0, 0, 0, 0};
    for (int64_t i = first; i < end; i++) {
        const double s = ki_weight(of, i), y = ki_at(&of->y, i * k + target);
        if (s == 0) continue;
        const double e = y - ki_mean(of, i, target);
        if (run.weight == 0) run.level = y;
        run.weight += s;
        square += s * e * e;
        absolute += s * fabs(e);
        error -= s * e;
        about += s * (y - run.level);
    }
    run.above = run.weight > 0 ? about / run.weight : 0;
    for (int64_t i = first; i < end; i++) {
        const double s = ki_weight(of, i), off = ki_at(&of->y, i * k + target) - run.level - run.above;
        run.spread += s == 0 ? 0 : s * off * off;
    }
    ki_sum_add(&to->square, square);
    ki_sum_add(&to->absolute, absolute);
    ki_sum_add(&to->error, error);
    ki_variation_join(&to->y, &run);
}

/* ------------------------------------------------------------------------------------------ a GLM */

static double unit_deviance(const kiln_loss *loss, kiln_range range, double y, double eta, double mean) {
    return ki_metrics_unit_deviance((int)loss->family, (int)loss->link, loss->parameter, loss->link_power,
                                    range.least, range.most, range.open, y, eta, mean);
}

static void add_deviances(struct ki_row_sums *to, const struct ki_measured *of, int64_t first, int64_t end) {
    const kiln_loss *loss = &of->loss;
    const kiln_range range = kiln_family_range(loss->family, loss->parameter);
    double weight = 0, deviance = 0, brier = 0, right = 0;
    for (int64_t i = first; i < end; i++) {
        const double s = ki_weight(of, i), y = ki_at(&of->y, i);
        to->outcomes &= y == 0 || y == 1;
        to->wrong |= !(s >= 0);
        if (s == 0) continue;
        const double mean = ki_mean(of, i, 0);
        weight += s;
        deviance += s * unit_deviance(loss, range, y, ki_eta(of, i, 0), mean);
        brier += s * (mean - y) * (mean - y);
        right += (mean > 0.5) == (y > 0) ? s : 0;
    }
    ki_sum_add(&to->weight, weight);
    ki_sum_add(&to->deviance, deviance);
    ki_sum_add(&to->brier, brier);
    ki_sum_add(&to->right, right);
}

/* ------------------------------------------------------------------------------------------ classes */

static double lost_of_many(const struct ki_measured *of, int64_t row, int64_t class, int64_t largest,
                           double *brier) {
    const int64_t k = of->columns;
    const double most = ki_eta(of, row, largest);
    struct ki_metrics_many sums = {0, 0, 0};
    for (int64_t c = 0; c < k; c++) ki_metrics_many_add(&sums, ki_eta(of, row, c) - most, c == class);
    const double own = class < 0 ? 0 : ki_eta(of, row, class) - most;
    return ki_metrics_lost_of_many(&sums, own, class >= 0, brier);
}

/* The class with the largest score: of one column by its sign. */
static int64_t class_taken(const struct ki_measured *of, int64_t row) {
    const int64_t k = of->columns;
    int64_t best = 0;
    if (k == 1) return ki_eta(of, row, 0) > 0;
    for (int64_t c = 1; c < k; c++)
        if (ki_eta(of, row, c) > ki_eta(of, row, best)) best = c;
    return best;
}

static void add_classes(struct ki_row_sums *to, double *confusion, const struct ki_measured *of,
                        int64_t first, int64_t end) {
    const bool probable = ki_has_probabilities(of);
    const double least = of->options.least_probability, most = least > 0 ? -log(least) : INFINITY;
    double weight = 0, lost = 0, brier = 0, right = 0;
    for (int64_t i = first; i < end; i++) {
        const double s = ki_weight(of, i);
        to->wrong |= !(s >= 0);
        if (s == 0) continue;
        const int64_t class = ki_class(of, i), taken = class_taken(of, i);
        double missed = 0, loss = 0;
        weight += s;
        right += class == taken ? s : 0;
        confusion[(class < 0 ? of->classes : class) * of->classes + taken] += s;
        if (!probable) continue;
        loss = of->columns == 1 ? ki_metrics_lost_of_two(ki_eta(of, i, 0), (int)class, &missed)
                                : lost_of_many(of, i, class, taken, &missed);
        lost += s * (loss > most ? most : loss);
        brier += s * missed;
    }
    ki_sum_add(&to->weight, weight);
    ki_sum_add(&to->lost, lost);
    ki_sum_add(&to->brier, brier);
    ki_sum_add(&to->right, right);
}

/* -------------------------------------------------------------------------------------------- parts */

static int64_t confusion_size(const struct ki_measured *of) {
    return (of->classes + 1) * of->classes;
}

static int parts_of(const struct ki_measured *of) {
    const int64_t room = of->classes ? ki_max(1, CONFUSION_MOST / confusion_size(of)) : PARTS_MOST;
    return (int)ki_max(1, ki_min(ki_min(PARTS_MOST, room), of->rows / ROWS_A_PART));
}

struct parts {
    const struct ki_measured *of;
    struct ki_sums *sums; /* of each */
    int count;
};

static void take_part(void *user, int part) {
    const struct parts *parts = user;
    const struct ki_measured *of = parts->of;
    struct ki_sums *to = &parts->sums[part];
    const int64_t end = ki_part_begin(of->rows, part + 1, parts->count);
    for (int64_t i = ki_part_begin(of->rows, part, parts->count); i < end; i += RUN) {
        const int64_t until = ki_min(i + RUN, end);
        if (of->classes) add_classes(&to->rows, to->confusion, of, i, until);
        if (of->loss.kind == KILN_LOSS_GLM) add_deviances(&to->rows, of, i, until);
        for (int64_t j = 0; to->numbers && j < of->columns; j++) add_number(&to->numbers[j], of, j, i, until);
        for (int64_t r = i; r < until && to->numbers; r++) to->rows.wrong |= !(ki_weight(of, r) >= 0);
    }
}

static void join_sum(struct ki_sum *to, const struct ki_sum *from) {
    to->lost += from->lost;
    ki_sum_add(to, from->sum);
}

static void join(struct ki_sums *to, const struct ki_sums *from, const struct ki_measured *of) {
    join_sum(&to->rows.weight, &from->rows.weight);
    join_sum(&to->rows.deviance, &from->rows.deviance);
    join_sum(&to->rows.lost, &from->rows.lost);
    join_sum(&to->rows.brier, &from->rows.brier);
    join_sum(&to->rows.right, &from->rows.right);
    to->rows.outcomes &= from->rows.outcomes;
    to->rows.wrong |= from->rows.wrong;
    for (int64_t j = 0; to->numbers && j < of->columns; j++) {
        join_sum(&to->numbers[j].square, &from->numbers[j].square);
        join_sum(&to->numbers[j].absolute, &from->numbers[j].absolute);
        join_sum(&to->numbers[j].error, &from->numbers[j].error);
        ki_variation_join(&to->numbers[j].y, &from->numbers[j].y);
    }
    for (int64_t e = 0; to->confusion && e < confusion_size(of); e++) to->confusion[e] += from->confusion[e];
}

kiln_status ki_sums_take(struct ki_sums *sums, const struct ki_measured *of) {
    kiln_status status = KILN_OK;
    if (of->on) return ki_sums_take_gpu(sums, of);
    const int count = parts_of(of);
    const int64_t numbers = of->classes ? 0 : of->columns, cells = of->classes ? confusion_size(of) : 0;
    struct ki_number_sums *all = ki_calloc((size_t)(count * numbers) * sizeof *all);
    double *tables = ki_calloc((size_t)(count * cells) * sizeof *tables);
    struct ki_sums *parts = ki_calloc((size_t)count * sizeof *parts);
    if (!all || !tables || !parts) {
        status = ki_fail_nomem((size_t)(count * (cells + numbers)) * sizeof(double), "metrics");
        goto done;
    }
    for (int p = 0; p < count; p++) {
        parts[p].rows.outcomes = true;
        parts[p].numbers = numbers ? all + p * numbers : NULL;
        parts[p].confusion = cells ? tables + p * cells : NULL;
    }
    ki_parallel(of->threads, count, take_part, &(struct parts){of, parts, count});
    for (int p = 1; p < count; p++) join(&parts[0], &parts[p], of);
    *sums = parts[0];
    sums->numbers = all; /* the first part's are the first */
    sums->confusion = tables;
    all = NULL;
    tables = NULL;
done:
    ki_free(all);
    ki_free(tables);
    ki_free(parts);
    return status;
}

/* ---------------------------------------------------------------------------------- the best intercept */

struct level {
    const struct ki_measured *of;
    double mean;
    int count;
    struct ki_sum sums[PARTS_MOST];
};

static void take_level(void *user, int part) {
    struct level *level = user;
    const struct ki_measured *of = level->of;
    const kiln_range range = kiln_family_range(of->loss.family, of->loss.parameter);
    const int64_t end = ki_part_begin(of->rows, part + 1, level->count);
    kiln_loss loss = of->loss;
    loss.link = KILN_LINK_IDENTITY;
    for (int64_t i = ki_part_begin(of->rows, part, level->count); i < end; i++) {
        const double s = ki_weight(of, i);
        if (s == 0) continue;
        ki_sum_add(&level->sums[part],
                   s * unit_deviance(&loss, range, ki_at(&of->y, i), level->mean, level->mean));
    }
}

kiln_status ki_deviance_at(double *deviance, const struct ki_measured *of, double mean) {
    struct level level = {.of = of, .mean = mean, .count = parts_of(of)};
    if (of->on) return ki_deviance_at_gpu(deviance, of, mean);
    ki_parallel(of->threads, level.count, take_level, &level);
    for (int p = 1; p < level.count; p++) join_sum(&level.sums[0], &level.sums[p]);
    *deviance = ki_sum_of(&level.sums[0]);
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------- probabilities */

struct softmax {
    const struct ki_measured *of;
    double *to;
};

static void take_probabilities(void *user, int64_t first, int64_t end) {
    const struct softmax *softmax = user;
    const int64_t k = softmax->of->columns;
    for (int64_t i = first; i < end; i++) {
        double *p = softmax->to + i * k;
        for (int64_t c = 0; c < k; c++) p[c] = ki_eta(softmax->of, i, c);
        if (k <= INT32_MAX) ki_metrics_softmax_row(p, (int)k, 0);
    }
}

double *ki_probabilities(const struct ki_measured *of) {
    enum { GRAIN = 256 };
    struct softmax softmax = {of, ki_alloc((size_t)(of->rows * of->columns) * sizeof(double))};
    if (softmax.to) ki_parallel_ranges(of->threads, of->rows, GRAIN, take_probabilities, &softmax);
    return softmax.to;
}
