/* Classes and their names. */
#define _GNU_SOURCE
#include "classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

void classes_free(struct classes *classes) {
    for (int64_t i = 0; classes->names && i < classes->count; i++) free(classes->names[i]);
    free(classes->names);
    free(classes->values);
    *classes = (struct classes){0};
}

/* Which class a row has is as good as random: nothing branches on it. */
int64_t classes_find(const struct classes *classes, double value) {
    int64_t at = 0;
    for (int64_t left = classes->count, half; left > 1; left -= half) {
        half = left / 2;
        at += classes->values[at + half] <= value ? half : 0;
    }
    return classes->count > 0 && classes->values[at] == value ? at : -1;
}

const char *classes_name(const struct classes *classes, int64_t number, char *buffer) {
    if (classes->names) return classes->names[number];
    text_shortest(buffer, classes->values[number], 0);
    return buffer;
}

int64_t class_of_scores(const double *scores, int64_t columns) {
    if (columns == 1) return scores[0] > 0;
    int64_t best = 0;
    for (int64_t c = 1; c < columns; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

static int damaged_classes(void) {
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "save the model again",
                     "the model's class names are damaged");
}

static int no_room_for_names(void) {
    return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the classes' names");
}

static int read_names(struct classes *classes, const char *text) {
    json_t *names = json_loads(text, 0, NULL);
    int code =
        json_is_array(names) && (int64_t)json_array_size(names) == classes->count ? 0 : damaged_classes();
    if (!code && !(classes->names = calloc((size_t)classes->count, sizeof *classes->names)))
        code = no_room_for_names();
    for (int64_t i = 0; !code && i < classes->count; i++) {
        const char *name = json_string_value(json_array_get(names, (size_t)i));
        if (!name)
            code = damaged_classes();
        else if (!(classes->names[i] = strdup(name)))
            code = no_room_for_names();
    }
    json_decref(names);
    return code;
}

int classes_of_model(struct run *run, struct classes *classes, const kiln_model *model) {
    kiln_matrix *stored = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    if (!model_tensor_shape(model, "classes", &type, &rows, &cols)) return 0;
    if (kiln_model_tensor(&stored, run->device, KILN_F64, model, "classes") != KILN_OK)
        return fail_library(USING_MODEL);
    classes->values = values_of(stored, &code);
    classes->count = code ? 0 : rows;
    kiln_matrix_free(stored);
    const char *names = kiln_model_text(model, "class_names");
    return !code && names ? read_names(classes, names) : code;
}

/* -------------------------------------------------------------------------------------- the data's labels */

/* 7, -1.50, 1e3, but neither 007 nor an integer that doubles do not tell from the next. */
static bool plain_number(const char *text, double *value) {
    char *end;
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9' || (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return false;
    *value = strtod(text, &end);
    return *end == '\0' && fabs(*value) < 0x1p53;
}

struct named {
    const char *name;
    int64_t class;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* The only class whose name is a number of this value; -1: none or several. */
static int64_t find_number(const struct classes *classes, double value) {
    int64_t found = -1;
    double other;
    if (!classes->names) return classes_find(classes, value);
    for (int64_t i = 0; i < classes->count; i++) {
        if (!plain_number(classes->names[i], &other) || other != value) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

static int64_t find_label(const struct classes *classes, const struct named *sorted, const char *label) {
    const struct named key = {label, 0};
    const struct named *same =
        sorted ? bsearch(&key, sorted, (size_t)classes->count, sizeof *sorted, by_name) : NULL;
    double value;
    if (same) return same->class;
    return plain_number(label, &value) ? find_number(classes, value) : -1;
}

static double value_of(const struct classes *classes, int64_t class) {
    return class < 0 ? (double)NAN : classes->values[class];
}

static void translate(double *y, int64_t rows, const struct classes *classes, const struct named *sorted,
                      const kiln_data *data, double *known) {
    const bool named = kiln_data_class_name(data, 0, 0) != NULL;
    const char *label;
    char number[SHORTEST_ROOM];
    double before = NAN, value = NAN;
    for (int64_t i = 0; named && (label = kiln_data_class_name(data, 0, i)); i++)
        known[i] = value_of(classes, find_label(classes, sorted, label));
    for (int64_t i = 0; i < rows; i++) {
        if (named) {
            y[i] = y[i] >= 0 ? known[(int64_t)y[i]] : (double)NAN;
            continue;
        }
        if (y[i] != before && !isnan(y[i])) {
            before = y[i];
            text_shortest(number, before, 0);
            value = value_of(classes, find_label(classes, sorted, number));
        }
        y[i] = isnan(y[i]) ? (double)NAN : value;
    }
}

int classes_translate(double *y, int64_t rows, const struct classes *classes, const kiln_data *data) {
    int64_t labels = 0;
    while (kiln_data_class_name(data, 0, labels)) labels++;
    if (!labels && !classes->names) return 0;
    struct named *sorted = classes->names ? malloc((size_t)classes->count * sizeof *sorted + 1) : NULL;
    double *known = malloc((size_t)labels * sizeof *known + 1);
    const bool room = known && (sorted || !classes->names);
    for (int64_t i = 0; room && sorted && i < classes->count; i++)
        sorted[i] = (struct named){classes->names[i], i};
    if (room && sorted) qsort(sorted, (size_t)classes->count, sizeof *sorted, by_name);
    if (room) translate(y, rows, classes, sorted, data, known);
    free(sorted);
    free(known);
    return room ? 0 : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the labels");
}

/* ---------------------------------------------------------------------------------- class weights */

/* The class whose label stands before a '=' at the beginning of text, and the label's length. The longest
 * that fits, as labels may hold commas and signs of equality; a number also goes by another spelling. -1:
 * none, *length up to '=' or comma. */
static int64_t class_before(const struct classes *classes, const char *text, size_t *length) {
    char buffer[SHORTEST_ROOM], *end;
    int64_t class = -1;
    for (int64_t i = 0; i < classes->count; i++) {
        const char *own = classes_name(classes, i, buffer);
        const size_t size = strlen(own);
        if (strncmp(own, text, size) != 0 || text[size] != '=' || (class >= 0 && size <= *length)) continue;
        *length = size;
        class = i;
    }
    if (class >= 0) return class;
    *length = strcspn(text, "=,");
    const double value = strtod(text, &end);
    return !classes->names && end == text + *length ? classes_find(classes, value) : -1;
}

/* "LABEL=WEIGHT,..."; classes that are not named weigh 1. */
static int parse_weights(double **weights, const struct classes *classes, const char *text) {
    double *made = *weights = malloc((size_t)classes->count * sizeof *made);
    if (!made) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for class weights");
    for (int64_t i = 0; i < classes->count; i++) made[i] = 1;
    for (const char *at = text; *at;) {
        size_t length = 0;
        const int64_t class = class_before(classes, at, &length);
        if (at[length] == '=' && class < 0)
            return fail_with(KILN_ERR_ARGUMENT, WORKING,
                             "LABEL=WEIGHT,LABEL=WEIGHT, labels as the data have them",
                             "--class-weight '%s': the data have no label '%.*s'", text, (int)length, at);
        char *end = (char *)at;
        const double weight = at[length] == '=' ? strtod(at + length + 1, &end) : -1;
        if (end <= at + length + 1 || (*end && *end != ',') || !(weight >= 0) || isinf(weight))
            return fail_with(KILN_ERR_ARGUMENT, WORKING, "balanced, or LABEL=WEIGHT,LABEL=WEIGHT",
                             "--class-weight '%s': not LABEL=WEIGHT with a weight that is not negative",
                             text);
        made[class] = weight;
        at = end + (*end == ',');
    }
    return 0;
}

int classes_weights(double **weights, bool *balanced, const struct classes *classes, const char *text) {
    *balanced = strcmp(text, "balanced") == 0;
    return *balanced ? 0 : parse_weights(weights, classes, text);
}
