/* The middle step of a fused pass on the CPU: what becomes of a block of rows' products q = x y before they multiply the
 * rows in X^T. q lies row by row, k numbers each.
 *
 * A block and not a row at a time, because exponentials and logarithms of neighbouring rows can then share vector
 * instructions, and because whether there are weights or offsets is asked once a block. */

enum { FN(BLOCK_PRODUCTS) = 1024, FN(BLOCK_ROWS) = 256 }; /* numbers in q and rows of a block, at most */

/* What one part of the rows has added up besides w. In double: a sum over millions of rows in f32 would lose them. */
struct FN(tally) {
    double value, sums[KI_COLUMNS_MAX];
};

#define VALUES(A) ((real *)ki_host(&(A)->values))

/* s_i of a row; a row of weight zero counts as not there, even where its loss is infinite. */
ALWAYS_INLINE real FN(row_weight)(const struct ki_chain *chain, int64_t row) {
    return chain->loss->weights ? VALUES(chain->loss->weights)[row] : 1;
}

static void FN(add_shift)(const struct ki_chain *chain, real *q, int64_t count) {
    const real *shift = VALUES(chain->shift);
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < chain->k; c++) q[i * chain->k + c] += shift[c];
}

static void FN(scale_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    if (!chain->v) return;
    const int64_t k = chain->k, of_all = chain->v->cols == 1;
    const real *v = VALUES(chain->v) + row * chain->v->cols;
    if (of_all && k > 1) {
        for (int64_t i = 0; i < count; i++)
            for (int64_t c = 0; c < k; c++) q[i * k + c] *= v[i];
    } else {
        for (int64_t i = 0; i < count * k; i++) q[i] *= v[i];
    }
}

static void FN(softmax_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    const int k = chain->k;
    for (int64_t i = 0; i < count; i++) {
        const real s = FN(row_weight)(chain, row + i);
        FN(softmax_curve_row)(q + i * k, k, VALUES(chain->v) + (row + i) * k);
        for (int c = 0; c < k; c++) q[i * k + c] *= s;
    }
}

static void FN(loss_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q, int64_t row,
                           int64_t count) {
    const kiln_loss *loss = chain->loss;
    const real *y = VALUES(loss->y) + row, *offset = loss->offset ? VALUES(loss->offset) + row : NULL;
    real *curvature = chain->curvature ? VALUES(chain->curvature) + row : NULL;
    for (int64_t i = 0; i < count; i++) {
        const real s = FN(row_weight)(chain, row + i);
        real gradient, curve;
        const real value =
            FN(loss_row)((int)loss->kind, (int)loss->family, (int)loss->link, (real)loss->parameter,
                         (real)loss->link_power, y[i], offset ? q[i] + offset[i] : q[i], &gradient, &curve);
        if (s != 0) tally->value += (double)s * value;
        q[i] = s != 0 ? s * gradient : 0;
        if (curvature) curvature[i] = s != 0 ? s * curve : 0;
    }
}

/* A label that is no class makes the value NaN, and touches nothing. */
static void FN(softmax_loss_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q,
                                   int64_t row, int64_t count) {
    const int k = chain->k;
    const real *y = VALUES(chain->loss->y) + row;
    for (int64_t i = 0; i < count; i++) {
        real *eta = q + i * k;
        const real s = FN(row_weight)(chain, row + i);
        const int label = y[i] >= 0 && y[i] < k ? (int)y[i] : -1;
        const double value = label < 0 ? (double)NAN : FN(softmax_row)(eta, k, label);
        if (s != 0) tally->value += (double)s * value;
        if (chain->curvature) memcpy(VALUES(chain->curvature) + (row + i) * k, eta, (size_t)k * sizeof(real));
        if (label >= 0) eta[label] -= 1;
        for (int c = 0; c < k; c++) eta[c] = s != 0 ? s * eta[c] : 0;
    }
}

static void FN(add_sums)(int k, struct FN(tally) * tally, const real *q, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < k; c++) tally->sums[c] += q[i * k + c];
}

/* q of rows [row, row + count), in place. */
static void FN(map_block)(const struct ki_chain *chain, struct FN(tally) * tally, real *q, int64_t row,
                          int64_t count) {
    if (chain->shift) FN(add_shift)(chain, q, count);
    switch (chain->map) {
    case KI_ROW_SCALE: FN(scale_block)(chain, q, row, count); break;
    case KI_ROW_SOFTMAX: FN(softmax_block)(chain, q, row, count); break;
    case KI_ROW_LOSS: FN(loss_block)(chain, tally, q, row, count); break;
    case KI_ROW_SOFTMAX_LOSS: FN(softmax_loss_block)(chain, tally, q, row, count); break;
    }
    if (chain->sums) FN(add_sums)(chain->k, tally, q, count);
}

/* The products of rows [row, row + count) as the result of a PLAIN pass. */
static void FN(write_block)(const struct ki_chain *chain, const real *q, int64_t row, int64_t count) {
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    const int64_t first = row * chain->k;
    real *out = VALUES(chain->out) + first;
    const real *z = chain->z ? VALUES(chain->z) + first : NULL;
    for (int64_t i = 0; i < count * chain->k; i++) out[i] = z ? alpha * q[i] + beta * z[i] : alpha * q[i];
}

/* What multiplies the rows of a TRANSPOSED or SQUARES pass, which is given. */
static void FN(read_block)(const struct ki_chain *chain, real *q, int64_t row, int64_t count) {
    if (chain->y)
        memcpy(q, VALUES(chain->y) + row * chain->k, (size_t)(count * chain->k) * sizeof(real));
    else
        for (int64_t i = 0; i < count; i++) q[i] = 1;
}
