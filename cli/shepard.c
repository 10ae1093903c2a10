/* The Shepard diagram: how far distances are from what they should be, and where. */
#include "shepard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "metrics.h"
#include "output.h"
#include "plot.h"
#include "text.h"

enum { DRAWN = 3000 }; /* pairs in a picture, evenly through their order */

struct pair {
    double delta, distance;
    int32_t i, j;
};

struct shepard {
    struct pair *pairs; /* by dissimilarity */
    int64_t count, n, p;
    double *Y, *delta;
};

static int by_delta(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    if (x->delta != y->delta) return x->delta < y->delta ? -1 : 1;
    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : 0;
}

static double distance(const double *y, const double *z, int64_t p) {
    double square = 0;
    for (int64_t c = 0; c < p; c++) square += (y[c] - z[c]) * (y[c] - z[c]);
    return sqrt(square);
}

/* A missing dissimilarity is no pair. */
static int collect(struct shepard *s) {
    const int64_t n = s->n;
    s->pairs = malloc((size_t)(n * (n - 1) / 2 + 1) * sizeof *s->pairs);
    if (!s->pairs)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the pairs of %lld points",
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            if (!isnan(s->delta[i * n + j]))
                s->pairs[s->count++] =
                    (struct pair){s->delta[i * n + j], distance(s->Y + i * s->p, s->Y + j * s->p, s->p),
                                  (int32_t)i, (int32_t)j};
    qsort(s->pairs, (size_t)s->count, sizeof *s->pairs, by_delta);
    return 0;
}

static int write_table(const struct shepard *s, const char *path, int single) {
    struct output output;
    char text[2][SHORTEST_ROOM];
    const int code = output_open(&output, path);
    if (code) return code;
    fputs("point,other,dissimilarity,distance\n", output.file);
    for (int64_t e = 0; e < s->count && !ferror(output.file); e++) {
        const struct pair *pair = &s->pairs[e];
        text_shortest(text[0], pair->delta, single);
        text_shortest(text[1], pair->distance, single);
        fprintf(output.file, "%d,%d,%s,%s\n", pair->i + 1, pair->j + 1, text[0], text[1]);
    }
    return output_commit(&output);
}

static int draw(const struct shepard *s, const char *path) {
    double x[DRAWN], distances[DRAWN];
    const int64_t count = s->count < DRAWN ? s->count : DRAWN;
    for (int64_t i = 0; i < count; i++) {
        const struct pair *pair = &s->pairs[i * s->count / count];
        x[i] = pair->delta;
        distances[i] = pair->distance;
    }
    const struct series series = {.x = x, .y = distances, .count = count, .look = LOOK_POINTS | LOOK_FAINT};
    const struct panel panel = {
        .x_title = "dissimilarity", .y_title = "distance in the layout", .series = &series, .count = 1};
    return plot_panels(path, "Shepard diagram", &panel, 1);
}

static bool ends_with(const char *path, const char *end) {
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcmp(path + length - tail, end) == 0;
}

int shepard_write(const char *path, const kiln_matrix *Y, const kiln_matrix *X, bool dissimilarities) {
    struct shepard s = {.n = kiln_matrix_rows(Y), .p = kiln_matrix_cols(Y)};
    kiln_matrix *D = NULL;
    int code = 0;
    if (!dissimilarities &&
        (kiln_matrix_dense(&D, kiln_matrix_device(X), kiln_matrix_type(X), s.n, s.n, NULL) != KILN_OK ||
         kiln_distances(D, X, X) != KILN_OK))
        code = fail_library(WORKING);
    if (!code) s.Y = values_of(Y, &code);
    if (!code) s.delta = values_of(dissimilarities ? X : D, &code);
    if (!code) code = collect(&s);
    if (!code)
        code = ends_with(path, ".svg") || ends_with(path, ".png")
                   ? draw(&s, path)
                   : write_table(&s, path, kiln_matrix_type(Y) == KILN_F32);
    kiln_matrix_free(D);
    free(s.Y);
    free(s.delta);
    free(s.pairs);
    return code;
}
