/* CPU body of dual.h: one thread, w in f64. */
#include "dialect/simd_math.h"
#include "ops/linear/dual_row.h"

enum {
    FN(DUAL_STEPS) = 20, /* of Newton's method for a variable of the logistic loss, at most */
    FN(DUAL_FAR) = 12,   /* rows ahead */
    FN(DUAL_NEAR) = 4,
    FN(DUAL_ASKED) = 512 /* entries of a row, the most; the hardware sees to the rest */
};

/* False for a row that is to be left out. */
static bool FN(dual_hinge)(struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const double y = dual->y[i], a = dual->a[i];
    const double slope = y * (FN(dual_dot)(row, dual->w) + *dual->b) - 1 + a / s;
    if (a == 0 && slope > 0) return slope <= dual->bound;
    const double free = a - slope / (dual->stretch * dual->square[i] + 1 / s), best = free > 0 ? free : 0;
    dual->violation += s * slope * slope;
    if (fabs(slope) > dual->worst) dual->worst = fabs(slope);
    if (best == a) return true;
    dual->a[i] = best;
    FN(dual_add)(dual, row, (best - a) * y);
    return true;
}

/* Newton's method for the z in (0, s) at which slope_at + square (z - former) + log(z / (s - z)) is 0, which
 * is about s / 2 at most, until a hundredth of the way is left: the sweeps to come see to the rest. It lies
 * between `former` and the loss's own `goal`, where the logarithm is -slope_at: a first step from there, or
 * from s / 2 if that is less, takes none. That is done where the logarithm's curvature outweighs square, and
 * where `former` is next to nothing beside the goal. */
static double FN(dual_root)(double former, double goal, double slope_at, double square, double s) {
    const double half = 0.5 * s;
    const double far = fmin(fmax(former, goal), half);
    const bool own = goal > 0 && former < half && (square * far * (s - far) < s || former < 0.01 * goal);
    double z = own ? fmin(goal, half) : former < half ? former : 0.1 * former, enough = 0;
    if (own) {
        const double slope = goal < half ? square * (goal - former) : slope_at + square * (half - former);
        const double curve = s / (s - z) / z;
        enough = 0.01 * curve * fabs(goal - former);
        z -= slope / (square + curve);
    }
    double slope = slope_at + square * (z - former) + log(z / (s - z));
    enough = fmax(own ? enough : 0.01 * fabs(slope), 1e-14 * (1 + fabs(slope_at)));
    for (int step = 0; step < FN(DUAL_STEPS) && fabs(slope) > enough; step++) {
        const double next = z - slope / (square + s / (s - z) / z);
        z = next > 0 ? fmin(next, 0.5 * (z + s)) : 0.1 * z;
        slope = slope_at + square * (z - former) + log(z / (s - z));
    }
    return z;
}

/* The smaller one of a and s - a, that neither loses its digits: the slope of the other is the same with its
 * sign turned. */
static void FN(dual_logistic)(struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const double square = dual->stretch * dual->square[i],
                 eta = dual->y[i] * (FN(dual_dot)(row, dual->w) + *dual->b);
    const double small = exp(-fabs(eta)), less = s * small / (1 + small), more = s / (1 + small);
    const double off = dual->a[i] - (eta > 0 ? less : more);
    const bool turned = 0.5 * square * (dual->rest[i] - dual->a[i]) + eta < 0;
    const double former = turned ? dual->rest[i] : dual->a[i];
    dual->violation += 4 * off * off / s;
    dual->worst = fmax(dual->worst, fabs(off));
    const double z = FN(dual_root)(former, (eta > 0) != turned ? less : more, turned ? -eta : eta, square, s);
    if (!(z > 0) || !(z < s)) return;
    dual->a[i] = turned ? s - z : z;
    dual->rest[i] = turned ? z : s - z;
    FN(dual_add)(dual, row, (turned ? former - z : z - former) * dual->y[i]);
}

/* ---- k columns ---- */

/* As many numbers of a row of w as one instruction takes. */
typedef double FN(dual_piece) __attribute__((vector_size(LANES * real_bytes)));
enum { FN(DUAL_PIECE) = LANES * real_bytes / 8 };

/* `count` pieces of eta, a constant wherever this is inlined, so that they stay in registers; of fewer than
 * four, entries take turns with sums of their own, as each addition would wait for the one before. */
ALWAYS_INLINE void FN(dual_products)(int count, double *eta, struct FN(dual_row) row, const double *w,
                                     int64_t stride) {
    FN(dual_piece) sum[4] = {0}, at;
    const int turns = 4 / count;
    int64_t e = 0;
    for (; e + turns <= row.count; e += turns)
        for (int l = 0; l < turns; l++)
            for (int u = 0; u < count; u++) {
                memcpy(&at, w + row.col[e + l] * stride + u * FN(DUAL_PIECE), sizeof at);
                sum[l * count + u] += (double)row.value[e + l] * at;
            }
    for (; e < row.count; e++)
        for (int u = 0; u < count; u++) {
            memcpy(&at, w + row.col[e] * stride + u * FN(DUAL_PIECE), sizeof at);
            sum[u] += (double)row.value[e] * at;
        }
    for (int l = 1; l < turns; l++)
        for (int u = 0; u < count; u++) sum[u] += sum[l * count + u];
    memcpy(eta, sum, (size_t)count * sizeof at);
}

static void FN(dual_etas)(double *eta, const struct ki_dual *dual, struct FN(dual_row) row) {
    enum { ONE = FN(DUAL_PIECE), TWO = 2 * ONE, FOUR = 4 * ONE };
    const int64_t stride = dual->stride;
    int64_t c = 0;
    for (; c + FOUR <= stride; c += FOUR) FN(dual_products)(4, eta + c, row, dual->w + c, stride);
    for (; c + TWO <= stride; c += TWO) FN(dual_products)(2, eta + c, row, dual->w + c, stride);
    for (; c < stride; c += ONE) FN(dual_products)(1, eta + c, row, dual->w + c, stride);
    for (c = 0; c < dual->k; c++) eta[c] += dual->b[c];
}

/* `count` pieces of w += those of `step`, likewise. */
ALWAYS_INLINE void FN(dual_add_some)(int count, double *w, struct FN(dual_row) row, const double *reciprocal,
                                     const double *step, int64_t stride) {
    FN(dual_piece) way[4], at;
    memcpy(way, step, (size_t)count * sizeof at);
    for (int64_t e = 0; e < row.count; e++) {
        const double factor = (double)row.value[e] * reciprocal[row.col[e]];
        double *to = w + row.col[e] * stride;
        for (int u = 0; u < count; u++) {
            memcpy(&at, to + u * FN(DUAL_PIECE), sizeof at);
            at += factor * way[u];
            memcpy(to + u * FN(DUAL_PIECE), &at, sizeof at);
        }
    }
}

/* T_i += step, whose numbers beyond k are 0. */
static void FN(dual_add_all)(const struct ki_dual *dual, struct FN(dual_row) row, const double *step) {
    enum { ONE = FN(DUAL_PIECE), TWO = 2 * ONE, FOUR = 4 * ONE };
    const int64_t stride = dual->stride;
    const double *reciprocal = dual->reciprocal;
    double *w = dual->w;
    int64_t c = 0;
    for (c = 0; c < dual->k; c++) dual->b[c] += dual->bias_step * step[c];
    for (c = 0; c + FOUR <= stride; c += FOUR) FN(dual_add_some)(4, w + c, row, reciprocal, step + c, stride);
    for (; c + TWO <= stride; c += TWO) FN(dual_add_some)(2, w + c, row, reciprocal, step + c, stride);
    for (; c < stride; c += ONE) FN(dual_add_some)(1, w + c, row, reciprocal, step + c, stride);
}

/* ---- several hinges ---- */

typedef int64_t FN(dual_mask) __attribute__((vector_size(LANES * real_bytes)));

/* In rows of `rest`: what a row is at, and is to change by; of the classes, their numbers, and 1, but of
 * those beyond k -inf, which sets their slope to inf, so that they stay at 0; of a sweep, the sums of squares
 * and the largest slopes. */
struct FN(dual_sides) {
    double *eta, *step, *number, *edge, *violation, *worst;
};

static struct FN(dual_sides) FN(dual_sides_of)(const struct ki_dual *dual) {
    double *rest = dual->rest;
    const int64_t stride = dual->stride;
    return (struct FN(dual_sides)){
        rest, rest + stride, rest + 2 * stride, rest + 3 * stride, rest + 4 * stride, rest + 5 * stride};
}

static void FN(dual_sides_begin)(const struct ki_dual *dual) {
    const struct FN(dual_sides) of = FN(dual_sides_of)(dual);
    for (int64_t c = 0; c < dual->stride; c++) {
        of.number[c] = (double)(dual->first + c);
        of.edge[c] = c < dual->k ? 1 : -(double)INFINITY;
        of.violation[c] = of.worst[c] = 0;
    }
}

static void FN(dual_sides_end)(struct ki_dual *dual) {
    const struct FN(dual_sides) of = FN(dual_sides_of)(dual);
    for (int64_t c = 0; c < dual->k; c++) {
        dual->violation = fmax(dual->violation, of.violation[c]);
        dual->worst = fmax(dual->worst, of.worst[c]);
    }
}

ALWAYS_INLINE FN(dual_piece) FN(dual_load)(const double *from) {
    FN(dual_piece) piece;
    memcpy(&piece, from, sizeof piece);
    return piece;
}

/* a where the mask is set, else b. */
ALWAYS_INLINE FN(dual_piece) FN(dual_pick)(FN(dual_mask) mask, FN(dual_piece) a, FN(dual_piece) b) {
    return (FN(dual_piece))((mask & (FN(dual_mask))a) | (~mask & (FN(dual_mask))b));
}

/* dual_hinge of a piece of classes, from `at` on: their steps, and in `least` the least slope of those that
 * stay at 0, or 0 for one that is not there or leaves it. */
ALWAYS_INLINE void FN(dual_hinge_piece)(const struct FN(dual_sides) * of, double *a, double y, double weak,
                                        double inverse, FN(dual_piece) * least) {
    const FN(dual_piece) none = {0}, one = none + 1, former = FN(dual_load)(a);
    const FN(dual_piece) sign = FN(dual_pick)(FN(dual_load)(of->number) == none + y, one, -one);
    const FN(dual_piece) slope = sign * FN(dual_load)(of->eta) - FN(dual_load)(of->edge) + former * weak,
                         next = former - slope * inverse;
    const FN(dual_piece) best = FN(dual_pick)(next > none, next, none), step = (best - former) * sign;
    const FN(dual_mask) idle = (former == none) & (slope > none);
    const FN(dual_piece) counted = FN(dual_pick)(idle, none, slope), spare = FN(dual_pick)(idle, slope, none),
                         size = FN(dual_pick)(counted < none, -counted, counted);
    const FN(dual_piece) violation = FN(dual_load)(of->violation) + counted * counted / weak,
                         former_worst = FN(dual_load)(of->worst),
                         worst = FN(dual_pick)(size > former_worst, size, former_worst);
    *least = FN(dual_pick)(spare < *least, spare, *least);
    memcpy(of->violation, &violation, sizeof violation);
    memcpy(of->worst, &worst, sizeof worst);
    memcpy(of->step, &step, sizeof step);
    memcpy(a, &best, sizeof best);
}

static bool FN(dual_hinges)(const struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const double inverse = 1 / (dual->square[i] + 1 / s), weak = 1 / s;
    struct FN(dual_sides) of = FN(dual_sides_of)(dual);
    const double *step = of.step;
    FN(dual_piece) least = {0};
    least += (double)INFINITY;
    FN(dual_etas)(of.eta, dual, row);
    for (int64_t c = 0; c < dual->stride; c += FN(DUAL_PIECE)) {
        FN(dual_hinge_piece)(&of, dual->a + i * dual->stride + c, dual->y[i], weak, inverse, &least);
        double **const rows[] = {&of.eta, &of.step, &of.number, &of.edge, &of.violation, &of.worst};
        for (int r = 0; r < 6; r++) *rows[r] += FN(DUAL_PIECE);
    }
    bool moved = false, stays = false;
    for (int64_t c = 0; c < dual->k; c++) moved = moved || step[c] != 0;
    for (int l = 0; l < FN(DUAL_PIECE); l++) stays = stays || least[l] <= dual->bound;
    if (moved) FN(dual_add_all)(dual, row, step);
    return stays;
}

/* ---- softmax ---- */

/* A row has room for what its classes are at, where they are to be, what they would have there, and the way;
 * the last is for exponentials. */
struct FN(dual_room) {
    double *eta, *z, *share, *lack, *step;
    real *e;
    int64_t k, stride;
};

static struct FN(dual_room) FN(dual_room_of)(const struct ki_dual *dual) {
    double *rest = dual->rest;
    const int64_t stride = dual->stride;
    return (struct FN(dual_room)){rest,
                                  rest + stride,
                                  rest + 2 * stride,
                                  rest + 3 * stride,
                                  rest + 4 * stride,
                                  (real *)(rest + 5 * stride),
                                  dual->k,
                                  stride};
}

/* share = softmax(z). */
static void FN(dual_shares)(const struct FN(dual_room) * room) {
    double largest = room->z[0], sum = 0;
    int64_t c;
    for (c = 1; c < room->k; c++) largest = fmax(largest, room->z[c]);
    for (c = 0; c < room->k; c++) room->e[c] = (real)(room->z[c] - largest);
    for (; c % LANES != 0; c++) room->e[c] = 0;
    for (c = 0; c < room->k; c += LANES) FN(store)(room->e + c, FN(vexp)(FN(load)(room->e + c)));
    for (c = 0; c < room->k; c++) sum += (double)room->e[c];
    for (c = 0; c < room->k; c++) room->share[c] = (double)room->e[c] / sum;
}

/* Returns what z lacks of eta + q (p - share), and the sum of its squares. */
static double FN(dual_lack)(const struct FN(dual_room) * room, const double *p, double q) {
    double sum = 0;
    for (int64_t c = 0; c < room->k; c++) {
        room->lack[c] = q * (p[c] - room->share[c]) - (room->z[c] - room->eta[c]);
        sum += room->lack[c] * room->lack[c];
    }
    return sum;
}

/* z += step = (1 + q (diag(share) - share share^T))^-1 lack, by the identity of Sherman and Morrison. */
static void FN(dual_step)(const struct FN(dual_room) * room, double q) {
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < room->k; c++) {
        const double share = room->share[c], diagonal = 1 + q * share;
        room->step[c] = room->lack[c] / diagonal;
        dot += share * room->step[c];
        sum += share / diagonal;
    }
    for (int64_t c = 0; c < room->k; c++) {
        const double share = room->share[c];
        room->step[c] += share / (1 + q * share) * (q * dot / sum);
        room->z[c] += room->step[c];
    }
}

/* The shares at which z = eta + q (p - softmax(z)), to a hundredth of what z lacks of that at eta, where it
 * begins. A step that does not bring it nearer is halved. */
static void FN(dual_settle)(const struct FN(dual_room) * room, const double *p, double q) {
    const double noise = (real_bytes == 8 ? 0x1p-48 : 0x1p-19) * (1 + q);
    double size = FN(dual_lack)(room, p, q);
    const double enough = fmax(1e-4 * size, noise * noise);
    for (int n = 0; n < FN(DUAL_STEPS) && size > enough; n++) {
        FN(dual_step)(room, q);
        FN(dual_shares)(room);
        double next = FN(dual_lack)(room, p, q), t = 1;
        while (!(next < size) && t > 0x1p-8) {
            t *= 0.5;
            for (int64_t c = 0; c < room->k; c++) room->z[c] -= t * room->step[c];
            FN(dual_shares)(room);
            next = FN(dual_lack)(room, p, q);
        }
        size = next;
    }
}

static void FN(dual_softmax)(struct ki_dual *dual, int32_t i, struct FN(dual_row) row, double s) {
    const struct FN(dual_room) room = FN(dual_room_of)(dual);
    double *p = dual->a + i * dual->stride, off = 0;
    FN(dual_etas)(room.eta, dual, row);
    memcpy(room.z, room.eta, (size_t)room.stride * sizeof *room.z);
    FN(dual_shares)(&room);
    for (int64_t c = 0; c < room.k; c++) off += (p[c] - room.share[c]) * (p[c] - room.share[c]);
    dual->violation += s * off * (double)room.k / (double)(room.k - 1);
    FN(dual_settle)(&room, p, s * dual->square[i]);
    memset(room.step, 0, (size_t)room.stride * sizeof *room.step);
    for (int64_t c = 0; c < room.k; c++) {
        room.step[c] = s * (p[c] - room.share[c]);
        p[c] = room.share[c];
    }
    FN(dual_add_all)(dual, row, room.step);
}

/* ---- the sweep ---- */

/* Rows come in random order, which the hardware's own prefetching cannot foresee: what is known of a row,
 * then its entries, are asked for some turns ahead. */
static void FN(dual_ask)(const struct ki_dual *dual, int64_t k) {
    const int64_t *start = ki_host(&dual->X->row_start);
    if (k + FN(DUAL_FAR) < dual->active) {
        const int32_t i = dual->order[k + FN(DUAL_FAR)];
        __builtin_prefetch(start + i);
        __builtin_prefetch(dual->a + i * dual->stride, 1);
        if (dual->logistic) __builtin_prefetch(dual->rest + i * dual->stride, 1);
        if (dual->y) __builtin_prefetch(dual->y + i);
        __builtin_prefetch(dual->square + i);
    }
    if (k + FN(DUAL_NEAR) >= dual->active) return;
    const struct FN(dual_row) row = FN(dual_row_of)(dual->X, dual->order[k + FN(DUAL_NEAR)]);
    const int64_t entries = row.count < FN(DUAL_ASKED) ? row.count : FN(DUAL_ASKED);
    for (int64_t e = 0; e < entries; e += 16) __builtin_prefetch(row.col + e);
    for (int64_t e = 0; e < entries; e += 64 / (int64_t)sizeof(real)) __builtin_prefetch(row.value + e);
}

void FN(dual_sweep)(struct ki_dual *dual, int64_t until) {
    int32_t *order = dual->order;
    const bool several = dual->stride > 1, sides = several && !dual->logistic;
    if (sides) FN(dual_sides_begin)(dual);
    for (; dual->met < until; dual->met++) {
        const int32_t i = order[dual->met];
        const double s = dual->s ? dual->s[i] : 1;
        const struct FN(dual_row) row = FN(dual_row_of)(dual->X, i);
        bool stays = true;
        FN(dual_ask)(dual, dual->met);
        if (sides)
            stays = FN(dual_hinges)(dual, i, row, s);
        else if (several)
            FN(dual_softmax)(dual, i, row, s);
        else if (dual->logistic)
            FN(dual_logistic)(dual, i, row, s);
        else
            stays = FN(dual_hinge)(dual, i, row, s);
        if (!stays) continue;
        order[dual->met] = order[dual->kept];
        order[dual->kept++] = i;
    }
    if (sides) FN(dual_sides_end)(dual);
}

void FN(dual_measure)(double *square, const kiln_matrix *X, const double *reciprocal, int64_t begin,
                      int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        const struct FN(dual_row) row = FN(dual_row_of)(X, i);
        double sum[4] = {0};
        int64_t e = 0;
        for (; e + 4 <= row.count; e += 4)
            for (int l = 0; l < 4; l++)
                sum[l] += (double)row.value[e + l] * (double)row.value[e + l] * reciprocal[row.col[e + l]];
        for (; e < row.count; e++)
            sum[0] += (double)row.value[e] * (double)row.value[e] * reciprocal[row.col[e]];
        square[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* ---- adding up ---- */

/* `count` numbers from `at` on, a constant wherever this is inlined but for the last ones. */
ALWAYS_INLINE void FN(dual_join_some)(struct ki_dual_join *join, int64_t at, int count, double *apart,
                                      double *together) {
    for (int l = 0; l < count; l++) {
        const int64_t j = at + l;
        const double before = join->joined[j], first = join->own[0][j] - before,
                     second = join->own[1][j] - before;
        const double sum = first + second, after = before + sum * join->inverse;
        double weight = 1;
        if (join->reciprocal) weight = join->reciprocal[j] > 0 ? 1 / join->reciprocal[j] : 0;
        apart[l] += weight * (first * first + second * second);
        together[l] += weight * sum * sum;
        join->joined[j] = join->own[0][j] = join->own[1][j] = after;
    }
}

void FN(dual_join)(struct ki_dual_join *join) {
    enum { LINE = 8 };
    double apart[LINE] = {0}, together[LINE] = {0};
    int64_t j = 0;
    for (; j + LINE <= join->count; j += LINE) FN(dual_join_some)(join, j, LINE, apart, together);
    FN(dual_join_some)(join, j, (int)(join->count - j), apart, together);
    join->apart = join->together = 0;
    for (int l = 0; l < LINE; l++) {
        join->apart += apart[l];
        join->together += together[l];
    }
}
