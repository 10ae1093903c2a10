/* This file computes how good predictions are: what of the library's metrics is told, and how. */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- list */

void metrics_free(struct metrics *metrics) {
    kiln_metrics_free(metrics->made);
    *metrics = (struct metrics){0};
}

void metrics_add(struct metrics *metrics, const char *key, const char *title, double value) {
    if (metrics->count < METRICS_MOST)
        metrics->list[metrics->count++] = (struct metric){key, title, value, NULL};
}

double metrics_get(const struct metrics *metrics, const char *key) {
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->list[i].key, key) == 0) return metrics->list[i].value;
    return NAN;
}

double metrics_unknown(const struct metrics *metrics) {
    double weight = 0;
    for (int64_t j = 0; j < metrics->classes; j++)
        weight += metrics->confusion[metrics->classes * metrics->classes + j];
    return weight;
}

static json_t *confusion_row(const struct metrics *metrics, int64_t i) {
    json_t *row = json_array();
    for (int64_t j = 0; j < metrics->classes; j++)
        json_add(row, json_number_or_null(metrics->confusion[i * metrics->classes + j]));
    return row;
}

static json_t *confusion_json(const struct metrics *metrics) {
    json_t *table = json_object(), *names = json_array(), *rows = json_array();
    char buffer[SHORTEST_ROOM];
    for (int64_t i = 0; i < metrics->classes; i++) {
        json_add(rows, confusion_row(metrics, i));
        json_add(names, json_text(classes_name(metrics->labels, i, buffer)));
    }
    if (metrics_unknown(metrics) > 0) json_put(table, "unknown", confusion_row(metrics, metrics->classes));
    json_put(table, "classes", names);
    json_put(table, "rows", rows);
    return table;
}

void metrics_put(struct result *result, const struct metrics *metrics) {
    result_open(result, "metrics", true);
    for (int i = 0; i < metrics->count; i++) {
        const struct metric *metric = &metrics->list[i];
        PUT(result, metric->key, NUMBER(metric->value), .label = metric->title,
            .shown = !isnan(metric->value) ? NULL
                     : metric->unknown     ? metric->unknown
                                           : "not known");
    }
    if (metrics->classes) PUT(result, "confusion", JSON(confusion_json(metrics)));
    result_close(result);
}

/* A row for each true class, and one for those that the model does not know; a column for each predicted
 * one. */
static void put_confusion(struct result *row, const void *of, int64_t i) {
    const struct metrics *metrics = of;
    const int64_t count = metrics->classes;
    char buffer[SHORTEST_ROOM];
    const char *name = i < count ? classes_name(metrics->labels, i, buffer) : "(unknown)";
    PUT(row, NULL, TEXT(result_hold(row, name, buffer)), .label = "true \\ predicted", .width = 16);
    for (int64_t j = 0; j < count; j++) {
        name = classes_name(metrics->labels, j, buffer);
        PUT(row, NULL, NUMBER(metrics->confusion[i * count + j]), .label = result_hold(row, name, buffer),
            .width = 10);
    }
}

void metrics_put_confusion(struct result *result, const struct metrics *metrics) {
    const int64_t count = metrics->classes;
    if (count > CONFUSION_MOST)
        PUT_LINE(result, "confusion table of %s classes: --json has it", text_count(count));
    else if (count)
        PUT(result, NULL, TABLE(count + (metrics_unknown(metrics) > 0), put_confusion, metrics));
}

/* --------------------------------------------------------------------------------------- measures */

/* Holds what the library's metrics are called; those that are not here are not told. */
static const struct title {
    const char *key, *title;
    bool evaluated; /* kiln evaluate's alone */
    bool rises;     /* the better the larger */
} titles[] = {{"deviance", "deviance", false, false},
              {"mean_deviance", "mean dev.", false, false},
              {"accuracy", "accuracy", false, true},
              {"log_loss", "log loss", false, false},
              {"brier", "Brier", false, false},
              {"unknown", "unknown", false, false},
              {"auc", "AUC", false, true},
              {"balanced_accuracy", "balanced", true, true},
              {"macro_f1", "macro F1", true, true},
              {"r2", "R2", false, true},
              {"rss", "RSS", false, false},
              {"rmse", "RMSE", false, false},
              {"mae", "MAE", false, false},
              {"mean_error", "mean error", true, false},
              {"d2", "D2", true, true}};

static const struct title *title_of(const char *key) {
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(titles[i].key, key) == 0) return &titles[i];
    return NULL;
}

bool metrics_rises(const char *key) {
    const struct title *title = title_of(key);
    return title && title->rises;
}

int metrics_measure(struct metrics *metrics, const kiln_loss *loss, const struct classes *classes,
                    const kiln_matrix *Eta, const kiln_metrics_options *options) {
    kiln_metrics_options own = options ? *options : (kiln_metrics_options){.size = sizeof own};
    const char *key;
    metrics->labels = classes;
    own.classes = classes->count ? classes->values : NULL;
    own.class_count = classes->count;
    if (kiln_metrics_of(&metrics->made, loss, Eta, &own) != KILN_OK) return fail_library(WORKING);
    for (int64_t i = 0; (key = kiln_metrics_name(metrics->made, i)); i++) {
        const struct title *title = title_of(key);
        if (title && (own.explained || !title->evaluated))
            metrics_add(metrics, title->key, title->title, kiln_metrics_value(metrics->made, key));
    }
    metrics->confusion = kiln_metrics_confusion(metrics->made, &metrics->classes);
    return 0;
}

int host_matrix(kiln_matrix **A, kiln_device *host, int64_t rows, int64_t cols, const double *values) {
    return kiln_matrix_dense(A, host, KILN_F64, rows, cols, values) == KILN_OK ? 0 : fail_library(WORKING);
}

/* ---------------------------------------------------------------------------------- device to host */

double *values_of(const kiln_matrix *A, int *code) {
    int64_t count = kiln_matrix_rows(A) * kiln_matrix_cols(A);
    double *values = malloc((size_t)count * sizeof *values + 1);
    if (!values) {
        *code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld values", (long long)count);
        return NULL;
    }
    if (kiln_matrix_get(values, A) != KILN_OK) {
        *code = fail_library(WORKING);
        free(values);
        return NULL;
    }
    /* From the end, each float widens into room whose floats have been read already. */
    if (kiln_matrix_type(A) == KILN_F32)
        for (int64_t i = count - 1; i >= 0; i--) {
            float single;
            memcpy(&single, (char *)values + (size_t)i * sizeof single, sizeof single);
            values[i] = single;
        }
    return values;
}

/* Eta = 1 b. */
static kiln_status fill_intercept(kiln_matrix *Eta, const kiln_matrix *b) {
    kiln_matrix *ones = NULL;
    kiln_status status = kiln_matrix_dense(&ones, kiln_matrix_device(Eta), kiln_matrix_type(Eta),
                                           kiln_matrix_rows(Eta), 1, NULL);
    if (status == KILN_OK) status = kiln_fill(ones, 1);
    if (status == KILN_OK) status = kiln_multiply(Eta, 1, KILN_PLAIN, ones, b, 0, NULL);
    kiln_matrix_free(ones);
    return status;
}

/* The same of one column, without a vector of ones. */
static kiln_status fill_number(kiln_matrix *Eta, const kiln_matrix *b) {
    double number = 0;
    float single = 0;
    const bool narrow = kiln_matrix_type(b) == KILN_F32;
    const kiln_status status = kiln_matrix_get(narrow ? (void *)&single : &number, b);
    return status == KILN_OK ? kiln_fill(Eta, narrow ? (double)single : number) : status;
}

int linear_predictor(kiln_matrix **Eta, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                     const kiln_matrix *offset) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t rows = kiln_matrix_rows(X), columns = kiln_matrix_cols(W);
    kiln_matrix *made = NULL;
    kiln_status status = KILN_OK;
    double *one = malloc((size_t)columns * sizeof *one);
    if (!one)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld columns", (long long)columns);
    for (int64_t c = 0; c < columns; c++) one[c] = 1;
    status = kiln_matrix_dense(&made, device, type, rows, columns, NULL);
    if (status == KILN_OK && b) status = columns == 1 ? fill_number(made, b) : fill_intercept(made, b);
    if (status == KILN_OK) status = kiln_multiply(made, 1, KILN_PLAIN, X, W, b ? 1 : 0, b ? made : NULL);
    if (status == KILN_OK && offset) status = kiln_combine(made, one, made, one, offset);
    free(one);
    if (status == KILN_OK) {
        *Eta = made;
        return 0;
    }
    kiln_matrix_free(made);
    return fail_library(WORKING);
}
