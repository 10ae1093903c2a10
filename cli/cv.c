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

/* ------------------------------------------------------------------------------------------ folds */

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void shuffle(int64_t *order, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)(next_random(&seed) % (uint64_t)(i + 1));
        const int64_t former = order[i];
        order[i] = order[j];
        order[j] = former;
    }
}

/* Deals the rows out in a random order, class by class, so that each fold has its share of each class. */
static int deal(int32_t *fold, const struct training *job, int64_t folds, const double *y) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    const int64_t classes = job->classes.count > 0 ? job->classes.count : 1;
    int64_t *order = malloc((size_t)rows * sizeof *order), *next = calloc((size_t)classes + 1, sizeof *next);
    int code = 0;
    if (!order || !next) {
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the folds");
    } else {
        shuffle(order, rows, (uint64_t)job->settings->seed);
        for (int64_t i = 0; i < rows && job->classes.count; i++)
            next[classes_find(&job->classes, y[i]) + 1]++;
        for (int64_t c = 1; c < classes; c++) next[c] += next[c - 1];
        for (int64_t i = 0; i < rows; i++) {
            const int64_t row = order[i],
                          class = job->classes.count ? classes_find(&job->classes, y[row]) : 0;
            fold[row] = (int32_t)(next[class]++ % folds);
        }
    }
    free(order);
    free(next);
    return code;
}

/* The parts of a validation that last for all of it. */
struct work {
    struct run *run;
    struct training *job;
    struct validation *validation;
    int32_t *fold;
    double *base, *inside; /* weights: of the rows; of those held out, 0 for others */
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
        const bool held_out = work->fold[i] == f;
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

/* The score, and of all metrics their sums over the folds. */
static int take_metrics(struct validation *validation, struct tried *tried, const struct metrics *metrics,
                        int64_t f) {
    tried->score[f] = metrics_get(metrics, validation->metric);
    bool known = false;
    for (int i = 0; i < metrics->count; i++) {
        tried->sums[i] = (f > 0 ? tried->sums[i] : 0) + metrics->list[i].value;
        validation->metrics[i] = metrics->list[i];
        known |= strcmp(metrics->list[i].key, validation->metric) == 0;
    }
    validation->metric_count = metrics->count;
    if (known) return 0;
    return fail_with(KILN_ERR_ARGUMENT, WORKING, metrics->count ? metrics->list[0].key : "",
                     "--metric %s: these models have none", validation->metric);
}

static int try_value(struct work *work, struct tried *tried, int64_t f, bool warm) {
    struct training *job = work->job;
    const bool folded = work->validation->folds > 0;
    const struct problem problem = {tried->penalty, folded ? work->weights : job->weights, warm,
                                    work->control};
    kiln_report report = {0};
    struct metrics metrics = {0};
    int code = train_solve(work->run, job, &problem, &report);
    if (!code && report.stopped_by == KILN_STOP_CANCELLED) code = EXIT_INTERRUPTED;
    if (!code) code = train_evaluate(&metrics, job, folded ? work->inside : NULL);
    if (!code) code = take_metrics(work->validation, tried, &metrics, f);
    if (!code) {
        tried->iterations += report.iterations;
        tried->converged = report.converged && (f == 0 || tried->converged);
        tried->objective = report.objective;
    }
    metrics_free(&metrics);
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
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(values[i]));
    for (int64_t i = 0; i < count; i++) {
        const double share = largest > 0 ? values[i] / largest : 0; /* whose square does not overflow */
        sum += share * share;
        tried->nonzeros += values[i] != 0;
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
        if (!code && !folded) validation->finished++;
        if (!code && !folded)
            say("%s %s: %s in %s", cv_penalty_name(validation), text_number(cv_strength(validation, i)),
                text_plural(tried->iterations, "iteration"), text_seconds(clock_seconds() - began));
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

static int allocate(struct work *work) {
    struct training *job = work->job;
    const kiln_matrix *X = kiln_data_X(job->data);
    const int64_t rows = kiln_matrix_rows(X), folds = work->validation->folds;
    int code = 0;
    if (folds > rows)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--cv %lld: the data have only %lld rows",
                         (long long)folds, (long long)rows);
    work->fold = malloc((size_t)rows * sizeof *work->fold);
    work->inside = malloc((size_t)rows * sizeof *work->inside);
    work->buffer = malloc((size_t)rows * sizeof *work->buffer);
    if (!work->fold || !work->inside || !work->buffer)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the folds");
    if (job->weights && !(work->base = values_of(job->weights, &code))) return code;
    if (kiln_matrix_dense(&work->weights, work->run->device, kiln_matrix_type(X), rows, 1, NULL) != KILN_OK)
        return fail_library(WORKING);
    double *y = values_of(kiln_data_y(job->data), &code);
    if (!code) code = deal(work->fold, job, folds, y);
    free(y);
    return code;
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
    progress_clear();
    if (validation->folds)
        say_error("kiln: interrupted after %lld of %lld folds; no model was fitted%s%s",
                  (long long)validation->finished, (long long)validation->folds,
                  output ? " and nothing is in " : "", output ? output : "");
    else
        say_error("kiln: interrupted after %s", text_plural(validation->finished, "value"));
    if (talk_json())
        cv_tell_path(run, job, validation);
    else
        cv_print(run_tables(run), validation);
    return EXIT_INTERRUPTED;
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
    for (int64_t f = 0; !code && f < (validation->folds > 0 ? validation->folds : 1); f++)
        if (!(code = walk(&work, f)) && validation->folds) validation->finished++;
    if (code == EXIT_INTERRUPTED) code = keep_finished(run, job, validation);
    if (!code) choose(validation);
    const bool cautious = settings->select && strcmp(settings->select, "one-se") == 0;
    if (!code) job->penalty = validation->tried[cautious ? validation->one_error : validation->best].penalty;
    if (!code && validation->folds > 0) code = begin_at_zero(job);
    job->errors = errors;
    free(work.fold);
    free(work.base);
    free(work.inside);
    free(work.buffer);
    kiln_matrix_free(work.weights);
    return code;
}

/* ----------------------------------------------------------------------------------------- telling */

/* The mean over the folds. */
static double cv_metric(const struct validation *validation, const struct tried *tried, int i) {
    return tried->sums[i] / (double)(validation->folds ? validation->finished : 1);
}

double cv_nonzeros(const struct validation *validation, const struct tried *tried) {
    return (double)tried->nonzeros / (double)(validation->folds ? validation->finished : 1);
}

static json_t *tried_json(const struct validation *validation, const struct tried *tried) {
    json_t *object = json_object(), *scores = json_array();
    json_put_number(object, "l2", tried->penalty.l2);
    json_put_number(object, "l1", tried->penalty.l1);
    json_put_number(object, "mean", tried->mean);
    json_put_number(object, "standard_error", tried->error);
    json_put_count(object, "iterations", tried->iterations);
    json_put_flag(object, "converged", tried->converged);
    for (int64_t f = 0; f < validation->folds && f < validation->finished; f++)
        json_add(scores, json_number_or_null(tried->score[f]));
    json_t *metrics = json_object();
    for (int i = 0; i < validation->metric_count; i++)
        json_put_number(metrics, validation->metrics[i].key, cv_metric(validation, tried, i));
    json_put(object, "metrics", metrics);
    if (validation->folds > 0) {
        if (validation->sparse) json_put_number(object, "nonzeros", cv_nonzeros(validation, tried));
        json_put(object, "folds", scores);
        return object;
    }
    json_decref(scores);
    json_put_number(object, "objective", tried->objective);
    json_put_number(object, "norm", tried->norm);
    json_put_count(object, "nonzeros", tried->nonzeros);
    return object;
}

/* Where the best value is the last one on its side of the path, a better one may lie beyond: no penalty has nothing beyond. */
static const char *end_of_path(const struct validation *validation) {
    if (validation->count < 3 || validation->folds == 0) return NULL;
    if (validation->best == 0) return "strongest";
    const bool weakest = validation->best == validation->count - 1;
    return weakest && cv_strength(validation, validation->best) > 0 ? "weakest" : NULL;
}

json_t *cv_json(const struct run *run, const struct validation *validation) {
    json_t *object = json_object(), *values = json_array();
    const bool folded = validation->folds > 0;
    json_put_text(object, "metric", validation->metric);
    json_put_text(object, "penalty", cv_penalty_name(validation));
    json_put(object, "folds", folded ? json_integer(validation->folds) : json_null());
    json_put_count(object, "finished", validation->finished);
    json_put_count(object, "seed", run->settings->seed);
    for (int64_t i = 0; i < validation->count; i++)
        json_add(values, tried_json(validation, &validation->tried[i]));
    json_put(object, "values", values);
    json_put(object, "best",
             folded ? json_number_or_null(cv_strength(validation, validation->best)) : json_null());
    json_put(object, "one_standard_error",
             folded ? json_number_or_null(cv_strength(validation, validation->one_error)) : json_null());
    json_put_text(object, "best_at_end", end_of_path(validation));
    return object;
}

/* "; l2 0.5", of the penalty that is the same for all values. */
static void print_other(FILE *file, const struct validation *validation) {
    const struct penalty *penalty = &validation->tried[0].penalty;
    const double other = validation->sparse ? penalty->l2 : penalty->l1;
    if (other > 0) fprintf(file, "; %s %s", validation->sparse ? "l2" : "l1", text_number(other));
    fputc('\n', file);
}

static bool is_other(const struct validation *validation, int i) {
    const char *key = validation->metrics[i].key;
    return strcmp(key, validation->metric) != 0 && strcmp(key, "rss") != 0 && strcmp(key, "deviance") != 0;
}

static void print_end(FILE *file, const struct validation *validation) {
    const char *end = end_of_path(validation), *name = cv_penalty_name(validation);
    const double value = cv_strength(validation, validation->best);
    if (!end) return;
    fprintf(file,
            "  the best value is the %s of the path: a wider one may hold a better, as --%s %s:%s:5 has it\n",
            end, name, text_number(end[0] == 'w' ? value / 100 : value),
            text_number(end[0] == 'w' ? value : value * 100));
}

static void print_folded(FILE *file, const struct validation *validation) {
    fprintf(file, "cross-validation: %s, %s", text_plural(validation->folds, "fold"), validation->metric);
    print_other(file, validation);
    fprintf(file, "  %12s %12s %12s %10s", cv_penalty_name(validation), "mean", "std. error", "iterations");
    if (validation->sparse) fprintf(file, " %10s", "not 0");
    for (int i = 0; i < validation->metric_count; i++)
        if (is_other(validation, i)) fprintf(file, " %12s", validation->metrics[i].title);
    fputc('\n', file);
    for (int64_t i = 0; i < validation->count; i++) {
        const struct tried *tried = &validation->tried[i];
        fprintf(file, "  %12s %12s %12s %10s", text_number(cv_strength(validation, i)),
                text_number(tried->mean), text_number(tried->error), text_count(tried->iterations));
        if (validation->sparse) fprintf(file, " %10s", text_number(cv_nonzeros(validation, tried)));
        for (int k = 0; k < validation->metric_count; k++)
            if (is_other(validation, k)) fprintf(file, " %12s", text_number(cv_metric(validation, tried, k)));
        fprintf(file, "%s%s%s\n", i == validation->best ? "  best" : "",
                i == validation->one_error ? "  one standard error" : "",
                tried->converged ? "" : "  not converged");
    }
    print_end(file, validation);
}

void cv_print(FILE *file, const struct validation *validation) {
    if (validation->folds > 0) {
        print_folded(file, validation);
        return;
    }
    fprintf(file, "path on the training data: %s", validation->metric);
    print_other(file, validation);
    fprintf(file, "  %12s %12s %12s %12s %10s %10s\n", cv_penalty_name(validation), validation->metric,
            "objective", "||w||", "not 0", "iterations");
    for (int64_t i = 0; i < validation->count; i++) {
        const struct tried *tried = &validation->tried[i];
        fprintf(file, "  %12s %12s %12s %12s %10s %10s%s\n", text_number(cv_strength(validation, i)),
                text_number(tried->mean), text_number(tried->objective), text_number(tried->norm),
                text_count(tried->nonzeros), text_count(tried->iterations),
                tried->converged ? "" : "  not converged");
    }
}

int cv_tell_path(struct run *run, const struct training *job, const struct validation *validation) {
    progress_clear();
    if (!talk_json()) {
        cv_print(run_tables(run), validation);
        return 0;
    }
    json_t *object = run_json(run, "kiln.path/1");
    json_put_text(object, "algorithm", job->algorithm->name);
    run_json_device(run, object);
    run_json_shape(object, kiln_data_X(job->data));
    json_put(object, "path", cv_json(run, validation));
    run_json_seconds(run, object);
    return json_print(object);
}
