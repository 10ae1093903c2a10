/* What becomes of training: metrics, the model file, the summary, the JSON object. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "choose.h"
#include "files.h"
#include "progress.h"
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

/* ------------------------------------------------------------------------------------------- JSON */

/* A model names the inverse Gaussian's link, whose default was another one once. */
static kiln_link named_link(const kiln_loss *loss) {
    const bool open = loss->link == KILN_LINK_DEFAULT && loss->family == KILN_INVERSE_GAUSSIAN;
    return open ? KILN_LINK_LOG : loss->link;
}

static json_t *options_json(const struct training *job) {
    const struct settings *settings = job->settings;
    kiln_solver solver = {0};
    json_t *object = json_object();
    json_put_number(object, "l2", job->penalty.l2);
    json_put_flag(object, "intercept", !train_value(job, "no_intercept"));
    json_put_flag(object, "standardize", train_value(job, "standardize") != 0);
    if (job->loss.kind == KILN_LOSS_SQUARED)
        json_put_flag(object, "preconditioner", !train_value(job, "no_preconditioner"));
    json_put_number(object, "tolerance", job->report.tolerance);
    if (train_choose_solver(&solver, job, kiln_data_X(job->data)) == 0)
        json_put_count(object, "max_iterations", solver.max_iterations);
    if (job->classes.count) json_put_text(object, "class_weight", settings->class_weight);
    if (algorithm_option(job->algorithm->name, "l1")) json_put_number(object, "l1", job->penalty.l1);
    if (job->loss.kind == KILN_LOSS_GLM) {
        json_put_text(object, "family", kiln_family_name(job->loss.family));
        json_put_text(object, "link", kiln_link_name(named_link(&job->loss)));
        json_put_number(object, "parameter", job->loss.parameter);
        json_put_number(object, "link_power", job->loss.link_power);
        json_put_flag(object, "standard_errors", job->errors != NULL);
        json_put_text(object, "offset", settings->offset);
        json_put_text(object, "offset_file", settings->offset_file);
    }
    if (job->loss.kind == KILN_LOSS_SQUARED_EPSILON) json_put_number(object, "epsilon", job->loss.parameter);
    json_put_text(object, "missing", settings->missing);
    json_put_text(object, "weights", settings->weights);
    json_put_text(object, "weights_file", settings->weights_file);
    json_put_text(object, "warm_start", settings->warm_start);
    return object;
}

static bool has_gap(const struct training *job) {
    return job->loss.kind == KILN_LOSS_SQUARED_HINGE || job->loss.kind == KILN_LOSS_SQUARED_EPSILON;
}

static json_t *report_json(const struct training *job) {
    json_t *object = json_object();
    json_put_count(object, "iterations", job->report.iterations);
    json_put_flag(object, "converged", job->report.converged);
    json_put_text(object, "stopped_by", kiln_stop_name(job->report.stopped_by));
    if (job->report.solver) json_put_text(object, "solver", job->report.solver);
    json_put_number(object, "residual", job->report.residual);
    json_put_number(object, "objective", job->report.objective);
    if (has_gap(job)) json_put_number(object, "gap", kiln_report_figure(&job->report, "gap"));
    train_put_certificate(object, &job->report);
    return object;
}

static json_t *names_json(const kiln_data *data, const char *(*name)(const kiln_data *, int64_t),
                          int64_t count) {
    if (!name(data, 0)) return json_null();
    json_t *array = json_array();
    for (int64_t j = 0; j < count; j++) json_add(array, json_text(name(data, j)));
    return array;
}

void train_put_certificate(json_t *object, const kiln_report *report) {
    const double setbacks = kiln_report_figure(report, "setbacks");
    json_put_number(object, "optimality_gap", report->optimality_gap);
    json_put_text(object, "certificate", report->certificate);
    if (!isnan(setbacks)) json_put_count(object, "setbacks", (int64_t)setbacks);
}

void train_print_certificate(FILE *file, const kiln_report *report) {
    const double setbacks = kiln_report_figure(report, "setbacks"),
                 eigenvalue = kiln_report_figure(report, "eigenvalue_error");
    if (!isnan(kiln_report_figure(report, "error_bound"))) return; /* which stands in the objective's place */
    if (report->certificate)
        fprintf(file, "  optimum     at most %s below that (%s)\n", text_number(report->optimality_gap),
                report->certificate);
    else if (isfinite(eigenvalue))
        fprintf(file, "  optimum     the eigenvalue is at most %s off; the scores have no bound\n",
                text_number(eigenvalue));
    else if (isnan(setbacks))
        fputs("  optimum     no bound\n", file);
    else
        fprintf(file, "  optimum     no bound; %s went the wrong way\n",
                setbacks > 0 ? text_plural((int64_t)setbacks, "iteration") : "no iteration");
}

json_t *train_trace_json(const kiln_report *report) {
    json_t *array = json_array();
    for (int64_t i = 0; i < report->trace_count; i++) {
        const kiln_trace_row *row = &report->trace[i];
        json_t *object = json_object();
        json_put_count(object, "iteration", row->iteration);
        json_put_number(object, "residual", row->residual);
        json_put_number(object, "objective", row->objective);
        json_put_number(object, "seconds", row->seconds);
        json_put_count(object, "inner", row->inner);
        json_put_number(object, "radius", row->radius);
        if (row->test > 0) json_put_number(object, "test", row->test);
        json_add(array, object);
    }
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
    if (status == KILN_OK) status = train_set_json(model, "options", options_json(job));
    if (status == KILN_OK)
        status = train_set_json(model, "metrics", metrics_json(&job->metrics, &job->classes));
    if (status == KILN_OK) status = train_set_json(model, "report", report_json(job));
    if (status == KILN_OK && job->scores)
        status = train_set_json(model, "cross_validation", json_incref(job->scores));
    const int64_t targets = kiln_matrix_cols(kiln_data_y(data));
    if (status == KILN_OK)
        status = train_set_json(model, "targets", names_json(data, kiln_data_target_name, targets));
    if (status != KILN_OK) return status;
    if (*kiln_data_schema(data)) return kiln_model_set_text(model, "schema", kiln_data_schema(data));
    return train_set_json(model, "features",
                          names_json(data, kiln_data_feature_name, kiln_matrix_rows(job->W)));
}

int train_save(struct run *run, const struct training *job) {
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

static int tell_json(struct run *run, const struct training *job, const struct coefficients *table,
                     json_t *extra) {
    const kiln_report *report = &job->report;
    json_t *object = run_json(run, "kiln.result/1");
    json_put_text(object, "algorithm", job->algorithm->name);
    run_json_device(run, object);
    choose_json(run, object);
    run_json_shape(object, kiln_data_X(job->data));
    json_put_count(object, "targets", kiln_matrix_cols(kiln_data_y(job->data)));
    json_put_count(object, "iterations", report->iterations);
    json_put_flag(object, "converged", report->converged);
    json_put_text(object, "stopped_by", kiln_stop_name(report->stopped_by));
    if (report->solver) json_put_text(object, "solver", report->solver);
    json_put_number(object, "residual", report->residual);
    json_put_number(object, "tolerance", report->tolerance);
    json_put_number(object, "objective", report->objective);
    if (has_gap(job)) json_put_number(object, "gap", kiln_report_figure(report, "gap"));
    train_put_certificate(object, report);
    json_put(object, "warnings", train_warnings_json(report, job->data));
    json_put(object, "metrics", metrics_json(&job->metrics, &job->classes));
    json_put(object, "options", options_json(job));
    json_put_text(object, "model", run->settings->output);
    checkpoint_json(run, object);
    if (table->count) json_put(object, "coefficients", coefficients_json(table, job));
    if (extra) json_object_update_missing(object, extra);
    run_json_seconds(run, object);
    json_put(object, "trace", train_trace_json(report));
    return json_print(object);
}

static void tell_people(struct run *run, const struct training *job, const struct coefficients *table,
                        FILE *file) {
    const kiln_report *report = &job->report;
    const kiln_matrix *X = kiln_data_X(job->data);
    const char *output = run->settings->output;
    const int64_t targets = kiln_matrix_cols(kiln_data_y(job->data));
    fprintf(file, "%s: %s, %s, %s\n", job->algorithm->title, text_plural(kiln_matrix_rows(X), "row"),
            text_plural(kiln_matrix_cols(X), "column"),
            job->classes.count ? text_plural(job->classes.count, "class") : text_plural(targets, "target"));
    fprintf(file, "  converged   %s, %s%s%s; relative residual %.1e, tolerance %.1e\n",
            !report->converged                         ? "no"
            : report->stopped_by == KILN_STOP_ROUNDING ? "to rounding"
                                                       : "yes",
            text_plural(report->iterations, "iteration"), report->solver ? " of " : "",
            report->solver ? report->solver : "", report->residual, report->tolerance);
    metrics_print(file, &job->metrics, 2);
    fprintf(file, "  objective   %s\n", text_number(report->objective));
    train_print_certificate(file, report);
    run_print_seconds(file, run);
    if (output && strcmp(output, "-") != 0) {
        fputs("  model       ", file);
        text_put(file, output, 0);
        fputc('\n', file);
    }
    coefficients_print(file, table, job);
}

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

int train_tell(struct run *run, const struct training *job, json_t *extra) {
    struct coefficients table;
    int code = coefficients_new(&table, job);
    progress_end();
    if (talk_verbose()) train_tell_device(run);
    if (!code && talk_json())
        code = tell_json(run, job, &table, extra);
    else if (!code)
        tell_people(run, job, &table, run_tables(run));
    coefficients_free(&table);
    if (!code) say_uncounted(job);
    return code ? code : train_end(run, &job->report, job->data);
}
