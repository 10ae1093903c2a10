/* kiln linreg: read, solve, keep the model, say how good it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "linreg_result.h"
#include "verbs.h"

/* Starts the coefficients from those of --warm-start. */
static int warm_start(struct run *run, struct linreg *job, int64_t n, int64_t k) {
    const char *path = run->settings->warm_start;
    kiln_type type, own = kiln_matrix_type(kiln_data_X(job->data));
    int64_t rows = 0, cols = 0;
    if (!model_tensor_shape(job->warm, "W", &type, &rows, &cols) || rows != n || cols != k)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it from data with the same columns and targets",
                         "%s: coefficients of %lld columns and %lld targets, the data have %lld and %lld",
                         path, (long long)rows, (long long)cols, (long long)n, (long long)k);
    if (kiln_model_tensor(&job->W, run->device, own, job->warm, "W") != KILN_OK)
        return fail_library(USING_MODEL);
    if (run->settings->no_intercept || !model_tensor_shape(job->warm, "b", &type, &rows, &cols)) return 0;
    return kiln_model_tensor(&job->b, run->device, own, job->warm, "b") == KILN_OK
               ? 0
               : fail_library(USING_MODEL);
}

/* Everything that the solver needs, as matrices on the device. */
static int prepare(struct run *run, struct linreg *job) {
    const struct settings *settings = run->settings;
    int code;
    if (settings->warm_start && (code = run_load_model(&job->warm, settings->warm_start))) return code;
    if ((code = choose_reader(run))) return code;
    code = run_read(run, &job->data, run->arguments[0], type_of(settings->type), job->warm);
    if (code) return code;
    const kiln_matrix *X = kiln_data_X(job->data), *y = kiln_data_y(job->data);
    if (!y)
        return fail_with(KILN_ERR_DATA, READING,
                         kiln_data_format(job->data) == KILN_FILE_CSV
                             ? "--target COLUMN names the column to predict; kiln info lists the columns"
                             : "--target-file FILE reads the targets from a file of their own",
                         "%s has no targets to learn from", run->arguments[0]);
    if (kiln_matrix_rows(X) == 0)
        return fail_with(KILN_ERR_DATA, READING, "", "%s has no rows to learn from", run->arguments[0]);
    kiln_type type = kiln_matrix_type(X);
    int64_t n = kiln_matrix_cols(X), k = kiln_matrix_cols(y);
    if ((code = choose_device(run, job->data, k, choose_passes(run->verb, settings, n)))) return code;
    if (settings->weights)
        code = run_read_column(run, &job->weights, settings->weights, "weights", type, kiln_matrix_rows(X));
    if (!code && job->warm) code = warm_start(run, job, n, k);
    if (code) return code;
    if (!job->W && kiln_matrix_dense(&job->W, run->device, type, n, k, NULL) != KILN_OK)
        return fail_library(WORKING);
    if (!settings->no_intercept && !job->b &&
        kiln_matrix_dense(&job->b, run->device, type, 1, k, NULL) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

static int solve(struct run *run, struct linreg *job) {
    const struct settings *settings = run->settings;
    bool single = kiln_matrix_type(job->W) == KILN_F32;
    double tolerance = settings->tolerance > 0 ? settings->tolerance : single ? 1e-5 : 1e-12;
    const kiln_linreg_options options = {.l2 = settings->l2,
                                         .no_intercept = settings->no_intercept,
                                         .standardize = settings->standardize,
                                         .no_preconditioner = settings->no_preconditioner,
                                         .warm_start = job->warm != NULL,
                                         .tolerance = settings->tolerance,
                                         .max_iterations = settings->max_iterations,
                                         .weights = job->weights,
                                         .control = talk_control(tolerance)};
    kiln_device_statistics before;
    kiln_device_get_statistics(run->device, &before);
    double start = clock_seconds();
    const kiln_matrix *X = kiln_data_X(job->data), *y = kiln_data_y(job->data);
    if (kiln_linreg(job->W, job->b, X, y, &options, &job->report) != KILN_OK) return fail_library(WORKING);
    run->seconds.solve = run_account(run, &before, clock_seconds() - start);
    if (job->report.stopped_by == KILN_STOP_DIVERGED)
        return fail_with(KILN_ERR_DATA, READING, "--type f64, --standardize, or data of smaller magnitude",
                         "the solver met NaN or infinity after %lld iterations; no model was written",
                         (long long)job->report.iterations);
    double weight = (double)kiln_matrix_rows(X);
    if (job->weights && kiln_norm(&weight, job->weights, KILN_NORM_1) != KILN_OK)
        return fail_library(WORKING);
    job->rmse = sqrt(job->report.rss / (weight * (double)kiln_matrix_cols(y)));
    return 0;
}

int verb_linreg(struct run *run) {
    struct linreg job = {0};
    int code = run_check_output(run->settings->output);
    if (!code) code = prepare(run, &job);
    if (!code) code = solve(run, &job);
    if (!code && run->settings->output) code = linreg_save(run, &job);
    if (!code) code = linreg_tell(run, &job);
    kiln_report_free(&job.report);
    kiln_matrix_free(job.W);
    kiln_matrix_free(job.b);
    kiln_matrix_free(job.weights);
    kiln_data_free(job.data);
    kiln_model_free(job.warm);
    return code;
}
