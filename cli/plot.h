/* A curve with error bars as an SVG file. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdint.h>

struct curve {
    const char *title, *x_title, *y_title;
    const double *x, *y, *error; /* x > 0, drawn on a logarithmic axis; error may be NULL, NaN = no bar */
    int64_t count;
    const double *marks; /* vertical lines at these x, with their names */
    const char *const *mark_names;
    int mark_count;
};

/* Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int plot_curve(const char *path, const struct curve *curve);

#endif
