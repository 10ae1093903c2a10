/* The models of a cross-validation, or of a path, from the library: kiln_path hands them over one or several
 * at once, and each is judged by the rows that its fold holds out, or by all rows where there are no folds. */
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
    double *base, *truth;      /* weights of all rows, or NULL; targets, rows x targets */
    int64_t *rows;             /* that models are judged by: the first judged.rows are the fold's */
    const kiln_matrix *whole;  /* X of all rows, as the fold's models have been trained on it */
    kiln_matrix *X, *offset;   /* of these rows, where X is dense; NULL: predictions are made for all rows */
    struct fitted judged;      /* of these rows */
    double *targets, *weights; /* of these rows */
    kiln_device *host;         /* a device "cpu", and the same on it; sample NULL without weights */
    kiln_matrix *y, *sample;
    double *eta, *mean,
        *W; /* of all rows and models handed over at once; their coefficients, where they are measured */
    double started, began; /* the clock when all, and the fold or value, began */
    double judging;        /* seconds */
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
    const size_t rows = (size_t)kiln_matrix_rows(kiln_data_X(job->data)),
                 targets = (size_t)kiln_matrix_cols(kiln_data_y(job->data)),
                 columns = (size_t)kiln_matrix_cols(job->W);
    int code = 0;
    work->rows = malloc(rows * sizeof *work->rows);
    work->judged.scores = malloc(rows * columns * sizeof(double));
    work->judged.means = malloc(rows * columns * sizeof(double));
    work->targets = malloc(rows * targets * sizeof(double));
    work->weights = malloc(rows * sizeof(double));
    if (is_folded(work)) validation->fold = malloc(rows * sizeof *validation->fold);
    if (!work->rows || !work->judged.scores || !work->judged.means || !work->targets || !work->weights ||
        (is_folded(work) && !validation->fold))
        return no_memory("the folds");
    if (kiln_device_open(&work->host, "cpu", NULL) != KILN_OK) return fail_library(WORKING);
    if (!(work->truth = values_of(kiln_data_y(job->data), &code))) return code;
    if (job->weights && !(work->base = values_of(job->weights, &code))) return code;
    if (!is_folded(work)) return 0;
    code = cv_deal(validation->fold, job, validation->folds);
    if (!code) code = cv_held_out_new(validation, job);
    return code ? code : cv_state_begin(work->run, validation, job);
}

static void forget_fold(struct work *work) {
    kiln_matrix_free(work->X);
    kiln_matrix_free(work->offset);
    kiln_matrix_free(work->y);
    kiln_matrix_free(work->sample);
    work->X = work->offset = work->y = work->sample = NULL;
}

static void release(struct work *work) {
    forget_fold(work);
    kiln_device_close(work->host);
    free(work->judged.scores);
    free(work->judged.means);
    free(work->targets);
    free(work->weights);
    free(work->base);
    free(work->truth);
    free(work->rows);
}

static kiln_status rows_of(kiln_matrix **part, const struct work *work, const kiln_matrix *whole) {
    kiln_matrix *made = NULL;
    kiln_status status = kiln_matrix_dense(&made, work->run->device, kiln_matrix_type(whole),
                                           work->judged.rows, kiln_matrix_cols(whole), NULL);
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

/* The rows that models of fold f are judged by. */
static int begin_fold(struct work *work, int64_t f) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(work->job->data));
    const size_t targets = (size_t)kiln_matrix_cols(kiln_data_y(work->job->data));
    int64_t count = 0;
    forget_fold(work);
    for (int64_t i = 0; i < rows; i++) {
        if (is_folded(work) && work->validation->fold[i] != f) continue;
        memcpy(work->targets + (size_t)count * targets, work->truth + (size_t)i * targets,
               targets * sizeof(double));
        if (work->base) work->weights[count] = work->base[i];
        work->rows[count++] = i;
    }
    work->judged.rows = count;
    int code = host_matrix(&work->y, work->host, count, (int64_t)targets, work->targets);
    if (!code && work->base) code = host_matrix(&work->sample, work->host, count, 1, work->weights);
    return !code && is_folded(work) && count > 0 ? take_rows(work) : code;
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

/* Of the models handed over at once, `wide` columns in all, the one whose columns begin at `first`. */
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

static void gather(struct work *work, int64_t first, int64_t wide) {
    struct fitted *judged = &work->judged;
    const size_t k = (size_t)kiln_matrix_cols(work->job->W);
    for (int64_t i = 0; i < judged->rows; i++) {
        const int64_t at = (work->X ? i : work->rows[i]) * wide + first;
        memcpy(judged->scores + (size_t)i * k, work->eta + at, k * sizeof(double));
        memcpy(judged->means + (size_t)i * k, (work->mean ? work->mean : work->eta) + at, k * sizeof(double));
    }
}

static int measure(struct metrics *metrics, const struct work *work) {
    const struct training *job = work->job;
    kiln_loss loss = job->loss;
    kiln_matrix *Eta = NULL;
    loss.y = work->y;
    loss.weights = work->sample;
    int code =
        host_matrix(&Eta, work->host, work->judged.rows, kiln_matrix_cols(job->W), work->judged.scores);
    if (!code) code = metrics_measure(metrics, &loss, &job->classes, Eta, NULL);
    kiln_matrix_free(Eta);
    return code;
}

static int judge(struct work *work, struct tried *tried, int64_t f, int64_t first, int64_t wide) {
    struct metrics metrics = {.count = 0};
    gather(work, first, wide);
    if (is_folded(work))
        cv_held_out_keep(work->validation, work->job, tried - work->validation->tried, &work->judged,
                         work->rows);
    int code = measure(&metrics, work);
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
        return train_fail_diverged(work->run, report, kiln_matrix_type(work->job->W));
    const int code = judge(work, tried, models->fold, i * k, wide);
    if (code) return code;
    tried->latest.iterations = report->iterations;
    tried->latest.unconverged = !report->converged;
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

/* Whether a mean is not the score itself. */
static bool has_means(const struct training *job) {
    return job->loss.kind == KILN_LOSS_GLM || job->loss.kind == KILN_LOSS_LOGISTIC ||
           job->loss.kind == KILN_LOSS_SOFTMAX;
}

/* Predictions by all models handed over, which are several at once only where means go by elements. */
static int predict(struct work *work, const kiln_path_models *models) {
    const struct training *job = work->job;
    kiln_matrix *Eta = NULL;
    int code = linear_predictor(&Eta, work->X ? work->X : work->whole, models->W, models->b,
                                work->X ? work->offset : job->offset);
    if (!code) work->eta = values_of(Eta, &code);
    if (!code && has_means(job)) {
        if (kiln_loss_mean(Eta, &job->loss, Eta) != KILN_OK) code = fail_library(WORKING);
        if (!code) work->mean = values_of(Eta, &code);
    }
    if (!code && (!is_folded(work) || work->validation->sparse)) work->W = values_of(models->W, &code);
    kiln_matrix_free(Eta);
    return code;
}

static void end_fold(struct work *work, int64_t f) {
    struct validation *validation = work->validation;
    for (int64_t i = 0; i < validation->count; i++) finish(&validation->tried[i]);
    validation->finished++;
    cv_state_note(validation);
    say("fold %lld of %lld: %s in %s", (long long)f + 1, (long long)validation->folds,
        text_plural(validation->count, "value"), text_seconds(clock_seconds() - work->began));
    work->began = clock_seconds();
}

static void forget_models(struct work *work) {
    free(work->eta);
    free(work->mean);
    free(work->W);
    work->eta = work->mean = work->W = NULL;
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
    if (!code) gather(work, 0, kiln_matrix_cols(job->W));
    if (!code) code = measure(&metrics, work);
    if (!code) code = take_metrics(work->validation, &unused, &metrics, 0);
    forget_models(work);
    metrics_free(&metrics);
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
    return status == KILN_ERR_CANCELLED ? EXIT_INTERRUPTED : train_fail(job);
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
    release(&work);
    free(options);
    free(strengths);
    return code;
}
