/* Holds what a model's file says of how it came about against the rest of the file and the data's names.
 * No code can find the run again; but each entry that training writes is there, entries that say the same
 * twice agree, and "converged" is what the tolerance makes of the residual. Entries that fail are claims
 * that do not hold; those that hold are not told. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "help.h"
#include "metrics.h"
#include "verbs.h"
#include "verify.h"

void verify_entry(struct verifying *v, bool holds, const char *section, const char *key) {
    if (holds || v->count == CLAIMS_MOST) return;
    char *name = v->names[v->count];
    snprintf(name, sizeof v->names[0], "%s%s%s", section, *section ? "." : "", key);
    v->claims[v->count++] = (struct claim){name, name, NAN, NAN, false, false, true};
}

static const char *algorithm_of(const struct verifying *v) {
    return kiln_model_text(v->model, "algorithm");
}

/* Keys are separated by blanks. */
static void expect_keys(struct verifying *v, const json_t *object, const char *section, const char *keys) {
    char key[32];
    for (const char *at = keys; *at; at += strlen(key), at += *at == ' ') {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, " "), at);
        verify_entry(v, json_object_get(object, key) != NULL, section, key);
    }
}

/* ---------------------------------------------------------------------------------------- the report */

/* word NULL: it is no text. */
static bool is_choice(const char *word, const char *choices) {
    const size_t size = word ? strlen(word) : 0;
    if (size == 0) return false;
    for (const char *at = choices; at && *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == size && strncmp(at, word, size) == 0) return true;
    return false;
}

static bool is_stop(const char *name) {
    for (int stop = KILN_STOP_NONE; stop <= KILN_STOP_ROUNDING; stop++)
        if (name && strcmp(name, kiln_stop_name((kiln_stop)stop)) == 0) return true;
    return false;
}

/* A run converges by its tolerance, or where rounding leaves nothing else; residual and tolerance agree
 * with that. problems: how many there may be, each with iterations of its own, all of which are counted. */
static void check_stop(struct verifying *v, int64_t problems) {
    const char *stop = json_string_value(json_object_get(v->report, "stopped_by"));
    const json_t *converged = json_object_get(v->report, "converged");
    const double residual = verify_number(v->report, "residual"),
                 tolerance = verify_number(v->options, "tolerance"),
                 taken = verify_number(v->report, "iterations"),
                 asked = verify_number(v->options, "iterations"), /* which are all that was wanted */
        most = asked > 0 ? asked : verify_number(v->options, "max_iterations");
    const bool met = stop && strcmp(stop, "tolerance") == 0, rounded = stop && strcmp(stop, "rounding") == 0,
               ended = stop && strcmp(stop, "max_iterations") == 0;
    verify_entry(v, is_stop(stop), "report", "stopped_by");
    verify_entry(
        v, json_is_boolean(converged) && json_is_true(converged) == (met || rounded || (ended && asked > 0)),
        "report", "converged");
    verify_entry(v, !(met && residual > tolerance), "report", "residual");
    verify_entry(v, isnan(residual) || residual >= 0, "report", "residual");
    verify_entry(v, tolerance >= 0 || json_is_null(json_object_get(v->options, "tolerance")), "options",
                 "tolerance");
    verify_entry(v,
                 json_is_integer(json_object_get(v->report, "iterations")) && taken >= 0 &&
                     !(most > 0 && taken > most * (double)problems),
                 "report", "iterations");
    verify_entry(v, !ended || !(most > 0) || taken >= most, "report", "iterations");
}

/* A bound has a reason, and a reason a bound. */
static void check_certificate(struct verifying *v) {
    const json_t *gap = json_object_get(v->report, "optimality_gap"),
                 *by = json_object_get(v->report, "certificate");
    expect_keys(v, v->report, "report", "optimality_gap certificate");
    if (!gap || !by) return;
    verify_entry(
        v, json_is_null(by) || is_choice(json_string_value(by), "duality gap|curvature|normal equations"),
        "report", "certificate");
    verify_entry(v, json_is_null(gap) == json_is_null(by), "report", "optimality_gap");
}

/* A solver is called as --solver calls it, or more exactly: as newton_secant.c does where few pairs stand for
 * the Hessian, and linreg_direct.c where the factor is one of the rows' Gram matrix. */
static bool is_solver(const char *solver, const char *choices) {
    static const char *const exact[][2] = {{"newton", "newton (L-BFGS steps)"},
                                           {"cholesky", "cholesky-rows"}};
    for (size_t i = 0; solver && i < sizeof exact / sizeof *exact; i++)
        if (strcmp(solver, exact[i][1]) == 0) return is_choice(exact[i][0], choices);
    return is_choice(solver, choices);
}

static void check_solver(struct verifying *v, bool linear) {
    const kiln_option *option = algorithm_option(algorithm_of(v), "solver");
    const char *solver = json_string_value(json_object_get(v->report, "solver"));
    const bool positive = json_is_true(json_object_get(v->options, "positive")); /* has one of its own */
    if (linear && (option || positive))
        verify_entry(
            v, positive ? solver && strcmp(solver, "active-set") == 0 : is_solver(solver, option->choices),
            "report", "solver");
}

/* ------------------------------------------------------------------------------- what is said twice */

/* The number at `column` of a tensor; NaN if it is not there, or with v->code where it cannot be read. */
static double number_of(struct verifying *v, kiln_device *device, const char *tensor, int64_t column) {
    kiln_matrix *values = NULL;
    kiln_type type;
    int64_t rows, cols;
    double *all = NULL, value = NAN;
    if (v->code || !model_tensor_shape(v->model, tensor, &type, &rows, &cols) || column >= rows * cols)
        return NAN;
    if (kiln_model_tensor(&values, device, KILN_F64, v->model, tensor) != KILN_OK)
        v->code = fail_library(USING_MODEL);
    if (!v->code) all = values_of(values, &v->code);
    if (!v->code) value = all[column];
    free(all);
    kiln_matrix_free(values);
    return value;
}

/* Entries of options and report that a tensor says, too. */
static const struct twin {
    const char *algorithm;
    bool reported; /* in the report */
    const char *key, *tensor;
    int64_t column;
} twins[] = {{"als", true, "mean", "settings", 0},         {"als", true, "l2", "settings", 1},
             {"als", false, "l2", "settings", 1},          {"als", false, "alpha", "settings", 2},
             {"als", false, "biases", "settings", 3},      {"als", false, "counted", "settings", 4},
             {"als", false, "implicit", "settings", 5},    {"sfa", true, "mean", "settings", 0},
             {"sfa", true, "l2", "settings", 1},           {"sfa", false, "l2", "settings", 1},
             {"sfa", false, "damping", "settings", 2},     {"gap", false, "prior", "settings", 0},
             {"gap", false, "shape", "settings", 1},       {"gap", false, "rate", "settings", 2},
             {"glm", false, "parameter", "parameters", 0}, {"glm", false, "link_power", "parameters", 1},
             {"svm", false, "epsilon", "parameters", 0}};

static void check_twins(struct verifying *v, kiln_device *device) {
    const bool no_prior = verify_choice(v->options, algorithm_of(v), "prior") == KILN_GAP_NO_PRIOR;
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
        const struct twin *twin = &twins[i];
        if (strcmp(twin->algorithm, algorithm_of(v)) != 0) continue;
        if (no_prior && strcmp(twin->key, "prior") != 0)
            continue; /* whose shape and rate have no part in it */
        const json_t *said = json_object_get(twin->reported ? v->report : v->options, twin->key);
        const double value = json_is_string(said)
                                 ? (double)verify_choice(v->options, twin->algorithm, twin->key)
                             : json_is_boolean(said) ? json_is_true(said)
                             : json_is_number(said)  ? json_number_value(said)
                                                     : NAN,
                     other = number_of(v, device, twin->tensor, twin->column);
        verify_entry(v, value == other || (!said && isnan(other)), twin->reported ? "report" : "options",
                     twin->key);
    }
}

static bool same_text(const struct verifying *v, const char *key, const char *value) {
    const char *text = kiln_model_text(v->model, key);
    return text && value ? strcmp(text, value) == 0 : text == value;
}

/* Options that the model's texts and shapes say, too. */
static void check_texts(struct verifying *v) {
    static const char *const metrics[] = {"ratio", "ratio", "interval", "ordinal"};
    const char *algorithm = algorithm_of(v);
    const json_t *options = v->options;
    if (strcmp(algorithm, "glm") == 0) {
        verify_entry(v, same_text(v, "family", json_string_value(json_object_get(options, "family"))),
                     "options", "family");
        verify_entry(v, same_text(v, "link", json_string_value(json_object_get(options, "link"))), "options",
                     "link");
    }
    if (strcmp(algorithm, "kmeans") == 0)
        verify_entry(v,
                     same_text(v, "geometry",
                               json_is_true(json_object_get(options, "spherical")) ? "spherical" : NULL),
                     "", "geometry");
    if (strcmp(algorithm, "kmeans") == 0)
        verify_entry(v, same_text(v, "targets", "[\"cluster\",\"distance\"]"), "", "targets");
    const int64_t metric = verify_choice(options, algorithm, "metric");
    if (strcmp(algorithm, "mds") == 0)
        verify_entry(v, metric >= 0 && metric < 4 && same_text(v, "metric", metrics[metric]), "", "metric");
}

/* A prior that the options name is the model's; 0 leaves it to the number of topics. */
static void check_priors(struct verifying *v, kiln_device *device) {
    static const char *const priors[] = {"eta", "alpha"};
    for (int i = 0; i < 2 && strcmp(algorithm_of(v), "lda") == 0; i++) {
        const double given = verify_number(v->options, priors[i]);
        const bool learnt = i == 1 && json_is_true(json_object_get(v->options, "learn_alpha"));
        const double kept = number_of(v, device, priors[i], 0);
        verify_entry(v, learnt || given == 0 || fabs(given - kept) <= 1e-6 * kept, "options", priors[i]);
    }
}

/* ------------------------------------------------------------------------------- cross-validation */

/* Mean and standard error of a value's folds; NaN where a fold has no score. */
static void measure_folds(double *mean, double *error, const json_t *folds) {
    const double count = (double)json_array_size(folds);
    double sum = 0, squares = 0;
    const json_t *fold;
    size_t i;
    json_array_foreach(folds, i, fold) sum += json_is_number(fold) ? json_number_value(fold) : NAN;
    *mean = sum / count;
    json_array_foreach(folds, i, fold) squares +=
        (json_number_value(fold) - *mean) * (json_number_value(fold) - *mean);
    *error = sqrt(squares / (count - 1) / count);
}

static bool near(double claimed, double found) {
    return isnan(found) || fabs(claimed - found) <= 1e-9 * fabs(found);
}

/* Finds what is said of the folds' scores; the scores themselves are of models that nobody has any more. */
static void check_folds(struct verifying *v) {
    static const char section[] = "cross_validation";
    const char *text = kiln_model_text(v->model, section);
    json_t *all = text ? json_loads(text, 0, NULL) : NULL, *value;
    const char *metric = json_string_value(json_object_get(all, "metric"));
    const bool high = metric && is_choice(metric, "r2|accuracy|auc|d2");
    double best = NAN;
    bool same = true, chosen = false;
    size_t i;
    if (!json_is_integer(json_object_get(all, "folds"))) goto done; /* a path, or nothing */
    json_array_foreach(json_object_get(all, "values"), i, value) {
        const json_t *folds = json_object_get(value, "folds");
        double mean, error;
        measure_folds(&mean, &error, folds);
        same &= json_integer_value(json_object_get(all, "finished")) == (json_int_t)json_array_size(folds);
        same &=
            near(verify_number(value, "mean"), mean) && near(verify_number(value, "standard_error"), error);
        same &= near(verify_number(json_object_get(value, "metrics"), metric), mean);
        if (!isnan(mean) && !(high ? mean <= best : mean >= best)) best = mean;
    }
    json_array_foreach(json_object_get(all, "values"), i, value) {
        const double strength = verify_number(all, "best");
        const bool this = verify_number(value, "l2") == strength || verify_number(value, "l1") == strength;
        chosen |= this && near(verify_number(value, "mean"), best);
    }
    verify_entry(v, same, section, "values");
    verify_entry(v, chosen || isnan(best), section, "best");
done:
    json_decref(all);
}

/* ------------------------------------------------------------------------------------------- names */

/* Names that the model keeps are the data's, where these have any. */
static void check_names(struct verifying *v, const char *key, int64_t count,
                        const char *(*name)(const kiln_data *data, int64_t i)) {
    const char *text = kiln_model_text(v->model, key);
    json_t *names = text ? json_loads(text, 0, NULL) : NULL;
    bool same = !text || (json_is_array(names) && (int64_t)json_array_size(names) == count);
    for (int64_t i = 0; text && same && i < count && name(v->data, i); i++) {
        const char *kept = json_string_value(json_array_get(names, (size_t)i));
        same = kept && strcmp(kept, name(v->data, i)) == 0;
    }
    verify_entry(v, same, "", key);
    json_decref(names);
}

static void check_all_names(struct verifying *v, bool linear) {
    const kiln_matrix *X = kiln_data_X(v->data), *y = kiln_data_y(v->data);
    if (linear && y) check_names(v, "targets", kiln_matrix_cols(y), kiln_data_target_name);
    if (linear && kiln_model_text(v->model, "schema") && kiln_data_target_name(v->data, 0))
        verify_entry(v, kiln_model_text(v->model, "targets") != NULL, "", "targets");
    check_names(v, "features", kiln_matrix_cols(X), kiln_data_feature_name);
    check_names(v, "columns", kiln_matrix_cols(X), kiln_data_feature_name);
    check_names(v, "rows", kiln_matrix_rows(X), kiln_data_row_name);
}

/* ----------------------------------------------------------------------------------------- metrics */

/* The names of a confusion table's classes are the model's. */
static void check_confusion(struct verifying *v, const json_t *metrics) {
    const json_t *table = json_object_get(metrics, "confusion"), *row;
    const json_t *classes = json_object_get(table, "classes"), *rows = json_object_get(table, "rows");
    const char *text = kiln_model_text(v->model, "class_names");
    json_t *names = text ? json_loads(text, 0, NULL) : NULL;
    const size_t count = json_array_size(classes);
    bool same = count > 0 && json_array_size(rows) == count && (!names || json_equal(names, classes));
    size_t i;
    json_array_foreach(rows, i, row) same &= json_array_size(row) == count;
    for (i = 0; same && !names && i < count; i++) {
        char *end;
        const char *name = json_string_value(json_array_get(classes, i));
        same = name && strtod(name, &end) == number_of(v, v->device, "classes", (int64_t)i) && !*end;
    }
    verify_entry(v, same, "metrics", "confusion");
    for (i = 0; same && names && i < count; i++) {
        const double number = number_of(v, v->device, "classes", (int64_t)i);
        const char *name = number >= 0 ? kiln_data_class_name(v->data, 0, (int64_t)number) : NULL,
                   *kept = json_string_value(json_array_get(names, i));
        same = number == floor(number) && (!name || (kept && strcmp(name, kept) == 0));
    }
    verify_entry(v, same, "", "classes");
    json_decref(names);
}

/* Metrics of the rows; those whose number depends on the data come together or not at all. */
static void check_metrics(struct verifying *v) {
    kiln_loss loss = {.size = sizeof loss};
    kiln_type type;
    int64_t rows, cols;
    const char *text = kiln_model_text(v->model, "metrics");
    json_t *metrics = text ? json_loads(text, 0, NULL) : NULL;
    const bool classes = model_tensor_shape(v->model, "classes", &type, &rows, &cols);
    if (kiln_model_text(
            v->model,
            "trained_by")) { /* by the Python package, whose fits leave out what takes another pass */
        verify_entry(v, same_text(v, "trained_by", "python") && metrics, "", "trained_by");
        json_decref(metrics);
        return;
    }
    if (kiln_model_loss(&loss, v->model) != KILN_OK) return;
    const bool probable = loss.kind == KILN_LOSS_LOGISTIC || loss.kind == KILN_LOSS_SOFTMAX;
    expect_keys(v, metrics, "metrics", classes ? "accuracy" : "r2 rss rmse");
    if (classes && rows == 2) expect_keys(v, metrics, "metrics", "auc");
    if (probable) expect_keys(v, metrics, "metrics", "log_loss brier");
    if (classes) check_confusion(v, metrics);
    if (loss.kind == KILN_LOSS_SQUARED && verify_number(v->options, "l2") == 0)
        expect_keys(v, metrics, "metrics", "rank");
    if (!classes && loss.kind != KILN_LOSS_SQUARED) expect_keys(v, metrics, "metrics", "mae");
    if (loss.kind == KILN_LOSS_GLM) {
        expect_keys(v, metrics, "metrics", "null_deviance dispersion aic deviance mean_deviance");
        if (loss.family == KILN_TWEEDIE) /* whose likelihood has no formula */
            verify_entry(v, json_is_null(json_object_get(metrics, "aic")), "metrics", "aic");
        const bool outcomes = json_object_get(metrics, "log_loss") || json_object_get(metrics, "brier");
        if (outcomes) expect_keys(v, metrics, "metrics", "log_loss brier accuracy auc");
        const bool estimated = !kiln_family_describe(loss.family)->fixed_dispersion;
        if (!json_object_get(metrics, "parameters_at_most")) expect_keys(v, metrics, "metrics", "parameters");
        if (estimated && json_is_number(json_object_get(metrics, "dispersion")))
            expect_keys(v, metrics, "metrics", "residual_degrees");
    }
    json_decref(metrics);
}

/* ------------------------------------------------------------------------------------------- whole */

static void check_linear(struct verifying *v) {
    const char *algorithm = algorithm_of(v);
    kiln_type type = KILN_F64;
    int64_t rows, cols;
    const bool intercept = model_tensor_shape(v->model, "b", &type, &rows, &cols);
    model_tensor_shape(v->model, "W", &type, &rows, &cols);
    expect_keys(v, v->options, "options",
                "l2 intercept standardize max_iterations weights weights_file warm_start missing");
    if (strcmp(algorithm, "linreg") == 0) expect_keys(v, v->options, "options", "preconditioner");
    if (algorithm_option(algorithm, "l1")) expect_keys(v, v->options, "options", "l1");
    if (strcmp(algorithm, "glm") == 0) {
        const json_t *errors = json_object_get(v->options, "standard_errors");
        expect_keys(v, v->options, "options", "offset offset_file");
        verify_entry(v,
                     errors && json_is_true(errors) ==
                                   model_tensor_shape(v->model, "standard_errors", &type, &rows, &cols),
                     "options", "standard_errors");
    }
    if (model_tensor_shape(v->model, "classes", &type, &rows, &cols))
        expect_keys(v, v->options, "options", "class_weight");
    model_tensor_shape(v->model, "W", &type, &rows, &cols);
    verify_entry(v, same_text(v, "type", type == KILN_F32 ? "f32" : "f64"), "", "type");
    verify_entry(v, json_is_true(json_object_get(v->options, "intercept")) == intercept, "options",
                 "intercept");
    check_metrics(v);
}

/* Holds what each algorithm's report says of its own. */
static const struct figures {
    const char *algorithm, *keys;
} figures[] = {{"svm", "gap"},
               {"kmeans", "clusters relocated"},
               {"mds", "stress_1 setbacks"},
               {"als", "mean l2 zero_factors"},
               {"sfa", "mean l2 zero_factors"},
               {"gap", "log_likelihood side_gain"},
               {"lda", "perplexity_bound"},
               {"svd", "squares orthogonality variance rank"},
               {"pca", "squares orthogonality variance rank"},
               {"spectral", "squares orthogonality rank connected_components isolated"},
               {"hits", "eigenvalue_error weighted"},
               {"pagerank", "error_bound dangling_mass weighted"}};

static void check_figures(struct verifying *v) {
    const bool factors = is_choice(algorithm_of(v), "als|sfa|gap|lda");
    if (factors && !(verify_number(v->options, "batch") > 0)) /* whose bound is another at each batch */
        expect_keys(v, v->report, "report", "setbacks");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].algorithm, algorithm_of(v)) == 0)
            expect_keys(v, v->report, "report", figures[i].keys);
}

/* Finds whether a graph has a link whose weight is not 1, or weights are not to count. */
static void check_weights(struct verifying *v) {
    const kiln_matrix *X = kiln_data_X(v->data);
    const bool single = kiln_matrix_type(X) == KILN_F32;
    const int64_t count = kiln_matrix_nnz(X);
    void *values = malloc((size_t)count * sizeof(double) + 1);
    bool weighted = false;
    if (!values)
        v->code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld weights", (long long)count);
    else if (kiln_matrix_get_csr(NULL, NULL, values, X) != KILN_OK)
        v->code = fail_library(WORKING);
    if (v->code) goto done;
    for (int64_t e = 0; e < count && !json_is_true(json_object_get(v->options, "unweighted")); e++)
        weighted |= (single ? ((const float *)values)[e] : ((const double *)values)[e]) != 1;
    verify_entry(v, verify_number(v->report, "weighted") == weighted, "report", "weighted");
done:
    free(values);
}

/* The options of an algorithm that is no linear model are those of the registry. */
static void check_options(struct verifying *v, const struct verb *verb) {
    const kiln_algorithm *algorithm = kiln_algorithm_named(algorithm_of(v));
    for (int64_t i = 0; i < algorithm->option_count; i++)
        expect_keys(v, v->options, "options", algorithm->options[i].name);
    expect_keys(v, v->options, "options", "warm_start");
    if (verb->kinds & VERB_BIT(ROWS)) expect_keys(v, v->options, "options", "missing weights weights_file");
}

int verify_record(const struct run *run, struct verifying *v) {
    const struct verb *verb = verb_named(algorithm_of(v));
    kiln_type type;
    int64_t rows, cols;
    const bool linear = model_tensor_shape(v->model, "W", &type, &rows, &cols);
    const bool ranks = is_choice(algorithm_of(v), "hits|pagerank");
    v->device = run->device;
    verify_entry(v, kiln_model_text(v->model, "device") != NULL, "", "device");
    expect_keys(v, v->options, "options", "tolerance");
    expect_keys(v, v->report, "report", "iterations converged stopped_by residual");
    check_stop(v, linear ? cols : 1);
    if (ranks && kiln_matrix_format(kiln_data_X(v->data)) == KILN_CSR) check_weights(v);
    if (!ranks && !is_choice(algorithm_of(v), "svd|pca|spectral")) check_certificate(v);
    check_solver(v, linear);
    if (linear)
        check_linear(v);
    else
        check_options(v, verb);
    check_figures(v);
    check_twins(v, run->device);
    check_texts(v);
    check_priors(v, run->device);
    check_folds(v);
    check_all_names(v, linear);
    return v->code;
}
