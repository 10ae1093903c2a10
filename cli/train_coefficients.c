/* The coefficients of a linear model in its result: JSON has them where they are not too many, people see
 * them with their standard errors. Row r of the table is of column r % rows, the intercept last, and of
 * target r / rows. */
#include <math.h>
#include <stdlib.h>

#include "train.h"

int coefficients_new(struct coefficients *table, const struct training *job) {
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

static const char *name_of(const struct coefficients *table, struct result *row, int64_t j) {
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
    const char *name = name_of(table, row, j);
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

void coefficients_put(struct result *result, const struct coefficients *table) {
    PUT(result, "coefficients", TABLE(table->count, table->count ? put_coefficient : NULL, table),
        .hidden = !table->errors,
        .head = result_words(result, "  %13s %13s %9s %9s %13s %13s", "coefficient", "std. error",
                             isinf(table->degrees) ? "z" : "t", "p", "95 % from", "to"));
}
