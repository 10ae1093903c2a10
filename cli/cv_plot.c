/* The curve of a cross-validation or of a path. */
#include <math.h>
#include <stdlib.h>

#include "cv.h"
#include "plot.h"

int cv_plot(const char *path, const struct validation *validation) {
    static const char *const names[] = {"best", "one standard error"};
    const bool folded = validation->folds > 0;
    const double marks[] = {cv_strength(validation, validation->best),
                            cv_strength(validation, validation->one_error)};
    double *values = malloc(3 * (size_t)validation->count * sizeof *values);
    if (!values) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for the plot");
    double *x = values, *y = values + validation->count, *error = y + validation->count;
    int64_t count = 0;
    for (int64_t i = 0; i < validation->count; i++) {
        if (!(cv_strength(validation, i) > 0)) continue; /* has no place on a logarithmic axis */
        x[count] = cv_strength(validation, i);
        y[count] = validation->tried[i].mean;
        error[count++] = validation->tried[i].error;
    }
    const struct curve curve = {.title = folded ? "cross-validation" : "path on the training data",
                                .x_title = cv_penalty_name(validation),
                                .y_title = validation->metric,
                                .x = x,
                                .y = y,
                                .error = error,
                                .count = count,
                                .marks = marks,
                                .mark_names = names,
                                .mark_count = folded && marks[0] > 0 && marks[1] > 0 ? 2 : 0};
    const int code = plot_curve(path, &curve);
    free(values);
    return code;
}
