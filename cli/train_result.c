/* What becomes of training: metrics, the model file, the summary, the JSON object. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "choose.h"
#include "files.h"
#include "progress.h"
#include "report.h"
#include "train.h"

/* ---------------------------------------------------------------------------------------- metrics */

/* The sum of squares is in the report already. */
static int measure_linreg(struct training *job) {
    double weight = (double)kiln_matrix_rows(kiln_data_X(job->data));
    if (job->weights && kiln_norm(&weight, job->weights, KILN_NORM_1) != KILN_OK)
        return fail_library(WORKING);
    metrics_add(&job->metrics, "r2", "R2", kiln_report_figure(&job->report, "r2"));
    metrics_add(&job->metrics, "rss", "RSS", kiln_report_figure(&job->report, "rss"));
    metrics_add(&job->metrics, "rmse", "RMSE",
                sqrt(kiln_report_figure(&job->report, "rss") / (weight * (double)kiln_matrix_cols(job->W))));
    const char *name;
    for (int64_t i = 0; (name = kiln_report_figure_name(&job->report, i)); i++)
        if (strcmp(name, "rank") == 0) /* NaN: it was not decided */
            metrics_add(&job->metrics, "rank", "rank", kiln_report_figure(&job->report, name));
    return 0;
}

static void add_parameters(struct training *job) {
    static const char *const names[] = {"parameters", "parameters_at_most"};
    for (int i = 0; i < 2; i++) {
        const double count = kiln_report_figure(&job->report, names[i]);
        if (!isnan(count)) metrics_add(&job->metrics, names[i], "parameters", count);
    }
}

/* Degrees of freedom of a dispersion that is estimated: rows of weight above 0, less the parameters. */
static int add_degrees(struct training *job) {
    double used = metrics_get(&job->metrics, "parameters"),
           counted = (double)kiln_matrix_rows(kiln_data_X(job->data));
    int code = 0;
    if (isnan(used)) used = metrics_get(&job->metrics, "parameters_at_most");
    if (kiln_family_describe(job->loss.family)->fixed_dispersion) return 0;
    double *weights = job->weights ? values_of(job->weights, &code) : NULL;
    if (code) return code;
    for (int64_t i = 0; weights && i < kiln_matrix_rows(kiln_data_X(job->data)); i++)
        counted -= weights[i] == 0;
    free(weights);
    if (counted > used) metrics_add(&job->metrics, "residual_degrees", "degrees", counted - used);
    return 0;
}

static int measure(struct training *job) {
    if (job->loss.kind == KILN_LOSS_SQUARED) return measure_linreg(job);
    if (job->loss.kind == KILN_LOSS_GLM) {
        metrics_add(&job->metrics, "null_deviance", "null dev.",
                    kiln_report_figure(&job->report, "null_deviance"));
        metrics_add(&job->metrics, "dispersion", "dispersion",
                    kiln_report_figure(&job->report, "dispersion"));
        metrics_add(&job->metrics, "aic", "AIC", kiln_report_figure(&job->report, "aic"));
        add_parameters(job);
        const int code = add_degrees(job);
        if (code) return code;
    }
    kiln_loss loss = job->loss;
    kiln_matrix *Eta = NULL;
    loss.y = kiln_data_y(job->data);
    loss.weights = job->weights;
    int code = linear_predictor(&Eta, kiln_data_X(job->data), job->W, job->b, job->offset);
    if (!code) code = metrics_measure(&job->metrics, &loss, &job->classes, Eta, NULL);
    kiln_matrix_free(Eta);
    return code;
}

int train_measure(struct run *run, struct training *job) {
    const double start = clock_seconds();
    talk_doing("measure");
    const int code = measure(job);
    run->seconds.measure += clock_seconds() - start;
    return code;
}

/* ------------------------------------------------------------------------------------------- rows */

/* A model names the inverse Gaussian's link, whose default was another one once. */
static kiln_link named_link(const kiln_loss *loss) {
    const bool open = loss->link == KILN_LINK_DEFAULT && loss->family == KILN_INVERSE_GAUSSIAN;
    return open ? KILN_LINK_LOG : loss->link;
}

static void put_options(struct result *result, const struct training *job) {
    const struct settings *settings = job->settings;
    kiln_solver solver = {0};
    result_open(result, "options", true);
    PUT(result, "l2", NUMBER(job->penalty.l2));
    PUT(result, "intercept", FLAG(!train_value(job, "no_intercept")));
    PUT(result, "standardize", FLAG(train_value(job, "standardize")));
    if (job->loss.kind == KILN_LOSS_SQUARED)
        PUT(result, "preconditioner", FLAG(!train_value(job, "no_preconditioner")));
    PUT(result, "tolerance", NUMBER(job->report.tolerance));
    if (train_choose_solver(&solver, job, kiln_data_X(job->data)) == 0)
        PUT(result, "max_iterations", COUNT(solver.max_iterations));
    if (job->classes.count) PUT(result, "class_weight", TEXT(settings->class_weight));
    if (algorithm_option(job->algorithm->name, "l1")) PUT(result, "l1", NUMBER(job->penalty.l1));
    if (job->loss.kind == KILN_LOSS_GLM) {
        PUT(result, "family", TEXT(kiln_family_name(job->loss.family)));
        PUT(result, "link", TEXT(kiln_link_name(named_link(&job->loss))));
        PUT(result, "parameter", NUMBER(job->loss.parameter));
        PUT(result, "link_power", NUMBER(job->loss.link_power));
        PUT(result, "standard_errors", FLAG(job->errors != NULL));
        PUT(result, "offset", TEXT(settings->offset));
        PUT(result, "offset_file", TEXT(settings->offset_file));
    }
    if (job->loss.kind == KILN_LOSS_SQUARED_EPSILON) PUT(result, "epsilon", NUMBER(job->loss.parameter));
    PUT(result, "missing", TEXT(settings->missing));
    PUT(result, "weights", TEXT(settings->weights));
    PUT(result, "weights_file", TEXT(settings->weights_file));
    PUT(result, "warm_start", TEXT(settings->warm_start));
    result_close(result);
}

static void put_shape(struct result *result, const struct training *job) {
    const kiln_matrix *X = kiln_data_X(job->data);
    const int64_t targets = kiln_matrix_cols(kiln_data_y(job->data));
    run_put_shape(result, X);
    PUT(result, "targets", COUNT(targets));
    PUT_LINE(result, "%s: %s, %s, %s", job->algorithm->title, text_plural(kiln_matrix_rows(X), "row"),
             text_plural(kiln_matrix_cols(X), "column"),
             job->classes.count ? text_plural(job->classes.count, "class") : text_plural(targets, "target"));
}

/* All that the model keeps is there before it is written; times are not. */
static void put_results(struct run *run, struct training *job) {
    struct result *result = &job->result;
    const struct report_words words = {
        .objective = "objective", .change = "relative residual", .solver_kept = true};
    const bool gap = job->loss.kind == KILN_LOSS_SQUARED_HINGE || job->loss.kind == KILN_LOSS_SQUARED_EPSILON;
    run_put(result, run, "kiln.result/1");
    PUT(result, "algorithm", TEXT(job->algorithm->name));
    run_put_device(result, run);
    put_shape(result, job);
    report_put_end(result, &job->report, &words);
    metrics_put(result, &job->metrics);
    report_put_objective(result, &job->report, &words);
    if (gap) PUT(result, "gap", NUMBER(kiln_report_figure(&job->report, "gap")), .kept = true);
    PUT(result, "warnings", JSON(train_warnings_json(&job->report, job->data)));
    put_options(result, job);
    if (job->scores) PUT(result, "cross_validation", JSON(json_incref(job->scores)), .kept = true);
}

static json_t *names_json(const kiln_data *data, const char *(*name)(const kiln_data *, int64_t),
                          int64_t count) {
    if (!name(data, 0)) return json_null();
    json_t *array = json_array();
    for (int64_t j = 0; j < count; j++) json_add(array, json_text(name(data, j)));
    return array;
}

/* ------------------------------------------------------------------------------------------ model */

kiln_status train_set_json(kiln_model *model, const char *key, json_t *value) {
    char *text = json_is_null(value) ? NULL : json_compact(value);
    const kiln_status status = text ? kiln_model_set_text(model, key, text) : KILN_OK;
    free(text);
    json_decref(value);
    return status;
}

static kiln_status set_classes(kiln_model *model, const struct run *run, const struct classes *classes) {
    kiln_matrix *values = NULL;
    kiln_status status =
        kiln_matrix_dense(&values, run->device, KILN_F64, classes->count, 1, classes->values);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "classes", values);
    kiln_matrix_free(values);
    if (status != KILN_OK || !classes->names) return status;
    json_t *names = json_array();
    for (int64_t i = 0; i < classes->count; i++) json_add(names, json_text(classes->names[i]));
    return train_set_json(model, "class_names", names);
}

/* What kiln_model_loss reads again. */
static kiln_status set_loss(kiln_model *model, const struct run *run, const kiln_loss *loss) {
    const double values[] = {loss->parameter, loss->link_power};
    kiln_matrix *parameters = NULL;
    kiln_status status = KILN_OK;
    if (loss->kind != KILN_LOSS_GLM && loss->kind != KILN_LOSS_SQUARED_EPSILON) return KILN_OK;
    if (loss->kind == KILN_LOSS_GLM) {
        status = kiln_model_set_text(model, "family", kiln_family_name(loss->family));
        if (status == KILN_OK) status = kiln_model_set_text(model, "link", kiln_link_name(named_link(loss)));
    }
    if (status == KILN_OK) status = kiln_matrix_dense(&parameters, run->device, KILN_F64, 1, 2, values);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "parameters", parameters);
    kiln_matrix_free(parameters);
    return status;
}

/* A column that depends on those before it has no standard error, and a model file holds finite numbers
 * only: -1. */
static int standard_errors(kiln_matrix **kept, const struct run *run, const struct training *job) {
    int code = 0;
    if (!job->errors) return 0;
    kiln_matrix *wide = NULL;
    double *values = values_of(job->errors, &code);
    if (code) return code;
    const int64_t count = kiln_matrix_rows(job->errors);
    for (int64_t i = 0; i < count; i++)
        if (isnan(values[i])) values[i] = -1;
    if (kiln_matrix_dense(&wide, run->device, KILN_F64, count, 1, values) != KILN_OK ||
        kiln_matrix_copy(kept, run->device, kiln_matrix_type(job->errors), wide) != KILN_OK)
        code = fail_library(WORKING);
    kiln_matrix_free(wide);
    free(values);
    return code;
}

static kiln_status fill_model(kiln_model *model, const struct run *run, const struct training *job,
                              const kiln_matrix *errors) {
    const kiln_data *data = job->data;
    kiln_status status = kiln_model_set_tensor(model, "W", job->W);
    if (status == KILN_OK && job->b) status = kiln_model_set_tensor(model, "b", job->b);
    if (status == KILN_OK && job->classes.count) status = set_classes(model, run, &job->classes);
    if (status == KILN_OK) status = set_loss(model, run, &job->loss);
    if (status == KILN_OK && errors) status = kiln_model_set_tensor(model, "standard_errors", errors);
    if (status == KILN_OK) status = kiln_model_set_text(model, "device", run->device_info.name);
    if (status == KILN_OK) status = kiln_model_set_text(model, "type", type_name(kiln_matrix_type(job->W)));
    if (status == KILN_OK) status = result_keep(model, &job->result);
    const int64_t targets = kiln_matrix_cols(kiln_data_y(data));
    if (status == KILN_OK)
        status = train_set_json(model, "targets", names_json(data, kiln_data_target_name, targets));
    if (status != KILN_OK) return status;
    if (*kiln_data_schema(data)) return kiln_model_set_text(model, "schema", kiln_data_schema(data));
    return train_set_json(model, "features",
                          names_json(data, kiln_data_feature_name, kiln_matrix_rows(job->W)));
}

static int save(struct run *run, const struct training *job) {
    kiln_model *model = NULL;
    kiln_matrix *errors = NULL;
    double start = clock_seconds();
    int code = standard_errors(&errors, run, job);
    if (code) return code;
    kiln_status status = kiln_model_create(&model, job->algorithm->name);
    if (status == KILN_OK) status = fill_model(model, run, job, errors);
    if (status == KILN_OK) status = kiln_model_save(model, run->settings->output);
    code = status == KILN_OK ? 0 : fail_library(WRITING);
    kiln_matrix_free(errors);
    kiln_model_free(model);
    run->seconds.write = clock_seconds() - start;
    return code;
}

/* ---------------------------------------------------------------------------------------- telling */

void train_tell_device(const struct run *run) {
    kiln_device_statistics s = {0};
    kiln_device_get_statistics(run->device, &s);
    say("device %s: peak memory %s; %s up, %s down; %lld kernels built, %lld from the cache",
        run->device_info.name, text_bytes((double)s.memory_peak), text_bytes((double)s.bytes_up),
        text_bytes((double)s.bytes_down), (long long)s.kernels_built, (long long)s.kernels_cached);
    if (s.layout_seconds > 0)
        say("  derived from X to make passes fast: %s in %s", text_bytes((double)s.layout_bytes),
            text_seconds(s.layout_seconds));
    if (s.evictions) say("  too little memory: matrices made room %s", text_plural(s.evictions, "time"));
    if (s.panels)
        say("  X in %s: %s at %s/s, %.0f %% of the time waiting for panels", text_plural(s.panels, "panel"),
            text_bytes((double)s.panel_bytes),
            text_bytes((double)s.panel_bytes / fmax(s.panel_seconds, 1e-9)),
            100 * s.panel_wait_seconds / fmax(s.panel_seconds, 1e-9));
}

/* Where the columns that depend on others could not be counted. */
static void say_uncounted(const struct training *job) {
    const double most = kiln_report_figure(&job->report, "parameters_at_most");
    if (job->loss.kind != KILN_LOSS_GLM || isnan(most)) return;
    say("AIC is an upper bound, as if the model had %.0f parameters: how many columns depend on others is "
        "not clear",
        most);
}

int train_tell(struct run *run, struct training *job) {
    struct coefficients table;
    struct result *result = &job->result;
    const char *output = run->settings->output;
    put_results(run, job);
    int code = output ? save(run, job) : 0;
    if (!code) code = coefficients_new(&table, job);
    if (code) return code;
    progress_end();
    if (talk_verbose()) train_tell_device(run);
    choose_put(result, run);
    checkpoint_put(result, run);
    run_put_seconds(result, run, true);
    PUT(result, "model", TEXT(output), .label = output && strcmp(output, "-") != 0 ? "model" : NULL);
    if (table.count) coefficients_put(result, &table);
    report_put_trace(result, &job->report);
    code = run_tell(run, result);
    coefficients_free(&table);
    if (!code) say_uncounted(job);
    return code ? code : train_end(run, &job->report, job->data);
}
