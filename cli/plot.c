/* A curve with error bars as SVG: text, so that a browser shows it and no library draws it. */
#include "plot.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "output.h"

enum { WIDTH = 640, HEIGHT = 400, LEFT = 80, RIGHT = 20, TOP = 40, BOTTOM = 60, TICKS = 5 };

struct axes {
    double x_least, x_most, y_least, y_most; /* x as its logarithm to base ten */
};

static double across(const struct axes *axes, double x) {
    const double span = axes->x_most - axes->x_least;
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(x) - axes->x_least) / span;
}

static double up(const struct axes *axes, double y) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - axes->y_least) / (axes->y_most - axes->y_least);
}

static double error_of(const struct curve *curve, int64_t i) {
    return curve->error && isfinite(curve->error[i]) ? curve->error[i] : 0;
}

/* Room for all points with their bars, and a twentieth more. A lone value gets room too. */
static struct axes fit(const struct curve *curve) {
    struct axes axes = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int64_t i = 0; i < curve->count; i++) {
        if (!isfinite(curve->y[i])) continue;
        axes.x_least = fmin(axes.x_least, log10(curve->x[i]));
        axes.x_most = fmax(axes.x_most, log10(curve->x[i]));
        axes.y_least = fmin(axes.y_least, curve->y[i] - error_of(curve, i));
        axes.y_most = fmax(axes.y_most, curve->y[i] + error_of(curve, i));
    }
    if (!isfinite(axes.x_least)) return (struct axes){0, 1, 0, 1};
    const double x_room = axes.x_most > axes.x_least ? (axes.x_most - axes.x_least) / 20 : 1;
    const double y_room =
        axes.y_most > axes.y_least ? (axes.y_most - axes.y_least) / 20 : fmax(fabs(axes.y_most) / 20, 1e-300);
    return (struct axes){axes.x_least - x_room, axes.x_most + x_room, axes.y_least - y_room,
                         axes.y_most + y_room};
}

/* Letters that would end or open markup are escaped. */
static void put_text(FILE *file, double x, double y, const char *anchor, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", file);
        else
            fputc(*text, file);
    }
    fputs("</text>\n", file);
}

static void draw_axes(FILE *file, const struct curve *curve, const struct axes *axes) {
    fprintf(file, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#444\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
    for (int t = 0; t <= TICKS; t++) {
        const double share = (double)t / TICKS;
        const double x = pow(10, axes->x_least + share * (axes->x_most - axes->x_least));
        const double y = axes->y_least + share * (axes->y_most - axes->y_least);
        char text[32];
        snprintf(text, sizeof text, "%.3g", x);
        put_text(file, across(axes, x), HEIGHT - BOTTOM + 18, "middle", text);
        snprintf(text, sizeof text, "%.4g", y);
        put_text(file, LEFT - 8, up(axes, y) + 4, "end", text);
        fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, up(axes, y), WIDTH - RIGHT);
    }
    put_text(file, LEFT, TOP - 16, "start", curve->title);
    put_text(file, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14, "middle", curve->x_title);
    put_text(file, LEFT, TOP - 2, "start", curve->y_title);
}

static void draw_points(FILE *file, const struct curve *curve, const struct axes *axes) {
    bool begun = false;
    fprintf(file, "<path fill=\"none\" stroke=\"#1f6fb2\" stroke-width=\"1.5\" d=\"");
    for (int64_t i = 0; i < curve->count; i++) {
        if (!isfinite(curve->y[i])) continue;
        fprintf(file, "%c%.1f %.1f", begun ? 'L' : 'M', across(axes, curve->x[i]), up(axes, curve->y[i]));
        begun = true;
    }
    fprintf(file, "\"/>\n");
    for (int64_t i = 0; i < curve->count; i++) {
        const double x = across(axes, curve->x[i]), error = error_of(curve, i);
        if (!isfinite(curve->y[i])) continue;
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#1f6fb2\"/>\n", x,
                up(axes, curve->y[i]));
        if (error > 0)
            fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#1f6fb2\"/>\n", x,
                    up(axes, curve->y[i] - error), up(axes, curve->y[i] + error));
    }
}

static void draw_marks(FILE *file, const struct curve *curve, const struct axes *axes) {
    for (int m = 0; m < curve->mark_count; m++) {
        const double x = across(axes, curve->marks[m]);
        fprintf(file, "<path d=\"M%.1f %dV%d\" stroke=\"#c33\" stroke-dasharray=\"4 3\"/>\n", x, TOP,
                HEIGHT - BOTTOM);
        put_text(file, x + 4, TOP + 12 + 14 * m, "start", curve->mark_names[m]);
    }
}

int plot_curve(const char *path, const struct curve *curve) {
    struct output output;
    const struct axes axes = fit(curve);
    int code = output_open(&output, path);
    if (code) return code;
    fprintf(output.file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT);
    draw_axes(output.file, curve, &axes);
    draw_marks(output.file, curve, &axes);
    draw_points(output.file, curve, &axes);
    fprintf(output.file, "</svg>\n");
    return output_commit(&output);
}
