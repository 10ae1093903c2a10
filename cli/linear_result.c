/* Training a linear model ends here: in metrics, what the model keeps, rows of the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linear.h"

/* ----------------------------------------------------------------------------------------- coefficients */

/* The coefficients of a linear model in its result: JSON has them where they are not too many, people see
 * them with their standard errors. Row r of the table is of column r % rows, the intercept last, and of
 * target r / rows. */
static int coefficients_new(struct coefficients *table, const struct training *job) {
    const int64_t n = kiln_matrix_rows(job->W), k = kiln_matrix_cols(job->W);
    const double degrees = metrics_get(&job->metrics, "residual_degrees");
    int code = 0;
    *table = (struct coefficients){
        .job = job, .rows = n + (job->b != NULL), .degrees = isnan(degrees) ? INFINITY : degrees};
    if (table->rows * k > NUMBERS_MOST) return 0;
    table->count = table->rows * k;
    table->W = values_of(job->W, &code);
    if (!code && job->b) table->b = values_of(job->b, &code);
    if (!code && job->errors) table->errors = values_of(job->errors, &code);
    return code;
}

void coefficients_free(struct coefficients *table) {
    free(table->W);
    free(table->b);
    free(table->errors);
    *table = (struct coefficients){0};
}

static const char *feature_name(const struct coefficients *table, struct result *row, int64_t j) {
    const char *name = kiln_data_feature_name(table->job->data, j);
    if (j == kiln_matrix_rows(table->job->W)) return "(intercept)";
    return name ? name : result_words(row, "column %lld", (long long)j + 1);
}

/* The row says which of several classes or targets it belongs to; with two classes there is a column for the
 * second alone. */
static void put_target(struct result *row, const struct coefficients *table, int64_t target) {
    const struct training *job = table->job;
    char buffer[SHORTEST_ROOM];
    if (kiln_matrix_cols(job->W) == 1) return;
    if (job->classes.count)
        PUT(row, "class", TEXT(result_hold(row, classes_name(&job->classes, target, buffer), buffer)));
    else
        PUT(row, "target", COUNT(target + 1));
}

static void put_coefficient(struct result *row, const void *of, int64_t r) {
    const struct coefficients *table = of;
    const int64_t k = kiln_matrix_cols(table->job->W), j = r % table->rows, target = r / table->rows;
    const double value = j < kiln_matrix_rows(table->job->W) ? table->W[j * k + target] : table->b[target];
    const char *name = feature_name(table, row, j);
    PUT(row, "name", TEXT(name));
    put_target(row, table, target);
    PUT(row, "value", NUMBER(value), .label = "", .before = "  ", .width = 13);
    if (!table->errors) return;
    const double error = table->errors[j], z = value / error,
                 most = kiln_student_quantile(0.95, table->degrees) * error;
    const bool known = !isnan(error);
    const char *shown = known ? "" : NULL;
    PUT(row, "standard_error", NUMBER(error), .label = "", .width = known ? 13 : 61,
        .shown = known ? NULL : "depends on columns before it");
    PUT(row, "z", NUMBER(z), .label = shown, .width = 9, .format = "%.3f");
    PUT(row, "p", NUMBER(kiln_student_tails(z, table->degrees)), .label = shown, .width = 9,
        .format = "%.3g");
    PUT(row, "low", NUMBER(value - most), .label = shown, .width = 13);
    PUT(row, "high", NUMBER(value + most), .label = shown, .width = 13);
    PUT(row, "dependent", FLAG(!known));
    PUT(row, NULL, TEXT(name), .label = "", .before = "  ");
}

static void coefficients_put(struct result *result, const struct coefficients *table) {
    PUT(result, "coefficients", TABLE(table->count, table->count ? put_coefficient : NULL, table),
        .hidden = !table->errors,
        .head = result_words(result, "  %13s %13s %9s %9s %13s %13s", "coefficient", "std. error",
                             isinf(table->degrees) ? "z" : "t", "p", "95 % from", "to"));
}

/* ---------------------------------------------------------------------------------------- metrics */

/* The sum of squares is in the report already. */
static int measure_linreg(struct training *job) {
    double weight = (double)kiln_matrix_rows(kiln_data_X(job->data));
    if (job->weights && kiln_norm(&weight, job->weights, KILN_NORM_1) != KILN_OK)
        return fail_library(WORKING);
    metrics_add(&job->metrics, "r2", "R2", kiln_report_figure(job->report, "r2"));
    metrics_add(&job->metrics, "rss", "RSS", kiln_report_figure(job->report, "rss"));
    metrics_add(&job->metrics, "rmse", "RMSE",
                sqrt(kiln_report_figure(job->report, "rss") / (weight * (double)kiln_matrix_cols(job->W))));
    const char *name;
    for (int64_t i = 0; (name = kiln_report_figure_name(job->report, i)); i++)
        if (strcmp(name, "rank") == 0) /* NaN: it was not decided */
            metrics_add(&job->metrics, "rank", "rank", kiln_report_figure(job->report, name));
    return 0;
}

static void add_parameters(struct training *job) {
    static const char *const names[] = {"parameters", "parameters_at_most"};
    for (int i = 0; i < 2; i++) {
        const double count = kiln_report_figure(job->report, names[i]);
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
                    kiln_report_figure(job->report, "null_deviance"));
        metrics_add(&job->metrics, "dispersion", "dispersion", kiln_report_figure(job->report, "dispersion"));
        metrics_add(&job->metrics, "aic", "AIC", kiln_report_figure(job->report, "aic"));
        if (job->loss.family == KILN_TWEEDIE && job->penalty.l1 == 0 && job->penalty.l2 == 0)
            job->metrics.list[job->metrics.count - 1].unknown = "by kiln statistics"; /* a sum of series */
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

/* A column that depends on those before it has no standard error, and a model file holds finite numbers
 * only: -1. */
static int keep_errors(struct run *run, struct training *job) {
    int code = 0;
    if (!job->errors) return 0;
    kiln_matrix *wide = NULL;
    double *values = values_of(job->errors, &code);
    if (code) return code;
    const int64_t count = kiln_matrix_rows(job->errors);
    for (int64_t i = 0; i < count; i++)
        if (isnan(values[i])) values[i] = -1;
    if (kiln_matrix_dense(&wide, run->device, KILN_F64, count, 1, values) != KILN_OK ||
        kiln_matrix_copy(&job->kept_errors, run->device, kiln_matrix_type(job->errors), wide) != KILN_OK)
        code = fail_library(WORKING);
    kiln_matrix_free(wide);
    free(values);
    return code;
}

int linear_finish(struct solving *s) {
    struct training *job = s->state;
    const double start = clock_seconds();
    char doing[64];
    snprintf(doing, sizeof doing, "measure %s", text_plural(kiln_matrix_rows(kiln_data_X(s->data)), "row"));
    talk_doing(doing);
    int code = measure(job);
    s->run->seconds.measure += clock_seconds() - start;
    if (!code) code = keep_errors(s->run, job);
    return code ? code : coefficients_new(&job->table, job);
}

/* ------------------------------------------------------------------------------------------- rows */

/* A model names the inverse Gaussian's link, whose default was another one once. */
static kiln_link named_link(const kiln_loss *loss) {
    const bool open = loss->link == KILN_LINK_DEFAULT && loss->family == KILN_INVERSE_GAUSSIAN;
    return open ? KILN_LINK_LOG : loss->link;
}

void linear_options(struct result *result, const struct solving *s) {
    const struct training *job = s->state;
    const struct settings *settings = job->settings;
    kiln_solver solver = {0};
    result_open(result, "options", true);
    PUT(result, "l2", NUMBER(job->penalty.l2));
    PUT(result, "intercept", FLAG(!linear_value(job, "no_intercept")));
    PUT(result, "standardize", FLAG(linear_value(job, "standardize")));
    if (job->loss.kind == KILN_LOSS_SQUARED)
        PUT(result, "preconditioner", FLAG(!linear_value(job, "no_preconditioner")));
    PUT(result, "tolerance", NUMBER(job->report->tolerance));
    if (linear_choose_solver(&solver, job, kiln_data_X(job->data)) == 0)
        PUT(result, "max_iterations", COUNT(solver.max_iterations));
    if (job->classes.count) PUT(result, "class_weight", TEXT(settings->class_weight));
    if (algorithm_option(job->algorithm->name, "l1")) PUT(result, "l1", NUMBER(job->penalty.l1));
    if (job->loss.kind == KILN_LOSS_GLM) {
        PUT(result, "family", TEXT(kiln_family_name(job->loss.family)));
        PUT(result, "link", TEXT(kiln_link_name(named_link(&job->loss))));
        PUT(result, "parameter", NUMBER(job->loss.parameter));
        PUT(result, "link_power", NUMBER(job->loss.link_power));
        PUT(result, "standard_errors", FLAG(job->errors != NULL));
        PUT(result, "offset", TEXT(kiln_data_role_name(job->data, KILN_COLUMN_OFFSET)));
        PUT(result, "offset_file", TEXT(settings->offset_file));
    }
    if (job->loss.kind == KILN_LOSS_SQUARED_EPSILON) PUT(result, "epsilon", NUMBER(job->loss.parameter));
    PUT(result, "missing", TEXT(settings->missing));
    PUT(result, "weights", TEXT(kiln_data_role_name(job->data, KILN_COLUMN_WEIGHTS)));
    PUT(result, "weights_file", TEXT(settings->weights_file));
    PUT(result, "warm_start", TEXT(settings->warm_start));
    result_close(result);
}

void linear_head(struct result *result, const struct solving *s) {
    const struct training *job = s->state;
    const kiln_matrix *X = solving_X(s);
    const int64_t targets = kiln_matrix_cols(kiln_data_y(s->data));
    PUT(result, "targets", COUNT(targets));
    PUT_LINE(result, "%s: %s, %s, %s", job->algorithm->title, text_plural(kiln_matrix_rows(X), "row"),
             text_plural(kiln_matrix_cols(X), "column"),
             job->classes.count ? text_plural(job->classes.count, "class") : text_plural(targets, "target"));
    if (job->estimated)
        PUT_LINE(result, "%s %.6g, by maximum likelihood",
                 kiln_family_describe(job->loss.family)->parameter.option, job->loss.parameter);
}

void linear_metrics(struct result *result, const struct solving *s) {
    const struct training *job = s->state;
    const kiln_loss_kind kind = job->loss.kind;
    metrics_put(result, &job->metrics);
    if (kind == KILN_LOSS_SQUARED_HINGE || kind == KILN_LOSS_SQUARED_EPSILON)
        PUT(result, "gap", NUMBER(kiln_report_figure(job->report, "gap")), .kept = true);
    if (job->scores) PUT(result, "cross_validation", JSON(json_incref(job->scores)), .kept = true);
}

/* Tells where the file is, and the coefficients. */
void linear_put(struct result *result, const struct solving *s) {
    const struct training *job = s->state;
    const char *output = s->run->settings->output;
    if (output && strcmp(output, "-") != 0) PUT(result, NULL, TEXT(output), .label = "model");
    coefficients_put(result, &job->table);
}

static json_t *names_json(const kiln_data *data, const char *(*name)(const kiln_data *, int64_t),
                          int64_t count) {
    if (!name(data, 0)) return json_null();
    json_t *array = json_array();
    for (int64_t j = 0; j < count; j++) json_add(array, json_text(name(data, j)));
    return array;
}

/* ------------------------------------------------------------------------------------------ model */

static kiln_status set_classes(kiln_model *model, const struct run *run, const struct classes *classes) {
    kiln_matrix *values = NULL;
    kiln_status status =
        kiln_matrix_dense(&values, run->device, KILN_F64, classes->count, 1, classes->values);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "classes", values);
    kiln_matrix_free(values);
    if (status != KILN_OK || !classes->names) return status;
    json_t *names = json_array();
    for (int64_t i = 0; i < classes->count; i++) json_add(names, json_text(classes->names[i]));
    return solve_set_json(model, "class_names", names);
}

/* Keeps what kiln_model_loss reads again. */
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

kiln_status linear_keep(kiln_model *model, const struct solving *s) {
    const struct training *job = s->state;
    const kiln_data *data = s->data;
    const int64_t targets = kiln_matrix_cols(kiln_data_y(data));
    kiln_status status = kiln_model_set_tensor(model, "W", job->W);
    if (status == KILN_OK && job->b) status = kiln_model_set_tensor(model, "b", job->b);
    if (status == KILN_OK && job->classes.count) status = set_classes(model, s->run, &job->classes);
    if (status == KILN_OK) status = set_loss(model, s->run, &job->loss);
    if (status == KILN_OK && job->kept_errors)
        status = kiln_model_set_tensor(model, "standard_errors", job->kept_errors);
    if (status == KILN_OK) status = kiln_model_set_text(model, "type", type_name(kiln_matrix_type(job->W)));
    if (status == KILN_OK)
        status = solve_set_json(model, "targets", names_json(data, kiln_data_target_name, targets));
    if (status != KILN_OK || *kiln_data_schema(data)) return status;
    return solve_set_json(model, "features",
                          names_json(data, kiln_data_feature_name, kiln_matrix_rows(job->W)));
}
