/* kiln predict: one row of predictions a line, and how good they are where the data tell.
 *
 * The linear predictor is what classifiers decide by, and what probabilities lose digits of: labels and
 * metrics go by it, probabilities and means are the library's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "help.h"
#include "predict.h"
#include "files.h"
#include "progress.h"
#include "verbs.h"

static bool is_linear(const kiln_model *model) {
    kiln_type type;
    int64_t rows, cols;
    return model_tensor_shape(model, "W", &type, &rows, &cols);
}

/* A model must have what is asked for. */
static int check_settings(const struct run *run, const struct prediction *p) {
    const struct settings *settings = run->settings;
    const char *algorithm = kiln_model_text(p->model, "algorithm");
    const bool probable = strcmp(algorithm, "logreg") == 0;
    const kiln_algorithm *known = kiln_algorithm_named(algorithm);
    const struct verb *verb = verb_named(algorithm);
    if (known && !known->predicts)
        return fail_with(KILN_ERR_MODEL, USING_MODEL,
                         verb && verb->predict_instead ? verb->predict_instead : "",
                         "a model of %s predicts nothing", algorithm);
    if (p->evaluated && known && !is_linear(p->model))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "kiln predict writes what it says of rows",
                         "a model of %s has no targets to evaluate it by", algorithm);
    if (settings->decision && !is_linear(p->model))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--decision: a model of %s has no linear predictor",
                         algorithm);
    if (settings->probabilities && settings->decision)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give one of them",
                         "--probabilities and --decision together");
    if (settings->probabilities && !probable)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--decision prints what it decides by",
                         "--probabilities: a model of %s has none", algorithm);
    if ((settings->offset || settings->offset_file) && strcmp(algorithm, "glm") != 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "", "--offset: only a model of glm has one, this is %s",
                         algorithm);
    json_t *used = model_options(p->model);
    const char *file = json_string_value(json_object_get(used, "offset_file"));
    if (file && !settings->offset && !settings->offset_file) {
        say_error("kiln: warning: the model was trained with an offset (--offset-file %s), and these "
                  "predictions are for offset 0",
                  file);
        say_error("hint: --offset COLUMN or --offset-file FILE names that of these rows");
    }
    json_decref(used);
    return 0;
}

/* ---------------------------------------------------------------------------------------- reading */

static int read_data(struct run *run, struct prediction *p) {
    const struct settings *settings = run->settings;
    kiln_type type = type_of(settings->type), stored;
    int64_t rows, cols;
    int code = p->model ? 0 : run_load_model(&p->model, run->arguments[0]);
    if (!code) code = check_settings(run, p);
    if (!code && is_linear(p->model) && kiln_model_loss(&p->loss, p->model) != KILN_OK)
        code = fail_library(USING_MODEL);
    if (!code) code = choose_reader(run);
    if (code) return code;
    if ((code = classes_of_model(run, &p->classes, p->model))) return code;
    code = predict_check_output(settings->output, p,
                                p->classes.count && !settings->probabilities && !settings->decision);
    if (code) return code;
    if (type == KILN_TYPE_DEFAULT && model_tensor_shape(p->model, "W", &stored, &rows, &cols)) type = stored;
    if ((code = run_read(run, &p->data, run->arguments[1], type, p->model))) return code;
    const kiln_matrix *X = kiln_data_X(p->data);
    p->rows = kiln_matrix_rows(X);
    const int64_t passes = choose_passes(run->verb, settings, kiln_matrix_cols(X));
    const kiln_work work = choose_work(run->verb, p->data, 1, passes);
    if (!code) code = choose_device(run, p->data, &work);
    return code ? code : run_read_columns(run, p->data, p->model, &p->weights, &p->offset);
}

/* -------------------------------------------------------------------------------------- predicting */

static int take_scores(struct run *run, struct prediction *p) {
    const kiln_matrix *X = kiln_data_X(p->data);
    kiln_matrix *W = NULL, *b = NULL, *M = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    const bool intercept = model_tensor_shape(p->model, "b", &type, &rows, &cols);
    if (kiln_model_tensor(&W, run->device, kiln_matrix_type(X), p->model, "W") != KILN_OK ||
        (intercept && kiln_model_tensor(&b, run->device, kiln_matrix_type(X), p->model, "b") != KILN_OK))
        code = fail_library(USING_MODEL);
    if (!code) code = linear_predictor(&p->Eta, X, W, b, p->offset);
    if (!code) p->scores = values_of(p->Eta, &code);
    if (!code && p->offset &&
        (kiln_matrix_copy(&M, run->device, KILN_TYPE_DEFAULT, p->Eta) != KILN_OK ||
         kiln_loss_mean(M, &p->loss, M) != KILN_OK))
        code = fail_library(WORKING);
    if (!code && p->offset) p->means = values_of(M, &code);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    kiln_matrix_free(M);
    return code;
}

static int take_means(struct prediction *p) {
    kiln_matrix *P = NULL;
    int code = 0;
    if (kiln_predict(&P, p->model, kiln_data_X(p->data)) != KILN_OK) return fail_library(USING_MODEL);
    p->means = values_of(P, &code);
    if (!is_linear(p->model)) p->columns = kiln_matrix_cols(P);
    if (!p->Eta) { /* of numbers it is what is predicted */
        p->Eta = P;
        P = NULL;
    }
    kiln_matrix_free(P);
    return code;
}

/* The targets as the model's classes have them. */
static int take_labels(struct prediction *p, const kiln_matrix *y) {
    int code = 0;
    double *labels = values_of(y, &code);
    if (!code) code = classes_translate(labels, p->rows, &p->classes, p->data);
    if (!code && kiln_device_open(&p->host, "cpu", NULL) != KILN_OK) code = fail_library(WORKING);
    if (!code) code = host_matrix(&p->y, p->host, p->rows, 1, labels);
    free(labels);
    return code;
}

static int measure_all(struct prediction *p) {
    const kiln_matrix *y = kiln_data_y(p->data);
    const int64_t targets = p->classes.count ? 1 : p->columns,
                  curves = p->classes.count ? p->classes.count : p->columns;
    const kiln_metrics_options options = {
        .size = sizeof options, .explained = p->evaluated, .curves = p->evaluated && curves <= JUDGED_MOST};
    kiln_loss loss = p->loss;
    int code = 0;
    if (!y || kiln_matrix_cols(y) != targets || !p->rows || !is_linear(p->model)) return 0;
    if (p->classes.count && (code = take_labels(p, y))) return code;
    loss.y = p->y ? p->y : y;
    loss.weights = p->weights;
    loss.offset = p->offset;
    return metrics_measure(&p->metrics, &loss, &p->classes, p->Eta, &options);
}

static int measure(struct run *run, struct prediction *p) {
    const double start = clock_seconds();
    const int code = measure_all(p);
    run->seconds.measure = clock_seconds() - start;
    return code;
}

int prediction_make(struct run *run, struct prediction *p) {
    const struct settings *settings = run->settings;
    kiln_type type;
    int64_t rows, columns = 1;
    kiln_device_statistics before = {0};
    int code = read_data(run, p);
    if (code) return code;
    kiln_device_get_statistics(run->device, &before);
    double start = clock_seconds();
    p->single = kiln_matrix_type(kiln_data_X(p->data)) == KILN_F32;
    model_tensor_shape(p->model, "W", &type, &rows, &columns);
    p->columns = columns;
    const bool glm = is_linear(p->model) && p->loss.kind == KILN_LOSS_GLM;
    if (p->classes.count || settings->decision || glm) code = take_scores(run, p);
    if (!code && !p->means) code = take_means(p);
    run->seconds.solve = run_account(run, &before, clock_seconds() - start);
    if (!code) code = measure(run, p);
    p->shown = settings->decision                             ? p->scores
               : p->classes.count && !settings->probabilities ? NULL
                                                              : p->means;
    if (settings->probabilities) p->columns = p->classes.count;
    return code;
}

/* ----------------------------------------------------------------------------------------- telling */

/* Numbers as numbers, so that a label reads as it stands in the data. */
static void put_class(struct result *row, const void *of, int64_t class) {
    const struct classes *classes = of;
    if (classes->names)
        PUT(row, "", TEXT(classes->names[class]));
    else
        PUT(row, "", NUMBER(classes->values[class]));
}

static void put_number(struct result *row, const void *of, int64_t i) {
    PUT(row, "", NUMBER(((const double *)of)[i]));
}

static void put_predicted(struct result *row, const void *of, int64_t i) {
    const struct prediction *p = of;
    if (!p->shown)
        put_class(row, &p->classes, predicted_class(p, i));
    else if (p->columns == 1)
        put_number(row, p->shown, i);
    else
        PUT(row, "", TABLE(p->columns, put_number, p->shown), .first = i * p->columns);
}

static void put_prediction(struct result *result, struct run *run, const struct prediction *p) {
    run_put(result, run, "kiln.prediction/1");
    PUT(result, "algorithm", TEXT(kiln_model_text(p->model, "algorithm")));
    run_put_device(result, run);
    choose_put(result, run);
    run_put_shape(result, kiln_data_X(p->data));
    PUT(result, "targets", COUNT(p->classes.count ? 1 : p->columns));
    PUT(result, "classes", TABLE(p->classes.count, p->classes.count ? put_class : NULL, &p->classes));
    if (p->metrics.made)
        metrics_put(result, &p->metrics);
    else
        PUT(result, "metrics", .kind = ROW_NONE);
    PUT(result, "output", TEXT(run->settings->output));
    run_put_seconds(result, run, false);
    if (!run->settings->output) PUT(result, "predictions", TABLE(p->rows, put_predicted, p));
}

static int tell_json(struct run *run, const struct prediction *p) {
    struct result result;
    result_begin(&result);
    put_prediction(&result, run, p);
    const int code = result_print_json(&result);
    result_free(&result);
    return code;
}

/* "predicted 120 rows: accuracy 0.9, AUC 0.95", and the confusion table of a classifier. */
static int tell_people(const struct prediction *p) {
    char line[800] = "";
    struct result result;
    for (int i = 0; i < p->metrics.count; i++) {
        const struct metric *metric = &p->metrics.list[i];
        const size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%s %s", i ? ", " : "", metric->title,
                 text_number(metric->value));
    }
    if (!p->metrics.made)
        say("predicted %s; the %s no targets to compare with", text_plural(p->rows, "row"),
            is_linear(p->model) ? "data have" : "model has");
    else
        say("predicted %s: %s", text_plural(p->rows, "row"), line);
    if (!p->metrics.made || talk_quiet()) return 0;
    result_begin(&result);
    metrics_put_confusion(&result, &p->metrics);
    return result_print(&result, stderr);
}

/* If no class is unknown by its name, which the reader has said then, its number may be. */
static void warn_unknown(const struct prediction *p) {
    const double weight = metrics_unknown(&p->metrics);
    if (!(weight > 0) || (kiln_data_format(p->data) == KILN_FILE_CSV && kiln_data_class_name(p->data, 0, 0)))
        return;
    say_error("kiln: warning: rows of a class that the model does not know %s %s; they count as wrong",
              p->weights ? "weigh" : "number", text_number(weight));
}

/* A link whose inverse leaves the family's range predicts what cannot be: a negative count, no number at
 * all. */
static void warn_range(const struct prediction *p) {
    const kiln_range range = kiln_family_range(p->loss.family, p->loss.parameter);
    int64_t rows = 0, first = 0;
    if (!p->means || p->loss.kind != KILN_LOSS_GLM) return;
    for (int64_t i = 0; i < p->rows; i++) {
        const double mean = p->means[i];
        const bool possible = mean >= range.least && mean <= range.most && isfinite(mean);
        if (!possible && rows++ == 0) first = i + 1;
    }
    if (!rows) return;
    say_error("kiln: warning: the link %s gives %s a mean that %s cannot have (the first is row %lld)",
              kiln_link_name(p->loss.link), text_plural(rows, "row"), kiln_family_name(p->loss.family),
              (long long)first);
    if (p->metrics.made && isnan(metrics_get(&p->metrics, "deviance")))
        say_error("kiln: warning: deviance and D2 are not known, as these rows have none");
    say_error("hint: train with --link %s, whose means stay inside",
              kiln_link_name(kiln_family_describe(p->loss.family)->link));
}

/* With --allow-nonfinite a row may have no score, and then no label that means anything. */
void prediction_warn(const struct prediction *p) {
    warn_unknown(p);
    warn_range(p);
    const int64_t columns = p->classes.count == 2 ? 1 : p->classes.count;
    int64_t rows = 0, first = 0;
    for (int64_t i = 0; i < p->rows && p->scores && columns; i++) {
        bool undecided = false;
        for (int64_t c = 0; c < columns; c++) undecided |= isnan(p->scores[i * columns + c]);
        if (undecided && rows++ == 0) first = i + 1;
    }
    if (rows)
        say_error("kiln: warning: the scores of %s are not numbers (the first is row %lld): their labels "
                  "mean nothing",
                  text_plural(rows, "row"), (long long)first);
}

void prediction_free(struct prediction *p) {
    free(p->scores);
    free(p->means);
    kiln_matrix_free(p->Eta);
    kiln_matrix_free(p->y);
    kiln_device_close(p->host);
    metrics_free(&p->metrics);
    classes_free(&p->classes);
    kiln_matrix_free(p->offset);
    kiln_matrix_free(p->weights);
    kiln_data_free(p->data);
    kiln_model_free(p->model);
}

int verb_predict(struct run *run) {
    struct prediction p = {0};
    const char *output = run->settings->output;
    int code = run_check_outputs(run);
    if (!code) code = prediction_make(run, &p);
    double start = clock_seconds();
    progress_end();
    if (!code && (output || !talk_json())) code = predict_write(run, &p, output);
    run->seconds.write = clock_seconds() - start;
    if (!code) prediction_warn(&p);
    if (!code) code = tell_people(&p);
    if (!code && talk_json()) code = tell_json(run, &p);
    prediction_free(&p);
    return code;
}
