/* The picture of a cross-validation, its scores with their errors, or of a path: how the coefficients grow as
 * the penalty gets weaker. With l1 also how many of them are not 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cv.h"
#include "picture.h"
#include "plot.h"

enum { NAMED = SERIES_TOLD_APART - 1, DRAWN = 300, PANELS = 3, NAME_ROOM = 120 };

struct figure {
    const struct validation *validation;
    const struct training *job;
    double *x, *mean, *error, *nonzeros; /* of each value */
    double *paths;                       /* DRAWN of them, of all values */
    char (*names)[NAME_ROOM];
    struct series *series;
    struct panel panels[PANELS];
    struct series single[PANELS];
    int count;
};

/* A panel of one curve. */
static struct panel *add_curve(struct figure *figure, const char *title, const char *y_title, const double *y,
                               const double *error) {
    struct panel *panel = &figure->panels[figure->count];
    struct series *series = &figure->single[figure->count++];
    *series = (struct series){.x = figure->x,
                              .y = y,
                              .error = error,
                              .count = figure->validation->count,
                              .look = LOOK_LINE | LOOK_POINTS};
    *panel = (struct panel){.title = title,
                            .x_title = cv_penalty_name(figure->validation),
                            .y_title = y_title,
                            .logarithmic = true,
                            .series = series,
                            .count = 1};
    return panel;
}

/* ------------------------------------------------------------------------------------------ paths */

struct ranked {
    int64_t place;
    double size;
};

static int by_size(const void *a, const void *b) {
    const double left = ((const struct ranked *)a)->size, right = ((const struct ranked *)b)->size;
    return (left < right) - (left > right);
}

/* The coefficients that grow largest, in order; *count of those that are ever other than 0. */
static struct ranked *rank_paths(const struct validation *validation, int64_t *count) {
    const int64_t size = validation->path_size;
    struct ranked *ranked = malloc((size_t)size * sizeof *ranked + 1);
    *count = 0;
    for (int64_t j = 0; ranked && j < size; j++) {
        double largest = 0;
        for (int64_t i = 0; i < validation->count; i++)
            largest = fmax(largest, fabs(validation->paths[i * size + j]));
        if (largest > 0) ranked[(*count)++] = (struct ranked){j, largest};
    }
    if (ranked) qsort(ranked, (size_t)*count, sizeof *ranked, by_size);
    return ranked;
}

/* "age", and of several classes or targets "age (Gentoo)". */
static void name_path(char name[NAME_ROOM], const struct training *job, int64_t place) {
    const int64_t k = kiln_matrix_cols(job->W), j = place / k, target = place % k;
    const char *feature = kiln_data_feature_name(job->data, j), *class = NULL;
    char number[SHORTEST_ROOM], own[40];
    snprintf(own, sizeof own, "column %lld", (long long)j + 1);
    if (k > 1)
        class = job->classes.count ? classes_name(&job->classes, target, number)
                                   : kiln_data_target_name(job->data, target);
    snprintf(name, NAME_ROOM, class ? "%.50s (%.50s)" : "%.100s", feature ? feature : own, class);
}

static int add_paths(struct figure *figure) {
    const struct validation *validation = figure->validation;
    int64_t count, drawn;
    struct ranked *ranked = rank_paths(validation, &count);
    if (!ranked) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for the plot");
    drawn = count < DRAWN ? count : DRAWN;
    for (int64_t s = 0; s < drawn; s++) {
        double *y = figure->paths + s * validation->count;
        const bool named = s < NAMED;
        for (int64_t i = 0; i < validation->count; i++)
            y[i] = validation->paths[i * validation->path_size + ranked[s].place];
        if (named) name_path(figure->names[s], figure->job, ranked[s].place);
        /* Faint ones first, so that they lie behind. */
        figure->series[drawn - 1 - s] = (struct series){.name = named ? figure->names[s] : NULL,
                                                        .x = figure->x,
                                                        .y = y,
                                                        .count = validation->count,
                                                        .number = (int)s,
                                                        .look = LOOK_LINE | (named ? 0 : LOOK_FAINT)};
    }
    free(ranked);
    figure->panels[figure->count++] =
        (struct panel){.title = drawn < count ? "the largest coefficients" : "coefficients",
                       .x_title = cv_penalty_name(validation),
                       .y_title = drawn > NAMED ? "the largest are named" : "",
                       .logarithmic = true,
                       .series = figure->series,
                       .count = drawn};
    return 0;
}

/* ---------------------------------------------------------------------------------------- figures */

static void add_scores(struct figure *figure) {
    const struct validation *validation = figure->validation;
    const bool folded = validation->folds > 0;
    struct panel *panel = add_curve(figure, folded ? "held-out rows, with standard errors" : "training data",
                                    validation->metric, figure->mean, figure->error);
    if (!folded) return;
    panel->mark_count = 2;
    panel->marks[0] = cv_strength(validation, validation->best);
    panel->marks[1] = cv_strength(validation, validation->one_error);
    panel->mark_names[0] = "best";
    panel->mark_names[1] = "one standard error";
}

static int draw(struct figure *figure, const char *path) {
    const struct validation *validation = figure->validation;
    const bool folded = validation->folds > 0;
    char title[160];
    int code = 0;
    if (folded) add_scores(figure);
    if (validation->paths) code = add_paths(figure);
    if (validation->sparse)
        add_curve(figure,
                  folded ? "coefficients that are not 0, mean of the folds" : "coefficients that are not 0",
                  "", figure->nonzeros, NULL)
            ->counted = true;
    if (!folded) add_scores(figure);
    snprintf(title, sizeof title, folded ? "%s: cross-validation, %s" : "%s: path",
             figure->job->algorithm->title, text_plural(validation->folds, "fold"));
    return code ? code : plot_panels(path, title, figure->panels, figure->count);
}

int cv_plot(const char *path, const struct validation *validation, const struct training *job) {
    const size_t count = (size_t)validation->count;
    struct figure figure = {.validation = validation, .job = job};
    double *values = malloc((4 + DRAWN) * count * sizeof *values);
    figure.series = calloc(DRAWN, sizeof *figure.series);
    figure.names = calloc(NAMED, sizeof *figure.names);
    int code = 0;
    if (!values || !figure.series || !figure.names)
        code = fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for the plot");
    if (!code) {
        figure.x = values;
        figure.mean = values + count;
        figure.error = values + 2 * count;
        figure.nonzeros = values + 3 * count;
        figure.paths = values + 4 * count;
        for (int64_t i = 0; i < validation->count; i++) {
            figure.x[i] = cv_strength(validation, i);
            figure.mean[i] = validation->tried[i].mean;
            figure.error[i] = validation->tried[i].error;
            figure.nonzeros[i] = cv_nonzeros(validation, &validation->tried[i]);
        }
        code = draw(&figure, path);
    }
    free(values);
    free(figure.series);
    free(figure.names);
    return code;
}
