/* The picture of an evaluation. A classifier's: how scores rank rows, and whether probabilities come true. Of
 * numbers: whether predictions come true, and how far off single rows are. */
#include <math.h>
#include <stdlib.h>

#include "evaluate.h"
#include "picture.h"
#include "plot.h"

enum { SERIES = 3 * JUDGED_MOST + 1, PANELS = 2, NAME_ROOM = 120 };

struct figure {
    const struct evaluation *e;
    struct panel panels[PANELS];
    int panel_count;
    struct series series[PANELS][SERIES];
    char names[JUDGED_MOST][NAME_ROOM];
    double values[PANELS][3 * JUDGED_MOST][3][KILN_BINS]; /* x, y, error of each curve */
    double line[2], level[2];
};

static struct series *add(struct figure *figure, struct series series) {
    struct panel *panel = &figure->panels[figure->panel_count - 1];
    struct series *own = figure->series[figure->panel_count - 1];
    panel->series = own;
    own[panel->count] = series;
    return &own[panel->count++];
}

static void add_line(struct figure *figure, const double *y) {
    add(figure,
        (struct series){.x = figure->line, .y = y, .count = 2, .look = LOOK_LINE | LOOK_DASHED | LOOK_FAINT});
}

/* The area in the list of the curves. */
static void add_roc(struct figure *figure) {
    static const double unit[] = {0, 1};
    const struct evaluation *e = figure->e;
    figure->panels[figure->panel_count++] = (struct panel){.title = "receiver operating characteristic",
                                                           .x_title = "false positive rate",
                                                           .y_title = "true positive rate",
                                                           .unit = true};
    add(figure,
        (struct series){.x = unit, .y = unit, .count = 2, .look = LOOK_LINE | LOOK_DASHED | LOOK_FAINT});
    for (int64_t j = e->count - 1; j >= 0; j--) {
        const kiln_roc *roc = e->judged[j].roc;
        if (!roc->count) continue;
        snprintf(figure->names[j], NAME_ROOM, "AUC %.3f %s", roc->area, e->judged[j].name);
        add(figure, (struct series){.name = figure->names[j],
                                    .x = roc->false_share,
                                    .y = roc->true_share,
                                    .count = roc->count,
                                    .number = (int)j,
                                    .look = LOOK_LINE});
    }
}

static void widen(double range[2], double value) {
    range[0] = fmin(range[0], value);
    range[1] = fmax(range[1], value);
}

static void add_calibration(struct figure *figure) {
    const struct evaluation *e = figure->e;
    const int number = figure->panel_count++;
    figure->panels[number] = (struct panel){.title = "calibration, with standard errors",
                                            .x_title = "predicted",
                                            .y_title = "observed",
                                            .unit = e->classes};
    figure->line[0] = INFINITY;
    figure->line[1] = -INFINITY;
    for (int64_t j = 0; j < e->count; j++)
        for (int b = 0; b < e->judged[j].bin_count; b++) widen(figure->line, e->judged[j].bins[b].predicted);
    if (e->classes) figure->line[0] = 0, figure->line[1] = 1;
    add_line(figure, figure->line);
    for (int64_t j = e->count - 1; j >= 0; j--) {
        const struct judgement *judged = &e->judged[j];
        double(*values)[KILN_BINS] = figure->values[number][j];
        for (int b = 0; b < judged->bin_count; b++) {
            values[0][b] = judged->bins[b].predicted;
            values[1][b] = judged->bins[b].observed;
            values[2][b] = judged->bins[b].error;
        }
        add(figure, (struct series){.name = e->classes ? NULL : judged->name,
                                    .x = values[0],
                                    .y = values[1],
                                    .error = values[2],
                                    .count = judged->bin_count,
                                    .number = (int)j,
                                    .look = LOOK_LINE | LOOK_POINTS});
    }
}

static void add_residuals(struct figure *figure) {
    const struct evaluation *e = figure->e;
    const int number = figure->panel_count++;
    figure->panels[number] = (struct panel){.title = "residuals: 10 %, 50 % and 90 % below",
                                            .x_title = "predicted",
                                            .y_title = "observed - predicted"};
    add_line(figure, figure->level);
    for (int64_t j = 0; j < e->count; j++)
        for (int q = 0; q < 3; q++) {
            const struct judgement *judged = &e->judged[j];
            double(*values)[KILN_BINS] = figure->values[number][3 * j + q];
            for (int b = 0; b < judged->bin_count; b++) {
                values[0][b] = judged->bins[b].predicted;
                values[1][b] = judged->bins[b].residuals[q];
            }
            add(figure, (struct series){.x = values[0],
                                        .y = values[1],
                                        .count = judged->bin_count,
                                        .number = (int)j,
                                        .look = q == 1 ? LOOK_LINE | LOOK_POINTS : LOOK_LINE | LOOK_DASHED});
        }
}

int evaluate_plot(const char *path, const struct evaluation *e, const char *title) {
    struct figure *figure = calloc(1, sizeof *figure);
    if (!figure) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for the plot");
    figure->e = e;
    if (e->classes) add_roc(figure);
    if (e->probable) add_calibration(figure);
    if (!e->classes) add_residuals(figure);
    const int code = plot_panels(path, title, figure->panels, figure->panel_count);
    free(figure);
    return code;
}
