/* Dual coordinate descent: see dual.h. */
#include "ops/linear/dual.h"

#include <math.h>

#include "bodies/bodies.h"
#include "core/codes/codes.h"
#include "core/size.h"
#include "core/threads.h"
#include "derived/select.h"
#include "ops/linear/dual_plane.h"

bool ki_dual_possible(const kiln_matrix *X) {
    return X->format == KILN_CSR && ki_selectable(X);
}

kiln_status ki_dual_open(const kiln_matrix *X) {
    return ki_matrix_expand(X);
}

int64_t ki_dual_stride(int64_t k) {
    enum { PIECE = 8 }; /* no vector of doubles is longer */
    return k == 1 ? 1 : ki_ceil_div(k, PIECE) * PIECE;
}

enum { LOOKED_AT = 1 << 13 };

/* The same of categories, whose entries are all 1, and of what stands among the numbers beside them. */
static double coded_mean_square(const kiln_matrix *X) {
    const kiln_matrix *numbers = X->codes->numbers;
    const int64_t step = ki_max(X->rows * numbers->cols / LOOKED_AT, 1);
    const float *narrow = ki_host(&numbers->values);
    const double *wide = ki_host(&numbers->values);
    double sum = 0;
    int64_t count = 0;
    for (int64_t e = 0; e < numbers->nnz; e += step, count++) {
        const double value = X->type == KILN_F32 ? (double)narrow[e] : wide[e];
        sum += value * value;
    }
    return (count > 0 ? sum / (double)count * (double)numbers->cols : 0) + (double)X->codes->count;
}

double ki_dual_mean_square(const kiln_matrix *X) {
    if (X->codes) return coded_mean_square(X);
    const int64_t nnz = X->nnz, step = ki_max(nnz / LOOKED_AT, 1), count = nnz / step;
    const float *narrow = ki_host(&X->values);
    const double *wide = ki_host(&X->values);
    double sum = 0;
    for (int64_t e = 0; e < count; e++) {
        const double value = X->type == KILN_F32 ? (double)narrow[e * step] : wide[e * step];
        sum += value * value;
    }
    return count > 0 ? sum / (double)count * (double)nnz / (double)X->rows : 0;
}

/* ---- a sweep ---- */

enum { ROUNDS = 2 };           /* of a sweep: after each the parts' changes are added up */
static const double WORTH = 4; /* entries for each number of w */

bool ki_dual_shared(const kiln_matrix *X) {
    return (double)X->nnz >= WORTH * (double)X->cols;
}

static void shuffle(struct ki_dual *dual) {
    int32_t *order = dual->order;
    for (int64_t k = 0; k < dual->active; k++) {
        const int64_t other = k + ki_draw_below(&dual->draws, dual->active - k);
        const int32_t i = order[other];
        order[other] = order[k];
        order[k] = i;
    }
}

struct sweep {
    struct ki_dual part[KI_DUAL_PARTS];
    struct ki_dual_join join[KI_DUAL_PARTS];
    int round;
};

static void open_parts(struct sweep *sweep, const struct ki_dual *dual) {
    const int64_t n = dual->X->cols;
    for (int p = 0; p < KI_DUAL_PARTS; p++) {
        struct ki_dual *part = &sweep->part[p];
        const int64_t first = ki_part_begin(dual->active, p, KI_DUAL_PARTS);
        *part = *dual;
        part->order += first;
        part->active = ki_part_begin(dual->active, p + 1, KI_DUAL_PARTS) - first;
        part->w = dual->own + p * (n + 1);
        part->b = part->w + n;
        *part->b = *dual->b;
    }
}

static void descend(void *arg, int p) {
    struct sweep *sweep = arg;
    struct ki_dual part = sweep->part[p]; /* not in a line of memory of which another thread has the rest */
    ki_bodies(part.X)->dual_sweep(&part, ki_part_begin(part.active, sweep->round + 1, ROUNDS));
    sweep->part[p] = part;
}

static void join_stretch(void *arg, int p) {
    struct sweep *sweep = arg;
    ki_bodies(sweep->part[p].X)->dual_join(&sweep->join[p]);
}

/* Adds up what the parts changed, and learns how much of it they had in common. */
static void join_parts(struct sweep *sweep, struct ki_dual *dual) {
    const int64_t n = dual->X->cols;
    const double inverse = 1 / dual->stretch, none = 0;
    const double unit = dual->uniform && dual->reciprocal[0] > 0 ? 1 / dual->reciprocal[0] : 1;
    struct ki_dual_join bias = {.joined = dual->b,
                                .reciprocal = dual->bias_step > 0 ? &dual->bias_step : &none,
                                .inverse = inverse,
                                .count = 1};
    double apart = 0, together = 0;
    for (int p = 0; p < KI_DUAL_PARTS; p++) {
        const int64_t j = ki_part_begin(n, p, KI_DUAL_PARTS);
        sweep->join[p] = (struct ki_dual_join){.joined = dual->w + j,
                                               .reciprocal = dual->uniform ? NULL : dual->reciprocal + j,
                                               .inverse = inverse,
                                               .count = ki_part_begin(n, p + 1, KI_DUAL_PARTS) - j};
        for (int q = 0; q < KI_DUAL_PARTS; q++) sweep->join[p].own[q] = sweep->part[q].w + j;
        bias.own[p] = sweep->part[p].b;
    }
    ki_parallel(dual->X->device->threads, KI_DUAL_PARTS, join_stretch, sweep);
    ki_bodies(dual->X)->dual_join(&bias);
    for (int p = 0; p < KI_DUAL_PARTS; p++) {
        apart += sweep->join[p].apart;
        together += sweep->join[p].together;
    }
    apart = unit * apart + bias.apart;
    together = unit * together + bias.together;
    if (apart > 0) dual->stretch = fmin(fmax(together / apart, 1), KI_DUAL_PARTS);
    for (int p = 0; p < KI_DUAL_PARTS; p++) sweep->part[p].stretch = dual->stretch;
}

/* The rows that stay come to the front, and change places with those that do not, which will take part again:
 * no row is lost. */
static void close_parts(const struct sweep *sweep, struct ki_dual *dual) {
    dual->kept = 0;
    for (int p = 0; p < KI_DUAL_PARTS; p++) {
        const struct ki_dual *part = &sweep->part[p];
        for (int64_t k = 0; k < part->kept; k++) {
            const int32_t i = part->order[k];
            part->order[k] = dual->order[dual->kept];
            dual->order[dual->kept++] = i;
        }
        dual->violation += part->violation;
        dual->worst = fmax(dual->worst, part->worst);
    }
}

void ki_dual_sweep(struct ki_dual *dual) {
    struct sweep sweep;
    const double before_b = *dual->b;
    dual->violation = dual->worst = 0;
    dual->met = dual->kept = 0;
    shuffle(dual);
    if (dual->own) {
        open_parts(&sweep, dual);
        for (sweep.round = 0; sweep.round < ROUNDS; sweep.round++) {
            ki_parallel(dual->X->device->threads, KI_DUAL_PARTS, descend, &sweep);
            join_parts(&sweep, dual);
        }
        close_parts(&sweep, dual);
    } else {
        ki_bodies(dual->X)->dual_sweep(dual, dual->active);
    }
    dual->active = dual->kept;
    if (dual->former_w) ki_dual_move(dual, before_b);
}

/* ---- the rows' squares ---- */

struct measure {
    double *square;
    const kiln_matrix *X;
    const double *reciprocal;
};

static void measure_range(void *arg, int64_t begin, int64_t end) {
    const struct measure *measure = arg;
    ki_bodies(measure->X)->dual_measure(measure->square, measure->X, measure->reciprocal, begin, end);
}

void ki_dual_measure(double *square, const kiln_matrix *X, const double *reciprocal) {
    enum { ROWS = 256 };
    struct measure measure = {square, X, reciprocal};
    ki_parallel_ranges(X->device->threads, X->rows, ROWS, measure_range, &measure);
}
