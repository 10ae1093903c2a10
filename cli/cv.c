/* Cross-validation along a path of penalties: the path, from the strongest to the weakest, and the choice.
 * cv_train.c has the models. */
#include "cv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"

bool cv_wanted(const struct settings *settings) {
    return settings->folds > 0 || settings->l2.count > 1 || settings->C.count > 1 || settings->l1.count > 1;
}

const char *cv_penalty_name(const struct validation *validation) {
    return validation->sparse ? "l1" : "l2";
}

double cv_strength(const struct validation *validation, int64_t i) {
    const struct penalty *penalty = &validation->tried[i].penalty;
    return validation->sparse ? penalty->l1 : penalty->l2;
}

void cv_free(struct validation *validation) {
    for (int64_t i = 0; validation->tried && i < validation->count; i++) free(validation->tried[i].score);
    free(validation->tried);
    free(validation->paths);
    if (!validation->numbers) free(validation->held_out);
    free(validation->numbers);
    free(validation->fold);
    *validation = (struct validation){0};
}

/* ----------------------------------------------------------------------------------------- the path */

/* Only one of the two differs along a path. */
static int by_strength(const void *a, const void *b) {
    const struct penalty *p = &((const struct tried *)a)->penalty, *q = &((const struct tried *)b)->penalty;
    const double left = p->l1 != q->l1 ? p->l1 : p->l2, right = p->l1 != q->l1 ? q->l1 : q->l2;
    return (left < right) - (left > right);
}

/* A value of the list, or equal factors from end to end, the ends exact. */
static double step_of(const struct range *range, int64_t i) {
    if (range->listed) return range->list[i];
    if (i == 0) return range->from;
    if (i == range->count - 1) return range->to;
    const double share = (double)i / (double)(range->count - 1);
    return range->from * pow(range->to / range->from, share);
}

static int make_path(struct validation *validation, const struct training *job) {
    const struct settings *settings = job->settings;
    const struct range *ridge = settings->C.count ? &settings->C : &settings->l2;
    const struct range *range = validation->sparse ? &settings->l1 : ridge;
    validation->count = range->count > 0 ? range->count : 1;
    validation->tried = calloc((size_t)validation->count, sizeof *validation->tried);
    bool failed = !validation->tried;
    for (int64_t i = 0; !failed && i < validation->count; i++) {
        struct tried *tried = &validation->tried[i];
        tried->penalty = job->penalty;
        if (range->count > 1) {
            const double value = step_of(range, i);
            if (validation->sparse)
                tried->penalty.l1 = value;
            else
                tried->penalty.l2 = settings->C.count ? job->algorithm->l2_of_C(value) : value;
        }
        tried->score = calloc((size_t)validation->folds + 1, sizeof *tried->score);
        failed = !tried->score;
    }
    if (failed) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the path");
    qsort(validation->tried, (size_t)validation->count, sizeof *validation->tried, by_strength);
    return 0;
}

/* ---------------------------------------------------------------------------------------- choosing */

static void average(struct tried *tried, int64_t folds) { /* folds that are finished; 0: none are wanted */
    double sum = 0, squares = 0;
    const int64_t count = folds > 0 ? folds : 1;
    for (int64_t f = 0; f < count; f++) sum += tried->score[f];
    tried->mean = sum / (double)count;
    for (int64_t f = 0; f < count; f++)
        squares += (tried->score[f] - tried->mean) * (tried->score[f] - tried->mean);
    tried->error = folds > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : NAN;
    if (!isfinite(tried->mean)) tried->mean = tried->error = NAN;
}

/* A value whose metric is no number in one fold has no mean, and is not chosen: what is there of the others
 * says nothing of it. */
static bool choose(struct validation *validation) {
    const double sign = validation->higher_is_better ? -1 : 1;
    int64_t best = -1;
    for (int64_t i = 0; i < validation->count; i++)
        average(&validation->tried[i], validation->folds ? validation->finished : 0);
    for (int64_t i = 0; i < validation->count; i++)
        if (!isnan(validation->tried[i].mean) &&
            (best < 0 || sign * validation->tried[i].mean < sign * validation->tried[best].mean))
            best = i;
    validation->best = validation->one_error = best < 0 ? 0 : best;
    if (best < 0) return false;
    const struct tried *least = &validation->tried[best];
    for (int64_t i = best - 1; i >= 0; i--)
        if (sign * validation->tried[i].mean <= sign * least->mean + least->error) validation->one_error = i;
    return true;
}

/* "l2 0.1 in fold 2, 3; l2 1 in fold 2; ..." of the values without a mean. Returns how many there are. */
static int64_t list_failed(char *text, size_t room, const struct validation *validation) {
    enum { SHOWN = 4 };
    int64_t failed = 0;
    size_t used = 0;
    *text = '\0';
    for (int64_t i = 0; i < validation->count; i++) {
        const struct tried *tried = &validation->tried[i];
        const char *before = " in fold ";
        if (!isnan(tried->mean) || failed++ >= SHOWN) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %s", failed > 1 ? "; " : "",
                                 cv_penalty_name(validation), text_number(cv_strength(validation, i)));
        for (int64_t f = 0; f < validation->finished && used + 40 < room; f++) {
            if (isfinite(tried->score[f])) continue;
            used += (size_t)snprintf(text + used, room - used, "%s%lld", before, (long long)f + 1);
            before = ", ";
        }
        if (used + 80 >= room) break;
    }
    if (failed > SHOWN && used < room) snprintf(text + used, room - used, "; ...");
    return failed;
}

static int by_number(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One fold whose metric is a million times the others' decides alone. */
static void warn_outlier(const struct validation *validation) {
    const struct tried *best = &validation->tried[validation->best];
    const int64_t folds = validation->finished;
    double *sorted = malloc((size_t)folds * sizeof *sorted + 1);
    for (int64_t f = 0; sorted && f < folds; f++) sorted[f] = fabs(best->score[f]);
    if (sorted) qsort(sorted, (size_t)folds, sizeof *sorted, by_number);
    for (int64_t f = 0; sorted && folds > 2 && f < folds; f++)
        if (fabs(best->score[f]) > 1e6 * sorted[folds / 2] && sorted[folds / 2] > 0)
            say_error("kiln: warning: %s is %s in fold %lld and %s in the median: that fold decides alone",
                      validation->metric, text_number(best->score[f]), (long long)f + 1,
                      text_number(sorted[folds / 2]));
    free(sorted);
}

/* Tells what is known of all values, and whether one can be chosen. */
static int judge_choice(const struct validation *validation, bool found) {
    char text[600];
    if (!validation->folds) return 0;
    const int64_t failed = list_failed(text, sizeof text, validation);
    if (!found)
        return fail_with(KILN_ERR_DATA, WORKING, "another --metric, or a smaller --cv",
                         "no value of the penalty has a finite %s in every fold: %s", validation->metric,
                         text);
    if (failed)
        say_error("kiln: warning: %s is no finite number in some folds, so that %s cannot be chosen: %s",
                  validation->metric, text_plural(failed, "value"), text);
    warn_outlier(validation);
    return 0;
}

static int64_t chosen(const struct validation *validation, const struct settings *settings) {
    const bool cautious = settings->select && strcmp(settings->select, "one-se") == 0;
    return cautious ? validation->one_error : validation->best;
}

/* Values that were finished before an interruption are kept and told; the model is not fitted then. */
static int keep_finished(struct run *run, struct training *job, struct validation *validation) {
    const char *output = run->settings->output;
    if (validation->folds == 0) validation->count = validation->finished;
    const char *hint = validation->numbers && run->settings->checkpoint
                           ? "the same command with --resume and the checkpoint's name goes on from there"
                           : "";
    if (validation->finished == 0 || validation->count == 0)
        return fail_with(KILN_ERR_CANCELLED, WORKING, hint,
                         "interrupted before the first %s was finished; no model was written",
                         validation->folds ? "fold" : "value");
    const bool found = choose(validation);
    progress_end();
    if (validation->folds)
        say_error("kiln: interrupted after %lld of %lld folds; no model was fitted%s%s",
                  (long long)validation->finished, (long long)validation->folds,
                  output ? " and nothing is in " : "", output ? output : "");
    else
        say_error("kiln: interrupted after %s", text_plural(validation->finished, "value"));
    if (*hint) say_error("hint: %s", hint);
    int code = judge_choice(validation, found);
    if (!code) code = cv_print_path(run, job, validation);
    if (!code) code = cv_held_out_write(validation, job, chosen(validation, job->settings));
    return code ? code : EXIT_INTERRUPTED;
}

int cv_run(struct run *run, struct training *job, struct validation *validation) {
    const struct settings *settings = job->settings;
    *validation = (struct validation){
        .folds = settings->folds, .metric = settings->metric ? settings->metric : job->algorithm->score(job)};
    validation->sparse =
        settings->l1.count > 1 || (settings->l1.count && !settings->l2.count && !settings->C.count);
    validation->higher_is_better = metrics_rises(validation->metric);
    kiln_matrix *errors = job->errors; /* wanted of the last model only */
    job->errors = NULL;
    int code = make_path(validation, job);
    if (!code) code = cv_train(run, job, validation);
    if (code == EXIT_INTERRUPTED) code = keep_finished(run, job, validation);
    if (!code) code = judge_choice(validation, choose(validation));
    if (!code) job->penalty = validation->tried[chosen(validation, settings)].penalty;
    if (!code) code = cv_held_out_write(validation, job, chosen(validation, settings));
    job->errors = errors;
    return code;
}
