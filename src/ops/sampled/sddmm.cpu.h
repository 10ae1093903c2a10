/* CPU body of the sampled products. Parts of about as many entries and rows each, cut by the shape alone; four entries at a time,
 * whose lanes are added up together. The rows of B that come next are asked for early: they lie here and there, and the hardware
 * does not see them coming. */
#ifndef SAMPLE_AHEAD
#define SAMPLE_AHEAD 8         /* entries */
#define SAMPLE_AHEAD_MOST 1024 /* bytes of a row; the hardware asks for the rest */
#endif

struct FN(sampled_rows) {
    const struct ki_sampled *s;
    int parts;
};

/* The dot products of a with `count` rows of B, 1 to 4. */
ALWAYS_INLINE void FN(sampled_dots)(real d[4], int count, const real *a, const real *const b[4], int64_t k) {
    FN(vreal) sum[4] = {{0}, {0}, {0}, {0}};
    int64_t c = 0;
    for (; c + LANES <= k; c += LANES)
        for (int r = 0; r < count; r++) sum[r] += FN(load)(a + c) * FN(load)(b[r] + c);
    FN(four_lane_sums)(d, sum);
    for (; c < k; c++)
        for (int r = 0; r < count; r++) d[r] += a[c] * b[r][c];
}

ALWAYS_INLINE void FN(sampled_add)(real *y, int count, const real f[4], const real *const b[4], int64_t k) {
    int64_t c = 0;
    for (; c + LANES <= k; c += LANES) {
        FN(vreal) sum = FN(load)(y + c);
        for (int r = 0; r < count; r++) sum += f[r] * FN(load)(b[r] + c);
        FN(store)(y + c, sum);
    }
    for (; c < k; c++)
        for (int r = 0; r < count; r++) y[c] += f[r] * b[r][c];
}

ALWAYS_INLINE void FN(sampled_ask)(const struct ki_sampled *s, int64_t e, int count) {
    const int32_t *col = ki_host(s->col);
    const int64_t bytes = ki_min(s->k * real_bytes, SAMPLE_AHEAD_MOST);
    for (int64_t next = e + SAMPLE_AHEAD; next < ki_min(e + SAMPLE_AHEAD + count, s->nnz); next++) {
        const char *b = (const char *)(VALUES(s->B) + (int64_t)col[next] * s->k);
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(b + at);
    }
}

/* `count` entries from e on, of a row whose A is a and whose sum is y. */
ALWAYS_INLINE void FN(sampled_entries)(const struct ki_sampled *s, int64_t e, int count, const real *a,
                                       real *y, double *sum) {
    const real *value = ki_host(s->value), least = (real)s->floor, *b[4];
    const int32_t *col = ki_host(s->col);
    real d[4] = {0}, f[4];
    FN(sampled_ask)(s, e, count);
    for (int r = 0; r < count; r++) b[r] = VALUES(s->B) + (int64_t)col[e + r] * s->k;
    if (s->kind) FN(sampled_dots)(d, count, a, b, s->k);
    for (int r = 0; r < count; r++) {
        f[r] = FN(sample_value)(s->kind, value[e + r], d[r], least);
        if (s->sum) *sum += FN(sample_part)(s->kind, value[e + r], d[r], least);
    }
    for (int r = 0; s->P && r < count; r++) {
        real *p = VALUES(s->P) + e + r;
        *p = (real)s->alpha * f[r] + (s->beta == 0 ? 0 : (real)s->beta * *p);
    }
    if (s->Y) FN(sampled_add)(y, count, f, b, s->k);
}

ALWAYS_INLINE void FN(sampled_row)(const struct ki_sampled *s, int64_t row, double *sum) {
    const int64_t *start = ki_host(s->start), k = s->k;
    const real *a = s->kind ? VALUES(s->A) + row * k : NULL;
    real y[KI_SAMPLE_COLUMNS];
    int64_t e = start[row];
    if (s->Y) memset(y, 0, (size_t)k * sizeof *y);
    for (; e + 4 <= start[row + 1]; e += 4) FN(sampled_entries)(s, e, 4, a, y, sum);
    switch (start[row + 1] - e) {
    case 3: FN(sampled_entries)(s, e, 3, a, y, sum); break;
    case 2: FN(sampled_entries)(s, e, 2, a, y, sum); break;
    case 1: FN(sampled_entries)(s, e, 1, a, y, sum); break;
    default: break;
    }
    for (int64_t c = 0; s->Y && c < k; c++) {
        real *to = VALUES(s->Y) + row * k + c;
        const real before = s->Z && s->beta != 0 ? (real)s->beta * VALUES(s->Z)[row * k + c] : 0;
        *to = (real)s->alpha * y[c] + before;
    }
}

static void FN(sampled_part)(void *of, int part) {
    const struct FN(sampled_rows) *rows = of;
    const struct ki_sampled *s = rows->s;
    const int64_t *start = ki_host(s->start);
    double sum = 0;
    int64_t bound[2];
    for (int i = 0; i < 2; i++) {
        const int64_t goal = ki_part_begin(s->nnz + s->rows, part + i, rows->parts);
        int64_t low = 0, high = s->rows;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (start[middle] + middle < goal)
                low = middle + 1;
            else
                high = middle;
        }
        bound[i] = low;
    }
    for (int64_t row = bound[0]; row < bound[1]; row++) FN(sampled_row)(s, row, &sum);
    if (s->sum) s->sum[part] = sum;
}

void FN(sampled)(const struct ki_sampled *s) {
    struct FN(sampled_rows) rows = {s, (int)ki_max(1, ki_min(KI_SAMPLE_PARTS, (s->nnz + s->rows) / 1024))};
    ki_parallel(s->B->device->threads, rows.parts, FN(sampled_part), &rows);
}
