/* Rows with the colour of their cluster, in the plane in which the centres lie furthest apart: that of the
 * two directions u with the largest  sum_c w_c ((c - mean).u)^2, found by orthogonal iteration. Of many
 * rows every so many-th is drawn. */
#include "plot_clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "metrics.h"
#include "plot_points.h"
#include "text.h"

enum { DRAWN = 10000, TURNS = 60 };

struct picture {
    const kiln_matrix *X, *labels;
    const double *centres, *weights;
    int64_t k, n, count;
    double *plane, *next, *mean; /* n x 2, twice; n */
    kiln_matrix *rows, *of_rows, *directions, *at;
    double *points, *colour;
    char (*names)[24];
    const char **name;
};

/* next = sum_c w_c (c - mean) ((c - mean).plane). */
static void turn(struct picture *p) {
    memset(p->next, 0, (size_t)(2 * p->n) * sizeof *p->next);
    for (int64_t c = 0; c < p->k; c++) {
        const double *centre = p->centres + c * p->n;
        double along[2] = {0, 0};
        for (int64_t j = 0; j < p->n; j++)
            for (int d = 0; d < 2; d++) along[d] += (centre[j] - p->mean[j]) * p->plane[2 * j + d];
        for (int64_t j = 0; j < p->n; j++)
            for (int d = 0; d < 2; d++)
                p->next[2 * j + d] += p->weights[c] * (centre[j] - p->mean[j]) * along[d];
    }
}

/* plane = next, its columns made orthogonal and of length 1; a column without length stays. */
static void straighten(struct picture *p) {
    for (int d = 0; d < 2; d++) {
        double common = 0, square = 0;
        for (int64_t j = 0; d && j < p->n; j++) common += p->next[2 * j] * p->next[2 * j + 1];
        for (int64_t j = 0; d && j < p->n; j++) p->next[2 * j + 1] -= common * p->next[2 * j];
        for (int64_t j = 0; j < p->n; j++) square += p->next[2 * j + d] * p->next[2 * j + d];
        for (int64_t j = 0; j < p->n; j++) {
            if (square > 0) p->plane[2 * j + d] = p->next[2 * j + d] / sqrt(square);
            p->next[2 * j + d] = p->plane[2 * j + d];
        }
    }
}

/* Two columns are drawn as they are. */
static void find_plane(struct picture *p) {
    double total = 0;
    for (int64_t j = 0; j < p->n; j++)
        for (int d = 0; d < 2; d++) p->plane[2 * j + d] = p->n <= 2 ? j == d : cos((double)(j + 1) * (d + 1));
    if (p->n <= 2) return;
    for (int64_t c = 0; c < p->k; c++) {
        total += p->weights[c];
        for (int64_t j = 0; j < p->n; j++) p->mean[j] += p->weights[c] * p->centres[c * p->n + j];
    }
    for (int64_t j = 0; j < p->n; j++) p->mean[j] /= total;
    memcpy(p->next, p->plane, (size_t)(2 * p->n) * sizeof *p->next);
    straighten(p);
    for (int i = 0; i < TURNS; i++) {
        turn(p);
        straighten(p);
    }
}

/* The drawn rows in the plane, and their labels. */
static int take_points(struct picture *p, const int64_t *rows) {
    kiln_device *device = kiln_matrix_device(p->X);
    const kiln_type type = kiln_matrix_type(p->X);
    kiln_matrix *wide = NULL;
    int code = 0;
    kiln_status status = kiln_matrix_dense(&p->rows, device, type, p->count, p->n, NULL);
    if (status == KILN_OK) status = kiln_rows(p->rows, p->X, rows);
    if (status == KILN_OK) status = kiln_matrix_dense(&p->of_rows, device, type, p->count, 1, NULL);
    if (status == KILN_OK) status = kiln_rows(p->of_rows, p->labels, rows);
    if (status == KILN_OK) status = kiln_matrix_dense(&wide, device, KILN_F64, p->n, 2, p->plane);
    if (status == KILN_OK) status = kiln_matrix_copy(&p->directions, device, type, wide);
    if (status == KILN_OK) status = kiln_matrix_dense(&p->at, device, type, p->count, 2, NULL);
    if (status == KILN_OK) status = kiln_multiply(p->at, 1, KILN_PLAIN, p->rows, p->directions, 0, NULL);
    kiln_matrix_free(wide);
    if (status != KILN_OK) return fail_library(WORKING);
    p->points = values_of(p->at, &code);
    if (!code) p->colour = values_of(p->of_rows, &code);
    return code;
}

static int draw(struct picture *p, const char *path, const char *title, const char *const names[2]) {
    const int64_t m = kiln_matrix_rows(p->X);
    int64_t *rows = malloc((size_t)p->count * sizeof *rows + 1);
    p->plane = calloc((size_t)(5 * p->n) + 1, sizeof *p->plane);
    p->names = malloc((size_t)p->k * sizeof *p->names);
    p->name = malloc((size_t)p->k * sizeof *p->name);
    int code = rows && p->plane && p->names && p->name
                   ? 0
                   : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for a picture");
    if (!code) {
        p->next = p->plane + 2 * p->n;
        p->mean = p->next + 2 * p->n;
        for (int64_t i = 0; i < p->count; i++) rows[i] = (int64_t)((double)m / (double)p->count * (double)i);
        for (int64_t c = 0; c < p->k; c++) {
            snprintf(p->names[c], sizeof *p->names, "%lld", (long long)c);
            p->name[c] = p->names[c];
        }
        find_plane(p);
        code = take_points(p, rows);
    }
    free(rows);
    return code ? code
                : plot_points(path, &(struct points){.title = title,
                                                     .axes = {names[0], names[1]},
                                                     .at = p->points,
                                                     .count = p->count,
                                                     .columns = 2,
                                                     .colour = p->colour,
                                                     .names = p->name,
                                                     .classes = p->k});
}

int plot_clusters(const char *path, const char *title, const kiln_matrix *X, const kiln_matrix *labels,
                  const double *centres, const double *weights, int64_t k, const char *const names[2]) {
    static const char *const directions[2] = {"direction in which the centres differ most",
                                              "direction in which they differ second most"};
    const int64_t m = kiln_matrix_rows(X);
    char whole[240];
    struct picture p = {.X = X, .labels = labels, .centres = centres, .weights = weights, .k = k};
    p.n = kiln_matrix_cols(X);
    p.count = m < DRAWN ? m : DRAWN;
    snprintf(whole, sizeof whole, "%.160s", title);
    if (p.count < m) snprintf(whole + strlen(whole), 60, "; drawn: %s of them", text_count(p.count));
    const int code = draw(&p, path, whole, p.n > 2 ? directions : names);
    kiln_matrix *const all[] = {p.rows, p.of_rows, p.directions, p.at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    free(p.plane);
    free(p.names);
    free(p.name);
    free(p.points);
    free(p.colour);
    return code;
}
