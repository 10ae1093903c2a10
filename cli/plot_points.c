/* Points of a plane as SVG, a colour for each of a few classes or shades for a number. Points of one colour are one path of
 * strokes without length, which is a tenth of as many circles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "plot_points.h"
#include "text.h"

enum { WIDTH = 720, HEIGHT = 560, EDGE = 30, TOP = 44, LEGEND = 150, SHADES = 8 };

static const char *const palette[POINT_CLASSES] = {"#3b82c4", "#e08a1e", "#4a9d5b", "#a65fb0",
                                                   "#c0504d", "#8a8a8a", "#17a2a2", "#b58900",
                                                   "#5f6fd0", "#d05f97", "#6b8e23", "#8c6d46"};
static const char *const shades[SHADES] = {"#2c3e91", "#2f6db0", "#2f9bb0", "#3bb08f",
                                           "#7cba5f", "#c4b83c", "#e08a1e", "#c03a2b"};

/* Text in markup. */
static void put_text(FILE *file, double x, double y, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", file);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, file);
    fputs("</text>\n", file);
}

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
    const double across = fmax(high[0] - low[0], 1e-300), up = fmax(high[1] - low[1], 1e-300);
    const double scale = fmin((WIDTH - LEGEND - 2.0 * EDGE) / across, (HEIGHT - TOP - 2.0 * EDGE) / up);
    return (struct frame){(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, scale};
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
                        shaded ? shades[colour] : palette[colour], size);
            begun = true;
            fprintf(file, "M%.1f %.1fh0", (WIDTH - LEGEND) / 2.0 + (at[0] - frame->x) * frame->scale,
                    (HEIGHT + TOP) / 2.0 - (y - frame->y) * frame->scale);
        }
        if (begun) fputs("\"/>\n", file);
    }
}

static void draw_legend(FILE *file, const struct points *points, double least, double most) {
    const int lines = !points->colour ? 0
                      : points->names ? (int)fmin((double)points->classes, POINT_CLASSES)
                                      : SHADES;
    for (int line = 0; line < lines; line++) {
        char text[64];
        snprintf(text, sizeof text, "%.4g", least + (line + 0.5) * (most - least) / SHADES);
        const bool rest = points->names && line == POINT_CLASSES - 1 && points->classes > POINT_CLASSES;
        const char *name = !points->names ? text : rest ? "others" : points->names[line];
        fprintf(file, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"%s\"/>\n", WIDTH - LEGEND + 8,
                TOP + 20 * line, points->names ? palette[line] : shades[line]);
        put_text(file, WIDTH - LEGEND + 20, TOP + 4 + 20 * line, name);
    }
}

int plot_points(const char *path, const struct points *points) {
    struct output output;
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; points->colour && i < points->count; i++) {
        least = fmin(least, points->colour[i]);
        most = fmax(most, points->colour[i]);
    }
    const struct frame frame = fit(points);
    const int code = output_open(&output, path);
    if (code) return code;
    fprintf(output.file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n"
            "<style>svg{color:#222;background:#fff}@media "
            "(prefers-color-scheme:dark){svg{color:#ddd;background:#161616}}"
            "text{fill:currentColor}</style>\n",
            WIDTH, HEIGHT);
    put_text(output.file, EDGE, 24, points->title);
    draw(output.file, points, &frame, least, most);
    draw_legend(output.file, points, least, most);
    fputs("</svg>\n", output.file);
    return output_commit(&output);
}
