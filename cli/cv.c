/* k-fold cross-validation along a path of penalties.
 *
 * A fold is a weight vector: rows left out weigh 0, so X is never copied and every fold trains on the same matrix. From
 * the strongest penalty to the weakest each solution starts the next, which is near. */
#include "cv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
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
    free(validation->held_out);
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

/* The parts of a validation that last for all of it. */
struct work {
    struct run *run;
    struct training *job;
    struct validation *validation;
    double *base, *inside; /* weights: of the rows; of those held out, 0 for others */
    double *weighed;       /* the latter, those that are not 0 */
    kiln_matrix *weights;  /* of those trained on */
    double *buffer;
    double started;
    kiln_control control;
};

/* Sets both weight vectors for the f-th fold. */
static int split(struct work *work, int64_t f) {
    const int64_t rows = kiln_matrix_rows(work->weights);
    const bool single = kiln_matrix_type(work->weights) == KILN_F32;
    for (int64_t i = 0; i < rows; i++) {
        const double weight = work->base ? work->base[i] : 1;
        const bool held_out = work->validation->fold[i] == f;
        work->inside[i] = held_out ? weight : 0;
        if (single)
            ((float *)(void *)work->buffer)[i] = held_out ? 0 : (float)weight;
        else
            work->buffer[i] = held_out ? 0 : weight;
    }
    return kiln_matrix_set(work->weights, work->buffer) == KILN_OK ? 0 : fail_library(WORKING);
}

static int begin_at_zero(const struct training *job) {
    kiln_status status = kiln_fill(job->W, 0);
    if (status == KILN_OK && job->b) status = kiln_fill(job->b, 0);
    return status == KILN_OK ? 0 : fail_library(WORKING);
}

static int take_metrics(struct validation *validation, struct tried *tried, const struct metrics *metrics,
                        int64_t f) {
    tried->score[f] = metrics_get(metrics, validation->metric);
    bool known = false;
    for (int i = 0; i < metrics->count; i++) {
        tried->latest.metrics[i] = metrics->list[i].value;
        validation->metrics[i] = metrics->list[i];
        known |= strcmp(metrics->list[i].key, validation->metric) == 0;
    }
    validation->metric_count = metrics->count;
    if (known) return 0;
    char words[200] = "they have";
    for (int i = 0; i < metrics->count; i++) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s %s", i ? "," : "", metrics->list[i].key);
    }
    return fail_with(KILN_ERR_ARGUMENT, WORKING, words, "--metric %s: these models have none",
                     validation->metric);
}

static void finish(struct tried *tried) {
    for (int i = 0; i < METRICS_MOST; i++) tried->sum.metrics[i] += tried->latest.metrics[i];
    tried->sum.iterations += tried->latest.iterations;
    tried->sum.nonzeros += tried->latest.nonzeros;
    tried->sum.unconverged |= tried->latest.unconverged;
}

/* Leaves of what was predicted the rows that are held out, and their weights in work->weighed: metrics sort and add up no others. */
static void keep_held_out(struct work *work, struct fitted *fitted) {
    const struct training *job = work->job;
    const size_t columns = (size_t)kiln_matrix_cols(job->W),
                 targets = (size_t)kiln_matrix_cols(kiln_data_y(job->data));
    size_t count = 0;
    for (int64_t i = 0; i < fitted->rows; i++) {
        const size_t row = (size_t)i;
        if (work->inside[i] == 0) continue;
        memmove(fitted->scores + count * columns, fitted->scores + row * columns,
                columns * sizeof *fitted->scores);
        memmove(fitted->means + count * columns, fitted->means + row * columns,
                columns * sizeof *fitted->means);
        memmove(fitted->truth + count * targets, fitted->truth + row * targets,
                targets * sizeof *fitted->truth);
        work->weighed[count++] = work->inside[i];
    }
    if (count > 0)
        fitted->rows = (int64_t)count;
    else /* a fold without weight: metrics say so */
        memcpy(work->weighed, work->inside, (size_t)fitted->rows * sizeof *work->weighed);
}

static int try_value(struct work *work, struct tried *tried, int64_t f, bool warm) {
    struct training *job = work->job;
    const bool folded = work->validation->folds > 0;
    const struct problem problem = {tried->penalty, folded ? work->weights : job->weights, warm,
                                    work->control};
    kiln_report report = {0};
    struct metrics metrics = {0};
    struct fitted fitted = {0};
    int code = train_solve(work->run, job, &problem, &report);
    if (!code && report.stopped_by == KILN_STOP_CANCELLED) code = EXIT_INTERRUPTED;
    if (!code) code = train_predict(&fitted, job);
    if (!code && folded) {
        cv_held_out_keep(work->validation, job, tried - work->validation->tried, &fitted, work->inside);
        keep_held_out(work, &fitted);
    }
    if (!code) code = train_judge(&metrics, job, &fitted, folded ? work->weighed : fitted.weights);
    if (!code) code = take_metrics(work->validation, tried, &metrics, f);
    if (!code) {
        tried->latest.iterations = report.iterations;
        tried->latest.unconverged = !report.converged;
        tried->objective = report.objective;
    }
    metrics_free(&metrics);
    train_forget(&fitted);
    kiln_report_free(&report);
    return code;
}

/* Of all values of a path, where a picture is wanted that has them; more than that no picture shows. */
static int allocate_paths(struct validation *validation, const struct training *job) {
    enum { PATHS_MOST = 1 << 24 };
    const int64_t size = kiln_matrix_rows(job->W) * kiln_matrix_cols(job->W);
    if (!job->settings->plot || validation->folds > 0) return 0;
    if (size > PATHS_MOST / validation->count) {
        say("the picture leaves out the paths of the coefficients: there are %s", text_count(size));
        return 0;
    }
    validation->path_size = size;
    validation->paths = calloc((size_t)(validation->count * size), sizeof *validation->paths);
    return validation->paths ? 0 : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the paths");
}

static int measure_coefficients(struct validation *validation, struct tried *tried,
                                const struct training *job) {
    int code = 0;
    double *values = values_of(job->W, &code), largest = 0, sum = 0;
    const int64_t count = code ? 0 : kiln_matrix_rows(job->W) * kiln_matrix_cols(job->W);
    tried->latest.nonzeros = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(values[i]));
    for (int64_t i = 0; i < count; i++) {
        const double share = largest > 0 ? values[i] / largest : 0; /* whose square does not overflow */
        sum += share * share;
        tried->latest.nonzeros += values[i] != 0;
    }
    tried->norm = largest * sqrt(sum);
    if (!code && validation->paths)
        memcpy(validation->paths + (tried - validation->tried) * count, values,
               (size_t)count * sizeof *values);
    free(values);
    return code;
}

static int walk(struct work *work, int64_t f) {
    struct validation *validation = work->validation;
    const bool folded = validation->folds > 0;
    const double start = clock_seconds();
    int code = folded ? split(work, f) : 0;
    if (!code && !work->job->warm) code = begin_at_zero(work->job);
    for (int64_t i = 0; !code && i < validation->count; i++) {
        struct tried *tried = &validation->tried[i];
        const double began = clock_seconds();
        talk_step("training", f * validation->count + i, validation->count * (folded ? validation->folds : 1),
                  began - work->started);
        code = try_value(work, tried, f, i > 0 || work->job->warm);
        if (!code && (!folded || validation->sparse))
            code = measure_coefficients(validation, tried, work->job);
        if (code || folded) continue;
        finish(tried);
        validation->finished++;
        say("%s %s: %s in %s", cv_penalty_name(validation), text_number(cv_strength(validation, i)),
            text_plural(tried->latest.iterations, "iteration"), text_seconds(clock_seconds() - began));
    }
    if (!code && folded)
        say("fold %lld of %lld: %s in %s", (long long)f + 1, (long long)validation->folds,
            text_plural(validation->count, "value"), text_seconds(clock_seconds() - start));
    return code;
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
}

static void choose(struct validation *validation) {
    const double sign = validation->higher_is_better ? -1 : 1;
    for (int64_t i = 0; i < validation->count; i++)
        average(&validation->tried[i], validation->folds ? validation->finished : 0);
    for (int64_t i = 1; i < validation->count; i++)
        if (sign * validation->tried[i].mean < sign * validation->tried[validation->best].mean)
            validation->best = i;
    const struct tried *best = &validation->tried[validation->best];
    while (sign * validation->tried[validation->one_error].mean > sign * best->mean + best->error)
        validation->one_error++;
}

static int64_t chosen(const struct validation *validation, const struct settings *settings) {
    const bool cautious = settings->select && strcmp(settings->select, "one-se") == 0;
    return cautious ? validation->one_error : validation->best;
}

static int allocate(struct work *work) {
    struct training *job = work->job;
    const kiln_matrix *X = kiln_data_X(job->data);
    const int64_t rows = kiln_matrix_rows(X), folds = work->validation->folds;
    int code = 0;
    work->validation->fold = malloc((size_t)rows * sizeof *work->validation->fold);
    work->inside = malloc((size_t)rows * sizeof *work->inside);
    work->weighed = malloc((size_t)rows * sizeof *work->weighed);
    work->buffer = malloc((size_t)rows * sizeof *work->buffer);
    if (!work->validation->fold || !work->inside || !work->weighed || !work->buffer)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the folds");
    if (job->weights && !(work->base = values_of(job->weights, &code))) return code;
    if (kiln_matrix_dense(&work->weights, work->run->device, kiln_matrix_type(X), rows, 1, NULL) != KILN_OK)
        return fail_library(WORKING);
    code = cv_deal(work->validation->fold, job, folds);
    return code ? code : cv_held_out_new(work->validation, job);
}

static bool higher_is_better(const char *metric) {
    return strcmp(metric, "accuracy") == 0 || strcmp(metric, "auc") == 0 || strcmp(metric, "r2") == 0;
}

/* What was finished before an interruption is kept and told; the model is not fitted then. */
static int keep_finished(struct run *run, struct training *job, struct validation *validation) {
    const char *output = run->settings->output;
    if (validation->folds == 0) validation->count = validation->finished;
    if (validation->finished == 0 || validation->count == 0)
        return fail_with(KILN_ERR_CANCELLED, WORKING, "",
                         "interrupted before the first %s was finished; no model was written",
                         validation->folds ? "fold" : "value");
    choose(validation);
    progress_end();
    if (validation->folds)
        say_error("kiln: interrupted after %lld of %lld folds; no model was fitted%s%s",
                  (long long)validation->finished, (long long)validation->folds,
                  output ? " and nothing is in " : "", output ? output : "");
    else
        say_error("kiln: interrupted after %s", text_plural(validation->finished, "value"));
    int code = cv_tell_path(run, job, validation);
    if (!code) code = cv_held_out_write(validation, job, chosen(validation, job->settings));
    return code ? code : EXIT_INTERRUPTED;
}

int cv_run(struct run *run, struct training *job, struct validation *validation) {
    const struct settings *settings = job->settings;
    *validation = (struct validation){
        .folds = settings->folds, .metric = settings->metric ? settings->metric : job->algorithm->score(job)};
    validation->sparse =
        settings->l1.count > 1 || (settings->l1.count && !settings->l2.count && !settings->C.count);
    validation->higher_is_better = higher_is_better(validation->metric);
    struct work work = {.run = run,
                        .job = job,
                        .validation = validation,
                        .started = clock_seconds(),
                        .control = talk_silent_control()};
    kiln_matrix *errors = job->errors; /* wanted of the last model only */
    job->errors = NULL;
    int code = make_path(validation, job);
    if (!code) code = validation->folds > 0 ? allocate(&work) : allocate_paths(validation, job);
    for (int64_t f = 0; !code && f < (validation->folds > 0 ? validation->folds : 1); f++) {
        code = walk(&work, f);
        if (code || !validation->folds) break;
        for (int64_t i = 0; i < validation->count; i++) finish(&validation->tried[i]);
        validation->finished++;
    }
    if (code == EXIT_INTERRUPTED) code = keep_finished(run, job, validation);
    if (!code) choose(validation);
    if (!code) job->penalty = validation->tried[chosen(validation, settings)].penalty;
    if (!code) code = cv_held_out_write(validation, job, chosen(validation, settings));
    if (!code && validation->folds > 0) code = begin_at_zero(job);
    job->errors = errors;
    free(work.base);
    free(work.inside);
    free(work.weighed);
    free(work.buffer);
    kiln_matrix_free(work.weights);
    return code;
}
