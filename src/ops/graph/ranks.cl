/* GPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c). A step gathers what comes in along
 * the links, updates P, and makes the next step's contributions, the mass that dangles and the change while
 * it has the row in its registers. The links lie in one of three layouts (derived/links.h): a vector of VS
 * threads takes a row (ROWS), a thread takes one beside others of the same length (WINDOWS), or teams of TEAM
 * threads first take equal shares of rows and links and leave what came in with each row (SHARES), and then a
 * thread updates a row (CLOSE). Where the sources lie in several blocks, so that what is gathered stays in
 * the second cache level, a vertex has a row in each, which CLOSE adds up. Each group leaves its sums of K
 * columns in `space`, mass first and then change, column by column, as its own number of `groups`, which are
 * added up in order. The state S never leaves the device, so that steps queued behind the last one that is
 * wanted see it and do nothing.
 *
 * What comes in along links is added up in `wide`, and where that is no wider than `real` with what each
 * addition has rounded off, so that rounding does not grow with the number of a row's links (ki_ranks_error).
 *
 * SHARES are a launch of ranks_step, the update is one, and ranks_settle adds up. Where groups may wait for
 * each other (TOGETHER) all of `turns` steps are one launch: groups meet between shares and update, and
 * behind each step, after which each group adds up all sums for itself, and the first also writes the state.
 * Two steps in turn have places of their own for their sums, so that nobody overwrites what others still
 * read. */

#define ARGUMENTS_ranks_factor(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, factor)                                                                                 \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(IN, real, values)                                                                                   \
    NEXT(VALUE, long, n)

#define ARGUMENTS_ranks_begin(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, real, P)                                                                                        \
    NEXT(OUT, real, C)                                                                                       \
    NEXT(IN, real, factor)                                                                                   \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

/* start, source, weight, place: of ROWS or WINDOWS; item and its like: of SHARES and CLOSE, which have `rows`
 * rows in each of `blocks` blocks: those that `row` names, or if it is NULL all. part: of each share what it
 * has of the row that ends in it first, behind all of these of each what is open at its end, and then, as
 * `real`, the sums of rows. Of `all` vertices the n from `offset` on are this device's. `slot` is the first
 * step's, of `slots`; met: a zero. */
#define ARGUMENTS_ranks_step(FIRST, NEXT)                                                                    \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(OUT, wide, S)                                                                                       \
    NEXT(OUT, real, C)                                                                                       \
    NEXT(OUT, real, next)                                                                                    \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(IN, real, factor)                                                                                   \
    NEXT(IN, real, teleport)                                                                                 \
    NEXT(IN, real, dangling)                                                                                 \
    NEXT(VALUE, wide, damping)                                                                               \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, long, all)                                                                                   \
    NEXT(VALUE, long, offset)                                                                                \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, teleport_cols)                                                                          \
    NEXT(VALUE, int, dangling_cols)                                                                          \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, source)                                                                                 \
    NEXT(TABLE, real, weight)                                                                                \
    NEXT(TABLE, int, place)                                                                                  \
    NEXT(TABLE, int, item)                                                                                   \
    NEXT(TABLE, real, item_weight)                                                                           \
    NEXT(SPACE, wide, part)                                                                                  \
    NEXT(TABLE, int, item_start)                                                                             \
    NEXT(TABLE, int, row)                                                                                    \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, blocks)                                                                                 \
    NEXT(VALUE, long, shares)                                                                                \
    NEXT(SPACE, int, met)                                                                                    \
    NEXT(VALUE, int, slot)                                                                                   \
    NEXT(VALUE, int, slots)                                                                                  \
    NEXT(VALUE, int, turns)

#define ARGUMENTS_ranks_clear(FIRST, NEXT) FIRST(SPACE, int, met)

/* Sums of column c (k of mass, then k of change) from g at space[c * along + g * across]. */
#define ARGUMENTS_ranks_settle(FIRST, NEXT)                                                                  \
    FIRST(OUT, wide, S)                                                                                      \
    NEXT(TABLE, wide, space)                                                                                 \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, along)                                                                                  \
    NEXT(VALUE, int, across)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slot)

/* sums: a row for each member of a group, of which this is `member`'s to write. */
#define ARGUMENTS_ranks_total(FIRST, NEXT)                                                                   \
    FIRST(OUT, wide, sums)                                                                                   \
    NEXT(TABLE, wide, space)                                                                                 \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, member)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/scalar_math.h"

/* Mass and change of this group, for columns from `first` on. */
#define LEAVE_SUMS(space, mass, change)                                                                      \
    for (int c = 0; c < K; c++) {                                                                            \
        const int at = (first + c) * groups + (int)get_group_id(0);                                          \
        const wide m = group_total(mass[c], shared), d = group_total(change[c], shared);                     \
        if (get_local_id(0) == 0 && first + c < k) space[at] = m, space[k * groups + at] = d;                \
    }

#ifdef FACTOR
/* 1 / the weight of a vertex's links: a thread each, as this is done once. */
__kernel void ranks_factor(PARAMETERS(ranks_factor)) {
    for (long i = (long)get_global_id(0); i < n; i += (long)get_global_size(0)) {
        const long from = row_start[i], end = row_start[i + 1];
        wide sum = values ? 0 : (wide)(end - from);
        bool wrong = false;
        for (long e = from; values && e < end; e++) {
            wrong = wrong || !(values[e] >= REAL(0.0));
            sum += (wide)values[e];
        }
        const real inverse = (real)(1 / sum);
        factor[i] = sum == 0 && !wrong                                                  ? REAL(0.0)
                    : wrong || !(inverse > REAL(0.0) && inverse - inverse == REAL(0.0)) ? (real)NAN
                                                                                        : inverse;
    }
}
#endif

#ifdef BEGIN
__kernel GROUP_OF(BS) void ranks_begin(PARAMETERS(ranks_begin)) {
    LOCAL wide shared[BS];
    wide mass[K], change[K];
    for (int c = 0; c < K; c++) mass[c] = change[c] = 0;
    for (index_t i = (index_t)get_global_id(0); i < (index_t)n; i += (index_t)get_global_size(0))
#pragma unroll
        for (int c = 0; c < K; c++)
            if (first + c < k) {
                const real x = P[i * k + first + c], f = factor[i];
                C[i * k + first + c] = x * f;
                mass[c] += f == REAL(0.0) ? (wide)x : 0;
            }
    LEAVE_SUMS(space, mass, change)
}
#endif

#if defined(SETTLE) || defined(TOGETHER)
/* All groups' sums: each column's mass goes to `masses`; true if a column changed by more than its goal. One
 * group also writes the new state; slot < 0: that at the beginning. */
DEVICE_FN bool settle(__global wide *S, __global const wide *space, int groups, int along, int across, int k,
                      int slot, bool writes, LOCAL_PTR wide *masses, LOCAL_PTR wide *shared) {
    const bool begin = slot < 0;
    bool more = begin;
    for (int c = 0; c < k; c++) {
        wide mass = 0, change = 0;
        for (int g = (int)get_local_id(0); g < groups; g += BS) {
            mass += space[c * along + g * across];
            change += begin ? 0 : space[(k + c) * along + g * across];
        }
        mass = group_total(mass, shared);
        change = group_total(change, shared);
        more = more || !(change <= S[RANKS_GOAL * k + c]);
        if (get_local_id(0) != 0) continue;
        masses[c] = mass;
        if (writes) S[RANKS_MASS * k + c] = mass;
        if (writes && !begin) S[(RANKS_ROWS + slot) * k + c] = change;
    }
    for (int c = (int)get_local_id(0); writes && c < k; c += BS) {
        S[RANKS_TAKEN * k + c] = begin ? 0 : S[RANKS_TAKEN * k + c] + 1;
        S[RANKS_ACTIVE * k + c] = more ? 1 : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return more;
}
#endif

#ifdef SETTLE
__kernel GROUP_OF(BS) void ranks_settle(PARAMETERS(ranks_settle)) {
    LOCAL wide shared[BS], masses[RANKS_COLUMNS];
    if (slot < 0 || S[RANKS_ACTIVE * k] != 0)
        settle(S, space, groups, along, across, k, slot, true, masses, shared);
}

__kernel GROUP_OF(BS) void ranks_total(PARAMETERS(ranks_total)) {
    LOCAL wide shared[BS];
    for (int c = 0; c < 2 * k; c++) {
        wide sum = 0;
        for (int g = (int)get_local_id(0); g < groups; g += BS) sum += space[c * groups + g];
        sum = group_total(sum, shared);
        if (get_local_id(0) == 0) sums[member * 2 * k + c] = sum;
    }
}
#endif

#ifdef CLEAR
__kernel void ranks_clear(PARAMETERS(ranks_clear)) {
    if (get_global_id(0) == 0) *met = 0;
}
#endif

#ifdef TOGETHER
/* Waits until all groups have come here for the `times`-th time; what they wrote before is seen then. */
DEVICE_FN void meet(volatile __global int *met, int times) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        memory_fence();
        count_up(met);
        while (*met < times * (int)get_num_groups(0)) {}
        memory_fence();
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
}
#endif

#ifdef STEP
/* Holds what the update of a row takes, and the sums that it adds to. */
struct update {
    __global real *P, *next;
    __global const real *factor, *teleport, *dangling;
    int k, first, teleport_cols, dangling_cols;
    real away, along, uniform, spread[K];
    wide mass[K], change[K];
};

DEVICE_FN struct update new_update(__global real *P, __global const real *factor,
                                   __global const real *teleport, __global const real *dangling, int k,
                                   int first, int teleport_cols, int dangling_cols) {
    struct update u;
    u.P = P;
    u.factor = factor;
    u.teleport = teleport;
    u.dangling = dangling;
    u.k = k;
    u.first = first;
    u.teleport_cols = teleport_cols;
    u.dangling_cols = dangling_cols;
    return u;
}

/* Holds what a row's update reads, apart from it so that several rows' loads can be under way at once. */
struct former {
    real factor, P[K];
};

DEVICE_FN struct former load_former(const struct update *u, index_t row) {
    struct former of;
    of.factor = u->factor[row];
#pragma unroll
    for (int c = 0; c < K; c++)
        of.P[c] = c == 0 || u->first + c < u->k ? u->P[row * u->k + u->first + c] : REAL(0.0);
    return of;
}

/* `sum` has come in along the row's links. */
DEVICE_FN void update_row(struct update *u, index_t row, const wide *sum, struct former of) {
    const real f = of.factor;
#pragma unroll
    for (int c = 0; c < K; c++) {
        if (c > 0 && u->first + c >= u->k) continue;
        const index_t at = row * u->k + u->first + c;
        const real t = u->teleport ? u->teleport[u->teleport_cols == 1 ? row : at] : u->uniform;
        const real g = u->dangling ? u->dangling[u->dangling_cols == 1 ? row : at] : u->uniform;
        const real x = u->away * t + u->spread[c] * g + u->along * (real)sum[c], former = of.P[c];
        u->P[at] = x;
        u->next[at] = x * f;
        u->mass[c] += f == REAL(0.0) ? (wide)x : 0;
        u->change[c] += x > former ? (wide)x - (wide)former : (wide)former - (wide)x;
    }
}

/* A long sum, and what its additions have rounded off. */
struct long_sum {
    wide sum;
#if defined(REAL_F64) || defined(NO_F64)
    wide rest;
#endif
};

DEVICE_FN struct long_sum no_long_sum(void) {
    struct long_sum none;
    none.sum = 0;
#if defined(REAL_F64) || defined(NO_F64)
    none.rest = 0;
#endif
    return none;
}

DEVICE_FN void add_long(struct long_sum *to, wide x) {
    const wide sum = to->sum + x;
#if defined(REAL_F64) || defined(NO_F64)
    const wide added = sum - to->sum; /* Knuth's two-sum: holds whichever of the two is larger */
    to->rest += (to->sum - (sum - added)) + (x - added);
#endif
    to->sum = sum;
}

DEVICE_FN wide long_total(struct long_sum of) {
#if defined(REAL_F64) || defined(NO_F64)
    return of.sum + of.rest;
#else
    return of.sum;
#endif
}

DEVICE_FN void gather(struct long_sum *sum, index_t e, __global const int *source,
                      __global const real *weight, __global const real *C, int k, int first) {
    const index_t from = (index_t)load_once_int(source + e) * k + first;
#ifdef WEIGHTED
    const real w = load_once(weight + e);
#else
    const real w = REAL(1.0);
#endif
#pragma unroll
    for (int c = 0; c < K; c++)
        if (c == 0 || first + c < k) add_long(&sum[c], (wide)w * (wide)C[from + c]);
}

#ifdef ROWS
/* K sums over VS lanes, in place. scratch has BS * K places. */
DEVICE_FN void vector_sums(wide *x, LOCAL_PTR wide *scratch) {
#if defined(SHUFFLES) && !defined(NO_F64)
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int step = VS / 2; step > 0; step /= 2) x[c] += shuffle_double(0xffffffffu, x[c], step);
#elif VS > 1
    const int id = (int)get_local_id(0), lane = id % VS;
    for (int c = 0; c < K; c++) scratch[c * BS + id] = x[c];
    for (int reach = VS / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int c = 0; c < K && lane < reach; c++) scratch[c * BS + id] += scratch[c * BS + id + reach];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = 0; c < K; c++) x[c] = scratch[c * BS + id - lane];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

DEVICE_FN void update_rows(struct update *u, __global const int *start, __global const int *source,
                           __global const real *weight, __global const real *C, index_t n,
                           LOCAL_PTR wide *scratch) {
    const int lane = (int)get_local_id(0) % VS, vector = (int)get_local_id(0) / VS;
    for (index_t base = (index_t)get_group_id(0) * (BS / VS); base < n;
         base += (index_t)get_num_groups(0) * (BS / VS)) {
        const index_t row = base + vector;
        struct long_sum sum[K];
        wide total[K];
        for (int c = 0; c < K; c++) sum[c] = no_long_sum();
        if (row < n)
            for (index_t e = start[row] + lane; e < (index_t)start[row + 1]; e += VS)
                gather(sum, e, source, weight, C, u->k, u->first);
        for (int c = 0; c < K; c++) total[c] = long_total(sum[c]);
        vector_sums(total, scratch);
        if (lane == 0 && row < n) update_row(u, row, total, load_former(u, row));
    }
}
#endif

#ifdef WINDOWS
/* The links of a run of equal rows lie column by column: neighbouring threads load what is side by side. */
DEVICE_FN void update_windows(struct update *u, __global const int *start, __global const int *source,
                              __global const real *weight, __global const int *place, __global const real *C,
                              index_t n) {
    for (index_t i = (index_t)get_global_id(0); i < n; i += (index_t)get_global_size(0)) {
        const int word = load_once_int(place + i);
        if (word < 0) continue; /* a long row, which shares have */
        const index_t window = i / WINDOW * WINDOW, run = window + (word >> 10 & 1023);
        const int length = start[i + 1] - start[i], rows = (word >> 20) + 1;
        const index_t from = (index_t)start[run] + (i - run);
        struct long_sum sum[K];
        wide total[K];
        for (int c = 0; c < K; c++) sum[c] = no_long_sum();
#pragma unroll 4
        for (int j = 0; j < length; j++)
            gather(sum, from + (index_t)j * rows, source, weight, C, u->k, u->first);
        for (int c = 0; c < K; c++) total[c] = long_total(sum[c]);
        update_row(u, window + (word & 1023), total, load_former(u, window + (word & 1023)));
    }
}
#endif

#if defined(SHARES) || defined(CLOSE)
#define EACH (TEAM * A_THREAD)
#define SUMS_OF_ROWS ((__global real *)(part + 2 * shares))
#endif

#ifdef SHARES
#ifdef SHUFFLES
/* The lane `step` before has this; in the first lanes it is any number. */
#define FROM_BEFORE(x, of, step) shuffle_up(x, step)
#define FLAG_FROM_BEFORE(x, of, step) shuffle_up_int(x, step)
#define TEAM_MEETS
#else
#define FROM_BEFORE(x, of, step) (lane >= (step) ? (of)[id - (step)] : (x))
#define FLAG_FROM_BEFORE FROM_BEFORE
#define TEAM_MEETS                                                                                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                            \
    open[id] = sum;                                                                                          \
    closed[id] = ended;                                                                                      \
    barrier(CLK_LOCAL_MEM_FENCE);
#endif

/* Each thread of a team has `sum` of the row that is open at its end; `ended`: a row has ended in the thread,
 * so that what came before does not count. *before becomes what is open at its begin, *all what is open at
 * its end; true if a row has ended before it. */
DEVICE_FN bool sum_open(wide *before, wide *all, wide sum, int ended, LOCAL_PTR wide *open,
                        LOCAL_PTR int *closed) {
    const int id = (int)get_local_id(0), lane = id % TEAM;
    for (int reach = 1; reach < TEAM; reach *= 2) {
        TEAM_MEETS
        const wide more = FROM_BEFORE(sum, open, reach);
        const int more_ended = FLAG_FROM_BEFORE(ended, closed, reach);
        if (lane < reach) continue;
        if (!ended) sum += more;
        ended |= more_ended;
    }
    TEAM_MEETS
    const wide last = FROM_BEFORE(sum, open, 1);
    const int last_ended = FLAG_FROM_BEFORE(ended, closed, 1);
    *all = sum;
    *before = lane == 0 ? 0 : last;
    return lane > 0 && last_ended;
}

/* Finds what comes in along a share's links, by a team. All are on their way before the first has come. One
 * column. A row that ends in the share leaves its sum; whether it also began there is not asked: the share's
 * first also goes to where parts of rows are. */
DEVICE_FN void add_share(__global wide *part, index_t share, __global const int *item,
                         __global const real *weight, __global const real *C, int k, int first,
                         index_t shares, LOCAL_PTR wide *open, LOCAL_PTR int *closed) {
    const int lane = (int)get_local_id(0) % TEAM;
    const index_t begin = share * EACH + lane;
    __global real *const sums = SUMS_OF_ROWS;
    int at[A_THREAD], head_row = -1;
    real x[A_THREAD];
    wide sum = 0, head = 0, before, all;
#pragma unroll
    for (int u = 0; u < A_THREAD; u++) at[u] = load_once_int(item + begin + u * TEAM);
#pragma unroll
    for (int u = 0; u < A_THREAD; u++) {
        x[u] = at[u] < 0 ? REAL(0.0) : C[(index_t)at[u] * k + first];
#ifdef WEIGHTED
        if (at[u] >= 0) x[u] *= load_once(weight + begin + u * TEAM);
#endif
    }
#pragma unroll
    for (int u = 0; u < A_THREAD; u++) {
        sum += (wide)x[u];
        if (at[u] >= 0) continue;
        if (head_row < 0) {
            head = sum; /* the row may have begun before */
            head_row = ~at[u];
        } else
            sums[~at[u]] = (real)sum;
        sum = 0;
    }
    const bool ended = sum_open(&before, &all, sum, head_row >= 0, open, closed);
    if (head_row >= 0) sums[head_row] = (real)(head + before);
    if (head_row >= 0 && !ended) part[share] = head + before;
    if (lane == TEAM - 1) part[shares + share] = all;
}

/* Each team adds up its shares of all. */
DEVICE_FN void add_shares(__global wide *part, __global const int *item, __global const real *weight,
                          __global const real *C, int k, int first, index_t shares, LOCAL_PTR wide *open,
                          LOCAL_PTR int *closed) {
    for (index_t share = (index_t)(get_global_id(0) / TEAM); share < shares;
         share += (index_t)(get_global_size(0) / TEAM))
        add_share(part, share, item, weight, C, k, first, shares, open, closed);
}
#endif

#ifdef CLOSE
#define CLOSED 2
/* A thread's next rows, a stride apart, whose loads are under way at once. What has come in with a row is its
 * own sum, or, if it begins in another share than it ends in, what shares have of it. */
DEVICE_FN void close_some(struct update *u, __global const wide *part, __global const int *start,
                          __global const int *row, index_t rows, int blocks, index_t shares, index_t first,
                          index_t stride) {
    wide sum[CLOSED];
    struct former of[CLOSED];
    __global const real *const sums = SUMS_OF_ROWS;
#pragma unroll
    for (int a = 0; a < CLOSED; a++) {
        const index_t r = first + a * stride;
        sum[a] = 0;
        if (r < rows) of[a] = load_former(u, row ? (index_t)row[r] : r);
    }
    for (int b = 0; b < blocks; b++) {
        index_t from[CLOSED], to[CLOSED];
        wide open[CLOSED], last[CLOSED];
#pragma unroll
        for (int a = 0; a < CLOSED; a++) {
            const index_t r = first + a * stride, at = b * rows + r;
            from[a] = to[a] = 0;
            if (r >= rows) continue;
            from[a] = (start[at] + at) / EACH;
            to[a] = (start[at + 1] + at) / EACH;
            open[a] = from[a] == to[a] ? 0 : part[shares + from[a]];
            last[a] = from[a] == to[a] ? (wide)sums[at] : part[to[a]];
        }
#pragma unroll
        for (int a = 0; a < CLOSED; a++) {
            if (first + a * stride >= rows) continue;
            struct long_sum between = no_long_sum();
#pragma unroll 8
            for (index_t share = from[a] + 1; share < to[a]; share++)
                add_long(&between, part[shares + share]);
            sum[a] += open[a] + long_total(between) + last[a];
        }
    }
#pragma unroll
    for (int a = 0; a < CLOSED; a++) {
        const index_t r = first + a * stride;
        if (r < rows) update_row(u, row ? (index_t)row[r] : r, &sum[a], of[a]);
    }
}

DEVICE_FN void close_rows(struct update *u, __global const wide *part, __global const int *start,
                          __global const int *row, index_t rows, int blocks, index_t shares) {
    const index_t stride = (index_t)get_global_size(0);
    for (index_t r = (index_t)get_global_id(0); r < rows; r += CLOSED * stride)
        close_some(u, part, start, row, rows, blocks, shares, r, stride);
}
#endif

#if defined(ROWS) || defined(WINDOWS) || defined(CLOSE)
#define UPDATES
#endif

__kernel GROUP_OF(BS) void ranks_step(PARAMETERS(ranks_step)) {
#ifdef SHARES
    LOCAL wide open[BS]; /* gone from the machine code where threads exchange registers */
    LOCAL int closed[BS];
#endif
#ifdef ROWS
    LOCAL wide scratch[BS * K];
#endif
#ifdef UPDATES
    LOCAL wide shared[BS];
    struct update u = new_update(P, factor, teleport, dangling, k, first, teleport_cols, dangling_cols);
    u.away = (real)(1 - damping);
    u.along = (real)damping;
    u.uniform = (real)(1 / (wide)all);
#endif
    if (S[RANKS_ACTIVE * k] == 0) return;
#ifdef TOGETHER
    LOCAL wide masses[RANKS_COLUMNS];
    __global wide *former = space;
    int meetings = 0;
    for (int turn = 0;; turn++) {
        __global wide *const own = space + turn % 2 * 2 * k * groups;
#else
    __global wide *const own = space;
#endif
#ifdef SHARES
    add_shares(part, item, item_weight, C, k, first, (index_t)shares, open, closed);
#ifdef TOGETHER
    meet(met, ++meetings);
#endif
#endif
#ifdef TOGETHER
    if (turn > 0 && !settle(S, former, groups, groups, 1, k, (slot + turn - 1) % slots, get_group_id(0) == 0,
                            masses, shared))
        return;
    if (turn == turns) return;
#define MASS(c) (turn > 0 ? masses[c] : S[RANKS_MASS * k + (c)])
#else
#define MASS(c) S[RANKS_MASS * k + (c)]
#endif
#ifdef UPDATES
#ifdef MEMBER /* elsewhere an addition of 0 here makes all of the kernel slower by two thirds (CUDA 13,
               * H200) */
    u.next = next + (index_t)offset * k;
#else
    u.next = next;
#endif
    for (int c = 0; c < K; c++) {
        u.mass[c] = u.change[c] = 0;
        u.spread[c] = first + c < k ? (real)(damping * MASS(first + c)) : REAL(0.0);
    }
#ifdef ROWS
    update_rows(&u, start, source, weight, C, (index_t)n, scratch);
#endif
#ifdef WINDOWS
    update_windows(&u, start, source, weight, place, C, (index_t)n);
#endif
#ifdef CLOSE
    close_rows(&u, part, item_start, row, (index_t)rows, blocks, (index_t)shares);
#endif
    LEAVE_SUMS(own, u.mass, u.change)
#endif
#ifdef TOGETHER
    meet(met, ++meetings);
    former = own;
    __global real *const C_before = C;
    C = next;
    next = C_before;
    }
#endif
}
#endif

/* The variants that differ in text, as the tests build them. */
// build FACTOR BS=128 VS=1 K=1
// build BEGIN BS=128 VS=1 K=1
// build BEGIN BS=256 VS=1 K=8 INDEX64
// build STEP ROWS BS=64 VS=1 K=1
// build STEP ROWS BS=256 VS=8 K=1 WEIGHTED
// build STEP ROWS BS=256 VS=32 K=8 WEIGHTED INDEX64
// build STEP WINDOWS BS=64 VS=1 K=1 WINDOW=1024
// build STEP WINDOWS BS=256 VS=1 K=8 WINDOW=1024 WEIGHTED INDEX64
// build STEP SHARES BS=64 VS=1 K=1 TEAM=32 A_THREAD=8
// build STEP SHARES BS=256 VS=1 K=1 TEAM=32 A_THREAD=8 WEIGHTED INDEX64
// build STEP CLOSE BS=256 VS=1 K=1 TEAM=32 A_THREAD=8
// build STEP CLOSE BS=256 VS=1 K=1 TEAM=32 A_THREAD=8 MEMBER
// build STEP WINDOWS CLOSE BS=256 VS=1 K=1 TEAM=32 A_THREAD=8 WINDOW=1024
// build STEP ROWS BS=256 VS=8 K=4 TOGETHER
// build STEP SHARES CLOSE BS=256 VS=1 K=1 TEAM=32 A_THREAD=8 TOGETHER
// build STEP WINDOWS SHARES CLOSE BS=256 VS=1 K=1 TEAM=32 A_THREAD=8 WINDOW=1024 TOGETHER
// build SETTLE BS=256 VS=1 K=1
// build CLEAR BS=32 VS=1 K=1
// pack {f32|f64} {BEGIN BS=512 VS=1 K=1 {|WEIGHTED}|
//      CLEAR BS=32 VS=1 K=1|FACTOR BS=128 VS=1 K=1|SETTLE BS=512 VS=1 K=1}
// pack {f32|f64} STEP ROWS TOGETHER BS=512 VS={1|2|4|8} K=1 {|WEIGHTED}
#endif
