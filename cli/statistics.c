/* kiln statistics: what can be said of a linear model's coefficients on its training data: errors, tests and
 * intervals, likelihoods, residuals of each row, and whether a smaller model will do. The library computes it
 * (kiln/inference.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "files.h"
#include "output.h"
#include "predict.h"
#include "progress.h"
#include "report.h"
#include "verbs.h"

struct wanted {
    const char *errors, *residuals, *against;
    double level;
};

/* clang-format off */
const struct option statistics_options[STATISTICS_OPTIONS] = {
    {.name = "errors", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .value = "NAME",
     .choices = "model|hc0|hc1|hc2|hc3|cluster", .standard = "model",
     .offset = offsetof(struct wanted, errors),
     .help = "How the covariance of the coefficients is estimated: by the model, robust (hc0 to hc3), or "
             "robust for rows that belong together (cluster, with --groups)."},
    {.name = "level", .kind = OPTION_POSITIVE, .group = GROUP_MODEL, .value = "NUMBER", .standard = "0.95",
     .least = 0, .most = 1, .offset = offsetof(struct wanted, level),
     .help = "What intervals hold, below 1."},
    {.name = "against", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "MODEL",
     .offset = offsetof(struct wanted, against),
     .help = "Test whether this smaller model of the same data, whose columns are among the model's, will "
             "do."},
    {.name = "residuals", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .value = "FILE",
     .offset = offsetof(struct wanted, residuals),
     .help = "Write for each row the mean, residuals, leverage and Cook's distance, as CSV."},
};
/* clang-format on */

struct statistics {
    struct run *run;
    const struct wanted *wanted;
    struct prediction p;
    kiln_inference *inference;
    kiln_matrix *y; /* of classes: 0 or 1, on X's device */
    int64_t *groups, group_count;
    double level;
    kiln_errors errors;
    char away[400]; /* that the coefficients are no optimum of these data; "": they are */
    bool compared;
    kiln_comparison comparison;
};

/* ------------------------------------------------------------------------------------------ checks */

static const char CLUSTER[] = "--errors cluster --groups COLUMN";

static int check_options(struct statistics *s) {
    const struct wanted *wanted = s->wanted;
    const struct settings *settings = s->run->settings;
    const bool grouped = settings->groups || settings->groups_file;
    const char *name;
    s->level = wanted->level > 0 ? wanted->level : 0.95;
    for (int i = 0; wanted->errors && (name = kiln_errors_name((kiln_errors)i)); i++)
        if (strcmp(name, wanted->errors) == 0) s->errors = (kiln_errors)i;
    if (s->level >= 1)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--level 0.95, for instance", "--level is %g", s->level);
    if (wanted->against && strcmp(s->run->arguments[1], "-") == 0)
        return fail_with(KILN_ERR_ARGUMENT, READING, "write them to a file",
                         "--against reads the data once for each model, which standard input cannot give");
    if (grouped && s->errors != KILN_ERRORS_CLUSTER)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, CLUSTER,
                         "--groups: the errors are not those of clusters");
    return 0;
}

static int read_clusters(struct statistics *s) {
    const int code = run_read_groups(s->run, s->p.data, &s->groups, &s->group_count);
    return code || s->groups ? code
                             : fail_with(KILN_ERR_ARGUMENT, WORKING, CLUSTER,
                                         "--errors cluster: no column says what the clusters are");
}

/* Reads how the model was trained: what is not said is not known to be none. */
static int check_training(const struct statistics *s, const json_t *used, const char *path) {
    const double l2 = json_number_value(json_object_get(used, "l2")),
                 l1 = json_number_value(json_object_get(used, "l1"));
    if (!json_is_number(json_object_get(used, "l2")))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it with kiln, without a penalty",
                         "%s: its file does not say how it was trained, and errors are those of estimates "
                         "without a penalty",
                         path);
    if (json_is_true(json_object_get(used, "positive")))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it without that",
                         "%s: its coefficients are from 0 on, and errors are those of estimates of any sign",
                         path);
    if (l2 > 0 || l1 > 0)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it with --l2 0",
                         "%s: it was trained with a penalty, and errors are those of estimates without one",
                         path);
    if (json_is_string(json_object_get(used, "class_weight")))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train it without --class-weight",
                         "%s: with weights of classes the likelihood is that of other data", path);
    if (json_is_string(json_object_get(used, "offset_file")) && !s->p.offset)
        return fail_with(KILN_ERR_DATA, READING, "--offset-file FILE, or --offset COLUMN",
                         "%s: it was trained with an offset, and statistics need the same", path);
    if (json_is_string(json_object_get(used, "weights_file")) && !s->p.weights)
        return fail_with(KILN_ERR_DATA, READING, "--weights-file FILE, or --weights COLUMN",
                         "%s: it was trained with weights of the rows, and statistics need the same", path);
    return 0;
}

/* A model's own words, where statistics would not be those of its coefficients. */
static int check_model(const struct statistics *s, const char *path) {
    if (s->p.loss.kind != KILN_LOSS_SQUARED && s->p.loss.kind != KILN_LOSS_LOGISTIC &&
        s->p.loss.kind != KILN_LOSS_GLM)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "linreg, glm and logreg of two classes have some",
                         "%s: statistics are those of a likelihood, which this model has not", path);
    json_t *used = model_options(s->p.model);
    const int code = check_training(s, used, path);
    json_decref(used);
    if (code) return code;
    if (!s->p.metrics.made)
        return fail_with(KILN_ERR_DATA, READING,
                         "--target COLUMN names the column, --target-file FILE a file", "%s has no targets",
                         s->run->arguments[1]);
    if (s->p.columns != 1)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "train a model for each target",
                         "%s: statistics are of one target", path);
    return 0;
}

/* --------------------------------------------------------------------------------------- computing */

/* The second class is 1. */
static int take_outcomes(struct statistics *s) {
    const struct prediction *p = &s->p;
    const kiln_matrix *X = kiln_data_X(p->data);
    kiln_matrix *wide = NULL;
    int code = 0;
    double *labels = values_of(p->y, &code);
    for (int64_t i = 0; !code && i < p->rows; i++) {
        if (labels[i] != p->classes.values[0] && labels[i] != p->classes.values[1])
            code = fail_with(KILN_ERR_DATA, READING, "statistics are of the training data",
                             "row %lld is of a class that the model does not know", (long long)i + 1);
        labels[i] = labels[i] == p->classes.values[1];
    }
    if (!code && (kiln_matrix_dense(&wide, s->run->device, KILN_F64, p->rows, 1, labels) != KILN_OK ||
                  kiln_matrix_copy(&s->y, s->run->device, kiln_matrix_type(X), wide) != KILN_OK))
        code = fail_library(WORKING);
    kiln_matrix_free(wide);
    free(labels);
    return code;
}

static kiln_loss loss_of(const struct statistics *s) {
    kiln_loss loss = s->p.loss;
    loss.y = s->y ? s->y : kiln_data_y(s->p.data);
    loss.weights = s->p.weights;
    loss.offset = s->p.offset;
    return loss;
}

static int infer(struct statistics *s) {
    const kiln_matrix *X = kiln_data_X(s->p.data);
    const kiln_loss loss = loss_of(s);
    const kiln_inference_options options = {
        .size = sizeof options, .errors = s->errors, .groups = s->groups, .group_count = s->group_count};
    kiln_matrix *W = NULL, *b = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    talk_doing("statistics");
    if (kiln_model_tensor(&W, s->run->device, kiln_matrix_type(X), s->p.model, "W") != KILN_OK ||
        (model_tensor_shape(s->p.model, "b", &type, &rows, &cols) &&
         kiln_model_tensor(&b, s->run->device, kiln_matrix_type(X), s->p.model, "b") != KILN_OK))
        code = fail_library(USING_MODEL);
    if (!code && kiln_inference_of(&s->inference, W, b, X, &loss, &options) != KILN_OK)
        code = fail_library(WORKING);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    return code;
}

/* Says so where the model is no optimum of the data: statistics are those of one. */
static void warn_away(struct statistics *s) {
    const double enough = 0.1, distance = kiln_inference_value(s->inference, "distance");
    if (!(distance > enough)) return;
    snprintf(s->away, sizeof s->away,
             "%s: the coefficients are up to %.3g standard errors from the best ones for these data, and "
             "statistics are those of the best",
             s->run->arguments[0], distance);
    say_error("kiln: warning: %s", s->away);
    say_error("hint: give the data, weights and offset of the training, or train until it has converged");
}

/* The model of arguments[0], on the data. */
static int make(struct statistics *s) {
    int code = prediction_make(s->run, &s->p);
    if (!code) code = check_model(s, s->run->arguments[0]);
    if (!code && s->p.classes.count) code = take_outcomes(s);
    if (!code && s->errors == KILN_ERRORS_CLUSTER) code = read_clusters(s);
    if (!code) code = infer(s);
    if (!code) warn_away(s);
    return code;
}

static void release(struct statistics *s) {
    kiln_matrix_free(s->y);
    free(s->groups);
    kiln_inference_free(s->inference);
    prediction_free(&s->p);
}

/* *small, of the smaller model by itself, on the CPU: its statistics are numbers of the host, and its data
 * and device are gone before the model's own come. */
static int infer_smaller(kiln_inference **small, const struct run *run, const struct wanted *wanted) {
    const char *arguments[MAX_ARGUMENTS];
    struct settings on_cpu = *run->settings;
    struct run own = *run;
    struct statistics s = {.run = &own, .wanted = wanted, .p.evaluated = true};
    if (!wanted->against) return 0;
    memcpy(arguments, run->arguments, (size_t)run->count * sizeof *arguments);
    arguments[0] = wanted->against;
    on_cpu.device = "cpu";
    own.arguments = arguments;
    own.settings = &on_cpu;
    const int code = make(&s);
    *small = s.inference;
    s.inference = NULL;
    release(&s);
    kiln_device_close(own.device);
    return code;
}

static int compare(struct statistics *s, const kiln_inference *small) {
    if (!small) return 0;
    s->comparison = (kiln_comparison){.size = sizeof s->comparison};
    if (kiln_inference_compare(&s->comparison, small, s->inference) != KILN_OK) return fail_library(WORKING);
    s->compared = true;
    return 0;
}

/* ------------------------------------------------------------------------------------------ telling */

static int write_residuals(const struct statistics *s) {
    enum { COLUMNS = 7 };
    const kiln_matrix *X = kiln_data_X(s->p.data);
    const kiln_loss loss = loss_of(s);
    struct output output;
    kiln_matrix *R = NULL;
    char text[SHORTEST_ROOM];
    int code = 0;
    if (!s->wanted->residuals) return 0;
    if (kiln_matrix_dense(&R, s->run->device, kiln_matrix_type(X), s->p.rows, COLUMNS, NULL) != KILN_OK ||
        kiln_inference_residuals(R, s->inference, X, &loss) != KILN_OK)
        code = fail_library(WORKING);
    double *values = code ? NULL : values_of(R, &code);
    kiln_matrix_free(R);
    if (!code) code = output_open(&output, s->wanted->residuals);
    if (!code) {
        fputs("mean,response,pearson,deviance,leverage,standardized,cooks_distance\n", output.file);
        for (int64_t i = 0; i < s->p.rows * COLUMNS; i++) {
            *text = '\0';
            if (!isnan(values[i])) text_shortest(text, values[i], s->p.single);
            fprintf(output.file, "%s%c", text, i % COLUMNS == COLUMNS - 1 ? '\n' : ',');
        }
        code = output_commit(&output);
    }
    free(values);
    return code;
}

static void put_figures(struct result *result, const kiln_inference *inference) {
    static const char *const titles[][2] = {{"rows", NULL},
                                            {"parameters", "parameters"},
                                            {"residual_degrees", "degrees"},
                                            {"deviance", "deviance"},
                                            {"null_deviance", "null dev."},
                                            {"pearson", "Pearson"},
                                            {"dispersion", "dispersion"},
                                            {"r2", "R2"},
                                            {"r2_adjusted", "adjusted R2"},
                                            {"f", "F"},
                                            {"f_p", "p of F"},
                                            {"log_likelihood", "log-likel."},
                                            {"aic", "AIC"},
                                            {"bic", "BIC"},
                                            {"groups", "groups"}};
    const char *name;
    result_open(result, "figures", false);
    for (int64_t i = 0; (name = kiln_inference_name(inference, i)); i++) {
        const char *title = NULL;
        for (size_t t = 0; t < sizeof titles / sizeof *titles; t++)
            if (strcmp(titles[t][0], name) == 0) title = titles[t][1];
        PUT(result, name, NUMBER(kiln_inference_value(inference, name)), .label = title);
    }
    result_close(result);
}

static void put_comparison(struct result *result, const struct statistics *s) {
    const kiln_comparison *c = &s->comparison;
    const bool known = isinf(c->under);
    result_open(result, "comparison", false);
    PUT(result, "against", TEXT(s->wanted->against));
    if (s->compared) {
        PUT(result, "test", TEXT(known ? "chi square" : "F"));
        PUT(result, "degrees", NUMBER(c->degrees));
        PUT(result, "under", NUMBER(c->under));
        PUT(result, "deviance", NUMBER(c->deviance));
        PUT(result, "statistic", NUMBER(c->statistic));
        PUT(result, "p", NUMBER(c->p));
        PUT(result, "likelihood_ratio", NUMBER(c->ratio));
        PUT(result, "likelihood_ratio_p", NUMBER(c->ratio_p));
    }
    result_close(result);
    if (!s->compared) return;
    PUT_LINE(
        result,
        "against %s, which has %g parameter%s less: %s = %.6g, p = %.3g; likelihood ratio %.6g, p = %.3g",
        s->wanted->against, c->degrees, c->degrees == 1 ? "" : "s", known ? "chi square" : "F", c->statistic,
        c->p, c->ratio, c->ratio_p);
}

static void put_coefficient(struct result *row, const void *of, int64_t i) {
    const struct statistics *s = of;
    const char *known = kiln_data_feature_name(s->p.data, i);
    const char *name = i == kiln_matrix_cols(kiln_data_X(s->p.data)) ? "(intercept)"
                       : known                                       ? known
                               : result_words(row, "column %lld", (long long)i + 1);
    kiln_coefficient c = {.size = sizeof c};
    kiln_inference_coefficient(&c, s->inference, i, s->level);
    const char *shown = c.dependent ? NULL : "";
    PUT(row, "name", TEXT(name));
    PUT(row, "value", NUMBER(c.value), .label = "", .before = "  ", .width = 13);
    PUT(row, "standard_error", NUMBER(c.error), .label = "", .width = c.dependent ? 61 : 13,
        .shown = c.dependent ? "depends on columns before it" : NULL);
    PUT(row, "statistic", NUMBER(c.statistic), .label = shown, .width = 9, .format = "%.3f");
    PUT(row, "p", NUMBER(c.p), .label = shown, .width = 9, .format = "%.3g");
    PUT(row, "low", NUMBER(c.low), .label = shown, .width = 13);
    PUT(row, "high", NUMBER(c.high), .label = shown, .width = 13);
    PUT(row, "exp", NUMBER(exp(c.value)));
    PUT(row, "dependent", FLAG(c.dependent));
    PUT(row, NULL, TEXT(name), .label = "", .before = "  ");
}

static int tell(const struct statistics *s) {
    struct run *run = s->run;
    const char *algorithm = kiln_model_text(s->p.model, "algorithm");
    const bool student = !isinf(kiln_inference_value(s->inference, "test_degrees"));
    struct result result;
    char from[40];
    snprintf(from, sizeof from, "%g %% from", 100 * s->level);
    result_begin(&result);
    run_put(&result, run, "kiln.statistics/1");
    PUT(&result, "algorithm", TEXT(algorithm));
    run_put_device(&result, run);
    choose_put(&result, run);
    run_put_shape(&result, kiln_data_X(s->p.data));
    PUT_LINE(&result, "statistics of %s: %s, errors by %s", algorithm, text_plural(s->p.rows, "row"),
             kiln_errors_name(s->errors));
    PUT(&result, "errors", TEXT(kiln_errors_name(s->errors)));
    PUT(&result, "level", NUMBER(s->level));
    PUT(&result, "distribution", TEXT(student ? "t" : "normal"));
    PUT(&result, "residuals", TEXT(s->wanted->residuals));
    put_figures(&result, s->inference);
    put_comparison(&result, s);
    PUT(&result, "warnings", JSON(report_add_warning(json_array(), "distance", s->away)));
    run_put_seconds(&result, run, true);
    PUT(&result, "coefficients", TABLE(kiln_inference_count(s->inference), put_coefficient, s),
        .head = result_words(&result, "  %13s %13s %9s %9s %13s %13s", "coefficient", "std. error",
                             student ? "t" : "z", "p", from, "to"));
    const int code = run_tell(run, &result);
    result_free(&result);
    return code;
}

int verb_statistics(struct run *run) {
    struct statistics s = {.run = run, .wanted = (const void *)run->settings->own.bytes, .p.evaluated = true};
    kiln_inference *small = NULL;
    int code = run_check_outputs(run);
    if (!code) code = check_options(&s);
    if (!code) code = infer_smaller(&small, run, s.wanted);
    if (!code) code = make(&s);
    if (!code) code = write_residuals(&s);
    if (!code) code = compare(&s, small);
    progress_end();
    if (!code) code = tell(&s);
    kiln_inference_free(small);
    release(&s);
    return code;
}
