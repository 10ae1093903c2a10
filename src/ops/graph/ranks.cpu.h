/* CPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c), a walk over the links for each of
 * their layouts (derived/links.h). The vertices are cut into a fixed number of parts with about as much work,
 * whose sums are added in order, so the result does not depend on the number of threads.
 *
 * What comes in along links is added up in double, of many links in halves, and so are mass and change of
 * blocks of rows: what rounding makes of a sum does not grow with the number of its links
 * (ki_ranks_error). */

enum { FN(RANKS_PARTS) = 64, FN(RANKS_WORTH_THREADS) = 1 << 14, FN(RANKS_IN_TURN) = 1024 };

struct FN(ranks) {
    const struct ki_ranks *ranks;
    const real *from;     /* C of this step */
    real *to;             /* and of the next, from the first of its vertices on */
    const int64_t *start; /* the links' layout, weight NULL where they have none */
    const int32_t *source;
    const real *weight;
    int64_t n, k;
    real away, along, uniform, spread[KI_RANKS_COLUMNS];
    double sums[FN(RANKS_PARTS)][2][KI_RANKS_COLUMNS]; /* mass and change of each part */
    /* balanced: what a part has of the row that it begins within, and of the one that it ends within */
    double cut[FN(RANKS_PARTS)][2][KI_RANKS_COLUMNS];
};

/* Returns what comes in along `count` links. Four sums, so that additions do not wait for each other. */
ALWAYS_INLINE double FN(ranks_gather_few)(const int32_t *source, const real *weight, int64_t count,
                                          const real *from) {
    double sum[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= count; e += 4)
        for (int i = 0; i < 4; i++)
            sum[i] +=
                weight ? (double)weight[e + i] * (double)from[source[e + i]] : (double)from[source[e + i]];
    for (; e < count; e++)
        sum[0] += weight ? (double)weight[e] * (double)from[source[e]] : (double)from[source[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double FN(ranks_gather_many)(const int32_t *source, const real *weight, int64_t count,
                                    const real *from) {
    const int64_t half = count / 2;
    if (count <= FN(RANKS_IN_TURN)) return FN(ranks_gather_few)(source, weight, count, from);
    return FN(ranks_gather_many)(source, weight, half, from) +
           FN(ranks_gather_many)(source + half, weight ? weight + half : NULL, count - half, from);
}

ALWAYS_INLINE double FN(ranks_gather)(const int32_t *source, const real *weight, int64_t count,
                                      const real *from) {
    return count > FN(RANKS_IN_TURN) ? FN(ranks_gather_many)(source, weight, count, from)
                                     : FN(ranks_gather_few)(source, weight, count, from);
}

/* Says what a rank x adds to the mass that dangles and to the change. */
#define RANKS_ADD(x, former, factor, mass, change)                                                           \
    do {                                                                                                     \
        const double moved = (double)(x) - (double)(former);                                                 \
        mass += (factor) == 0 ? (double)(x) : 0;                                                             \
        change += moved < 0 ? -moved : moved;                                                                \
    } while (0)

/* Row v of P, given what has come in for its column c, and what follows from it. */
ALWAYS_INLINE void FN(ranks_update)(const struct FN(ranks) * r, int64_t v, int64_t c, double sum,
                                    double *mass, double *change) {
    const kiln_ranks *on = &r->ranks->on;
    const int64_t at = v * r->k + c;
    const real t = on->teleport ? VALUES(on->teleport)[on->teleport->cols == 1 ? v : at] : r->uniform;
    const real g = on->dangling ? VALUES(on->dangling)[on->dangling->cols == 1 ? v : at] : r->uniform;
    const real f = VALUES(on->factor)[v], former = VALUES(on->P)[at];
    const real x = r->away * t + r->spread[c] * g + r->along * (real)sum;
    VALUES(on->P)[at] = x;
    r->to[at] = x * f;
    RANKS_ADD(x, former, f, *mass, *change);
}

/* The same for vertices from `first` on and one ranking; x is what has come in. Sixteen chains of each sum,
 * which the compiler makes vectors of. */
static void FN(ranks_update_block)(const struct FN(ranks) * r, int64_t first, int64_t count, real *x,
                                   double *mass, double *change) {
    enum { SIDE = 16 };
    const kiln_ranks *on = &r->ranks->on;
    real *const P = (real *)VALUES(on->P) + first, *const to = r->to + first;
    const real *const factor = (const real *)VALUES(on->factor) + first;
    const real *const t = on->teleport ? (const real *)VALUES(on->teleport) + first : NULL,
                      *const g = on->dangling ? (const real *)VALUES(on->dangling) + first : NULL;
    const real away = r->away, spread = r->spread[0], along = r->along;
    const real same = (t ? 0 : away * r->uniform) + (g ? 0 : spread * r->uniform);
    double masses[SIDE] = {0}, changes[SIDE] = {0};
    int64_t i = 0;
    for (int64_t j = 0; j < count; j++) x[j] = same + along * x[j];
    for (int64_t j = 0; t && j < count; j++) x[j] += away * t[j];
    for (int64_t j = 0; g && j < count; j++) x[j] += spread * g[j];
    for (; i + SIDE <= count; i += SIDE)
        for (int l = 0; l < SIDE; l++) RANKS_ADD(x[i + l], P[i + l], factor[i + l], masses[l], changes[l]);
    for (; i < count; i++) RANKS_ADD(x[i], P[i], factor[i], masses[0], changes[0]);
    for (int64_t j = 0; j < count; j++) to[j] = x[j] * factor[j];
    memcpy(P, x, (size_t)count * sizeof *x);
    for (int l = 0; l < SIDE; l++) {
        *mass += masses[l];
        *change += changes[l];
    }
}
#undef RANKS_ADD

/* Adds what comes in along links e to end for several rankings: those of a link's source lie side by side. */
static void FN(ranks_add_links)(const struct FN(ranks) * r, double sum[KI_RANKS_COLUMNS], int64_t e,
                                int64_t end) {
    const int64_t k = r->k, half = e + (end - e) / 2;
    double upper[KI_RANKS_COLUMNS] = {0};
    if (end - e > FN(RANKS_IN_TURN)) {
        FN(ranks_add_links)(r, sum, e, half);
        FN(ranks_add_links)(r, upper, half, end);
        for (int64_t c = 0; c < k; c++) sum[c] += upper[c];
        return;
    }
    for (; e < end; e++) {
        const real *from = r->from + r->source[e] * k;
        const double w = r->weight ? (double)r->weight[e] : 1;
        for (int64_t c = 0; c < k; c++) sum[c] += w * (double)from[c];
    }
}

ALWAYS_INLINE void FN(ranks_sums)(const struct FN(ranks) * r, double sum[KI_RANKS_COLUMNS], int64_t e,
                                  int64_t end) {
    if (r->k == 1) {
        sum[0] = FN(ranks_gather)(r->source + e, r->weight ? r->weight + e : NULL, end - e, r->from);
        return;
    }
    for (int64_t c = 0; c < r->k; c++) sum[c] = 0;
    FN(ranks_add_links)(r, sum, e, end);
}

/* Mass, and then change. */
ALWAYS_INLINE void FN(ranks_update_all)(const struct FN(ranks) * r, double sums[2][KI_RANKS_COLUMNS],
                                        int64_t v, const double sum[KI_RANKS_COLUMNS]) {
    for (int64_t c = 0; c < r->k; c++) FN(ranks_update)(r, v, c, sum[c], &sums[0][c], &sums[1][c]);
}

/* The sums of a block of rows go to those of the part. */
ALWAYS_INLINE void FN(ranks_close_block)(struct FN(ranks) * r, int part, double sums[2][KI_RANKS_COLUMNS]) {
    for (int which = 0; which < 2; which++)
        for (int64_t c = 0; c < r->k; c++) {
            r->sums[part][which][c] += sums[which][c];
            sums[which][c] = 0;
        }
}

/* ---- csr, and hybrid where several rankings share the walk: row i belongs to vertex place[i], or i ---- */

ALWAYS_INLINE void FN(ranks_rows)(struct FN(ranks) * r, int part, int64_t first, int64_t end,
                                  const int32_t *place) {
    double sum[KI_RANKS_COLUMNS], sums[2][KI_RANKS_COLUMNS] = {{0}};
    for (int64_t i = first; i < end; i++) {
        FN(ranks_sums)(r, sum, r->start[i], r->start[i + 1]);
        FN(ranks_update_all)(r, sums, place ? place[i] : i, sum);
        if ((i - first) % KI_WINDOW_CPU == 0) FN(ranks_close_block)(r, part, sums);
    }
    FN(ranks_close_block)(r, part, sums);
}

ALWAYS_INLINE void FN(ranks_rows_single)(struct FN(ranks) * r, int part, int64_t first, int64_t end,
                                         bool weighted) {
    real sum[KI_WINDOW_CPU];
    for (int64_t base = first; base < end; base += KI_WINDOW_CPU) {
        double mass = 0, change = 0;
        const int64_t behind = ki_min(end, base + KI_WINDOW_CPU);
        for (int64_t v = base; v < behind; v++) {
            const int64_t e = r->start[v];
            sum[v - base] = (real)FN(ranks_gather)(r->source + e, weighted ? r->weight + e : NULL,
                                                   r->start[v + 1] - e, r->from);
        }
        FN(ranks_update_block)(r, base, behind - base, sum, &mass, &change);
        r->sums[part][0][0] += mass;
        r->sums[part][1][0] += change;
    }
}

/* Rows and links before a part. */
static int64_t FN(ranks_goal)(const struct FN(ranks) * r, int part) {
    return ki_part_begin(r->start[r->n] + r->n, part, FN(RANKS_PARTS));
}

static int64_t FN(ranks_first_row)(const struct FN(ranks) * r, int part) {
    return ki_row_at(r->start, r->n, FN(ranks_goal)(r, part), 1);
}

static void FN(ranks_part_csr)(struct FN(ranks) * r, int part) {
    const int64_t first = FN(ranks_first_row)(r, part), end = FN(ranks_first_row)(r, part + 1);
    if (r->k > 1)
        FN(ranks_rows)(r, part, first, end, NULL);
    else if (r->weight)
        FN(ranks_rows_single)(r, part, first, end, true);
    else
        FN(ranks_rows_single)(r, part, first, end, false);
}

/* ---- hybrid ---- */

/* Finds what comes in with `count` rows of the same length, whose numbers are at `place`, from link e on,
 * four at a time; `sum` is that of row `base`. */
ALWAYS_INLINE void FN(ranks_run)(const struct FN(ranks) * r, real *sum, int64_t base, const int32_t *place,
                                 int64_t count, int length, int64_t e) {
    enum { AT_ONCE = 4 };
    const int32_t *source = r->source + e;
    const real *weight = r->weight ? r->weight + e : NULL, *from = r->from;
    int64_t i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE, source += AT_ONCE * length) {
        double four[AT_ONCE] = {0};
        for (int j = 0; j < length; j++)
            for (int q = 0; q < AT_ONCE; q++) {
                const int at = q * length + j;
                four[q] += weight ? (double)weight[at] * (double)from[source[at]] : (double)from[source[at]];
            }
        for (int q = 0; q < AT_ONCE; q++) sum[place[i + q] - base] = (real)four[q];
        if (weight) weight += AT_ONCE * length;
    }
    for (; i < count; i++, source += length) {
        sum[place[i] - base] = (real)FN(ranks_gather_few)(source, weight, length, from);
        if (weight) weight += length;
    }
}

#define RANKS_RUN(length)                                                                                    \
    case length: FN(ranks_run)(r, sum, base, place + i, runs[length], length, r->start[i]); break;

/* The shortest lengths, which most rows have, are constants to the compiler. Rows `base` and on. */
static void FN(ranks_window)(struct FN(ranks) * r, int part, const int32_t *place, const int32_t *runs,
                             int64_t base) {
    real sum[KI_WINDOW_CPU];
    double mass = 0, change = 0;
    int64_t i = base;
    for (int run = 0; run <= KI_LONG; i += runs[run++]) {
        if (runs[run] == 0) continue;
        switch (run) {
            RANKS_RUN(0)
            RANKS_RUN(1)
            RANKS_RUN(2)
            RANKS_RUN(3)
            RANKS_RUN(4)
            RANKS_RUN(5)
            RANKS_RUN(6)
            RANKS_RUN(7)
            RANKS_RUN(8)
        default: FN(ranks_run)(r, sum, base, place + i, runs[run], run, r->start[i]);
        }
    }
    for (const int64_t end = i + runs[KI_LONG + 1]; i < end; i++) {
        const int64_t e = r->start[i];
        sum[place[i] - base] = (real)FN(ranks_gather)(r->source + e, r->weight ? r->weight + e : NULL,
                                                      r->start[i + 1] - e, r->from);
    }
    FN(ranks_update_block)(r, base, i - base, sum, &mass, &change);
    r->sums[part][0][0] += mass;
    r->sums[part][1][0] += change;
}

#undef RANKS_RUN

static void FN(ranks_part_hybrid)(struct FN(ranks) * r, int part) {
    const struct ki_windows *windows = r->ranks->in.windows;
    const int32_t *place = ki_host(&windows->place), *runs = ki_host(&windows->runs);
    const int64_t height = windows->height, first = ki_ceil_div(FN(ranks_first_row)(r, part), height),
                  end = ki_ceil_div(FN(ranks_first_row)(r, part + 1), height);
    if (r->k > 1)
        FN(ranks_rows)(r, part, ki_min(first * height, r->n), ki_min(end * height, r->n), place);
    else
        for (int64_t w = first; w < end; w++)
            FN(ranks_window)(r, part, place, runs + w * KI_RUNS, w * height);
}

/* ---- balanced: rows and links are counted in one line, each row behind its links, and cut into parts of as
 * many ---- */

/* Returns how many rows end before that place in the line; the others before it are links. */
static int64_t FN(ranks_rows_before)(const struct FN(ranks) * r, int64_t line) {
    return ki_row_at(r->start + 1, r->n, line, 1);
}

static void FN(ranks_part_balanced)(struct FN(ranks) * r, int part) {
    const int64_t begin = FN(ranks_goal)(r, part), end = FN(ranks_goal)(r, part + 1);
    const int64_t last = FN(ranks_rows_before)(r, end);
    double sum[KI_RANKS_COLUMNS], sums[2][KI_RANKS_COLUMNS] = {{0}};
    int64_t v = FN(ranks_rows_before)(r, begin), e = begin - v;
    for (; v < last; e = r->start[++v]) {
        if (e > r->start[v]) {
            FN(ranks_sums)(r, r->cut[part][0], e, r->start[v + 1]);
        } else {
            FN(ranks_sums)(r, sum, e, r->start[v + 1]);
            FN(ranks_update_all)(r, sums, v, sum);
        }
        if (v % KI_WINDOW_CPU == 0) FN(ranks_close_block)(r, part, sums);
    }
    FN(ranks_close_block)(r, part, sums);
    FN(ranks_sums)(r, r->cut[part][1], e, end - last);
}

/* Rows that ended in another part than they began in. */
static void FN(ranks_join)(struct FN(ranks) * r) {
    double sum[KI_RANKS_COLUMNS] = {0};
    for (int part = 0; part < FN(RANKS_PARTS); part++) {
        const int64_t begin = FN(ranks_goal)(r, part), v = FN(ranks_rows_before)(r, begin);
        if (FN(ranks_rows_before)(r, FN(ranks_goal)(r, part + 1)) > v) {
            const bool cut = begin - v > r->start[v];
            for (int64_t c = 0; cut && c < r->k; c++) sum[c] += r->cut[part][0][c];
            if (cut) FN(ranks_update_all)(r, r->sums[part], v, sum);
            for (int64_t c = 0; c < r->k; c++) sum[c] = 0;
        }
        for (int64_t c = 0; c < r->k; c++) sum[c] += r->cut[part][1][c];
    }
}

static void FN(ranks_part)(void *arg, int part) {
    struct FN(ranks) *r = arg;
    memset(r->sums[part], 0, sizeof r->sums[part]);
    switch (r->ranks->in.layout) {
    case KILN_LAYOUT_CSR: FN(ranks_part_csr)(r, part); break;
    case KILN_LAYOUT_HYBRID: FN(ranks_part_hybrid)(r, part); break;
    case KILN_LAYOUT_BALANCED: FN(ranks_part_balanced)(r, part); break;
    }
}

/* Finds what the parts add up to: mass, and then change. */
static void FN(ranks_add)(double *sums, const struct FN(ranks) * r) {
    for (int64_t c = 0; c < r->k; c++) {
        double mass = 0, change = 0;
        for (int part = 0; part < FN(RANKS_PARTS); part++) {
            mass += r->sums[part][0][c];
            change += r->sums[part][1][c];
        }
        sums[c] = mass;
        sums[r->k + c] = change;
    }
}

static void FN(ranks_links)(struct FN(ranks) * r, const struct ki_links *in, bool weighted) {
    const struct ki_windows *w = in->windows;
    r->start = ki_host(w ? &w->start : in->in.start);
    r->source = ki_host(w ? &w->source : in->in.row);
    r->weight = !weighted ? NULL : ki_host(w ? &w->weight : in->in.value);
}

void FN(ranks_step)(const struct ki_ranks *ranks, int64_t step, double *sums) {
    const kiln_ranks *on = &ranks->on;
    const kiln_matrix *P = on->P;
    const double *S = ki_host(&on->S->values);
    struct FN(ranks) r = {.ranks = ranks, .n = P->rows, .k = P->cols};
    if (S[RANKS_ACTIVE * r.k] == 0) return;
    FN(ranks_links)(&r, &ranks->in, on->weighted != 0);
    r.from = VALUES(step % 2 ? on->next : on->C);
    r.to = VALUES(step % 2 ? on->C : on->next) + ranks->place.row * r.k;
    r.away = (real)(1 - on->damping);
    r.along = (real)on->damping;
    r.uniform = (real)(1 / (double)on->C->rows);
    for (int64_t c = 0; c < r.k; c++) r.spread[c] = (real)(on->damping * S[RANKS_MASS * r.k + c]);
    const bool many = P->nnz + on->A->nnz * r.k > FN(RANKS_WORTH_THREADS);
    ki_parallel(many ? P->device->threads : 1, FN(RANKS_PARTS), FN(ranks_part), &r);
    if (ranks->in.layout == KILN_LAYOUT_BALANCED) FN(ranks_join)(&r);
    FN(ranks_add)(sums, &r);
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

void FN(ranks_begin)(const struct ki_ranks *ranks, double *sums) {
    struct FN(ranks) r = {.ranks = ranks, .n = ranks->on.P->rows, .k = ranks->on.P->cols};
    ki_parallel(ranks->on.P->device->threads, FN(RANKS_PARTS), FN(ranks_begin_part), &r);
    FN(ranks_add)(sums, &r);
}
