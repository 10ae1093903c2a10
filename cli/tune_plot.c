/* The plot of kiln tune, after Figure 6 of the fused-kernels paper: every plan's time, here in ascending
 * order. Text takes the page's colour, so that it reads on light and dark. */
#include <math.h>

#include "picture.h"
#include "tune.h"

enum { WIDTH = 640, HEIGHT = 380, LEFT = 84, RIGHT = 20, TOP = 40, BOTTOM = 50 };

struct axes {
    double most; /* milliseconds at the top */
    int64_t count;
};

static double x_of(const struct axes *axes, double rank) {
    return LEFT + (WIDTH - LEFT - RIGHT) * (axes->count > 1 ? rank / (double)(axes->count - 1) : 0.5);
}

static double y_of(const struct axes *axes, double milliseconds) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * fmin(milliseconds / axes->most, 1);
}

static void draw_axes(FILE *file, const struct axes *axes) {
    const double step = picture_step(axes->most, 5);
    for (int line = 0; line * step <= axes->most * 1.0001; line++) {
        const double at = line * step;
        fprintf(file,
                "<path d=\"M%d %.1fH%d\" stroke=\"currentColor\" opacity=\"0.2\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g ms</text>\n",
                LEFT, y_of(axes, at), WIDTH - RIGHT, LEFT - 6, y_of(axes, at) + 4, at);
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\">plans, fastest first</text>\n", LEFT, HEIGHT - 14);
}

static void draw_plans(FILE *file, const struct axes *axes, const struct plan_row *tuned) {
    for (int64_t i = 0; i < axes->count; i++)
        if (tuned[i].plan->seconds > 0 && isfinite(tuned[i].plan->seconds))
            fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"#e08a1e\" opacity=\"0.7\"/>\n",
                    x_of(axes, (double)i), y_of(axes, 1e3 * tuned[i].plan->seconds));
    fprintf(file, "<path fill=\"none\" stroke=\"#3b82c4\" stroke-width=\"2\" d=\"");
    for (int64_t i = 0; i < axes->count; i++)
        fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M', x_of(axes, (double)i),
                y_of(axes, 1e3 * tuned[i].seconds));
    fprintf(file, "\"/>\n");
    for (int64_t i = 0; i < axes->count; i++) {
        if (!tuned[i].plan->chosen) continue;
        const double x = x_of(axes, (double)i), y = y_of(axes, 1e3 * tuned[i].seconds);
        fprintf(
            file,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"none\" stroke=\"#c0392b\" stroke-width=\"2.5\"/>"
            "<text x=\"%.1f\" y=\"%.1f\"%s>the choice: rank %lld of %lld, %.1f %% above the best</text>\n",
            x, y, x < WIDTH / 2.0 ? x + 10 : x - 10, y - 12, x < WIDTH / 2.0 ? "" : " text-anchor=\"end\"",
            (long long)i + 1, (long long)axes->count, 100 * (tuned[i].seconds / tuned[0].seconds - 1));
    }
    fprintf(file,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"><tspan fill=\"#3b82c4\">measured</tspan> "
            "<tspan fill=\"#e08a1e\">predicted</tspan></text>\n",
            WIDTH - RIGHT, HEIGHT - 14);
}

int tune_plot(const char *path, const struct plan_row *tuned, int64_t count, const char *title) {
    struct picture picture;
    if (count == 0) return 0;
    /* Outliers would flatten everything else: four times the best is the top, or the slowest plan. */
    const struct axes axes = {1e3 * fmin(tuned[count - 1].seconds * 1.05, 4 * tuned[0].seconds), count};
    const int code = picture_open(&picture, path, WIDTH, HEIGHT);
    if (code) return code;
    picture_text(&picture, LEFT, 22, "start", 0, title);
    draw_axes(picture.file, &axes);
    draw_plans(picture.file, &axes, tuned);
    return picture_close(&picture);
}
