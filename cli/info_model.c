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
 * column is one feature, and perhaps "age missing", a text column one a level but its reference, "carrier=AA". Empty if the model does not say. */
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
        json_t *levels = json_object_get(column, "levels");
        if (!json_is_array(levels)) json_add(names, json_text(name));
        if (json_object_get(column, "indicator")) json_add(names, json_sprintf("%s missing", name));
        json_array_foreach(levels, k, level) if (!reference || strcmp(reference, text_of(level)) != 0)
            json_add(names, json_sprintf("%s=%s", name, text_of(level)));
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

/* The class that column `target` of k belongs to, of two classes the second; NULL where the model is no classifier. */
static const char *class_of_target(const struct classes *classes, int64_t k, int64_t target, char *buffer) {
    return classes->count ? classes_name(classes, k == 1 ? 1 : target, buffer) : NULL;
}

static json_t *top_json(const double *W, int64_t n, int64_t k, const json_t *names,
                        const struct classes *classes) {
    json_t *array = json_array();
    char name[200], buffer[SHORTEST_ROOM];
    for (int64_t target = 0; target < k; target++) {
        struct top top = find_top(W, n, k, target);
        for (int i = 0; i < top.count; i++) {
            json_t *object = json_object();
            name_of(name, sizeof name, names, top.feature[i]);
            json_put_text(object, "name", name);
            json_put_count(object, "column", top.feature[i] + 1);
            json_put_count(object, "target", target + 1);
            if (classes->count) json_put_text(object, "class", class_of_target(classes, k, target, buffer));
            json_put_number(object, "weight", top.weight[i]);
            json_add(array, object);
        }
    }
    return array;
}

static void print_top(const double *W, int64_t n, int64_t k, const json_t *names,
                      const struct classes *classes) {
    char name[200], buffer[SHORTEST_ROOM];
    for (int64_t target = 0; target < k && target < TARGETS_SHOWN; target++) {
        struct top top = find_top(W, n, k, target);
        const char *class = class_of_target(classes, k, target, buffer);
        printf("largest coefficients");
        if (class)
            printf(" of class %s", class);
        else if (k > 1)
            printf(" of target %lld", (long long)target + 1);
        putchar('\n');
        for (int i = 0; i < top.count; i++) {
            name_of(name, sizeof name, names, top.feature[i]);
            printf("  %13.6g  ", top.weight[i]);
            text_put(stdout, name, 0);
            putchar('\n');
        }
    }
    if (k > TARGETS_SHOWN) printf("and %lld more: --json shows all\n", (long long)(k - TARGETS_SHOWN));
}

static int tell_json(struct run *run, const char *path, const kiln_model *model, json_t *top) {
    json_t *object = run_json(run, "kiln.info/1"), *metadata = json_object(), *tensors = json_array();
    const char *key, *name;
    json_put_text(object, "kind", "model");
    json_put_text(object, "file", path);
    json_put_text(object, "algorithm", kiln_model_text(model, "algorithm"));
    for (int64_t i = 0; (key = kiln_model_key(model, i)); i++)
        json_put_embedded(metadata, key, kiln_model_text(model, key));
    json_put(object, "metadata", metadata);
    kiln_type type;
    int64_t rows, cols;
    for (int64_t i = 0; (name = kiln_model_tensor_info(model, i, &type, &rows, &cols)); i++) {
        json_t *tensor = json_object();
        json_put_text(tensor, "name", name);
        json_put_text(tensor, "type", type_name(type));
        json_put_count(tensor, "rows", rows);
        json_put_count(tensor, "columns", cols);
        json_add(tensors, tensor);
    }
    json_put(object, "tensors", tensors);
    json_put(object, "top_coefficients", top);
    return json_print(object);
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

/* What training noted, "l2 0; intercept yes; ..."; without what was not given, and tables, which --json shows. */
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
    printf("  %-14s", key);
    text_wrap(stdout, sentence.text, 16, 100);
}

static void tell_people(const char *path, const kiln_model *model) {
    const char *key, *name;
    printf("model %s\n", path);
    for (int64_t i = 0; (key = kiln_model_key(model, i)); i++)
        print_metadata(key, kiln_model_text(model, key));
    kiln_type type;
    int64_t rows, cols;
    printf("tensors\n");
    for (int64_t i = 0; (name = kiln_model_tensor_info(model, i, &type, &rows, &cols)); i++)
        printf("  %-14s%s x %s, %s\n", name, text_count(rows), text_count(cols), type_name(type));
}

int info_model(struct run *run, const char *path) {
    kiln_model *model = NULL;
    double *W = NULL;
    int64_t n = 0, k = 0, rows, cols;
    kiln_type type;
    int code = run_load_model(&model, path);
    if (!code && model_tensor_shape(model, "W", &type, &rows, &cols))
        code = coefficients(run, model, &W, &n, &k);
    struct classes classes = {0};
    if (!code && W) code = classes_of_model(run, &classes, model);
    json_t *names = code ? NULL : feature_names(model);
    if (!code && talk_json()) {
        code = tell_json(run, path, model, top_json(W, n, k, names, &classes));
    } else if (!code) {
        tell_people(path, model);
        print_top(W, n, k, names, &classes);
    }
    json_decref(names);
    classes_free(&classes);
    free(W);
    kiln_model_free(model);
    return code;
}
