/* CPU body of dual.h: one thread, w in f64. */

enum {
    FN(DUAL_STEPS) = 20, /* of Newton's method for a variable of the logistic loss, at most */
    FN(DUAL_FAR) = 12,   /* rows ahead */
    FN(DUAL_NEAR) = 4,
    FN(DUAL_ASKED) = 512 /* entries of a row, the most; the hardware sees to the rest */
};

struct FN(dual_row) {
    const int32_t *col;
    const real *value;
    int64_t count;
};

ALWAYS_INLINE struct FN(dual_row) FN(dual_row_of)(const kiln_matrix *X, int64_t i) {
    const int64_t *start = ki_host(&X->row_start);
    return (struct FN(dual_row)){(const int32_t *)ki_host(&X->col) + start[i], VALUES(X) + start[i],
                                 start[i + 1] - start[i]};
}

/* Four sums, as each addition would wait for the one before. */
static double FN(dual_dot)(struct FN(dual_row) row, const double *w) {
    double sum[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= row.count; e += 4)
        for (int l = 0; l < 4; l++) sum[l] += (double)row.value[e + l] * w[row.col[e + l]];
    for (; e < row.count; e++) sum[0] += (double)row.value[e] * w[row.col[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* t_i += step. */
static void FN(dual_add)(struct ki_dual *dual, struct FN(dual_row) row, double step) {
    double *w = dual->w;
    dual->b += step * dual->bias_step;
    if (dual->uniform) {
        step *= dual->reciprocal[0];
        for (int64_t e = 0; e < row.count; e++) w[row.col[e]] += step * (double)row.value[e];
    } else {
        for (int64_t e = 0; e < row.count; e++)
            w[row.col[e]] += step * (double)row.value[e] * dual->reciprocal[row.col[e]];
    }
}

/* False for a row that is to be left out. */
static bool FN(dual_hinge)(struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const double y = dual->y[i], a = dual->a[i];
    const double slope = y * (FN(dual_dot)(row, dual->w) + dual->b) - 1 + a / s;
    if (a == 0 && slope > 0) return slope <= dual->bound;
    const double best = fmax(a - slope / (dual->square[i] + 1 / s), 0);
    dual->violation += s * slope * slope;
    dual->worst = fmax(dual->worst, fabs(slope));
    if (best == a) return true;
    dual->a[i] = best;
    FN(dual_add)(dual, row, (best - a) * y);
    return true;
}

/* Newton's method for the z in (0, s) at which slope_at + square (z - former) + log(z / (s - z)) is 0, until a hundredth of that is left: the
 * sweeps to come see to the rest. */
static double FN(dual_root)(double former, double slope_at, double square, double s) {
    double z = s - former < 0.5 * s ? 0.1 * former : former;
    double slope = slope_at + square * (z - former) + log(z / (s - z));
    const double enough = fmax(0.01 * fabs(slope), 1e-14 * (1 + fabs(slope_at)));
    for (int step = 0; step < FN(DUAL_STEPS) && fabs(slope) > enough; step++) {
        const double next = z - slope / (square + s / (s - z) / z);
        z = next > 0 ? fmin(next, 0.5 * (z + s)) : 0.1 * z;
        slope = slope_at + square * (z - former) + log(z / (s - z));
    }
    return z;
}

/* The smaller one of a and s - a, that neither loses its digits: the slope of the other is the same with its sign turned. */
static void FN(dual_logistic)(struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const double square = dual->square[i], eta = dual->y[i] * (FN(dual_dot)(row, dual->w) + dual->b);
    const double off = dual->a[i] - s / (1 + exp(eta));
    const bool turned = 0.5 * square * (dual->rest[i] - dual->a[i]) + eta < 0;
    const double former = turned ? dual->rest[i] : dual->a[i];
    dual->violation += 4 * off * off / s;
    dual->worst = fmax(dual->worst, fabs(off));
    const double z = FN(dual_root)(former, turned ? -eta : eta, square, s);
    if (!(z > 0) || !(z < s)) return;
    dual->a[i] = turned ? s - z : z;
    dual->rest[i] = turned ? z : s - z;
    FN(dual_add)(dual, row, (turned ? former - z : z - former) * dual->y[i]);
}

/* Rows come in random order, which the hardware's own prefetching cannot foresee: what is known of a row, then its entries, are
 * asked for some turns ahead. */
static void FN(dual_ask)(const struct ki_dual *dual, int64_t k) {
    const int64_t *start = ki_host(&dual->X->row_start);
    if (k + FN(DUAL_FAR) < dual->active) {
        const int32_t i = dual->order[k + FN(DUAL_FAR)];
        __builtin_prefetch(start + i);
        __builtin_prefetch(dual->a + i);
        __builtin_prefetch(dual->y + i);
        __builtin_prefetch(dual->square + i);
    }
    if (k + FN(DUAL_NEAR) >= dual->active) return;
    const struct FN(dual_row) row = FN(dual_row_of)(dual->X, dual->order[k + FN(DUAL_NEAR)]);
    const int64_t entries = row.count < FN(DUAL_ASKED) ? row.count : FN(DUAL_ASKED);
    for (int64_t e = 0; e < entries; e += 16) __builtin_prefetch(row.col + e);
    for (int64_t e = 0; e < entries; e += 64 / (int64_t)sizeof(real)) __builtin_prefetch(row.value + e);
}

static void FN(dual_shuffle)(struct ki_dual *dual) {
    int32_t *order = dual->order;
    for (int64_t k = 0; k < dual->active; k++) {
        dual->random = dual->random * 6364136223846793005u + 1442695040888963407u;
        const int64_t other = k + (int64_t)((dual->random >> 33) % (uint64_t)(dual->active - k));
        const int32_t i = order[other];
        order[other] = order[k];
        order[k] = i;
    }
}

void FN(dual_sweep)(struct ki_dual *dual) {
    int32_t *order = dual->order;
    int64_t kept = 0;
    dual->violation = dual->worst = 0;
    FN(dual_shuffle)(dual);
    for (int64_t k = 0; k < dual->active; k++) {
        const int32_t i = order[k];
        const double s = dual->s ? dual->s[i] : 1;
        const struct FN(dual_row) row = FN(dual_row_of)(dual->X, i);
        bool stays = true;
        FN(dual_ask)(dual, k);
        if (dual->logistic)
            FN(dual_logistic)(dual, i, row, s);
        else
            stays = FN(dual_hinge)(dual, i, row, s);
        if (!stays) continue;
        order[k] = order[kept];
        order[kept++] = i;
    }
    dual->active = kept;
}

void FN(dual_measure)(double *square, const kiln_matrix *X, const double *reciprocal, double bias_step) {
    for (int64_t i = 0; i < X->rows; i++) {
        const struct FN(dual_row) row = FN(dual_row_of)(X, i);
        square[i] = bias_step;
        for (int64_t e = 0; e < row.count; e++)
            square[i] += (double)row.value[e] * (double)row.value[e] * reciprocal[row.col[e]];
    }
}
