/* The middle step of a fused pass on the CPU: what becomes of a block of rows' products q = x y before they
 * multiply the rows in X^T. q lies row by row, k numbers each.
 *
 * A block and not a row at a time, because exponentials and logarithms of neighbouring rows can then share
 * vector instructions, and because whether there are weights or offsets is asked once a block. */

#include "dialect/losses.h"
#include "dialect/simd_math.h"
#include "pass/cpu/codes.h"
#include "pass/cpu/row_map_losses.h"

enum {
    FN(BLOCK_PRODUCTS) = 1024, /* numbers in q, at most, unless k is more */
    FN(BLOCK_ROWS) = 256       /* rows of a block, at most */
};

/* Returns what one part of the rows has besides w: sums in double, as one over millions of rows in f32 would
 * lose them, and room for the products of a block. */
struct FN(tally) {
    _Alignas(64) double value; /* parts do not share cache lines */
    double *sums;              /* k, k products, and k more of FOLD_LOSSES */
    real *products;
    const struct FN(coded) * coded; /* X has categories; NULL: none */
    double *levels;                 /* w of these */
};

/* The sum of `count` numbers, in four sums so that an addition need not wait for the one before. */
static double FN(sum_of)(const real *x, int64_t count) {
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int u = 0; u < 4; u++) sum[u] += x[i + u];
    for (; i < count; i++) sum[0] += x[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* x times a row's weight. A row of weight zero counts as not there, even where its loss is infinite. */
ALWAYS_INLINE real FN(weighted)(real s, real x) {
    return s != 0 ? s * x : 0;
}

static void FN(add_shift)(const struct ki_chain *chain, real *q, int64_t count) {
    const real *shift = VALUES(chain->shift);
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < chain->k; c++) q[i * chain->k + c] += shift[c];
}

/* Rows of k numbers each times v; k is a constant wherever this is inlined, but where it is none of the usual
 * ones. */
ALWAYS_INLINE void FN(scale_rows)(int64_t k, real *q, const real *v, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < k; c++) q[i * k + c] *= v[i];
}

static void FN(scale_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    if (!chain->v) return;
    const int64_t k = chain->k, of_all = chain->v->cols == 1;
    const real *v = VALUES(chain->v) + row * chain->v->cols;
    switch (of_all ? k : 1) {
    case 1: FN(scale_rows)(1, q, v, count * k); return;
    case 2: FN(scale_rows)(2, q, v, count); return;
    case 3: FN(scale_rows)(3, q, v, count); return;
    case 4: FN(scale_rows)(4, q, v, count); return;
    case 5: FN(scale_rows)(5, q, v, count); return;
    case 6: FN(scale_rows)(6, q, v, count); return;
    case 7: FN(scale_rows)(7, q, v, count); return;
    case 8: FN(scale_rows)(8, q, v, count); return;
    default: FN(scale_rows)(k, q, v, count);
    }
}

static void FN(softmax_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    const int k = chain->k;
    const real *s = chain->loss.weights ? VALUES(chain->loss.weights) + row : NULL;
    for (int64_t i = 0; i < count; i++) {
        FN(softmax_curve_row)(q + i * k, k, VALUES(chain->v) + (row + i) * k);
        for (int c = 0; s && c < k; c++) q[i * k + c] *= s[i];
    }
}

static void FN(loss_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q, int64_t row,
                           int64_t count) {
    const kiln_loss *loss = &chain->loss;
    const real *offset = loss->offset ? VALUES(loss->offset) + row : NULL;
    const real *s = loss->weights ? VALUES(loss->weights) + row : NULL;
    real value[FN(BLOCK_ROWS)], curve[FN(BLOCK_ROWS)];
    for (int64_t i = 0; offset && i < count; i++) q[i] += offset[i];
    for (int64_t i = count; i % LANES != 0; i++) q[i] = 0;
    FN(block_losses)
    (loss, &(struct FN(losses)){q, value, curve, VALUES(loss->y) + row, count, chain->expected});
    for (int64_t i = 0; s && i < count; i++) {
        value[i] = FN(weighted)(s[i], value[i]);
        curve[i] = FN(weighted)(s[i], curve[i]);
        q[i] = FN(weighted)(s[i], q[i]);
    }
    tally->value += FN(sum_of)(value, count);
    if (chain->curvature) memcpy(VALUES(chain->curvature) + row, curve, (size_t)count * sizeof(real));
}

/* The losses of each column, with its own shift and sum, of the rows that its fold does not hold out. Which
 * these are is as good as random: nothing branches on it. */
static void FN(fold_losses_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q,
                                  int64_t row, int64_t count) {
    const kiln_loss *loss = &chain->loss;
    const int64_t k = chain->k;
    const real *s = loss->weights ? VALUES(loss->weights) + row : NULL, *fold = VALUES(chain->v) + row;
    const FN(vreal) none = {0};
    real eta[FN(BLOCK_ROWS)], value[FN(BLOCK_ROWS)], curve[FN(BLOCK_ROWS)];
    for (int64_t c = 0; c < k; c++) {
        const FN(vreal) own = none + (real)chain->folds[c];
        const real shift = chain->shift ? VALUES(chain->shift)[c] : 0;
        for (int64_t i = 0; i < count; i++) eta[i] = q[i * k + c] + shift;
        for (int64_t i = count; i % LANES != 0; i++) eta[i] = 0;
        FN(block_losses)(loss, &(struct FN(losses)){eta, value, curve, VALUES(loss->y) + row, count, 0});
        for (int64_t i = 0; i < count; i += LANES) {
            const FN(vreal) weight = s ? FN(load_some)(s + i, count - i) : none + 1;
            const FN(vmask) counts =
                (FN(vmask))(FN(load_some)(fold + i, count - i) != own) & (FN(vmask))(weight != none);
            FN(store)(value + i, FN(masked)(weight * FN(load)(value + i), counts));
            FN(store)(eta + i, FN(masked)(weight * FN(load)(eta + i), counts));
            FN(store)(curve + i, FN(masked)(weight * FN(load)(curve + i), counts));
        }
        for (int64_t i = 0; chain->curvature && i < count; i++)
            VALUES(chain->curvature)[(row + i) * k + c] = curve[i];
        for (int64_t i = 0; i < count; i++) q[i * k + c] = eta[i];
        if (chain->sums) tally->sums[c] += FN(sum_of)(eta, count);
        tally->sums[k + c] += FN(sum_of)(value, count);
        tally->sums[2 * k + c] += FN(sum_of)(curve, count);
    }
}

/* Before the exponentials of a row its largest number is taken from all, so that none overflows. Returns its
 * class. */
static int FN(lower_to_peak)(real *eta, int k) {
    real largest = eta[0];
    int at = 0;
    for (int c = 1; c < k; c++) largest = eta[c] > largest ? eta[c] : largest;
    while (at < k - 1 && eta[at] != largest) at++;
    for (int c = 0; c < k; c++) eta[c] -= largest;
    return at;
}

/* softmax(q) minus the class, and log(sum e^q) - q_class, each next to 0 with its digits. A label that is no
 * class makes the value NaN, and touches nothing. */
static void FN(softmax_loss_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q,
                                   int64_t row, int64_t count) {
    const int k = chain->k;
    const real *y = VALUES(chain->loss.y) + row;
    const real *s = chain->loss.weights ? VALUES(chain->loss.weights) + row : NULL;
    real value[FN(BLOCK_ROWS)], rest[FN(BLOCK_ROWS)]; /* rest: of the sum, beside its largest term */
    int label[FN(BLOCK_ROWS)], peak[FN(BLOCK_ROWS)];
    for (int64_t i = 0; i < count; i++) {
        peak[i] = FN(lower_to_peak)(q + i * k, k);
        label[i] = y[i] >= 0 && y[i] < k ? (int)y[i] : -1;
        value[i] = label[i] < 0 ? (real)NAN : -q[i * k + label[i]];
    }
    for (int64_t i = count * k; i % LANES != 0; i++) q[i] = 0;
    for (int64_t i = 0; i < count * k; i += LANES) FN(store)(q + i, FN(vexp)(FN(load)(q + i)));
    for (int64_t i = 0; i < count; i++) {
        const real own = q[i * k + peak[i]]; /* 1, or NaN */
        q[i * k + peak[i]] = rest[i] = 0;
        for (int c = 0; c < k; c++) rest[i] += q[i * k + c];
        q[i * k + peak[i]] = own;
        for (int c = 0; c < k; c++) q[i * k + c] /= own + rest[i];
        tally->value += FN(weighted)(s ? s[i] : 1, value[i] + (real)log1p(rest[i]));
    }
    if (chain->curvature) memcpy(VALUES(chain->curvature) + row * k, q, (size_t)(count * k) * sizeof(real));
    for (int64_t i = 0; i < count; i++) {
        if (label[i] >= 0) /* less 1; next to 1 that is minus all others */
            q[i * k + label[i]] = label[i] == peak[i] ? -rest[i] / (1 + rest[i]) : q[i * k + label[i]] - 1;
        for (int c = 0; s && c < k; c++) q[i * k + c] = FN(weighted)(s[i], q[i * k + c]);
    }
}

static void FN(add_sums)(int k, struct FN(tally) * tally, const real *q, int64_t count) {
    if (k == 1) {
        tally->sums[0] += FN(sum_of)(q, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < k; c++) tally->sums[c] += q[i * k + c];
}

/* v times the square of each column's q, added up in four sums as above. */
static void FN(add_products)(const struct ki_chain *chain, struct FN(tally) * tally, const real *q,
                             int64_t row, int64_t count) {
    const int64_t k = chain->k, v_cols = chain->v ? chain->v->cols : 0;
    const real *v = chain->v ? VALUES(chain->v) + row * v_cols : NULL;
    for (int64_t c = 0; c < k; c++) {
        double sum[4] = {0};
        for (int64_t i = 0; i < count; i++) {
            const double x = q[i * k + c];
            sum[i & 3] += x * x * (v ? (double)v[v_cols == 1 ? i : i * k + c] : 1);
        }
        tally->sums[k + c] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* q of rows [row, row + count), in place: categories are a part of X of which these are the products and the
 * scatter. */
NEVER_INLINE void FN(map_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q, int64_t row,
                                int64_t count) {
    if (tally->coded) FN(add_levels)(tally->coded, q, row, count);
    const bool apart = chain->map == KI_ROW_FOLD_LOSSES; /* which goes by columns */
    if (chain->shift && !apart) FN(add_shift)(chain, q, count);
    if (chain->products && chain->map == KI_ROW_SCALE) FN(add_products)(chain, tally, q, row, count);
    switch (chain->map) {
    case KI_ROW_SCALE: FN(scale_block)(chain, q, row, count); break;
    case KI_ROW_SOFTMAX: FN(softmax_block)(chain, q, row, count); break;
    case KI_ROW_LOSS: FN(loss_block)(chain, tally, q, row, count); break;
    case KI_ROW_SOFTMAX_LOSS: FN(softmax_loss_block)(chain, tally, q, row, count); break;
    case KI_ROW_FOLD_LOSSES: FN(fold_losses_block)(chain, tally, q, row, count); break;
    }
    if (chain->sums && !apart) FN(add_sums)(chain->k, tally, q, count);
    if (tally->coded) FN(scatter_levels)(tally->coded, tally->levels, q, row, count);
}

/* The products of rows [row, row + count) as the result of a PLAIN pass. */
NEVER_INLINE void FN(write_block)(const struct ki_chain *chain, const real *q, int64_t row, int64_t count) {
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    const int64_t first = row * chain->k;
    real *out = VALUES(chain->out) + first;
    const real *z = chain->z ? VALUES(chain->z) + first : NULL;
    for (int64_t i = 0; i < count * chain->k; i++) out[i] = z ? alpha * q[i] + beta * z[i] : alpha * q[i];
}

/* Finds what multiplies the rows of a TRANSPOSED or SQUARES pass, which is given. */
NEVER_INLINE void FN(read_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    if (chain->y)
        memcpy(q, VALUES(chain->y) + row * chain->k, (size_t)(count * chain->k) * sizeof(real));
    else
        for (int64_t i = 0; i < count; i++) q[i] = 1;
}

/* Returns whether a pass begins with products of rows with y. */
static bool FN(multiplies)(const struct ki_chain *chain) {
    return chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN;
}

/* Returns what comes between the products of rows [row, row + count), where the pass has them in q, and their
 * scatter; false where there is none. */
static bool FN(turn_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q, int64_t row,
                           int64_t count) {
    const struct FN(coded) *coded = tally->coded;
    if (chain->kind == KI_CHAIN_FUSED) {
        FN(map_block)(chain, tally, q, row, count);
    } else if (chain->kind == KI_CHAIN_PLAIN) {
        if (coded) FN(add_levels)(coded, q, row, count);
        FN(write_block)(chain, q, row, count);
    } else {
        FN(read_block)(chain, q, row, count);
        if (coded) FN(scatter_levels)(coded, tally->levels, q, row, count);
    }
    return chain->kind != KI_CHAIN_PLAIN;
}
