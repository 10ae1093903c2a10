/* CPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c). The vertices are cut into a fixed number of parts with about as much
 * work, whose sums are added in order, so the result does not depend on the number of threads. */

enum { FN(RANKS_PARTS) = 64, FN(RANKS_WORTH_THREADS) = 1 << 14 };

struct FN(ranks) {
    const struct ki_ranks *ranks;
    const real *from; /* C of this step */
    real *to;         /* and of the next */
    int64_t n, k;
    real away, along, uniform, spread[KI_RANKS_COLUMNS];
    double sums[FN(RANKS_PARTS)][2][KI_RANKS_COLUMNS]; /* mass and change of each part */
};

/* What comes in along `count` links. Four sums, so that additions do not wait for each other. */
ALWAYS_INLINE real FN(ranks_gather)(const int32_t *source, const real *weight, int64_t count,
                                    const real *from) {
    real sum[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= count; e += 4)
        for (int i = 0; i < 4; i++)
            sum[i] += weight ? weight[e + i] * from[source[e + i]] : from[source[e + i]];
    for (; e < count; e++) sum[0] += weight ? weight[e] * from[source[e]] : from[source[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Row v of P, given what has come in for its column c, and what follows from it. */
ALWAYS_INLINE void FN(ranks_update)(const struct FN(ranks) * r, int64_t v, int64_t c, real sum, double *mass,
                                    double *change) {
    const kiln_ranks *on = &r->ranks->on;
    const int64_t at = v * r->k + c;
    const real t = on->teleport ? VALUES(on->teleport)[on->teleport->cols == 1 ? v : at] : r->uniform;
    const real g = on->dangling ? VALUES(on->dangling)[on->dangling->cols == 1 ? v : at] : r->uniform;
    const real f = VALUES(on->factor)[v], former = VALUES(on->P)[at];
    const real x = r->away * t + r->spread[c] * g + r->along * sum;
    const double moved = (double)x - (double)former;
    VALUES(on->P)[at] = x;
    r->to[at] = x * f;
    *mass += f == 0 ? (double)x : 0;
    *change += moved < 0 ? -moved : moved;
}

/* Several rankings: those of a link's source lie side by side. */
ALWAYS_INLINE void FN(ranks_rows)(struct FN(ranks) * r, int part, int64_t first, int64_t end) {
    const struct ki_columns *in = &r->ranks->in;
    const int64_t *start = ki_host(in->start), k = r->k;
    const int32_t *source = ki_host(in->row);
    const real *weight = r->ranks->on.weighted ? ki_host(in->value) : NULL;
    for (int64_t v = first; v < end; v++) {
        real sum[KI_RANKS_COLUMNS] = {0};
        for (int64_t e = start[v]; e < start[v + 1]; e++) {
            const real w = weight ? weight[e] : 1, *from = r->from + source[e] * k;
            for (int64_t c = 0; c < k; c++) sum[c] += w * from[c];
        }
        for (int64_t c = 0; c < k; c++)
            FN(ranks_update)(r, v, c, sum[c], &r->sums[part][0][c], &r->sums[part][1][c]);
    }
}

ALWAYS_INLINE void FN(ranks_rows_single)(struct FN(ranks) * r, int part, int64_t first, int64_t end,
                                         bool weighted) {
    const struct ki_columns *in = &r->ranks->in;
    const int64_t *start = ki_host(in->start);
    const int32_t *source = ki_host(in->row);
    const real *weight = weighted ? ki_host(in->value) : NULL;
    double mass = 0, change = 0;
    for (int64_t v = first; v < end; v++) {
        const int64_t e = start[v];
        const real sum =
            FN(ranks_gather)(source + e, weighted ? weight + e : NULL, start[v + 1] - e, r->from);
        FN(ranks_update)(r, v, 0, sum, &mass, &change);
    }
    r->sums[part][0][0] = mass;
    r->sums[part][1][0] = change;
}

/* The first vertex of a part: links and vertices before it are its share of both. */
static int64_t FN(ranks_part_begin)(const struct FN(ranks) * r, int part) {
    const int64_t *start = ki_host(r->ranks->in.start);
    const int64_t goal = ki_part_begin(start[r->n] + r->n, part, FN(RANKS_PARTS));
    int64_t low = 0, high = r->n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (start[middle] + middle < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void FN(ranks_part)(void *arg, int part) {
    struct FN(ranks) *r = arg;
    const int64_t first = FN(ranks_part_begin)(r, part), end = FN(ranks_part_begin)(r, part + 1);
    memset(r->sums[part], 0, sizeof r->sums[part]);
    if (r->k > 1)
        FN(ranks_rows)(r, part, first, end);
    else if (r->ranks->on.weighted)
        FN(ranks_rows_single)(r, part, first, end, true);
    else
        FN(ranks_rows_single)(r, part, first, end, false);
}

/* The state after a step, or (slot < 0) at the beginning. */
static void FN(ranks_settle)(const struct FN(ranks) * r, int64_t slot) {
    double *S = ki_host(&r->ranks->on.S->values);
    const int64_t k = r->k;
    bool more = slot < 0;
    for (int64_t c = 0; c < k; c++) {
        double mass = 0, change = 0;
        for (int part = 0; part < FN(RANKS_PARTS); part++) {
            mass += r->sums[part][0][c];
            change += r->sums[part][1][c];
        }
        S[RANKS_MASS * k + c] = mass;
        if (slot >= 0) S[(RANKS_ROWS + slot) * k + c] = change;
        more = more || !(change <= S[RANKS_GOAL * k + c]);
    }
    for (int64_t c = 0; c < k; c++) {
        S[RANKS_TAKEN * k + c] = slot < 0 ? 0 : S[RANKS_TAKEN * k + c] + 1;
        S[RANKS_ACTIVE * k + c] = more;
    }
}

static void FN(ranks_step)(const struct ki_ranks *ranks, int64_t step) {
    const kiln_ranks *on = &ranks->on;
    const kiln_matrix *P = on->P;
    const double *S = ki_host(&on->S->values);
    struct FN(ranks) r = {.ranks = ranks, .n = P->rows, .k = P->cols};
    if (S[RANKS_ACTIVE * r.k] == 0) return;
    r.from = VALUES(step % 2 ? on->next : on->C);
    r.to = VALUES(step % 2 ? on->C : on->next);
    r.away = (real)(1 - on->damping);
    r.along = (real)on->damping;
    r.uniform = (real)(1 / (double)r.n);
    for (int64_t c = 0; c < r.k; c++) r.spread[c] = (real)(on->damping * S[RANKS_MASS * r.k + c]);
    const bool many = P->nnz + on->A->nnz * r.k > FN(RANKS_WORTH_THREADS);
    ki_parallel(many ? P->device->threads : 1, FN(RANKS_PARTS), FN(ranks_part), &r);
    FN(ranks_settle)(&r, step % (on->S->rows - RANKS_ROWS));
}

/* ---- the beginning ---- */

static real FN(ranks_factor)(const kiln_ranks *on, int64_t v) {
    const int64_t *start = ki_host(&on->A->row_start);
    const real *value = VALUES(on->A);
    double sum = on->weighted ? 0 : (double)(start[v + 1] - start[v]);
    for (int64_t e = start[v]; on->weighted && e < start[v + 1]; e++) {
        if (!(value[e] >= 0)) return (real)NAN;
        sum += (double)value[e];
    }
    const real inverse = (real)(1 / sum);
    if (sum == 0) return 0;
    return inverse > 0 && inverse - inverse == 0 ? inverse : (real)NAN;
}

static void FN(ranks_begin_part)(void *arg, int part) {
    struct FN(ranks) *r = arg;
    const kiln_ranks *on = &r->ranks->on;
    const int64_t end = ki_part_begin(r->n, part + 1, FN(RANKS_PARTS));
    for (int64_t v = ki_part_begin(r->n, part, FN(RANKS_PARTS)); v < end; v++) {
        const real f = VALUES(on->factor)[v] = FN(ranks_factor)(on, v);
        for (int64_t c = 0; c < r->k; c++) {
            const real x = VALUES(on->P)[v * r->k + c];
            VALUES(on->C)[v * r->k + c] = x * f;
            r->sums[part][0][c] += f == 0 ? (double)x : 0;
        }
    }
}

static void FN(ranks_begin)(const struct ki_ranks *ranks) {
    struct FN(ranks) r = {.ranks = ranks, .n = ranks->on.P->rows, .k = ranks->on.P->cols};
    ki_parallel(ranks->on.P->device->threads, FN(RANKS_PARTS), FN(ranks_begin_part), &r);
    FN(ranks_settle)(&r, -1);
}
