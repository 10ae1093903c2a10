/* kiln coefficients MODEL: all of a linear model's coefficients, a row each, by column, level and class.
 *
 * What a row belongs to is told by the schema, which lists columns and levels in the order of their
 * features; a reference level has a row, too, whose coefficient is 0 because it is what the others are
 * compared with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "files.h"
#include "metrics.h"
#include "output.h"
#include "verbs.h"

struct table {
    kiln_model *model;
    double *W, *b, *errors; /* b and errors may be NULL; errors: coefficients, then the intercept */
    int64_t n, k;
    double degrees, most_95; /* of freedom; so many errors hold 95 % to each side */
    struct classes classes;
    json_t *schema, *features, *targets; /* each perhaps NULL */
};

enum kind { COEFFICIENT, REFERENCE, DEPENDENT };

struct effect {
    const char *column, *level, *class; /* level and class NULL: none */
    double value, error;                /* error NaN: not known */
    enum kind kind;
};

typedef void use_row(void *to, const struct effect *row);

/* ------------------------------------------------------------------------------------------ rows */

static const char *class_of(const struct table *t, int64_t target, char *buffer) {
    if (t->classes.count) return classes_name(&t->classes, t->k == 1 ? 1 : target, buffer);
    return t->k > 1 ? json_string_value(json_array_get(t->targets, (size_t)target)) : NULL;
}

/* Feature j = n: the intercept. */
static struct effect row_of(const struct table *t, const char *column, const char *level, int64_t j,
                            int64_t target) {
    struct effect row = {.column = column, .level = level, .error = NAN};
    row.value = j == t->n ? t->b[target] : t->W[j * t->k + target];
    if (!t->errors) return row;
    row.error = t->errors[j] >= 0 ? t->errors[j] : NAN;
    if (t->errors[j] < 0) row.kind = DEPENDENT;
    return row;
}

struct walk {
    const struct table *t;
    int64_t target, j;
    const char *class;
    use_row *use;
    void *to;
};

static void emit(struct walk *w, const char *column, const char *level, bool reference) {
    struct effect row = {.column = column, .level = level, .value = 0, .error = NAN, .kind = REFERENCE};
    if (!reference) row = row_of(w->t, column, level, w->j++, w->target);
    row.class = w->class;
    w->use(w->to, &row);
}

static void walk_schema(struct walk *w) {
    json_t *column, *level;
    size_t i, k;
    json_array_foreach(json_object_get(w->t->schema, "columns"), i, column) {
        const char *name = json_string_value(json_object_get(column, "name"));
        const char *reference = json_string_value(json_object_get(column, "reference"));
        json_t *levels = json_object_get(column, "levels");
        if (!levels) emit(w, name, NULL, false);
        if (json_object_get(column, "indicator")) emit(w, name, "(missing)", false);
        json_array_foreach(levels, k, level) {
            const char *text = json_string_value(level);
            emit(w, name, text, reference && strcmp(reference, text) == 0);
        }
    }
}

static void walk_numbered(struct walk *w) {
    char number[40];
    while (w->j < w->t->n) {
        const char *name = json_string_value(json_array_get(w->t->features, (size_t)w->j));
        snprintf(number, sizeof number, "column %lld", (long long)w->j + 1);
        emit(w, name ? name : number, NULL, false);
    }
}

/* The schema's features are as many as the model's, which loading has made sure of or not: nobody reads
 * beyond W. */
static int64_t schema_width(const json_t *schema) {
    json_t *column;
    size_t i;
    int64_t width = 0;
    json_array_foreach(json_object_get(schema, "columns"), i, column) {
        json_t *levels = json_object_get(column, "levels");
        width += levels ? (int64_t)json_array_size(levels) - !!json_object_get(column, "reference")
                        : 1 + !!json_object_get(column, "indicator");
    }
    return width;
}

static void for_each_row(const struct table *t, use_row *use, void *to) {
    char buffer[SHORTEST_ROOM];
    for (int64_t target = 0; target < t->k; target++) {
        struct walk w = {
            .t = t, .target = target, .class = class_of(t, target, buffer), .use = use, .to = to};
        if (t->schema)
            walk_schema(&w);
        else
            walk_numbered(&w);
        if (t->b) emit(&w, "(intercept)", NULL, false);
    }
}

/* ---------------------------------------------------------------------------------------- reading */

static int take(struct run *run, const struct table *t, double **values, const char *name) {
    kiln_matrix *matrix = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    if (!model_tensor_shape(t->model, name, &type, &rows, &cols)) return 0;
    if (kiln_model_tensor(&matrix, run->device, type, t->model, name) != KILN_OK)
        return fail_library(USING_MODEL);
    *values = values_of(matrix, &code);
    kiln_matrix_free(matrix);
    return code;
}

static json_t *text_json(const kiln_model *model, const char *key) {
    const char *text = kiln_model_text(model, key);
    return text ? json_loads(text, 0, NULL) : NULL;
}

/* The dispersion was estimated; a model from before they were kept goes by the normal distribution, as it
 * did. */
static void read_degrees(struct table *t) {
    json_t *metrics = text_json(t->model, "metrics");
    const json_t *degrees = json_object_get(metrics, "residual_degrees");
    t->degrees = json_is_number(degrees) ? json_number_value(degrees) : INFINITY;
    t->most_95 = kiln_student_quantile(0.95, t->degrees);
    json_decref(metrics);
}

static int read_table(struct run *run, struct table *t) {
    kiln_type type;
    int64_t rows, cols;
    int code = run_load_model(&t->model, run->arguments[0]);
    if (!code && !model_tensor_shape(t->model, "W", &type, &t->n, &t->k))
        code = fail_with(KILN_ERR_MODEL, USING_MODEL, "linreg, logreg, glm and svm make linear models",
                         "%s: a model of %s has no coefficients", run->arguments[0],
                         kiln_model_text(t->model, "algorithm"));
    if (!code) code = run_open_device(run, "cpu");
    if (!code) code = take(run, t, &t->W, "W");
    if (!code) code = take(run, t, &t->b, "b");
    if (!code) code = take(run, t, &t->errors, "standard_errors");
    if (!code) code = classes_of_model(run, &t->classes, t->model);
    if (code) return code;
    if (t->errors && model_tensor_shape(t->model, "standard_errors", &type, &rows, &cols) &&
        rows < t->n + (t->b != NULL))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "save the model again",
                         "the model's standard errors are too few");
    read_degrees(t);
    t->schema = text_json(t->model, "schema");
    t->features = text_json(t->model, "features");
    t->targets = text_json(t->model, "targets");
    if (!t->schema || schema_width(t->schema) == t->n) return 0;
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "save the model again",
                     "the model's schema has %lld features, its W %lld", (long long)schema_width(t->schema),
                     (long long)t->n);
}

/* ---------------------------------------------------------------------------------------- telling */

struct writing {
    const struct table *t;
    FILE *file;
    json_t *array;
    int64_t references, dependents;
};

static void put_json(void *to, const struct effect *row) {
    static const char *const kinds[] = {"coefficient", "reference", "dependent"};
    const struct writing *w = to;
    json_t *object = json_object();
    json_put_text(object, "name", row->column);
    json_put_text(object, "level", row->level);
    json_put_text(object, "class", row->class);
    json_put_text(object, "kind", kinds[row->kind]);
    json_put_number(object, "value", row->value);
    if (w->t->errors) {
        json_put_number(object, "standard_error", row->error);
        json_put_number(object, "z", row->value / row->error);
        json_put_number(object, "p", kiln_student_tails(row->value / row->error, w->t->degrees));
        json_put_number(object, "low", row->value - w->t->most_95 * row->error);
        json_put_number(object, "high", row->value + w->t->most_95 * row->error);
    }
    json_add(w->array, object);
}

static void put_number(FILE *file, double number) {
    char text[SHORTEST_ROOM] = "";
    if (!isnan(number)) text_shortest(text, number, 0);
    fprintf(file, "\t%s", text);
}

/* Tabs and line ends in names are escaped, so that a line is a row. */
static void put_line(void *to, const struct effect *row) {
    struct writing *w = to;
    text_put(w->file, row->column, 0);
    fputc('\t', w->file);
    text_put(w->file, row->level ? row->level : "", 0);
    fputc('\t', w->file);
    text_put(w->file, row->class ? row->class : "", 0);
    put_number(w->file, row->value);
    if (w->t->errors) {
        put_number(w->file, row->error);
        put_number(w->file, row->value / row->error);
        put_number(w->file, kiln_student_tails(row->value / row->error, w->t->degrees));
        put_number(w->file, row->value - w->t->most_95 * row->error);
        put_number(w->file, row->value + w->t->most_95 * row->error);
    }
    fprintf(w->file, "%s\n",
            row->kind == REFERENCE   ? "\treference"
            : row->kind == DEPENDENT ? "\tdependent"
                                     : "\t");
    w->references += row->kind == REFERENCE;
    w->dependents += row->kind == DEPENDENT;
}

static int tell_lines(const struct run *run, const struct table *t) {
    struct output output;
    struct writing w = {.t = t};
    const int code = output_open(&output, run->settings->output);
    if (code) return code;
    w.file = output.file;
    fprintf(w.file, "column\tlevel\tclass\tcoefficient%s\tnote\n",
            !t->errors             ? ""
            : isfinite(t->degrees) ? "\tstd_error\tt\tp\tlow_95\thigh_95"
                                   : "\tstd_error\tz\tp\tlow_95\thigh_95");
    for_each_row(t, put_line, &w);
    const int written = output_commit(&output);
    if (written) return written;
    if (w.dependents)
        say("%s: the column depends on those before it, so that it has coefficient 0 and no error",
            text_plural(w.dependents, "dependent row"));
    if (!t->errors && strcmp(kiln_model_text(t->model, "algorithm"), "glm") == 0)
        say("kiln glm --standard-errors keeps errors, z, p and intervals, too");
    return 0;
}

static int tell_json(struct run *run, const struct table *t) {
    struct writing w = {.t = t, .array = json_array()};
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.coefficients/1");
    PUT(&result, "algorithm", TEXT(kiln_model_text(t->model, "algorithm")));
    for_each_row(t, put_json, &w);
    PUT(&result, "coefficients", JSON(w.array));
    const int code = result_print_json(&result);
    result_free(&result);
    return code;
}

int verb_coefficients(struct run *run) {
    struct table t = {.model = NULL};
    int code = run_check_outputs(run);
    if (!code) code = read_table(run, &t);
    if (!code) code = talk_json() && !run->settings->output ? tell_json(run, &t) : tell_lines(run, &t);
    free(t.W);
    free(t.b);
    free(t.errors);
    classes_free(&t.classes);
    json_decref(t.schema);
    json_decref(t.features);
    json_decref(t.targets);
    kiln_model_free(t.model);
    return code;
}
