/* Curves in panels one below the other, as SVG or PNG. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stdint.h>

enum look { LOOK_LINE = 1, LOOK_POINTS = 2, LOOK_DASHED = 4, LOOK_FAINT = 8 };

enum { SERIES_TOLD_APART = 12 }; /* by colour, and by dashes and the shape of points */

struct series {
    const char *name;            /* in the list below the panel; NULL: not there */
    const double *x, *y, *error; /* error may be NULL, NaN = no bar; a y that is not finite is left out */
    int64_t count;
    int number;        /* which of those to be told apart: its colour, and how it is drawn */
    const char *paint; /* a colour of its own; NULL: that of its number */
    unsigned look;     /* of enum look */
};

struct panel {
    const char *title, *x_title, *y_title; /* y_title NULL: y says nothing */
    bool logarithmic;                      /* x, none negative; a 0 has its place left of the others */
    bool logarithmic_y;                    /* all positive */
    bool unit;                             /* both axes from 0 to 1 */
    bool equal;                            /* both axes have the same scale */
    bool from_zero;                        /* y's axis begins at 0 */
    bool counted;                          /* so, and y is a number of things: ticks at whole numbers */
    const struct series *series;
    int64_t count;
    double marks[2]; /* vertical lines at these x, with their names */
    const char *mark_names[2];
    int mark_count;
};

/* Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int plot_panels(const char *path, const char *title, const struct panel *panels, int count);

#endif
