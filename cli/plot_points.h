/* Points of a plane as a picture. */
#ifndef CLI_PLOT_POINTS_H
#define CLI_PLOT_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "plot.h"

/* Classes with a look of their own; the last one is all others' where there are more. */
enum { POINT_CLASSES = SERIES_TOLD_APART };

struct points {
    const char *title, *axes[2];
    const double *at; /* count x columns; the first two are drawn */
    int64_t count, columns;
    const double *colour; /* a class or any number for each point; NULL: one colour */
    const char *const *names;
    int64_t classes; /* the classes' names; NULL: numbers */
};

/* Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int plot_points(const char *path, const struct points *points);

#endif
