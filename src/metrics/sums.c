/* Sums over all rows, in one pass.
 *
 * Rows are cut into parts by their number alone, so that any number of threads finds the same bits; within a
 * part runs of 256 rows become doubles and are added up plainly, in vectors (runs.cpu.h), and what comes of
 * them with compensation. A target's spread about its mean is that of each run about its own, joined by Chan,
 * Golub and LeVeque's formula: a second pass finds the run in the first cache level, and nothing cancels. */
#include "bodies/bodies.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "metrics/metrics.h"

/* The formulas of losses, in double for data of either type: sums of many rows show what a row's float has
 * lost. */
#define real double
#define FN(name) ki_metrics_##name
#include "dialect/losses.h"
#include "dialect/metric_rows.h"
#undef real
#undef FN

enum { PARTS_MOST = 64, ROWS_A_PART = 4096, CONFUSION_MOST = 1 << 22 };

double ki_mean(const struct ki_measured *of, int64_t row, int64_t c) {
    if (of->means.values) return ki_at(&of->means, row * of->columns + c);
    return ki_metrics_mean_row((int)of->loss.kind, (int)of->loss.link, of->loss.link_power,
                               ki_eta(of, row, c));
}

/* ------------------------------------------------------------------------------------------- a run */

/* Weights that are none go into *wrong. */
static void read_weights(struct ki_run *run, bool *wrong, const struct ki_measured *of, int64_t first) {
    if (of->weights.values) {
        of->bodies->metric_read(run->weight, &of->weights, first, 1, run->count);
        for (int64_t i = 0; i < run->count; i++) *wrong |= !(run->weight[i] >= 0);
        return;
    }
    for (int64_t i = 0; i < KI_RUN; i++) run->weight[i] = i < run->count;
}

static void read_predictors(double *to, const struct ki_measured *of, int64_t first, int64_t column,
                            int64_t count) {
    of->bodies->metric_read(to, &of->eta, first * of->wide + of->first + column, of->wide, count);
}

/* Targets of one column, and what they are compared with. */
static void read_target(struct ki_run *run, const struct ki_measured *of, int64_t first, int64_t column) {
    const int64_t k = of->columns;
    of->bodies->metric_read(run->y, &of->y, first * k + column, k, run->count);
    run->given = of->means.values != NULL;
    if (run->given)
        of->bodies->metric_read(run->mean, &of->means, first * k + column, k, run->count);
    else
        read_predictors(run->mean, of, first, column, run->count);
}

static void add_numbers(struct ki_metric_sums *to, struct ki_run *run, const struct ki_measured *of,
                        int64_t first) {
    for (int64_t j = 0; j < of->columns; j++) {
        read_target(run, of, first, j);
        of->bodies->metric_number(&to->numbers[j], run);
    }
}

/* A GLM's only target. */
static void add_deviances(struct ki_metric_sums *to, struct ki_run *run, const struct ki_measured *of,
                          int64_t first) {
    struct ki_judged_sums sums;
    read_target(run, of, first, 0);
    read_predictors(run->eta, of, first, 0, run->count);
    of->bodies->metric_judge(&sums, run, &of->loss, false);
    to->rows.outcomes &= sums.outcomes;
    ki_sum_add(&to->rows.weight, sums.weight);
    ki_sum_add(&to->rows.deviance, sums.deviance);
    ki_sum_add(&to->rows.brier, sums.brier);
    ki_sum_add(&to->rows.right, sums.right);
    of->bodies->metric_number(&to->numbers[0], run);
}

/* ------------------------------------------------------------------------------------------ classes */

static double lost_most(const struct ki_measured *of) {
    const double least = of->options.least_probability;
    return least > 0 ? -log(least) : INFINITY;
}

static void add_two(struct ki_metric_sums *to, struct ki_run *run, const struct ki_measured *of,
                    int64_t first) {
    static const double usual[2] = {0, 1};
    struct ki_two_sums sums;
    double weight = 0;
    of->bodies->metric_read(run->y, &of->y, first, 1, run->count);
    read_predictors(run->eta, of, first, 0, run->count);
    of->bodies->metric_two(&sums, run, of->options.classes ? of->options.classes : usual, lost_most(of));
    for (int cell = 0; cell < 6; cell++) {
        to->confusion[cell] += sums.table[cell / 2][cell % 2];
        weight += sums.table[cell / 2][cell % 2];
    }
    ki_sum_add(&to->rows.weight, weight);
    ki_sum_add(&to->rows.right, sums.table[0][0] + sums.table[1][1]);
    ki_sum_add(&to->rows.lost, ki_has_probabilities(of) ? sums.lost : 0);
    ki_sum_add(&to->rows.brier, ki_has_probabilities(of) ? sums.brier : 0);
}

/* The class with the largest score. */
static int64_t class_taken(const struct ki_measured *of, int64_t row) {
    int64_t best = 0;
    for (int64_t c = 1; c < of->columns; c++)
        if (ki_eta(of, row, c) > ki_eta(of, row, best)) best = c;
    return best;
}

/* Rows of several classes: as many as have their exponentials side by side. */
struct group {
    int64_t first, rows, class[KI_RUN], taken[KI_RUN];
    double own[KI_RUN]; /* eta of the class, less the largest */
    struct ki_metrics_many sums[KI_RUN];
};

enum { EXPONENTIALS = 1024 };

/* The exponentials of all classes, as many columns at a time as there is room for. */
static void add_exponentials(struct group *group, const struct ki_measured *of) {
    const int64_t k = of->columns, most = ki_min(k, EXPONENTIALS);
    double e[EXPONENTIALS];
    for (int64_t c = 0, piece; c < k; c += piece) {
        piece = ki_min(most, k - c);
        for (int64_t r = 0; r < group->rows; r++) {
            const int64_t row = group->first + r;
            const double largest = ki_eta(of, row, group->taken[r]);
            for (int64_t j = 0; j < piece; j++) e[r * piece + j] = ki_eta(of, row, c + j) - largest;
            if (group->class[r] >= c && group->class[r] < c + piece)
                group->own[r] = e[r * piece + group->class[r] - c];
        }
        of->bodies->metric_exp(e, group->rows * piece);
        for (int64_t r = 0; r < group->rows; r++)
            for (int64_t j = 0; j < piece; j++)
                ki_metrics_many_add(&group->sums[r], e[r * piece + j], c + j == group->class[r]);
    }
}

static void add_many(struct ki_metric_sums *to, struct ki_run *run, const struct ki_measured *of,
                     int64_t first) {
    const int64_t k = of->columns, room = ki_max(1, EXPONENTIALS / k);
    const double most = lost_most(of);
    double weight = 0, lost = 0, brier = 0, right = 0;
    struct group group;
    for (int64_t at = 0; at < run->count; at += group.rows) {
        group.first = first + at;
        group.rows = ki_min(room, run->count - at);
        for (int64_t r = 0; r < group.rows; r++) {
            group.class[r] = ki_class(of, group.first + r);
            group.taken[r] = class_taken(of, group.first + r);
            group.sums[r] = (struct ki_metrics_many){0, 0, 0};
            group.own[r] = 0;
        }
        if (ki_has_probabilities(of)) add_exponentials(&group, of);
        for (int64_t r = 0; r < group.rows; r++) {
            const double s = run->weight[at + r];
            const int64_t class = group.class[r];
            double missed = 0, loss = 0;
            if (s == 0) continue;
            if (ki_has_probabilities(of))
                loss = ki_metrics_lost_of_many(&group.sums[r], group.own[r], class >= 0, &missed);
            weight += s;
            right += class == group.taken[r] ? s : 0;
            to->confusion[(class < 0 ? of->classes : class) * of->classes + group.taken[r]] += s;
            lost += s * (loss > most ? most : loss);
            brier += s * missed;
        }
    }
    ki_sum_add(&to->rows.weight, weight);
    ki_sum_add(&to->rows.lost, lost);
    ki_sum_add(&to->rows.brier, brier);
    ki_sum_add(&to->rows.right, right);
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
    struct ki_metric_sums *sums; /* of each */
    int count;
};

static void take_part(void *user, int part) {
    const struct parts *parts = user;
    const struct ki_measured *of = parts->of;
    struct ki_metric_sums *to = &parts->sums[part];
    const int64_t end = ki_part_begin(of->rows, part + 1, parts->count);
    struct ki_run run;
    for (int64_t i = ki_part_begin(of->rows, part, parts->count); i < end; i += KI_RUN) {
        run.count = ki_min(KI_RUN, end - i);
        read_weights(&run, &to->rows.wrong, of, i);
        if (of->classes)
            (of->columns == 1 ? add_two : add_many)(to, &run, of, i);
        else if (of->loss.kind == KILN_LOSS_GLM)
            add_deviances(to, &run, of, i);
        else
            add_numbers(to, &run, of, i);
    }
}

static void join_sum(struct ki_sum *to, const struct ki_sum *from) {
    to->lost += from->lost;
    ki_sum_add(to, from->sum);
}

static void join(struct ki_metric_sums *to, const struct ki_metric_sums *from, const struct ki_measured *of) {
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

kiln_status ki_sums_take(struct ki_metric_sums *sums, const struct ki_measured *of) {
    kiln_status status = KILN_OK;
    if (of->on) return ki_sums_take_gpu(sums, of);
    const int count = parts_of(of);
    const int64_t numbers = of->classes ? 0 : of->columns, cells = of->classes ? confusion_size(of) : 0;
    struct ki_number_sums *all = ki_calloc((size_t)(count * numbers) * sizeof *all);
    double *tables = ki_calloc((size_t)(count * cells) * sizeof *tables);
    struct ki_metric_sums *parts = ki_calloc((size_t)count * sizeof *parts);
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

/* The mean is an identity link's predictor. */
static void take_level(void *user, int part) {
    struct level *level = user;
    const struct ki_measured *of = level->of;
    const int64_t end = ki_part_begin(of->rows, part + 1, level->count);
    struct ki_judged_sums sums;
    struct ki_run run = {.given = true};
    bool wrong = false;
    kiln_loss loss = of->loss;
    loss.link = KILN_LINK_IDENTITY;
    for (int64_t i = 0; i < KI_RUN; i++) run.eta[i] = run.mean[i] = level->mean;
    for (int64_t i = ki_part_begin(of->rows, part, level->count); i < end; i += KI_RUN) {
        run.count = ki_min(KI_RUN, end - i);
        read_weights(&run, &wrong, of, i);
        of->bodies->metric_read(run.y, &of->y, i, 1, run.count);
        of->bodies->metric_judge(&sums, &run, &loss, true);
        ki_sum_add(&level->sums[part], sums.deviance);
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
