/* CPU body of kiln_factor_solve and kiln_factor_loss: a row is one thread's.
 *
 * The rows of B that a row's entries name are gathered side by side into a tile, padded with zeros to
 * whole vectors, and with 1 for the feature that a bias belongs to; all steps of conjugate gradient then
 * read the tile, which stays in the cache. */
struct FN(factor_space) {
    real *tile, *weight, *target; /* an entry's part of the matrix and of the right-hand side */
    real *x, *r, *p, *q;
    real *matrix;       /* Cholesky: pitch x pitch, lower triangle */
    int64_t pitch;      /* columns, rounded up to whole vectors */
    int64_t held_first; /* the entry that the tile begins with; -1 = none */
};

struct FN(factor_row) {
    const struct ki_factor_rows *rows;
    struct FN(factor_space) s;
    int64_t first, end; /* entries */
    real l2;
};

static struct FN(factor_space) FN(factor_cut_space)(const struct ki_factor_rows *rows, int piece) {
    struct FN(factor_space) s = {.held_first = -1};
    s.pitch = (rows->given.B->cols + 15) / 16 * 16;
    real *next = (void *)((char *)rows->space + piece * rows->space_one);
    real **const vectors[] = {&s.x, &s.r, &s.p, &s.q};
    for (int i = 0; i < 4; i++, next += s.pitch) *vectors[i] = next;
    s.weight = next;
    s.target = s.weight + rows->tile;
    s.tile = s.target + rows->tile;
    s.matrix = s.tile + rows->tile * s.pitch;
    return s;
}

/* Entries [first, first + count) into the tile, unless they are there. */
static void FN(factor_gather)(struct FN(factor_row) * row, int64_t first, int64_t count) {
    const kiln_factor_rows *given = &row->rows->given;
    struct FN(factor_space) *s = &row->s;
    const int64_t n = given->B->cols;
    const int32_t *col = ki_host(&given->R->col);
    const real *value = VALUES(given->R), mean = (real)given->mean, rest = (real)(given->mean - (double)mean);
    if (s->held_first == first) return;
    s->held_first = first;
    for (int64_t e = 0; e < count; e++) {
        const real *from = VALUES(given->B) + col[first + e] * n;
        real *to = s->tile + e * s->pitch, rating = value[first + e];
        memcpy(to, from, (size_t)n * sizeof *to);
        memset(to + n, 0, (size_t)(s->pitch - n) * sizeof *to);
        if (given->gram) {
            const real size = (real)given->alpha * (rating < 0 ? -rating : rating);
            s->weight[e] = given->proportional ? size - 1 : size;
            s->target[e] = rating > 0 ? (given->proportional ? size : 1 + size) : 0;
            continue;
        }
        s->weight[e] = 1;
        s->target[e] = rating - mean - rest;
        if (!given->biases) continue;
        s->target[e] -= from[n - 1];
        to[n - 1] = 1;
    }
}

ALWAYS_INLINE real FN(factor_dot)(const real *x, const real *y, int64_t pitch) {
    FN(vreal) sum = {0};
    for (int64_t j = 0; j < pitch; j += LANES) sum += FN(load)(x + j) * FN(load)(y + j);
    return FN(lane_sum)(sum);
}

/* Four at a time: products[i] = tile row i . v. */
ALWAYS_INLINE void FN(factor_four_dots)(real products[4], const real *tile, const real *v, int64_t pitch) {
    FN(vreal) sums[4] = {{0}, {0}, {0}, {0}};
    for (int64_t j = 0; j < pitch; j += LANES) {
        const FN(vreal) y = FN(load)(v + j);
        for (int i = 0; i < 4; i++) sums[i] += FN(load)(tile + i * pitch + j) * y;
    }
    FN(four_lane_sums)(products, sums);
}

/* to += sum_e f_e tile_e with f_e = sign * weight_e (tile_e . v), plus target_e where `targets`. */
static void FN(factor_add)(real *to, const struct FN(factor_space) * s, int64_t count, const real *v,
                           real sign, bool targets) {
    const int64_t pitch = s->pitch;
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
        const real *tile = s->tile + e * pitch;
        real f[4];
        FN(factor_four_dots)(f, tile, v, pitch);
        for (int i = 0; i < 4; i++) f[i] = sign * s->weight[e + i] * f[i] + (targets ? s->target[e + i] : 0);
        for (int64_t j = 0; j < pitch; j += LANES) {
            FN(vreal) sum = FN(load)(to + j);
            for (int i = 0; i < 4; i++) sum += f[i] * FN(load)(tile + i * pitch + j);
            FN(store)(to + j, sum);
        }
    }
    for (; e < count; e++) {
        const real *tile = s->tile + e * pitch;
        const real f = sign * s->weight[e] * FN(factor_dot)(tile, v, pitch) + (targets ? s->target[e] : 0);
        for (int64_t j = 0; j < pitch; j += LANES)
            FN(store)(to + j, FN(load)(to + j) + f * FN(load)(tile + j));
    }
}

/* to += sign * (gram + l2) v. */
static void FN(factor_add_gram)(real *to, const struct FN(factor_row) * row, const real *v, real sign) {
    const kiln_matrix *gram = row->rows->given.gram;
    const int64_t n = row->rows->given.B->cols;
    for (int64_t j = 0; j < n; j++) to[j] += sign * row->l2 * v[j];
    if (!gram) return;
    for (int64_t i = 0; i < n; i++) {
        const real *line = VALUES(gram) + i * n, f = sign * v[i];
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES) FN(store)(to + j, FN(load)(to + j) + f * FN(load)(line + j));
        for (; j < n; j++) to[j] += f * line[j];
    }
}

/* to += sign * H v, and the right-hand side where `targets`. */
static void FN(factor_multiply)(real *to, struct FN(factor_row) * row, const real *v, real sign,
                                bool targets) {
    const int64_t most = row->rows->tile;
    for (int64_t first = row->first; first < row->end; first += most) {
        const int64_t count = row->end - first < most ? row->end - first : most;
        FN(factor_gather)(row, first, count);
        FN(factor_add)(to, &row->s, count, v, sign, targets);
    }
    FN(factor_add_gram)(to, row, v, sign);
}

/* A row is done whose residual's square is below `least`: factor_step.cl says why. */
static void FN(factor_cg)(struct FN(factor_row) * row) {
    struct FN(factor_space) *s = &row->s;
    const int64_t pitch = s->pitch, steps = row->rows->given.steps;
    const real smallest = sizeof(real) == 4 ? (real)FLT_MIN : (real)DBL_MIN, least = (real)1e8 * smallest;
    memset(s->r, 0, (size_t)pitch * sizeof(real));
    FN(factor_multiply)(s->r, row, s->x, -1, true);
    memcpy(s->p, s->r, (size_t)pitch * sizeof(real));
    real rho = FN(factor_dot)(s->r, s->r, pitch);
    for (int64_t step = 0; step < steps && rho > least; step++) {
        memset(s->q, 0, (size_t)pitch * sizeof(real));
        FN(factor_multiply)(s->q, row, s->p, 1, false);
        const real curvature = FN(factor_dot)(s->p, s->q, pitch), alpha = rho / curvature;
        if (!(curvature > smallest) || !(alpha <= (real)1e30)) break;
        for (int64_t j = 0; j < pitch; j++) {
            s->x[j] += alpha * s->p[j];
            s->r[j] -= alpha * s->q[j];
        }
        const real before = rho;
        rho = FN(factor_dot)(s->r, s->r, pitch);
        for (int64_t j = 0; j < pitch; j++) s->p[j] = s->r[j] + rho / before * s->p[j];
    }
}

/* The lower triangle of matrix += sum_e weight_e tile_e tile_e^T, four rows at a time. */
static void FN(factor_add_squares)(real *matrix, const struct FN(factor_space) * s, int64_t count,
                                   int64_t n) {
    const int64_t pitch = s->pitch;
    for (int64_t i = 0; i < n; i += 4)
        for (int64_t j = 0; j < i + 4 && j < pitch; j += LANES) {
            FN(vreal) sums[4] = {{0}, {0}, {0}, {0}};
            for (int64_t e = 0; e < count; e++) {
                const real *tile = s->tile + e * pitch;
                const FN(vreal) y = s->weight[e] * FN(load)(tile + j);
                for (int k = 0; k < 4; k++) sums[k] += tile[i + k] * y;
            }
            for (int k = 0; k < 4; k++) {
                real *to = matrix + (i + k) * pitch + j;
                FN(store)(to, FN(load)(to) + sums[k]);
            }
        }
}

/* matrix = L L^T in place, row by row; sound: n numbers of work space. A pivot is no less than what rounding
 * may have made of it, so that L L^T is hardly ever below half the matrix; without a penalty one that is
 * nothing but rounding becomes 0, and its unknown stays. Such a pivot's column is rounding, too, which
 * divided by the pivot would grow from column to column: it becomes 0. false: rounding is felt. */
static bool FN(factor_decompose)(real *matrix, real *sound, int64_t n, int64_t pitch, bool penalty) {
    const real least = sizeof(real) == 4 ? (real)4e-6 : (real)1e-14;
    bool exact = true;
    for (int64_t i = 0; i < n; i++) {
        real *line = matrix + i * pitch;
        const real whole = line[i];
        for (int64_t j = 0; j <= i; j++) {
            const real *other = matrix + j * pitch;
            FN(vreal) sums = {0};
            int64_t k = 0;
            for (; k + LANES <= j; k += LANES) sums += FN(load)(line + k) * FN(load)(other + k);
            real sum = line[j] - FN(lane_sum)(sums);
            for (; k < j; k++) sum -= line[k] * other[k];
            if (j < i) {
                line[j] = sound[j] > 0 ? sum / sound[j] : 0;
                continue;
            }
            exact = exact && sum > 256 * least * whole;
            sound[i] = sum > least * whole ? (real)sqrt(sum) : 0;
            line[i] = sound[i] > 0 || !penalty ? sound[i] : (real)sqrt(least * whole);
        }
    }
    return exact;
}

/* Returns how many times the step leads to where f is least along it; p is the residual g - H x. */
static real FN(factor_length)(struct FN(factor_row) * row, const real *step) {
    struct FN(factor_space) *s = &row->s;
    const int64_t pitch = s->pitch, most = row->rows->tile;
    double along = 0, curvature = 0;
    for (int64_t first = row->first; first < row->end; first += most) {
        const int64_t count = row->end - first < most ? row->end - first : most;
        FN(factor_gather)(row, first, count);
        for (int64_t e = 0; e < count; e++) {
            const double d = (double)FN(factor_dot)(s->tile + e * pitch, step, pitch);
            curvature += (double)s->weight[e] * d * d;
        }
    }
    memset(s->q, 0, (size_t)pitch * sizeof(real));
    FN(factor_add_gram)(s->q, row, step, 1);
    for (int64_t j = 0; j < pitch; j++) {
        curvature += (double)s->q[j] * (double)step[j];
        along += (double)s->p[j] * (double)step[j];
    }
    return along > 0 && curvature > 0 ? (real)(along / curvature) : 0;
}

/* x += (L L^T)^-1 (g - H x). What rounding makes of L is a part of the step, not of x, and where it is
 * felt the step is as long as is best: f never goes up, and the steps of the next call refine x. */
static void FN(factor_cholesky)(struct FN(factor_row) * row) {
    struct FN(factor_space) *s = &row->s;
    const kiln_factor_rows *given = &row->rows->given;
    const int64_t pitch = s->pitch, n = given->B->cols, most = row->rows->tile;
    real *matrix = s->matrix, *step = s->r;
    memset(matrix, 0, (size_t)(pitch * pitch) * sizeof(real));
    memset(step, 0, (size_t)pitch * sizeof(real));
    for (int64_t i = 0; i < n; i++) {
        if (given->gram) memcpy(matrix + i * pitch, VALUES(given->gram) + i * n, (size_t)n * sizeof(real));
        matrix[i * pitch + i] += row->l2;
    }
    for (int64_t first = row->first; first < row->end; first += most) {
        const int64_t count = row->end - first < most ? row->end - first : most;
        FN(factor_gather)(row, first, count);
        FN(factor_add)(step, s, count, s->x, -1, true);
        FN(factor_add_squares)(matrix, s, count, n);
    }
    FN(factor_add_gram)(step, row, s->x, -1);
    memcpy(s->p, step, (size_t)pitch * sizeof(real));
    const bool exact = FN(factor_decompose)(matrix, s->q, n, pitch, row->l2 > 0);
    for (int64_t i = 0; i < n; i++) {
        const real *line = matrix + i * pitch;
        for (int64_t k = 0; k < i; k++) step[i] -= line[k] * step[k];
        step[i] = line[i] > 0 ? step[i] / line[i] : 0;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        const real *line = matrix + i * pitch;
        step[i] = line[i] > 0 ? step[i] / line[i] : 0;
        for (int64_t k = 0; k < i; k++) step[k] -= line[k] * step[i];
    }
    const real length = exact ? 1 : FN(factor_length)(row, step);
    for (int64_t i = 0; i < n; i++) s->x[i] += length * step[i];
}

/* The part of an entry, without the 1/2: of an implicit one what it has beyond (a.b)^2, which the Gram
 * matrix has. */
ALWAYS_INLINE double FN(factor_entry_loss)(bool implicit, real weight, real target, double d) {
    if (!implicit) return (target - d) * (target - d);
    const double wanted = target > 0;
    return (1.0 + weight) * (wanted - d) * (wanted - d) - d * d;
}

static double FN(factor_loss)(struct FN(factor_row) * row) {
    struct FN(factor_space) *s = &row->s;
    const struct ki_factor_rows *rows = row->rows;
    const kiln_matrix *gram = rows->given.gram;
    const int64_t n = rows->given.B->cols, most = rows->tile;
    double fit = 0, penalty = 0;
    for (int64_t first = row->first; rows->parts & KILN_FACTOR_FIT && first < row->end; first += most) {
        const int64_t count = row->end - first < most ? row->end - first : most;
        FN(factor_gather)(row, first, count);
        for (int64_t e = 0; e < count; e++)
            fit += FN(factor_entry_loss)(gram != NULL, s->weight[e], s->target[e],
                                         FN(factor_dot)(s->tile + e * s->pitch, s->x, s->pitch));
    }
    for (int64_t i = 0; i < n; i++) {
        penalty += (double)s->x[i] * s->x[i];
        if (!gram || !(rows->parts & KILN_FACTOR_FIT)) continue;
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)VALUES(gram)[i * n + j] * s->x[j];
        fit += sum * s->x[i];
    }
    return (fit + (rows->parts & KILN_FACTOR_PENALTY ? row->l2 * penalty : 0)) / 2;
}

static void FN(factor_piece)(void *of, int piece) {
    const struct ki_factor_rows *rows = of;
    const kiln_factor_rows *given = &rows->given;
    const int64_t *start = ki_host(&given->R->row_start), n = given->B->cols;
    struct FN(factor_row) row = {.rows = rows, .s = FN(factor_cut_space)(rows, piece)};
    real *x = row.s.x;
    for (int64_t u = rows->cut[piece]; u < rows->cut[piece + 1]; u++) {
        real *own = VALUES(rows->A) + u * n;
        row.first = start[u];
        row.end = start[u + 1];
        row.l2 = (real)(given->l2 * (given->counted ? (double)(row.end - row.first) : 1.0));
        row.s.held_first = -1;
        memcpy(x, own, (size_t)n * sizeof *x);
        memset(x + n, 0, (size_t)(row.s.pitch - n) * sizeof *x);
        if (rows->task == KI_FACTOR_LOSS) {
            rows->each[u] = FN(factor_loss)(&row);
            continue;
        }
        if (row.first == row.end)
            memset(x, 0, (size_t)n * sizeof *x);
        else if (rows->task == KI_FACTOR_SOLVE_CG)
            FN(factor_cg)(&row);
        else
            FN(factor_cholesky)(&row);
        memcpy(own, x, (size_t)n * sizeof *x);
    }
}

void FN(factor_rows)(const struct ki_factor_rows *rows) {
    ki_parallel(rows->A->device->threads, rows->pieces, FN(factor_piece), (void *)(uintptr_t)rows);
}
