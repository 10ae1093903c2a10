/* The models of a cross-validation, or of a path, from the library: kiln_path hands them over one or several
 * at once, and each is judged by the rows that its fold holds out, or by all rows where there are no
 * folds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "cv.h"
#include "files.h"
#include "progress.h"

/* The parts of a validation that last for all of it, and the fold at hand. */
struct work {
    struct run *run;
    struct training *job;
    struct validation *validation;
    int64_t *rows; /* that models are judged by: the first `count` are the fold's */
    int64_t count;
    const kiln_matrix *whole; /* X of all rows, as the fold's models have been trained on it */
    kiln_matrix *X, *offset;  /* of these rows, where X is dense; NULL: predictions are made for all rows */
    kiln_matrix *y, *weights; /* of these rows, where X lies; weights NULL: there are none, or no folds */
    kiln_matrix *Eta;         /* predictors of these rows by all models handed over at once */
    double *scores, *means;   /* the same and what they mean, on the host, where held-out rows are written */
    double *W;                /* coefficients of these models, where they are measured */
    double started, began;    /* the clock when all, and the fold or value, began */
    double judging;           /* seconds */
    int code;
};

static bool is_folded(const struct work *work) {
    return work->validation->folds > 0;
}

/* ---------------------------------------------------------------------------------------- the rows */

static int no_memory(const char *what) {
    return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s", what);
}

static int allocate(struct work *work) {
    struct training *job = work->job;
    struct validation *validation = work->validation;
    const size_t rows = (size_t)kiln_matrix_rows(kiln_data_X(job->data));
    work->rows = malloc(rows * sizeof *work->rows);
    if (is_folded(work)) validation->fold = malloc(rows * sizeof *validation->fold);
    if (!work->rows || (is_folded(work) && !validation->fold)) return no_memory("the folds");
    if (!is_folded(work)) return 0;
    int code = cv_deal(validation->fold, job, validation->folds);
    if (!code) code = cv_held_out_new(validation, job);
    return code ? code : cv_state_begin(work->run, validation, job);
}

static void forget_fold(struct work *work) {
    kiln_matrix_free(work->X);
    kiln_matrix_free(work->offset);
    kiln_matrix_free(work->y);
    kiln_matrix_free(work->weights);
    work->X = work->offset = work->y = work->weights = NULL;
}

static void release(struct work *work) {
    forget_fold(work);
    free(work->rows);
}

static kiln_status rows_of(kiln_matrix **part, const struct work *work, const kiln_matrix *whole) {
    kiln_matrix *made = NULL;
    kiln_status status = kiln_matrix_dense(&made, work->run->device, kiln_matrix_type(whole), work->count,
                                           kiln_matrix_cols(whole), NULL);
    if (status == KILN_OK) status = kiln_rows(made, whole, work->rows);
    if (status == KILN_OK)
        *part = made;
    else
        kiln_matrix_free(made);
    return status;
}

/* A copy of the rows that the fold holds out, of a dense X in memory: models are judged by them alone. */
static int take_rows(struct work *work) {
    const struct training *job = work->job;
    if (kiln_matrix_format(work->whole) != KILN_DENSE) return 0;
    const kiln_status status = rows_of(&work->X, work, work->whole);
    if (status == KILN_ERR_UNSUPPORTED || status == KILN_ERR_NOMEM) return 0;
    if (status != KILN_OK || (job->offset && rows_of(&work->offset, work, job->offset) != KILN_OK))
        return fail_library(WORKING);
    return 0;
}

/* The rows that models of fold f are judged by; without folds all, whose targets and weights are the
 * data's. */
static int begin_fold(struct work *work, int64_t f) {
    const struct training *job = work->job;
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data));
    forget_fold(work);
    work->count = 0;
    if (!is_folded(work)) return 0;
    for (int64_t i = 0; i < rows; i++)
        if (work->validation->fold[i] == f) work->rows[work->count++] = i;
    if (rows_of(&work->y, work, kiln_data_y(job->data)) != KILN_OK ||
        (job->weights && rows_of(&work->weights, work, job->weights) != KILN_OK))
        return fail_library(WORKING);
    return work->count > 0 ? take_rows(work) : 0;
}

/* ------------------------------------------------------------------------------------ one model */

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

/* The model is the one whose columns begin at `first`, of those handed over at once, `wide` columns in
 * all. */
static void measure_coefficients(const struct work *work, struct tried *tried, int64_t first, int64_t wide) {
    const struct validation *validation = work->validation;
    const int64_t n = kiln_matrix_rows(work->job->W), k = kiln_matrix_cols(work->job->W);
    double *kept = validation->paths ? validation->paths + (tried - validation->tried) * n * k : NULL;
    double largest = 0, sum = 0;
    tried->latest.nonzeros = 0;
    for (int64_t i = 0; i < n * k; i++) largest = fmax(largest, fabs(work->W[i / k * wide + first + i % k]));
    for (int64_t i = 0; i < n * k; i++) {
        const double value = work->W[i / k * wide + first + i % k];
        const double share = largest > 0 ? value / largest : 0; /* whose square does not overflow */
        sum += share * share;
        tried->latest.nonzeros += value != 0;
        if (kept) kept[i] = value;
    }
    tried->norm = largest * sqrt(sum);
}

/* The model whose columns of Eta begin at `first`. */
static int measure(struct metrics *metrics, const struct work *work, int64_t first) {
    const struct training *job = work->job;
    kiln_loss loss = job->loss;
    const kiln_metrics_options options = {
        .size = sizeof options, .first = first, .columns = kiln_matrix_cols(job->W)};
    loss.y = is_folded(work) ? work->y : kiln_data_y(job->data);
    loss.weights = is_folded(work) ? work->weights : job->weights;
    return metrics_measure(metrics, &loss, &job->classes, work->Eta, &options);
}

static int judge(struct work *work, struct tried *tried, int64_t f, int64_t first) {
    struct metrics metrics = {.count = 0};
    if (work->scores)
        cv_held_out_keep(work->validation, work->job, tried - work->validation->tried,
                         &(struct fitted){.rows = work->count,
                                          .wide = kiln_matrix_cols(work->Eta),
                                          .scores = work->scores + first,
                                          .means = (work->means ? work->means : work->scores) + first},
                         work->rows);
    int code = measure(&metrics, work, first);
    if (!code) code = take_metrics(work->validation, tried, &metrics, f);
    metrics_free(&metrics);
    return code;
}

static int take_model(struct work *work, const kiln_path_models *models, int64_t i) {
    struct validation *validation = work->validation;
    struct tried *tried = &validation->tried[models->first + i];
    const kiln_report *report = models->reports[i];
    const int64_t k = kiln_matrix_cols(work->job->W), wide = kiln_matrix_cols(models->W);
    if (report->stopped_by == KILN_STOP_DIVERGED)
        return report_fail_diverged(work->run, report, kiln_matrix_type(work->job->W));
    const int code = judge(work, tried, models->fold, i * k);
    if (code) return code;
    tried->latest.iterations = report->iterations;
    tried->latest.unconverged = !report->converged;
    validation->cut |= is_folded(work) && report->stopped_by == KILN_STOP_ITERATIONS;
    tried->objective = report->objective;
    if (work->W) measure_coefficients(work, tried, i * k, wide);
    if (is_folded(work)) return 0;
    finish(tried);
    validation->finished++;
    say("%s %s: %s in %s", cv_penalty_name(validation),
        text_number(cv_strength(validation, models->first + i)),
        text_plural(tried->latest.iterations, "iteration"), text_seconds(clock_seconds() - work->began));
    work->began = clock_seconds();
    return 0;
}

/* ------------------------------------------------------------------------------- what is handed over */

/* Returns whether a mean is not the score itself. */
static bool has_means(const struct training *job) {
    return job->loss.kind == KILN_LOSS_GLM || job->loss.kind == KILN_LOSS_LOGISTIC ||
           job->loss.kind == KILN_LOSS_SOFTMAX;
}

/* Scores and means of the rows on the host, where they are written in the end. */
static int take_home(struct work *work) {
    int code = 0;
    if (!work->validation->held_out) return 0;
    work->scores = values_of(work->Eta, &code);
    if (code || !has_means(work->job)) return code;
    kiln_matrix *Mean = NULL;
    if (kiln_matrix_copy(&Mean, work->run->device, KILN_TYPE_DEFAULT, work->Eta) != KILN_OK ||
        kiln_loss_mean(Mean, &work->job->loss, Mean) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) work->means = values_of(Mean, &code);
    kiln_matrix_free(Mean);
    return code;
}

/* Predictions by all models handed over, which are several at once only where means go by elements. */
static int predict(struct work *work, const kiln_path_models *models) {
    const struct training *job = work->job;
    kiln_matrix *all = NULL;
    int code = linear_predictor(&all, work->X ? work->X : work->whole, models->W, models->b,
                                work->X ? work->offset : job->offset);
    if (!code && is_folded(work) && !work->X) {
        if (rows_of(&work->Eta, work, all) != KILN_OK) code = fail_library(WORKING);
        kiln_matrix_free(all);
    } else {
        work->Eta = all;
    }
    if (!code) code = take_home(work);
    if (!code && (!is_folded(work) || work->validation->sparse)) work->W = values_of(models->W, &code);
    return code;
}

static void end_fold(struct work *work, int64_t f) {
    struct validation *validation = work->validation;
    for (int64_t i = 0; i < validation->count; i++) finish(&validation->tried[i]);
    validation->finished++;
    if (!validation->cut) cv_state_note(validation);
    say("fold %lld of %lld: %s in %s", (long long)f + 1, (long long)validation->folds,
        text_plural(validation->count, "value"), text_seconds(clock_seconds() - work->began));
    work->began = clock_seconds();
}

static void forget_models(struct work *work) {
    kiln_matrix_free(work->Eta);
    free(work->scores);
    free(work->means);
    free(work->W);
    work->Eta = NULL;
    work->scores = work->means = work->W = NULL;
}

static int take(void *user, const kiln_path_models *models) {
    struct work *work = user;
    const struct validation *validation = work->validation;
    const double start = clock_seconds();
    const int64_t last = models->first + models->count, folds = is_folded(work) ? validation->folds : 1;
    work->whole = models->X;
    if (models->first == 0) work->code = begin_fold(work, models->fold);
    if (!work->code) work->code = predict(work, models);
    for (int64_t i = 0; i < models->count && !work->code; i++) work->code = take_model(work, models, i);
    forget_models(work);
    if (!work->code && is_folded(work) && last == validation->count) end_fold(work, models->fold);
    if (!work->code)
        talk_step("training", models->fold * validation->count + last, validation->count * folds,
                  clock_seconds() - work->started);
    work->judging += clock_seconds() - start;
    return work->code;
}

/* The metrics' names, where all folds were finished by the run before: those of any model, here of W as it
 * is. */
static int name_metrics(struct work *work) {
    const struct training *job = work->job;
    struct metrics metrics = {.count = 0};
    double score[1];
    struct tried unused = {.score = score};
    const kiln_path_models models = {.count = 1, .W = job->W, .b = job->b};
    work->whole = kiln_data_X(job->data);
    int code = begin_fold(work, 0);
    if (!code) code = predict(work, &models);
    if (!code) code = measure(&metrics, work, 0);
    if (!code) code = take_metrics(work->validation, &unused, &metrics, 0);
    forget_models(work);
    metrics_free(&metrics);
    return code;
}

/* The coefficients of all values of a path are kept where a picture is wanted that has them; more than
 * PATHS_MOST no picture shows. */
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
    return validation->paths ? 0 : no_memory("the paths");
}

/* The call. strengths: l2 and l1 of the values. */
static int train(struct work *work, void *options, double *strengths) {
    struct training *job = work->job;
    struct run *run = work->run;
    const struct validation *validation = work->validation;
    const int64_t count = validation->count;
    for (int64_t i = 0; i < count; i++) {
        strengths[i] = validation->tried[i].penalty.l2;
        strengths[count + i] = validation->tried[i].penalty.l1;
    }
    job->algorithm->set(options, job,
                        &(struct problem){.penalty = job->penalty,
                                          .weights = job->weights,
                                          .control = checkpoint_control(run, talk_silent_control())});
    kiln_device_statistics before = {0};
    kiln_device_get_statistics(run->device, &before);
    talk_step("training", 0, count * (is_folded(work) ? validation->folds : 1), 0);
    const kiln_status status = kiln_path(
        job->algorithm->name, options, kiln_data_X(job->data), kiln_data_y(job->data),
        kiln_matrix_cols(job->W),
        &(kiln_path_options){.l2 = strengths,
                             .l1 = algorithm_option(job->algorithm->name, "l1") ? strengths + count : NULL,
                             .count = count,
                             .fold = validation->fold,
                             .folds = validation->folds,
                             .W = job->warm ? job->W : NULL,
                             .b = job->warm ? job->b : NULL,
                             .take = take,
                             .user = work});
    run->seconds.solve += run_account(run, &before, clock_seconds() - work->started - work->judging);
    run->seconds.measure += work->judging;
    if (status == KILN_OK || work->code) return work->code;
    return status == KILN_ERR_CANCELLED ? EXIT_INTERRUPTED : linear_fail(job);
}

int cv_train(struct run *run, struct training *job, struct validation *validation) {
    struct work work = {.run = run, .job = job, .validation = validation};
    void *options = malloc(sizeof job->settings->algorithm.bytes);
    double *strengths = malloc(2 * (size_t)validation->count * sizeof *strengths);
    int code = options && strengths ? allocate(&work) : no_memory("the path");
    if (!code) code = allocate_paths(validation, job);
    work.started = work.began = clock_seconds();
    if (!code && is_folded(&work) && validation->finished == validation->folds)
        code = name_metrics(&work);
    else if (!code)
        code = train(&work, options, strengths);
    run->checkpoint_stays = validation->cut; /* the model of all rows comes after the folds that wait */
    release(&work);
    free(options);
    free(strengths);
    return code;
}
