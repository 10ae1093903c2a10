/* A row of X in the bodies of dual.h, included by each: no guard, as types differ. */
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
ALWAYS_INLINE double FN(dual_dot)(struct FN(dual_row) row, const double *w) {
    double sum[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= row.count; e += 4)
        for (int l = 0; l < 4; l++) sum[l] += (double)row.value[e + l] * w[row.col[e + l]];
    for (; e < row.count; e++) sum[0] += (double)row.value[e] * w[row.col[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* t_i += step. */
ALWAYS_INLINE void FN(dual_add)(struct ki_dual *dual, struct FN(dual_row) row, double step) {
    double *w = dual->w;
    step *= dual->stretch;
    *dual->b += step * dual->bias_step;
    if (dual->uniform) {
        step *= dual->reciprocal[0];
        int64_t e = 0;
        for (; e + 4 <= row.count; e += 4)
            for (int l = 0; l < 4; l++) w[row.col[e + l]] += step * (double)row.value[e + l];
        for (; e < row.count; e++) w[row.col[e]] += step * (double)row.value[e];
    } else {
        for (int64_t e = 0; e < row.count; e++)
            w[row.col[e]] += step * (double)row.value[e] * dual->reciprocal[row.col[e]];
    }
}
