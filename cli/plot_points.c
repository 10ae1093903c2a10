/* Points of a plane as SVG, a colour for each of a few classes or shades for a number. Both axes have the
 * same scale. Points of one colour are one path of strokes without length, which is a tenth of as many
 * circles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "plot_points.h"
#include "text.h"

enum { WIDTH = 680, HEIGHT = 540, LEFT = 76, TOP = 66, BOTTOM = 62, LEGEND = 176, SHADES = 8, LETTERS = 17 };
enum { ACROSS = WIDTH - LEFT - LEGEND, UP = HEIGHT - TOP - BOTTOM, EDGE = 12 };

static const char *const shades[SHADES] = {"#2c3e91", "#2f6db0", "#2f9bb0", "#3bb08f",
                                           "#7cba5f", "#c4b83c", "#e08a1e", "#c03a2b"};

struct frame {
    double x, y, scale; /* the middle of the data, and pixels a unit, the same in both directions */
};

static struct frame fit(const struct points *points) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < points->count; i++)
        for (int c = 0; c < 2; c++) {
            const double at = c < points->columns ? points->at[i * points->columns + c] : 0;
            low[c] = fmin(low[c], at);
            high[c] = fmax(high[c], at);
        }
    const bool together = low[0] == high[0] && low[1] == high[1]; /* all points are: any scale will do */
    const double wide = together ? 1 : fmax(high[0] - low[0], 1e-300), tall = fmax(high[1] - low[1], 1e-300);
    const double scale = fmin((ACROSS - 2.0 * EDGE) / wide, (UP - 2.0 * EDGE) / tall);
    return (struct frame){(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, scale};
}

static double across(const struct frame *frame, double x) {
    return LEFT + ACROSS / 2.0 + (x - frame->x) * frame->scale;
}

static double up(const struct frame *frame, double y) {
    return TOP + UP / 2.0 - (y - frame->y) * frame->scale;
}

/* Ticks of one axis, at round numbers. */
static void draw_ticks(struct picture *picture, const struct frame *frame, bool horizontal) {
    const double half = (horizontal ? ACROSS : UP) / 2.0 / frame->scale;
    const double middle = horizontal ? frame->x : frame->y, step = picture_step(2 * half, 5);
    const double first = ceil((middle - half) / step - 1e-9);
    const int count = (int)floor((middle + half) / step + 1e-9 - first) + 1;
    for (int k = 0; k < count; k++) {
        const double at = (first + k) * step;
        char text[32];
        snprintf(text, sizeof text, "%.6g", at + 0.0); /* not -0 */
        fprintf(picture->file, "<path d=\"M%.1f %.1f%s\" stroke=\"currentColor\"/>\n",
                horizontal ? across(frame, at) : LEFT, horizontal ? TOP + UP : up(frame, at),
                horizontal ? "v5" : "h-5");
        if (horizontal)
            picture_text(picture, across(frame, at), TOP + UP + 21, "middle", 0, text);
        else
            picture_text(picture, LEFT - 8, up(frame, at) + 5, "end", 0, text);
    }
}

static void draw_axes(struct picture *picture, const struct points *points, const struct frame *frame) {
    fprintf(picture->file, "<path d=\"M%d %dv%dh%d\" fill=\"none\" stroke=\"currentColor\"/>\n", LEFT, TOP,
            UP, ACROSS);
    draw_ticks(picture, frame, true);
    if (points->columns > 1) draw_ticks(picture, frame, false);
    picture_text(picture, LEFT + ACROSS / 2.0, TOP + UP + 44, "middle", 50, points->axes[0]);
    if (points->columns > 1) picture_text(picture, LEFT, TOP - 9, "start", 50, points->axes[1]);
}

static int colour_of(const struct points *points, int64_t i, double least, double most) {
    if (!points->colour) return 0;
    if (points->names) return (int)fmin(fmax(points->colour[i], 0), POINT_CLASSES - 1);
    return (int)fmin(fmax((points->colour[i] - least) / fmax(most - least, 1e-300) * SHADES, 0), SHADES - 1);
}

static void draw(FILE *file, const struct points *points, const struct frame *frame, double least,
                 double most) {
    const bool shaded = points->colour && !points->names;
    const int colours = !points->colour ? 1 : shaded ? SHADES : POINT_CLASSES;
    const double size = points->count > 20000 ? 1.5 : points->count > 2000 ? 2.5 : 6;
    for (int colour = 0; colour < colours; colour++) {
        bool begun = false;
        for (int64_t i = 0; i < points->count; i++) {
            if (colour_of(points, i, least, most) != colour) continue;
            const double *at = points->at + i * points->columns, y = points->columns > 1 ? at[1] : 0;
            if (!begun)
                fprintf(file,
                        "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-linecap=\"round\" "
                        "opacity=\"0.8\" d=\"",
                        shaded ? shades[colour] : picture_palette[colour], size);
            begun = true;
            fprintf(file, "M%.1f %.1fh0", across(frame, at[0]), up(frame, y));
        }
        if (begun) fputs("\"/>\n", file);
    }
}

static void draw_legend(struct picture *picture, const struct points *points, double least, double most) {
    const int lines = !points->colour ? 0
                      : points->names ? (int)fmin((double)points->classes, POINT_CLASSES)
                                      : SHADES;
    for (int line = 0; line < lines; line++) {
        char text[64];
        snprintf(text, sizeof text, "%.4g", least + (line + 0.5) * (most - least) / SHADES);
        const bool rest = points->names && line == POINT_CLASSES - 1 && points->classes > POINT_CLASSES;
        const char *name = !points->names ? text : rest ? "others" : points->names[line];
        fprintf(picture->file, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"%s\"/>\n", WIDTH - LEGEND + 22,
                TOP + 20 * line, points->names ? picture_palette[line] : shades[line]);
        picture_text(picture, WIDTH - LEGEND + 34, TOP + 5 + 20 * line, "start", LETTERS, name);
    }
}

int plot_points(const char *path, const struct points *points) {
    struct picture picture;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; points->colour && i < points->count; i++) {
        least = fmin(least, points->colour[i]);
        most = fmax(most, points->colour[i]);
    }
    const struct frame frame = fit(points);
    const int code = picture_open(&picture, path, WIDTH, HEIGHT);
    if (code) return code;
    picture_text(&picture, 16, 24, "start", 0, points->title);
    draw_axes(&picture, points, &frame);
    draw(picture.file, points, &frame, least, most);
    draw_legend(&picture, points, least, most);
    return picture_close(&picture);
}
