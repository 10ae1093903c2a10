/* The walks around a descent in the dual: see dual_judge.h. */
#include "ops/linear/dual_judge.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "bodies/bodies.h"
#include "core/size.h"
#include "core/threads.h"

static void first_part(void *arg, int p) {
    struct ki_dual_walk *walks = arg,
                        walk = walks[p]; /* in no line of memory of which another thread has the rest */
    ki_bodies(walk.dual->X)->dual_first(&walk);
    walks[p] = walk;
}

static void last_part(void *arg, int p) {
    struct ki_dual_walk *walks = arg, walk = walks[p];
    ki_bodies(walk.dual->X)->dual_last(&walk);
    walks[p] = walk;
}

/* Walks of the dual's threads, each with `width` sums a column of its own, one after the other from `sums`
 * on; returns how many. */
static int walk_parts(struct ki_dual_walk walks[KI_DUAL_PARTS], const struct ki_dual *dual,
                      void (*part)(void *arg, int part), double *sums, int64_t width, double *square) {
    const int parts = dual->own ? KI_DUAL_PARTS : 1;
    for (int p = 0; p < parts; p++)
        walks[p] = (struct ki_dual_walk){.dual = dual,
                                         .begin = ki_part_begin(dual->X->rows, p, parts),
                                         .end = ki_part_begin(dual->X->rows, p + 1, parts),
                                         .square = square,
                                         .sum = sums + p * width * dual->X->cols};
    ki_parallel(dual->X->device->threads, parts, part, walks);
    return parts;
}

/* Column j's sums of all parts, in the first one's. */
static void add_parts(const struct ki_dual_walk *walks, int parts, int64_t count) {
    for (int p = 1; p < parts; p++)
        for (int64_t j = 0; j < count; j++) walks[0].sum[j] += walks[p].sum[j];
}

bool ki_dual_judge_begin(struct ki_dual_judge *judge, const struct ki_dual *dual, double *square) {
    const bool narrow = dual->X->type == KILN_F32;
    const int64_t n = dual->X->cols;
    const double most = narrow ? (double)FLT_MAX : DBL_MAX, least = 1 / most, apart = narrow ? 1e30 : 1e200;
    const double curvature = dual->logistic ? 0.25 : 1, slope = dual->logistic ? 0.5 : 1,
                 loss = judge->weight * (dual->logistic ? log(2) : 0.5);
    struct ki_dual_walk walks[KI_DUAL_PARTS];
    const int parts = walk_parts(walks, dual, first_part, dual->w, 2, square);
    double reference = 0, magnification = 0;
    bool good = judge->weight > 0;
    for (int p = 0; p < parts; p++) good = good && !walks[p].odd;
    add_parts(walks, parts, 2 * n);
    judge->largest = 0;
    for (int64_t j = 0; j < n; j++) {
        const double sum = dual->w[2 * j], g = slope * dual->w[2 * j + 1];
        const double scale = curvature * sum + judge->l2;
        good = good && (sum > least ? sum <= most : sum == 0 && g == 0);
        judge->scale[j] = scale;
        judge->largest = fmax(judge->largest, scale);
        reference += g * g / scale;
        magnification += sum / scale;
    }
    memset(dual->w, 0, (size_t)(2 * n * parts) * sizeof *dual->w);
    judge->reference = sqrt(reference);
    const double epsilon = narrow ? (double)FLT_EPSILON : DBL_EPSILON,
                 noise = 16 * epsilon * sqrt((magnification + 1 / curvature) * loss);
    return good && judge->largest <= apart * judge->l2 && judge->reference > noise;
}

void ki_dual_judge_end(struct ki_dual_judge *judge, const struct ki_dual *dual) {
    const int64_t n = dual->X->cols;
    struct ki_dual_walk walks[KI_DUAL_PARTS];
    double *sums = dual->own ? dual->own : dual->former_w, norm = 0, size = 0, penalty = 0;
    for (int64_t j = 0; dual->X->type == KILN_F32 && j < n; j++) dual->w[j] = (float)dual->w[j];
    memset(sums, 0, (size_t)((dual->own ? KI_DUAL_PARTS : 1) * n) * sizeof *sums);
    const int parts = walk_parts(walks, dual, last_part, sums, 1, NULL);
    add_parts(walks, parts, n);
    for (int64_t j = 0; j < n; j++) {
        const double w = dual->w[j], g = judge->l2 * w + sums[j];
        norm += g * g / judge->scale[j];
        size += g * g;
        penalty += w * w;
    }
    judge->objective = 0.5 * judge->l2 * penalty;
    for (int p = 0; p < parts; p++) judge->objective += walks[p].loss;
    judge->norm = sqrt(norm);
    judge->size = size;
}
