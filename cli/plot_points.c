/* Points of a plane, told apart by colour and shape for each of a few classes, or in shades for a number. */
#include "plot_points.h"

#include <math.h>
#include <stdlib.h>

#include "errors.h"
#include "plot.h"
#include "text.h"

enum { SHADES = 8, GROUPS_MOST = POINT_CLASSES };

/* From dark to light: lightness alone tells them apart. */
static const char *const shades[SHADES] = {"#3d3f9e", "#2f5fb0", "#2a7fb0", "#2f9b9f",
                                           "#55b07c", "#8cbd5c", "#bfc04c", "#e8b83f"};

/* Holds what is drawn alike: the points of a class, or of a range of numbers. */
struct groups {
    int count;
    double least, most; /* of the numbers */
    int64_t begin[GROUPS_MOST + 1];
    double *x, *y; /* of all points, group after group */
    struct series series[GROUPS_MOST];
    char names[GROUPS_MOST][32];
};

static int group_of(const struct points *points, const struct groups *groups, int64_t i) {
    if (!points->colour) return 0;
    const double at = points->names ? points->colour[i]
                                    : (points->colour[i] - groups->least) /
                                          fmax(groups->most - groups->least, 1e-300) * SHADES;
    return (int)fmin(fmax(at, 0), groups->count - 1);
}

static void take_range(struct groups *groups, const struct points *points) {
    groups->least = INFINITY;
    groups->most = -INFINITY;
    for (int64_t i = 0; points->colour && i < points->count; i++) {
        groups->least = fmin(groups->least, points->colour[i]);
        groups->most = fmax(groups->most, points->colour[i]);
    }
    groups->count = !points->colour ? 1
                    : points->names ? (int)fmin((double)points->classes, GROUPS_MOST)
                                    : SHADES;
}

/* By counting: how many there are of each, where they begin, and then each in its place. */
static void sort(struct groups *groups, const struct points *points) {
    int64_t next[GROUPS_MOST] = {0};
    for (int64_t i = 0; i < points->count; i++) next[group_of(points, groups, i)]++;
    for (int g = 0; g < groups->count; g++) {
        groups->begin[g + 1] = groups->begin[g] + next[g];
        next[g] = groups->begin[g];
    }
    for (int64_t i = 0; i < points->count; i++) {
        const int64_t to = next[group_of(points, groups, i)]++;
        groups->x[to] = points->at[i * points->columns];
        groups->y[to] = points->columns > 1 ? points->at[i * points->columns + 1] : 0;
    }
}

static const char *name_of(struct groups *groups, const struct points *points, int g) {
    if (!points->colour) return NULL;
    if (points->names)
        return g == GROUPS_MOST - 1 && points->classes > GROUPS_MOST ? "others" : points->names[g];
    snprintf(groups->names[g], sizeof groups->names[g], "%.4g",
             groups->least + (g + 0.5) * (groups->most - groups->least) / SHADES);
    return groups->names[g];
}

int plot_points(const char *path, const struct points *points) {
    struct groups groups = {.x = malloc((size_t)points->count * 2 * sizeof(double) + 1)};
    if (!groups.x) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for a picture");
    groups.y = groups.x + points->count;
    take_range(&groups, points);
    sort(&groups, points);
    for (int g = 0; g < groups.count; g++) /* the list begins with the last one */
        groups.series[groups.count - 1 - g] =
            (struct series){.name = name_of(&groups, points, g),
                            .x = groups.x + groups.begin[g],
                            .y = groups.y + groups.begin[g],
                            .count = groups.begin[g + 1] - groups.begin[g],
                            .number = g,
                            .paint = points->colour && !points->names ? shades[g] : NULL,
                            .look = LOOK_POINTS};
    const struct panel panel = {.x_title = points->axes[0],
                                .y_title = points->columns > 1 ? points->axes[1] : NULL,
                                .equal = points->columns > 1,
                                .series = groups.series,
                                .count = groups.count};
    const int code = plot_panels(path, points->title, &panel, 1);
    free(groups.x);
    return code;
}
