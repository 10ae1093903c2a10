/* The plot of kiln tune, after Figure 6 of the fused-kernels paper: every plan's time, here in ascending
 * order, what was predicted for it, and which one the model chooses. */
#include <math.h>
#include <stdlib.h>

#include "errors.h"
#include "plot.h"
#include "text.h"
#include "tune.h"

/* Outliers would flatten everything else: what is slower than four times the best is drawn there. */
static double milliseconds(double seconds, double best) {
    return seconds > 0 && isfinite(seconds) ? 1e3 * fmin(seconds, 4 * best) : (double)NAN;
}

int tune_plot(const char *path, const struct plan_row *tuned, int64_t count, const char *title) {
    char choice[400] = "";
    if (count == 0) return 0;
    double *rank = malloc((size_t)count * 3 * sizeof *rank);
    if (!rank) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for a picture");
    double *measured = rank + count, *predicted = measured + count, chosen = 1;
    for (int64_t i = 0; i < count; i++) {
        rank[i] = (double)i + 1;
        measured[i] = milliseconds(tuned[i].seconds, tuned[0].seconds);
        predicted[i] = milliseconds(tuned[i].plan->seconds, tuned[0].seconds);
        if (!tuned[i].plan->chosen) continue;
        chosen = rank[i];
        snprintf(choice, sizeof choice, "the choice: rank %lld of %lld, %.1f %% above the best",
                 (long long)i + 1, (long long)count, 100 * (tuned[i].seconds / tuned[0].seconds - 1));
    }
    const struct series series[] = {
        {"predicted", rank, predicted, .count = count, .number = 1, .look = LOOK_POINTS},
        {"measured", rank, measured, .count = count, .look = LOOK_LINE | LOOK_POINTS}};
    const struct panel panel = {.title = choice,
                                .x_title = "plans, fastest first",
                                .y_title = "milliseconds",
                                .from_zero = true,
                                .series = series,
                                .count = 2,
                                .marks = {chosen},
                                .mark_names = {"the choice"},
                                .mark_count = *choice != 0};
    const int code = plot_panels(path, title, &panel, 1);
    free(rank);
    return code;
}
