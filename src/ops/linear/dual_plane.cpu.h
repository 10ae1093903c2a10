/* CPU body of dual_plane.h. */
#include "dialect/simd_math.h"
#include "ops/linear/dual_row.h"

/* Slopes and curvatures that rows begin ... end - 1 have of their own conjugates. */
static void FN(dual_plane_rows)(struct ki_dual_plane *plane, int64_t begin, int64_t end) {
    const struct ki_dual *dual = plane->dual;
    double sum[KI_DUAL_PLANE] = {0};
    for (int64_t i = begin; i < end; i++) {
        const double a = dual->a[i], s = dual->s ? dual->s[i] : 1;
        const double change = a - dual->former_a[i], last = dual->former_a[i] - dual->before_a[i];
        if (change == 0 && last == 0) continue;
        const double slope = dual->logistic ? log(a / dual->rest[i]) : a / s - 1;
        const double curve = dual->logistic ? s / a / dual->rest[i] : 1 / s;
        sum[0] += slope * change;
        sum[1] += slope * last;
        sum[2] += curve * change * change;
        sum[3] += curve * change * last;
        sum[4] += curve * last * last;
    }
    for (int n = 0; n < KI_DUAL_PLANE; n++) plane->sum[n] += sum[n];
}

/* The same of `count` columns from `at` on, a constant wherever this is inlined but for the last ones; sums
 * side by side. */
ALWAYS_INLINE void FN(dual_plane_some)(double (*sum)[8], const struct ki_dual *dual, int64_t at, int count) {
    for (int l = 0; l < count; l++) {
        const int64_t j = at + l;
        const double w = dual->w[j], former = dual->former_w[j];
        const double change = w - former, last = former - dual->before_w[j];
        double weight = 1;
        if (!dual->uniform) weight = dual->reciprocal[j] > 0 ? 1 / dual->reciprocal[j] : 0;
        sum[0][l] += weight * w * change;
        sum[1][l] += weight * w * last;
        sum[2][l] += weight * change * change;
        sum[3][l] += weight * change * last;
        sum[4][l] += weight * last * last;
        sum[5][l] += weight * w * w;
    }
}

void FN(dual_plane)(struct ki_dual_plane *plane) {
    enum { LINE = 8 };
    const struct ki_dual *dual = plane->dual;
    const double unit = dual->uniform && dual->reciprocal[0] > 0 ? 1 / dual->reciprocal[0] : 1;
    double sum[KI_DUAL_PLANE][LINE] = {{0}};
    int64_t j = plane->first;
    for (; j + LINE <= plane->end; j += LINE) FN(dual_plane_some)(sum, dual, j, LINE);
    FN(dual_plane_some)(sum, dual, j, (int)(plane->end - j));
    for (int n = 0; n < KI_DUAL_PLANE; n++) {
        plane->sum[n] = 0;
        for (int l = 0; l < LINE; l++) plane->sum[n] += unit * sum[n][l];
    }
    FN(dual_plane_rows)(plane, plane->first_row, plane->end_row);
}

/* w as it is stays in former_w until the move is judged. */
void FN(dual_move)(struct ki_dual_plane *plane) {
    const struct ki_dual *dual = plane->dual;
    const double more = plane->more, again = plane->again;
    double *w = dual->w, *former = dual->former_w, *before = dual->before_w;
    for (int64_t j = plane->first; j < plane->end; j++) {
        const double at = w[j], last = former[j] - before[j];
        before[j] = former[j];
        w[j] += more * (at - former[j]) + again * last;
        former[j] = at;
    }
}

void FN(dual_move_rows)(struct ki_dual_plane *plane) {
    struct ki_dual *dual = plane->dual, plain = *dual;
    const double more = plane->more, again = plane->again;
    plain.stretch = 1;
    plane->stopped = 0;
    for (int64_t i = 0; i < dual->X->rows; i++) {
        const double a = dual->a[i], former = dual->former_a[i];
        const double step = more * (a - former) + again * (former - dual->before_a[i]);
        dual->before_a[i] = former;
        dual->former_a[i] = a;
        if (dual->logistic) {
            dual->a[i] += step;
            dual->rest[i] -= step;
        } else if (step != 0) {
            dual->a[i] = a > 0 ? fmax(a + step, 0) : 0;
            const double kept_back = dual->a[i] - (a + step);
            if (kept_back == 0) continue;
            plane->stopped++;
            FN(dual_add)(&plain, FN(dual_row_of)(dual->X, i), kept_back * dual->y[i]);
        }
    }
}

/* Along the way from before the move to its end. */
void FN(dual_way)(struct ki_dual_plane *plane) {
    const struct ki_dual *dual = plane->dual;
    const double unit = dual->uniform && dual->reciprocal[0] > 0 ? 1 / dual->reciprocal[0] : 1;
    double slope[2] = {0}, curve[2] = {0};
    for (int64_t j = plane->first; j < plane->end; j++) {
        const double former = dual->former_w[j], way = dual->w[j] - former;
        double weight = unit;
        if (!dual->uniform) weight = dual->reciprocal[j] > 0 ? 1 / dual->reciprocal[j] : 0;
        slope[0] += weight * former * way;
        curve[0] += weight * way * way;
    }
    for (int64_t i = plane->first_row; i < plane->end_row; i++) {
        const double former = dual->former_a[i], way = dual->a[i] - former, s = dual->s ? dual->s[i] : 1;
        if (way == 0) continue; /* a row of weight 0 stays where it is: 0 / 0 */
        slope[1] += (former / s - 1) * way;
        curve[1] += way * way / s;
    }
    plane->sum[0] = slope[0] + slope[1];
    plane->sum[1] = curve[0] + curve[1];
}

ALWAYS_INLINE void FN(dual_go)(double *at, double *former, int64_t begin, int64_t end, double share) {
    for (int64_t i = begin; i < end && share < 1; i++) at[i] = former[i] + share * (at[i] - former[i]);
    memcpy(former + begin, at + begin, (size_t)(end - begin) * sizeof *at);
}

void FN(dual_moved)(struct ki_dual_plane *plane) {
    const struct ki_dual *dual = plane->dual;
    FN(dual_go)(dual->w, dual->former_w, plane->first, plane->end, plane->share);
    FN(dual_go)(dual->a, dual->former_a, plane->first_row, plane->end_row, plane->share);
    for (int p = 0; p < KI_DUAL_PARTS && dual->own; p++)
        memcpy(dual->own + p * (dual->X->cols + 1) + plane->first, dual->w + plane->first,
               (size_t)(plane->end - plane->first) * sizeof *dual->w);
}
