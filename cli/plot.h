/* Curves in panels one below the other, as SVG or PNG. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stdint.h>

enum look { LOOK_LINE = 1, LOOK_POINTS = 2, LOOK_DASHED = 4, LOOK_FAINT = 8 };

struct series {
    const char *name;            /* in the list beside the panel; NULL: not there */
    const double *x, *y, *error; /* error may be NULL, NaN = no bar; a y that is not finite is left out */
    int64_t count;
    int colour;    /* of picture_palette */
    unsigned look; /* of enum look */
};

struct panel {
    const char *title, *x_title, *y_title;
    bool logarithmic;   /* x, none negative; a 0 has a place of its own left of the others */
    bool logarithmic_y; /* all positive */
    bool unit;          /* both axes from 0 to 1 */
    bool counted;       /* y is a number of things: its axis begins at 0, with ticks at whole numbers */
    const struct series *series;
    int64_t count;
    double marks[2]; /* vertical lines at these x, with their names */
    const char *mark_names[2];
    int mark_count;
};

/* Written as a whole or not at all; 0 or the exit code of an error that it has reported. */
int plot_panels(const char *path, const char *title, const struct panel *panels, int count);

#endif
