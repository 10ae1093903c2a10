/* This file says whether there is a direction d that no row speaks against, a . d >= 0 for all rows a of A,
 * and some row for: exactly.
 *
 *   minimise || A^T u ||  over u >= 1;   rho = A^T u
 *
 * answers it either way. If the least value is 0, A^T u = 0 with positive u: no row can gain unless another
 * one loses, and there is no such d (Stiemke's lemma). If it is not, rho is one: where the value is least,
 * a . rho >= 0, and = 0 for rows with u > 1, so that the gains of all rows together are
 * 1 . A rho = || rho ||^2.
 *
 * u = 1 + v, v >= 0, is found by the active sets of Lawson and Hanson (Solving Least Squares Problems, 1974,
 * chapter 23): rows with v > 0 are independent, so that there are no more of them than dimensions; rho is
 * what is left of the sum of all rows across them. All in double, on rows of length 1, whatever X's type and
 * scales are. */
#include "algorithms/separation/cone.h"

#include "algorithms/run/arena.h"

/* ROUNDING: of sums, beside as many rows. STEPS: for each dimension. */
#define ROUNDING 1e-14
enum { STEPS = 12, FEW_STEPS = 200 };

/* In LANES sums, which a compiler keeps in vectors. */
static double dot(const double *x, const double *y, int64_t n) {
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += x[j + lane] * y[j + lane];
    for (; j < n; j++) sum += x[j] * y[j];
    for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
    return sum;
}

static double length(const double *x, int64_t n) {
    return sqrt(dot(x, x, n));
}

/* x += factor * y */
static void increase(double *x, double factor, const double *y, int64_t n) {
    for (int64_t j = 0; j < n; j++) x[j] += factor * y[j];
}

/* x becomes what is left of it across `count` orthonormal vectors; part, or NULL: what it had of each,
 * every `stride`. Once more where little is left, whose direction is rounding. */
static void reject(double *x, double *part, int64_t stride, const double *basis, int64_t count,
                   int64_t dims) {
    double before, after = length(x, dims);
    for (int64_t t = 0; part && t < count; t++) part[t * stride] = 0;
    do {
        before = after;
        for (int64_t t = 0; t < count; t++) {
            const double *q = basis + t * dims, share = dot(x, q, dims);
            increase(x, -share, q, dims);
            if (part) part[t * stride] += share;
        }
        after = length(x, dims);
    } while (after < 0.1 * before && after > 1e-15);
}

static double *numbers(int64_t rows, int64_t cols) {
    int64_t bytes;
    return ki_mul3(rows, cols, sizeof(double), &bytes) ? ki_alloc((size_t)ki_max(bytes, 1)) : NULL;
}

kiln_status ki_cone_open(struct ki_cone *cone, int64_t dims, double nothing) {
    *cone = (struct ki_cone){.dims = dims, .nothing = nothing, .basis = numbers(dims, dims)};
    return cone->basis ? KILN_OK : ki_fail_nomem((size_t)(dims * dims) * sizeof(double), "directions");
}

void ki_cone_close(struct ki_cone *cone) {
    void *const all[] = {cone->rows, cone->name, cone->state, cone->basis};
    for (int i = 0; i < 4; i++) ki_free(all[i]);
    *cone = (struct ki_cone){0};
}

static kiln_status grow(struct ki_cone *cone) {
    const int64_t room = 2 * cone->room + 64;
    double *rows = numbers(room, cone->dims);
    int64_t *name = ki_alloc((size_t)room * sizeof *name);
    char *state = ki_alloc((size_t)room);
    if (!rows || !name || !state) {
        ki_free(rows);
        ki_free(name);
        ki_free(state);
        return ki_fail_nomem((size_t)(room * cone->dims) * sizeof(double), "rows that have a say");
    }
    if (cone->count) {
        memcpy(rows, cone->rows, (size_t)(cone->count * cone->dims) * sizeof *rows);
        memcpy(name, cone->name, (size_t)cone->count * sizeof *name);
        memcpy(state, cone->state, (size_t)cone->count);
    }
    ki_free(cone->rows);
    ki_free(cone->name);
    ki_free(cone->state);
    cone->rows = rows;
    cone->name = name;
    cone->state = state;
    cone->room = room;
    return KILN_OK;
}

void ki_cone_leave_out(struct ki_cone *cone, const double *d) {
    double *left = cone->basis + cone->rank * cone->dims;
    if (cone->rank == cone->dims) return;
    memcpy(left, d, (size_t)cone->dims * sizeof *left);
    reject(left, NULL, 1, cone->basis, cone->rank, cone->dims);
    const double size = length(left, cone->dims);
    if (size <= cone->nothing) return;
    for (int64_t j = 0; j < cone->dims; j++) left[j] /= size;
    cone->rank++;
}

static void tie(struct ki_cone *cone, int64_t i) {
    cone->state[i] = KI_CONE_TIE;
    ki_cone_leave_out(cone, cone->rows + i * cone->dims);
}

kiln_status ki_cone_add(struct ki_cone *cone, const double *row, int64_t name, enum ki_cone_row state) {
    double largest = 0;
    for (int64_t j = 0; j < cone->dims; j++) largest = fmax(largest, fabs(row[j]));
    if (!(largest > 0) || !isfinite(largest)) return KILN_OK;
    if (cone->count == cone->room) {
        const kiln_status status = grow(cone);
        if (status != KILN_OK) return status;
    }
    const int64_t i = cone->count++;
    double *own = cone->rows + i * cone->dims;
    for (int64_t j = 0; j < cone->dims; j++) own[j] = row[j] / largest;
    const double size = length(own, cone->dims);
    for (int64_t j = 0; j < cone->dims; j++) own[j] /= size;
    cone->name[i] = name;
    cone->state[i] = KI_CONE_DEMAND;
    if (state == KI_CONE_TIE) tie(cone, i);
    return KILN_OK;
}

double ki_cone_gain(const struct ki_cone *cone, int64_t i, const double *d) {
    return dot(cone->rows + i * cone->dims, d, cone->dims);
}

bool ki_cone_across(double *d, const struct ki_cone *cone) {
    struct ki_draws draws = {.stream = KI_STREAM_ACROSS};
    for (int64_t j = 0; j < cone->dims; j++) {
        d[j] = 0.5 + ki_draw(&draws);
        if (ki_draw_below(&draws, 2)) d[j] = -d[j];
    }
    reject(d, NULL, 1, cone->basis, cone->rank, cone->dims);
    const double size = length(d, cone->dims);
    if (cone->rank == cone->dims || size <= cone->nothing) return false;
    for (int64_t j = 0; j < cone->dims; j++) d[j] /= size;
    return true;
}

/* -------------------------------------------------------------------------------------- active sets */

/* CANDIDATES: rows that lose, looked at without the others until none loses a tenth of what the worst of
 * all did. */
enum { CANDIDATES = 32 };

struct sets {
    int64_t dims, count, used; /* used: rows with v > 0 */
    double nothing;            /* the cone's */
    double *rows;              /* count x dims: those that demand, across the ties, of length 1 */
    double *sum, *rho;         /* dims: of all rows; what is left of it */
    double *q,
        *r; /* used x dims, orthonormal; used x used, above the diagonal: column t has row t's shares of q */
    double *v, *next, *part; /* of rows with v > 0: as it is, and where it would go; the sum's shares of q */
    double *gain;            /* count: along rho */
    int64_t *index;          /* of those rows */
    char *in, *barred;       /* count each: has v > 0; was of no use since rho moved */
    int64_t candidate[CANDIDATES], candidates;
    double least_gain; /* of all rows, when candidates were chosen */
};

static kiln_status sets_new(struct sets *s, struct ki_arena *arena, const struct ki_cone *cone) {
    const int64_t n = cone->dims, m = ki_max(cone->count, 1);
    *s = (struct sets){.dims = n,
                       .nothing = cone->nothing,
                       .rows = ki_arena_doubles(arena, m * n),
                       .sum = ki_arena_reals(arena, n),
                       .rho = ki_arena_doubles(arena, n),
                       .q = ki_arena_doubles(arena, (n + 1) * n),
                       .r = ki_arena_doubles(arena, (n + 1) * (n + 1)),
                       .v = ki_arena_doubles(arena, n + 1),
                       .next = ki_arena_doubles(arena, n + 1),
                       .part = ki_arena_doubles(arena, n + 1),
                       .gain = ki_arena_doubles(arena, m),
                       .index = ki_arena_integers(arena, n + 1),
                       .in = ki_arena_zeros(arena, m, 1),
                       .barred = ki_arena_zeros(arena, m, 1)};
    if (arena->status != KILN_OK) return arena->status;
    for (int64_t i = 0; i < cone->count; i++) {
        if (cone->state[i] != KI_CONE_DEMAND) continue;
        double *row = s->rows + s->count * n;
        memcpy(row, cone->rows + i * n, (size_t)n * sizeof *row);
        reject(row, NULL, 1, cone->basis, cone->rank, n);
        const double size = length(row, n);
        if (size <= cone->nothing) continue;
        for (int64_t j = 0; j < n; j++) s->sum[j] += row[j] /= size;
        s->count++;
    }
    memcpy(s->rho, s->sum, (size_t)n * sizeof *s->rho);
    return KILN_OK;
}

static double *shares(const struct sets *s, int64_t t, int64_t of) {
    return s->r + t * (s->dims + 1) + of;
}

/* The row joins those with v > 0, its v 0; false: it depends on them. */
static bool join(struct sets *s, int64_t row) {
    const int64_t t = s->used;
    if (t == s->dims) return false;
    double *q = s->q + t * s->dims;
    memcpy(q, s->rows + row * s->dims, (size_t)s->dims * sizeof *q);
    reject(q, shares(s, 0, t), s->dims + 1, s->q, t, s->dims);
    const double size = *shares(s, t, t) = length(q, s->dims);
    if (size <= s->nothing) return false;
    for (int64_t j = 0; j < s->dims; j++) q[j] /= size;
    s->part[t] = dot(q, s->sum, s->dims);
    increase(s->rho, -s->part[t], q, s->dims);
    s->index[t] = row;
    s->v[t] = 0;
    s->in[row] = 1;
    s->used++;
    return true;
}

/* Rows t and t + 1 of q, and what goes with them, turn so that the share below the diagonal is gone. */
static void turn(struct sets *s, int64_t t) {
    double *upper = shares(s, t, 0), *lower = shares(s, t + 1, 0);
    const double size = hypot(upper[t], lower[t]), c = upper[t] / size, d = lower[t] / size;
    double *const pairs[][2] = {{upper + t, lower + t},
                                {s->q + t * s->dims, s->q + (t + 1) * s->dims},
                                {s->part + t, s->part + t + 1}};
    const int64_t counts[] = {s->used - t, s->dims, 1};
    for (int p = 0; p < 3; p++)
        for (int64_t j = 0; j < counts[p]; j++) {
            const double x = pairs[p][0][j], y = pairs[p][1][j];
            pairs[p][0][j] = c * x + d * y;
            pairs[p][1][j] = c * y - d * x;
        }
    lower[t] = 0;
}

/* Number `place` of the rows with v > 0 leaves them. */
static void leave(struct sets *s, int64_t place) {
    const int64_t behind = --s->used - place;
    s->in[s->index[place]] = 0;
    memmove(s->index + place, s->index + place + 1, (size_t)behind * sizeof *s->index);
    memmove(s->v + place, s->v + place + 1, (size_t)behind * sizeof *s->v);
    for (int64_t t = 0; t <= s->used; t++) /* of column t its entries up to the one below the diagonal */
        memmove(shares(s, t, ki_max(place, t - 1)), shares(s, t, ki_max(place, t - 1) + 1),
                (size_t)(s->used - ki_max(place, t - 1)) * sizeof *s->r);
    for (int64_t t = place; t < s->used; t++) turn(s, t);
    increase(s->rho, s->part[s->used], s->q + s->used * s->dims, s->dims);
}

/* next: the v at which the rows with v > 0 leave the least of the sum. */
static void least(struct sets *s) {
    for (int64_t t = s->used - 1; t >= 0; t--)
        s->next[t] =
            -(s->part[t] + dot(shares(s, t, t + 1), s->next + t + 1, s->used - t - 1)) / *shares(s, t, t);
}

/* Moves v to where rho is least with these rows; those that would get v < 0 stay behind. */
static void settle(struct sets *s) {
    for (;;) {
        double far = 1;
        int64_t worst = -1;
        least(s);
        for (int64_t t = 0; t < s->used; t++) {
            if (s->next[t] > 0) continue;
            const double reach = s->v[t] > 0 ? s->v[t] / (s->v[t] - s->next[t]) : 0;
            if (worst < 0 || reach < far) far = reach, worst = t;
        }
        for (int64_t t = 0; t < s->used; t++) s->v[t] += far * (s->next[t] - s->v[t]);
        if (worst < 0) return;
        leave(s, worst);
    }
}

/* The gains of all rows along rho, of which rounding is taken off; candidates: some of those that lose
 * most. */
static void price(struct sets *s) {
    memcpy(s->rho, s->sum, (size_t)s->dims * sizeof *s->rho);
    reject(s->rho, NULL, 1, s->q, s->used, s->dims);
    s->candidates = 0;
    s->least_gain = 0;
    for (int64_t i = 0; i < s->count; i++) {
        s->gain[i] = s->in[i] ? 0 : dot(s->rows + i * s->dims, s->rho, s->dims);
        if (!s->barred[i]) s->least_gain = fmin(s->least_gain, s->gain[i]);
    }
    for (int64_t i = 0; i < s->count && s->candidates < CANDIDATES; i++)
        if (s->gain[i] < 0.4 * s->least_gain && !s->barred[i]) s->candidate[s->candidates++] = i;
}

/* The candidate that loses most; -1: none loses enough. */
static int64_t loser(const struct sets *s) {
    int64_t found = -1;
    double most = 0.1 * s->least_gain;
    for (int64_t c = 0; c < s->candidates; c++) {
        const int64_t i = s->candidate[c];
        if (s->in[i] || s->barred[i]) continue;
        const double gain = dot(s->rows + i * s->dims, s->rho, s->dims);
        if (gain < most) most = gain, found = i;
    }
    return found;
}

/* If no row loses that might join, this asks whether one does that may not. */
static enum ki_cone_answer conclude(const struct sets *s, double slack) {
    for (int64_t i = 0; i < s->count; i++)
        if (s->gain[i] < -slack) return KI_CONE_UNDECIDED;
    return KI_CONE_FOUND;
}

static enum ki_cone_answer search(struct sets *s, double *blur) {
    const double zero = s->nothing * sqrt((double)s->count);
    double before = INFINITY;
    for (int64_t step = 0; step < STEPS * s->dims + FEW_STEPS; step++) {
        int64_t row = loser(s);
        if (row < 0) {
            price(s);
            row = loser(s);
        }
        const double size = length(s->rho, s->dims), slack = s->nothing * size + ROUNDING * (double)s->count;
        *blur = 2 * slack / size;
        if (size <= zero) return KI_CONE_NONE;
        if (!(s->least_gain < -slack)) return conclude(s, slack);
        if (size < before * (1 - 1e-12)) memset(s->barred, 0, (size_t)s->count);
        before = size;
        s->barred[row] = 1;
        if (join(s, row)) settle(s);
    }
    return KI_CONE_UNDECIDED;
}

/* All rows that demand are ties: those with v > 0 span q, others perhaps more. */
static void tie_all(struct ki_cone *cone, const struct sets *s) {
    memcpy(cone->basis + cone->rank * cone->dims, s->q, (size_t)(s->used * s->dims) * sizeof *s->q);
    cone->rank += s->used;
    for (int64_t i = 0; i < cone->count; i++)
        if (cone->state[i] == KI_CONE_DEMAND) tie(cone, i);
}

kiln_status ki_cone_solve(enum ki_cone_answer *answer, double *d, double *blur, struct ki_cone *cone) {
    struct ki_arena arena = {0};
    struct sets s = {0};
    kiln_status status;
    TRY(sets_new(&s, &arena, cone));
    *answer = s.count ? search(&s, blur) : KI_CONE_NONE;
    if (*answer == KI_CONE_NONE) tie_all(cone, &s);
    const double size = length(s.rho, s.dims);
    for (int64_t j = 0; j < s.dims && *answer == KI_CONE_FOUND; j++) d[j] = s.rho[j] / size;
done:
    return ki_arena_free(&arena, status);
}
