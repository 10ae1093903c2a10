/* CPU bodies of dual_judge.h. */
#include <float.h>

#include "dialect/simd_math.h"
#include "ops/linear/dual_row.h"

typedef double FN(dual_pair) __attribute__((vector_size(16)));

/* Returns whether a number that is not 0 has a square of 0, one that rounding has eaten into, or infinity. */
static bool FN(dual_odd)(struct FN(dual_row) row) {
    const double most = real_bytes == 4 ? (double)FLT_MAX : DBL_MAX, least = 1 / most;
    int odd = 0;
    for (int64_t e = 0; e < row.count; e++) {
        const double value = (double)row.value[e], square = value * value;
        odd |= (value != 0) & !((square > least) & (square <= most));
    }
    return odd;
}

static double FN(dual_square)(struct FN(dual_row) row) {
    double sum[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= row.count; e += 4)
        for (int l = 0; l < 4; l++) sum[l] += (double)row.value[e + l] * (double)row.value[e + l];
    for (; e < row.count; e++) sum[0] += (double)row.value[e] * (double)row.value[e];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void FN(dual_first)(struct ki_dual_walk *walk) {
    const struct ki_dual *dual = walk->dual;
    for (int64_t i = walk->begin; i < walk->end; i++) {
        const struct FN(dual_row) row = FN(dual_row_of)(dual->X, i);
        const double s = dual->s ? dual->s[i] : 1, y = dual->y[i];
        walk->odd = walk->odd || FN(dual_odd)(row);
        walk->square[i] = FN(dual_square)(row) * dual->reciprocal[0];
        for (int64_t e = 0; e < row.count; e++) {
            const double value = (double)row.value[e];
            double *to = walk->sum + 2 * (int64_t)row.col[e];
            FN(dual_pair) at;
            memcpy(&at, to, sizeof at);
            at += s * value * (FN(dual_pair)){value, y};
            memcpy(to, &at, sizeof at);
        }
    }
}

/* A row's loss, and in *slope its derivative beside y s. */
static double FN(dual_loss)(double *slope, bool logistic, double margin) {
    if (!logistic) {
        const double lack = fmax(1 - margin, 0);
        *slope = -lack;
        return 0.5 * lack * lack;
    }
    const double small = exp(-fabs(margin));
    *slope = -(margin > 0 ? small : 1) / (1 + small);
    return fmax(-margin, 0) + log1p(small);
}

void FN(dual_last)(struct ki_dual_walk *walk) {
    const struct ki_dual *dual = walk->dual;
    for (int64_t i = walk->begin; i < walk->end; i++) {
        const struct FN(dual_row) row = FN(dual_row_of)(dual->X, i);
        const double s = dual->s ? dual->s[i] : 1, y = dual->y[i];
        double slope;
        walk->loss += s * FN(dual_loss)(&slope, dual->logistic, y * FN(dual_dot)(row, dual->w));
        slope *= s * y;
        if (slope == 0) continue;
        for (int64_t e = 0; e < row.count; e++) walk->sum[row.col[e]] += slope * (double)row.value[e];
    }
}
