/* This file says what cross-validation found, as JSON, which a model keeps, and as a table of that JSON: kiln
 * info prints the same one. */
#include <math.h>
#include <string.h>

#include "cv.h"
#include "files.h"
#include "progress.h"

/* ------------------------------------------------------------------------------------------- JSON */

/* The mean over the folds. */
static double mean_metric(const struct validation *validation, const struct tried *tried, int i) {
    return tried->sum.metrics[i] / (double)(validation->folds ? validation->finished : 1);
}

double cv_nonzeros(const struct validation *validation, const struct tried *tried) {
    return (double)tried->sum.nonzeros / (double)(validation->folds ? validation->finished : 1);
}

static json_t *tried_json(const struct validation *validation, const struct tried *tried) {
    json_t *object = json_object(), *scores = json_array(), *metrics = json_object();
    json_put_number(object, "l2", tried->penalty.l2);
    json_put_number(object, "l1", tried->penalty.l1);
    json_put_number(object, "mean", tried->mean);
    json_put_number(object, "standard_error", tried->error);
    json_put_count(object, "iterations", tried->sum.iterations);
    json_put_flag(object, "converged", !tried->sum.unconverged);
    for (int64_t f = 0; f < validation->folds && f < validation->finished; f++)
        json_add(scores, json_number_or_null(tried->score[f]));
    for (int i = 0; i < validation->metric_count; i++)
        json_put_number(metrics, validation->metrics[i].key, mean_metric(validation, tried, i));
    json_put(object, "metrics", metrics);
    if (validation->folds > 0) {
        if (validation->sparse) json_put_number(object, "nonzeros", cv_nonzeros(validation, tried));
        json_put(object, "folds", scores);
        return object;
    }
    json_decref(scores);
    json_put_number(object, "objective", tried->objective);
    json_put_number(object, "norm", tried->norm);
    json_put_count(object, "nonzeros", tried->sum.nonzeros);
    return object;
}

/* A better value may lie beyond the best one where that is the last on its side of the path: no penalty has
 * nothing beyond. */
static const char *end_of_path(const struct validation *validation) {
    if (validation->count < 3 || validation->folds == 0) return NULL;
    if (validation->best == 0) return "strongest";
    const bool weakest = validation->best == validation->count - 1;
    return weakest && cv_strength(validation, validation->best) > 0 ? "weakest" : NULL;
}

json_t *cv_json(const struct training *job, const struct validation *validation) {
    const struct settings *settings = job->settings;
    json_t *object = json_object(), *values = json_array();
    const bool folded = validation->folds > 0;
    json_put_text(object, "metric", validation->metric);
    json_put_text(object, "penalty", cv_penalty_name(validation));
    json_put(object, "folds", folded ? json_integer(validation->folds) : json_null());
    json_put_count(object, "finished", validation->finished);
    json_put_count(object, "seed", settings->seed);
    const char *groups = kiln_data_role_name(job->data, KILN_COLUMN_GROUPS);
    json_put_text(object, "groups", !folded ? NULL : groups ? groups : settings->groups_file);
    json_put_text(object, "held_out", settings->held_out);
    for (int64_t i = 0; i < validation->count; i++)
        json_add(values, tried_json(validation, &validation->tried[i]));
    json_put(object, "values", values);
    json_put(object, "best",
             folded ? json_number_or_null(cv_strength(validation, validation->best)) : json_null());
    json_put(object, "one_standard_error",
             folded ? json_number_or_null(cv_strength(validation, validation->one_error)) : json_null());
    json_put_text(object, "best_at_end", end_of_path(validation));
    return object;
}

/* "2 of 3 values (l2 100, 10)": the first of them by name. */
void cv_list_unconverged(char *text, size_t room, const struct validation *validation) {
    enum { SHOWN = 4 };
    char names[200];
    size_t used = 0;
    int64_t found = 0;
    *names = *text = '\0';
    for (int64_t i = 0; i < validation->count; i++) {
        if (!validation->tried[i].sum.unconverged || found++ >= SHOWN) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                 text_number(cv_strength(validation, i)));
    }
    if (!found) return;
    snprintf(text, room,
             "models of %lld of %s have not converged%s (%s %s%s), and their %s is that of "
             "unfinished models",
             (long long)found, text_plural(validation->count, "value"),
             validation->folds ? " in cross-validation" : "", cv_penalty_name(validation), names,
             found > SHOWN ? ", ..." : "", validation->metric);
}

/* ------------------------------------------------------------------------------------------ table */

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

/* A model's words are not trusted: of two words, of numbers that are none. */
static const char *penalty_of(const json_t *table) {
    return strcmp(text_of(table, "penalty"), "l1") == 0 ? "l1" : "l2";
}

static int64_t count_of(const json_t *object, const char *key) {
    const double number = number_of(object, key);
    return fabs(number) < 1e15 ? (int64_t)number : 0;
}

/* "-" where there is no number. */
static const char *number_text(const json_t *object, const char *key) {
    const double number = number_of(object, key);
    return isnan(number) ? "-" : text_number(number);
}

/* Sums say nothing that means do not. */
static bool is_shown(const json_t *table, const char *key) {
    return strcmp(key, text_of(table, "metric")) != 0 && strcmp(key, "rss") != 0 &&
           strcmp(key, "deviance") != 0;
}

/* "; l2 0.5", of the penalty that is the same for all values; in folds of which groups. */
static void print_head(FILE *file, const json_t *table, const char *what) {
    const char *penalty = penalty_of(table), *other = strcmp(penalty, "l1") == 0 ? "l2" : "l1";
    const json_t *first = json_array_get(json_object_get(table, "values"), 0);
    const json_t *groups = json_object_get(table, "groups");
    fprintf(file, "%s, ", what);
    text_put(file, text_of(table, "metric"), 0);
    if (number_of(first, other) > 0) fprintf(file, "; %s %s", other, number_text(first, other));
    if (json_is_string(groups)) {
        fputs("; groups of ", file);
        text_put(file, json_string_value(groups), 0);
    }
    fputc('\n', file);
}

static void print_end(FILE *file, const json_t *table) {
    const char *penalty = penalty_of(table), *end = json_string_value(json_object_get(table, "best_at_end"));
    const double value = number_of(table, "best");
    if (!end) return;
    const bool weakest = strcmp(end, "weakest") == 0;
    fprintf(file,
            "  the best value is the %s of the path: a wider one may hold a better, as --%s %s:%s:5 has it\n",
            weakest ? "weakest" : "strongest", penalty, text_number(weakest ? value / 100 : value),
            text_number(weakest ? value : value * 100));
}

static void print_folded(FILE *file, const json_t *table) {
    const char *penalty = penalty_of(table), *key;
    const bool sparse = strcmp(penalty, "l1") == 0;
    json_t *row, *metric;
    size_t i;
    const json_t *values = json_object_get(table, "values");
    json_t *metrics = json_object_get(json_array_get(values, 0), "metrics");
    char what[80];
    snprintf(what, sizeof what, "cross-validation: %s", text_plural(count_of(table, "folds"), "fold"));
    print_head(file, table, what);
    fprintf(file, "  %12s %12s %12s %10s", penalty, "mean", "std. error", "iterations");
    if (sparse) fprintf(file, " %10s", "not 0");
    json_object_foreach(metrics, key, metric) {
        if (is_shown(table, key)) fprintf(file, " %s", text_cell(key, 12));
    }
    fputc('\n', file);
    json_array_foreach(values, i, row) {
        fprintf(file, "  %12s %12s %12s %10s", number_text(row, penalty), number_text(row, "mean"),
                number_text(row, "standard_error"), text_count(count_of(row, "iterations")));
        if (sparse) fprintf(file, " %10s", number_text(row, "nonzeros"));
        json_object_foreach(json_object_get(row, "metrics"), key, metric) {
            if (is_shown(table, key))
                fprintf(file, " %12s", number_text(json_object_get(row, "metrics"), key));
        }
        const double value = number_of(row, penalty);
        fprintf(file, "%s%s%s\n", value == number_of(table, "best") ? "  best" : "",
                value == number_of(table, "one_standard_error") ? "  one standard error" : "",
                json_is_true(json_object_get(row, "converged")) ? "" : "  not converged");
    }
    print_end(file, table);
}

static void print_path(FILE *file, const json_t *table) {
    const char *penalty = penalty_of(table);
    json_t *row;
    size_t i;
    print_head(file, table, "path on the training data");
    fprintf(file, "  %12s %12s %12s %12s %10s %10s\n", penalty, text_cell(text_of(table, "metric"), 12),
            "objective", "||w||", "not 0", "iterations");
    json_array_foreach(json_object_get(table, "values"), i, row) {
        fprintf(file, "  %12s %12s %12s %12s %10s %10s%s\n", number_text(row, penalty),
                number_text(row, "mean"), number_text(row, "objective"), number_text(row, "norm"),
                number_text(row, "nonzeros"), text_count(count_of(row, "iterations")),
                json_is_true(json_object_get(row, "converged")) ? "" : "  not converged");
    }
}

void cv_print(FILE *file, const json_t *table) {
    if (json_is_number(json_object_get(table, "folds")))
        print_folded(file, table);
    else
        print_path(file, table);
}

int cv_print_path(struct run *run, const struct training *job, const struct validation *validation) {
    json_t *table = cv_json(job, validation);
    progress_end();
    if (!talk_json()) {
        cv_print(run_tables(run), table);
        json_decref(table);
        return 0;
    }
    struct result result;
    char text[400];
    result_begin(&result);
    run_put(&result, run, "kiln.path/1");
    PUT(&result, "algorithm", TEXT(job->algorithm->name));
    run_put_device(&result, run);
    run_put_shape(&result, kiln_data_X(job->data));
    PUT(&result, "path", JSON(table));
    cv_list_unconverged(text, sizeof text, validation);
    PUT(&result, "warnings", JSON(report_add_warning(json_array(), "unconverged-models", text)));
    run_put_seconds(&result, run, false);
    const int code = result_print_json(&result);
    result_free(&result);
    return code;
}
