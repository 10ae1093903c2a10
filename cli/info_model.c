/* kiln info MODEL: metadata, tensors, and the largest coefficients. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "cv.h"
#include "info.h"

enum { TOP = 10, TARGETS_SHOWN = 8, LIST_SHOWN = 10 };

struct top {
    int64_t feature[TOP];
    double weight[TOP];
    int count;
};

static const char *text_of(const json_t *value) {
    const char *text = json_string_value(value);
    return text ? text : "?";
}

/* Names of the columns of X as a JSON array, from the model's "features", or from its "schema": a numeric
 * column is one feature, and perhaps "age missing", a text column one a level but its reference,
 * "carrier=AA". Empty if the model does not say. */
/* A JSON array, empty if the model does not say. */
static json_t *feature_names(const kiln_model *model) {
    const char *features = kiln_model_text(model, "features"), *schema = kiln_model_text(model, "schema");
    json_t *names = features ? json_loads(features, 0, NULL) : NULL;
    if (json_is_array(names)) return names;
    json_decref(names);
    names = json_array();
    json_t *root = schema ? json_loads(schema, 0, NULL) : NULL, *column, *level;
    size_t i, k;
    json_array_foreach(json_object_get(root, "columns"), i, column) {
        const char *name = text_of(json_object_get(column, "name"));
        const char *reference = json_string_value(json_object_get(column, "reference"));
        json_t *pair = json_object_get(column, "of"); /* its levels are "x:b=y" */
        const char *first = pair ? text_of(json_array_get(pair, 0)) : name;
        json_t *levels = json_object_get(column, "levels");
        if (!json_is_array(levels)) json_add(names, json_text(name));
        if (json_object_get(column, "indicator")) json_add(names, json_sprintf("%s missing", name));
        json_array_foreach(levels, k, level) if (!reference || strcmp(reference, text_of(level)) != 0)
            json_add(names, json_sprintf("%s=%s", first, text_of(level)));
    }
    json_decref(root);
    return names;
}

static void name_of(char *text, size_t room, const json_t *names, int64_t feature) {
    const char *name = json_string_value(json_array_get(names, (size_t)feature));
    if (name)
        snprintf(text, room, "%s", name);
    else
        snprintf(text, room, "column %lld", (long long)feature + 1);
}

/* The largest by magnitude among column `target` of W, largest first. */
static struct top find_top(const double *W, int64_t n, int64_t k, int64_t target) {
    struct top top = {.count = 0};
    for (int64_t j = 0; j < n; j++) {
        double weight = W[j * k + target];
        if (weight == 0 || isnan(weight)) continue;
        if (top.count == TOP && fabs(weight) <= fabs(top.weight[TOP - 1])) continue;
        int at = top.count < TOP ? top.count++ : TOP - 1;
        for (; at > 0 && fabs(top.weight[at - 1]) < fabs(weight); at--) {
            top.weight[at] = top.weight[at - 1];
            top.feature[at] = top.feature[at - 1];
        }
        top.weight[at] = weight;
        top.feature[at] = j;
    }
    return top;
}

/* W as doubles, to free. */
static int coefficients(struct run *run, const kiln_model *model, double **values, int64_t *n, int64_t *k) {
    kiln_matrix *W = NULL;
    int code = run_open_device(run, "cpu");
    if (code) return code;
    if (kiln_model_tensor(&W, run->device, KILN_F64, model, "W") != KILN_OK) return fail_library(USING_MODEL);
    *n = kiln_matrix_rows(W);
    *k = kiln_matrix_cols(W);
    *values = malloc((size_t)(*n * *k) * sizeof **values + 1);
    if (!*values)
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the coefficients");
    else if (kiln_matrix_get(*values, W) != KILN_OK)
        code = fail_library(WORKING);
    kiln_matrix_free(W);
    return code;
}

struct described {
    const kiln_model *model;
    double *W;
    int64_t n, k, count;
    struct top *top; /* of each target */
    json_t *names;
    struct classes classes;
};

static int find_all(struct described *d) {
    if (!(d->top = malloc((size_t)d->k * sizeof *d->top + 1)))
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the coefficients");
    for (int64_t target = 0; target < d->k; target++) {
        d->top[target] = find_top(d->W, d->n, d->k, target);
        d->count += d->top[target].count;
    }
    return 0;
}

/* The at-th of all targets' largest coefficients; people see those of the first targets. */
static void put_top(struct result *row, const void *of, int64_t at) {
    const struct described *d = of;
    int64_t target = 0;
    char name[200], buffer[SHORTEST_ROOM];
    for (; at >= d->top[target].count; target++) at -= d->top[target].count;
    const struct top *top = &d->top[target];
    const char *label = target < TARGETS_SHOWN ? "" : NULL;
    /* The only column of two classes is the second's. */
    const char *class = d->classes.count ? classes_name(&d->classes, d->k == 1 ? 1 : target, buffer) : NULL;
    if (class) class = result_hold(row, class, buffer);
    if (label && at == 0 && class)
        PUT(row, NULL, TEXT(class), .head = "largest coefficients of class ");
    else if (label && at == 0 && d->k > 1)
        PUT(row, NULL, COUNT(target + 1), .head = "largest coefficients of target ");
    else if (label && at == 0)
        PUT_LINE(row, "largest coefficients");
    name_of(name, sizeof name, d->names, top->feature[at]);
    PUT(row, "weight", NUMBER(top->weight[at]), .label = label, .before = "  ", .width = 13);
    PUT(row, "name", TEXT(result_hold(row, name, name)), .label = label, .before = "  ");
    PUT(row, "column", COUNT(top->feature[at] + 1));
    PUT(row, "target", COUNT(target + 1));
    if (class) PUT(row, "class", TEXT(class));
}

static void put_tensor(struct result *row, const void *of, int64_t i) {
    const struct described *d = of;
    kiln_type type;
    int64_t rows, cols;
    PUT(row, "name", TEXT(kiln_model_tensor_info(d->model, i, &type, &rows, &cols)), .label = "",
        .before = "  ", .width = -13);
    PUT(row, "rows", COUNT(rows), .label = "", .before = " ");
    PUT(row, "columns", COUNT(cols), .label = "", .before = " x ");
    PUT(row, "type", TEXT(type_name(type)), .label = "", .before = ", ");
}

struct sentence {
    char text[1600];
    size_t used;
};

static void append(struct sentence *sentence, const char *format, ...) {
    const size_t room = sizeof sentence->text - sentence->used;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(sentence->text + sentence->used, room, format, args);
    va_end(args);
    sentence->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* A column of a CSV file is its name and how many values it has, if these are text. */
static void append_value(struct sentence *sentence, const json_t *value) {
    const json_t *levels = json_object_get(value, "levels");
    if (json_is_real(value))
        append(sentence, "%s", text_number(json_real_value(value)));
    else if (json_is_integer(value))
        append(sentence, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        append(sentence, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_string(value) || json_is_object(value))
        append(sentence, "%s",
               json_is_object(value) ? text_of(json_object_get(value, "name")) : text_of(value));
    if (levels) append(sentence, " (%s)", text_plural((int64_t)json_array_size(levels), "value"));
}

static void append_list(struct sentence *sentence, const json_t *list) {
    const json_t *value;
    size_t i;
    json_array_foreach(list, i, value) {
        if (i == LIST_SHOWN) break;
        append(sentence, "%s", i ? ", " : "");
        append_value(sentence, value);
    }
    if (json_array_size(list) > LIST_SHOWN)
        append(sentence, " and %lld more", (long long)json_array_size(list) - LIST_SHOWN);
}

/* Tells what training noted, "l2 0; intercept yes; ..."; without what was not given
 * or is empty, and tables, which --json shows. */
static void print_metadata(const char *key, const char *text) {
    json_t *root = *text == '{' || *text == '[' ? json_loads(text, 0, NULL) : NULL, *value;
    struct sentence sentence = {"", 0};
    const char *name;
    if (json_is_object(root) && strcmp(key, "cross_validation") == 0) {
        cv_print(stdout, root);
        json_decref(root);
        return;
    }
    if (!root) append(&sentence, "%s", text);
    if (json_is_array(root)) append_list(&sentence, root);
    json_object_foreach(root, name, value) {
        if (json_is_null(value) || json_is_object(value)) continue;
        append(&sentence, "%s%s ", sentence.used ? "; " : "", name);
        if (json_is_array(value))
            append_list(&sentence, value);
        else
            append_value(&sentence, value);
    }
    json_decref(root);
    if (!sentence.used) return;
    printf("  %-14s", key);
    text_wrap(stdout, sentence.text, 16, 100);
}

static int tell(struct run *run, const char *path, const struct described *d) {
    struct result result;
    json_t *metadata = json_object();
    kiln_type type;
    int64_t rows, cols, tensors = 0;
    const char *key;
    if (!talk_json()) printf("model %s\n", path);
    for (int64_t i = 0; (key = kiln_model_key(d->model, i)); i++) {
        const char *text = kiln_model_text(d->model, key);
        if (!talk_json()) print_metadata(key, text);
        json_put_embedded(metadata, key, text);
    }
    while (kiln_model_tensor_info(d->model, tensors, &type, &rows, &cols)) tensors++;
    result_begin(&result);
    run_put(&result, run, "kiln.info/1");
    PUT(&result, "kind", TEXT("model"));
    PUT(&result, "file", TEXT(path));
    PUT(&result, "algorithm", TEXT(kiln_model_text(d->model, "algorithm")));
    PUT(&result, "metadata", JSON(metadata));
    PUT(&result, "tensors", TABLE(tensors, put_tensor, d), .head = "tensors");
    PUT(&result, "top_coefficients", TABLE(d->count, put_top, d));
    if (d->k > TARGETS_SHOWN)
        PUT_LINE(&result, "and %lld more: --json shows all", (long long)(d->k - TARGETS_SHOWN));
    const int code = run_tell(run, &result);
    result_free(&result);
    return code;
}

int info_model(struct run *run, const char *path) {
    kiln_model *model = NULL;
    struct described d = {.model = NULL};
    int64_t rows, cols;
    kiln_type type;
    int code = run_load_model(&model, path);
    d.model = model;
    if (!code && model_tensor_shape(model, "W", &type, &rows, &cols))
        code = coefficients(run, model, &d.W, &d.n, &d.k);
    if (!code && d.W) code = classes_of_model(run, &d.classes, model);
    if (!code) code = find_all(&d);
    d.names = code ? NULL : feature_names(model);
    if (!code) code = tell(run, path, &d);
    json_decref(d.names);
    classes_free(&d.classes);
    free(d.top);
    free(d.W);
    kiln_model_free(model);
    return code;
}
