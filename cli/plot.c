/* Curves and points with error bars in panels, one below the other, so that their text can be read where a
 * page makes them narrow. Ticks are at round numbers, and everything that has a name is named inside the
 * picture: an axis leaves room for its numbers, a mark's name goes to the side that has room, and series are
 * listed below their panel. */
#include "plot.h"

#include <math.h>
#include <string.h>

#include "picture.h"
#include "text.h"

enum { SIDE = 340, LEFT = 84, RIGHT = 28, TOP = 52, BOTTOM = 62, WIDE = LEFT + SIDE + RIGHT };
/* The list of series has two columns. */
enum { LINE = 20, EDGE = 16, COLUMN = (WIDE - EDGE) / 2, LETTERS = 22 };

struct axis {
    double least, most; /* logarithmic: of the logarithms to base ten */
    double zero;        /* logarithmic: where 0 stands; NaN if none is to be drawn */
    bool logarithmic;
};

struct canvas {
    struct picture *picture;
    const struct panel *panel;
    double top;
    struct axis x, y;
};

/* ------------------------------------------------------------------------------------------- axes */

static double place(const struct axis *axis, double value) {
    const double at = !axis->logarithmic ? value : value > 0 ? log10(value) : axis->zero;
    return (at - axis->least) / (axis->most - axis->least);
}

static double across(const struct canvas *c, double x) {
    return LEFT + SIDE * place(&c->x, x);
}

static double up(const struct canvas *c, double y) {
    return c->top + SIDE * (1 - place(&c->y, y));
}

static double error_of(const struct series *series, int64_t i) {
    return series->error && isfinite(series->error[i]) ? series->error[i] : 0;
}

static void widen(struct axis *axis, double value) {
    if (axis->logarithmic && value == 0) axis->zero = 0;
    const double at = axis->logarithmic ? log10(value) : value;
    if (!isfinite(at)) return;
    axis->least = fmin(axis->least, at);
    axis->most = fmax(axis->most, at);
}

/* A twentieth more on both sides; a lone value gets room too. */
static void give_room(struct axis *axis) {
    if (!(axis->least <= axis->most)) axis->least = axis->most = 0;
    const double span = axis->most - axis->least;
    if (!isnan(axis->zero)) axis->zero = axis->least -= span > 0 ? span / 6 : 1;
    const double lone = axis->logarithmic ? 1 : fmax(fabs(axis->most) / 20, 1e-300);
    const double room = axis->most > axis->least ? (axis->most - axis->least) / 20 : lone;
    axis->least -= room;
    axis->most += room;
}

/* As wide as the other is, about its own middle. */
static void widen_to(struct axis *axis, const struct axis *other) {
    const double middle = (axis->least + axis->most) / 2, span = other->most - other->least;
    if (axis->most - axis->least >= span) return;
    axis->least = middle - span / 2;
    axis->most = middle + span / 2;
}

static void make_equal(struct axis *x, struct axis *y) {
    if (!(x->least <= x->most)) return; /* nothing is drawn */
    widen_to(x, y);
    widen_to(y, x);
}

static void fit(struct canvas *c) {
    const struct panel *panel = c->panel;
    c->x = (struct axis){INFINITY, -INFINITY, NAN, panel->logarithmic};
    c->y = (struct axis){INFINITY, -INFINITY, NAN, panel->logarithmic_y};
    if (panel->unit) {
        c->x = c->y = (struct axis){0, 1, NAN, false};
        return;
    }
    for (int64_t s = 0; s < panel->count; s++)
        for (int64_t i = 0; i < panel->series[s].count; i++) {
            const struct series *series = &panel->series[s];
            if (!isfinite(series->y[i])) continue;
            widen(&c->x, series->x[i]);
            widen(&c->y, series->y[i] - error_of(series, i));
            widen(&c->y, series->y[i] + error_of(series, i));
        }
    if (panel->counted || panel->from_zero) widen(&c->y, 0);
    if (panel->equal) make_equal(&c->x, &c->y);
    give_room(&c->x);
    give_room(&c->y);
}

static void draw_tick(const struct canvas *c, bool horizontal, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value + 0.0); /* not -0 */
    if (horizontal) {
        fprintf(c->picture->file, "<path d=\"M%.1f %.1fv5\" stroke=\"currentColor\"/>\n", across(c, value),
                c->top + SIDE);
        picture_text(c->picture, across(c, value), c->top + SIDE + 21, "middle", 0, text);
        return;
    }
    fprintf(c->picture->file, "<path d=\"M%d %.1fh%d\" stroke=\"currentColor\" opacity=\"0.15\"/>\n", LEFT,
            up(c, value), SIDE);
    picture_text(c->picture, LEFT - 8, up(c, value) + 5, "end", 0, text);
}

static void draw_linear_ticks(const struct canvas *c, const struct axis *axis, bool horizontal) {
    const double fine = picture_step(axis->most - axis->least, 5);
    const double step = c->panel->counted && !horizontal ? fmax(fine, 1) : fine;
    const double first = ceil(axis->least / step - 1e-9);
    const int count = (int)floor(axis->most / step + 1e-9 - first) + 1;
    for (int k = 0; k < count; k++) draw_tick(c, horizontal, (first + k) * step);
}

/* Powers of ten, not too many; where there are few also 2 and 5 times these. */
static void draw_logarithmic_ticks(const struct canvas *c, const struct axis *axis, bool horizontal) {
    const bool few = axis->most - axis->least < 2.5;
    const double from = isnan(axis->zero) ? axis->least : axis->zero + (axis->most - axis->zero) / 16;
    const int every = (int)fmax(ceil((axis->most - axis->least) / 7), 1);
    for (int k = (int)floor(axis->least); k <= (int)floor(axis->most); k++)
        for (int m = 1; m <= (few ? 5 : 1); m += m == 2 ? 3 : 1) {
            const double at = k + log10(m);
            if (at >= from && at <= axis->most && (few || k % every == 0))
                draw_tick(c, horizontal, m * pow(10, k));
        }
    if (!isnan(axis->zero)) draw_tick(c, horizontal, 0);
}

static void draw_ticks(const struct canvas *c, const struct axis *axis, bool horizontal) {
    if (axis->logarithmic)
        draw_logarithmic_ticks(c, axis, horizontal);
    else
        draw_linear_ticks(c, axis, horizontal);
}

static void draw_axes(const struct canvas *c) {
    const struct panel *panel = c->panel;
    const double middle = LEFT + SIDE / 2.0;
    fprintf(c->picture->file, "<path d=\"M%d %.1fv%dh%d\" fill=\"none\" stroke=\"currentColor\"/>\n", LEFT,
            c->top, SIDE, SIDE);
    if (panel->y_title) draw_ticks(c, &c->y, false);
    draw_ticks(c, &c->x, true);
    if (panel->title) picture_text(c->picture, middle, c->top - 27, "middle", 50, panel->title);
    picture_text(c->picture, middle, c->top + SIDE + 44, "middle", 50, panel->x_title);
    if (panel->y_title) picture_text(c->picture, LEFT, c->top - 9, "start", 50, panel->y_title);
}

/* ----------------------------------------------------------------------------------------- series */

/* Those that share a colour differ by their dashes and the shape of their points. */
static const char *const dashes[] = {"", "9 3 2 3", "2 3", "9 3"};

static int way_of(const struct series *series) {
    if (series->paint || series->look & LOOK_FAINT) return 0;
    return series->number / PICTURE_COLOURS % (int)(sizeof dashes / sizeof *dashes);
}

static const char *colour_of(const struct series *series) {
    if (series->paint) return series->paint;
    return series->look & LOOK_FAINT ? "currentColor" : picture_palette[series->number % PICTURE_COLOURS];
}

static void begin_line(FILE *file, const struct series *series, double width) {
    const char *dash = series->look & LOOK_DASHED ? "5 4" : dashes[way_of(series)];
    fprintf(file, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"", colour_of(series), width);
    if (series->look & LOOK_FAINT) fputs(" opacity=\"0.35\"", file);
    if (*dash) fprintf(file, " stroke-dasharray=\"%s\"", dash);
    fputs(" d=\"", file);
}

static void draw_line(const struct canvas *c, const struct series *series) {
    FILE *file = c->picture->file;
    bool begun = false;
    begin_line(file, series, series->look & LOOK_FAINT ? 1 : 1.8);
    for (int64_t i = 0; i < series->count; i++) {
        if (!isfinite(series->y[i])) continue;
        fprintf(file, "%c%.1f %.1f", begun ? 'L' : 'M', across(c, series->x[i]), up(c, series->y[i]));
        begun = true;
    }
    fputs("\"/>\n", file);
}

/* Strokes without length, which are a tenth of as many circles: dots by round caps, by square ones squares,
 * whose stroke needs a direction. */
static void begin_points(FILE *file, const struct series *series, double size) {
    fprintf(file,
            "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-linecap=\"%s\" opacity=\"0.8\" "
            "d=\"",
            colour_of(series), size, way_of(series) % 2 ? "square" : "round");
}

static void draw_point(FILE *file, const struct series *series, double x, double y) {
    fprintf(file, "M%.1f %.1fh%s", x, y, way_of(series) % 2 ? ".01" : "0");
}

static void draw_points(const struct canvas *c, const struct series *series, double size) {
    FILE *file = c->picture->file;
    begin_points(file, series, size);
    for (int64_t i = 0; i < series->count; i++)
        if (isfinite(series->y[i])) draw_point(file, series, across(c, series->x[i]), up(c, series->y[i]));
    fputs("\"/>\n", file);
    for (int64_t i = 0; i < series->count; i++) {
        const double error = error_of(series, i);
        if (error > 0 && isfinite(series->y[i]))
            fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", across(c, series->x[i]),
                    up(c, series->y[i] - error), up(c, series->y[i] + error), colour_of(series));
    }
}

/* Many points are smaller, so that they do not hide each other. */
static double point_size(const struct panel *panel) {
    int64_t count = 0;
    for (int64_t s = 0; s < panel->count; s++)
        if (panel->series[s].look & LOOK_POINTS) count += panel->series[s].count;
    return count > 20000 ? 1.5 : count > 2000 ? 2.5 : 6;
}

/* A series' name below the panel, after a piece of what it is drawn as. */
static void draw_name(const struct canvas *c, const struct series *series, int64_t place) {
    const int line = (int)(place / 2);
    const double x = EDGE + COLUMN * (int)(place % 2), y = c->top + SIDE + BOTTOM + LINE * line;
    if (series->look & LOOK_LINE) {
        begin_line(c->picture->file, series, 3);
        fprintf(c->picture->file, "M%.1f %.1fh20\"/>\n", x, y);
    } else {
        begin_points(c->picture->file, series, 10);
        draw_point(c->picture->file, series, x + 10, y);
        fputs("\"/>\n", c->picture->file);
    }
    picture_text(c->picture, x + 26, y + 5, "start", LETTERS, series->name);
}

static void draw_series(const struct canvas *c) {
    const double size = point_size(c->panel);
    int64_t listed = 0;
    fprintf(c->picture->file,
            "<svg x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" viewBox=\"%d %.1f %d %d\">\n", LEFT - 4,
            c->top - 4, SIDE + 8, SIDE + 8, LEFT - 4, c->top - 4, SIDE + 8, SIDE + 8);
    for (int64_t s = 0; s < c->panel->count; s++) {
        const struct series *series = &c->panel->series[s];
        if (series->look & LOOK_LINE) draw_line(c, series);
        if (series->look & LOOK_POINTS) draw_points(c, series, size);
    }
    fputs("</svg>\n", c->picture->file);
    for (int64_t s = c->panel->count - 1; s >= 0; s--) /* what lies in front comes first */
        if (c->panel->series[s].name) draw_name(c, &c->panel->series[s], listed++);
}

/* A name stands beside its line, away from the other line where there is room, the second one lower. */
static void draw_marks(const struct canvas *c) {
    enum { LETTER = 8, GAP = 5 };
    const struct panel *panel = c->panel;
    for (int m = 0; m < panel->mark_count; m++) {
        const double x = across(c, panel->marks[m]), left = LEFT;
        const double width = LETTER * (double)strlen(panel->mark_names[m]);
        const bool before = panel->marks[m] < panel->marks[1 - m] || (m == 0 && panel->mark_count > 1);
        const bool right = before ? x - width < left : x + width <= left + SIDE;
        fprintf(c->picture->file, "<path d=\"M%.1f %.1fv%d\" stroke=\"#c0504d\" stroke-dasharray=\"4 3\"/>\n",
                x, c->top, SIDE);
        picture_text(c->picture, right ? x + GAP : x - GAP, c->top + 13 + 17 * m, right ? "start" : "end", 0,
                     panel->mark_names[m]);
    }
}

/* With the list of its series. */
static int height_of(const struct panel *panel) {
    int named = 0;
    for (int64_t s = 0; s < panel->count; s++) named += panel->series[s].name != NULL;
    return TOP + SIDE + BOTTOM + LINE * ((named + 1) / 2);
}

int plot_panels(const char *path, const char *title, const struct panel *panels, int count) {
    struct picture picture;
    const int title_height = picture_title_height(WIDE, title);
    int height = title_height;
    for (int p = 0; p < count; p++) height += height_of(&panels[p]);
    const int code = picture_open(&picture, path, WIDE, height);
    if (code) return code;
    picture_title(&picture, title);
    struct canvas c = {.picture = &picture, .top = title_height + TOP};
    for (int p = 0; p < count; c.top += height_of(&panels[p++])) {
        c.panel = &panels[p];
        fit(&c);
        draw_axes(&c);
        draw_series(&c);
        draw_marks(&c);
    }
    return picture_close(&picture);
}
