/* GPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c). A step gathers what comes in along the links, updates P, and
 * makes the next step's contributions, the mass that dangles and the change while it has the row in its registers: nothing is read
 * twice. The links lie in one of three layouts (derived/links.h): a vector of VS threads takes a row (ranks_rows), a thread takes one
 * beside others of the same length (ranks_windows), or a group takes a share of rows and links (ranks_shares), and rows that end in
 * another share than they began in are done at last (ranks_join). Each group leaves its sums of K columns in `space`, mass first and
 * then change, column by column, as number `before` + its own of `groups`; ranks_settle adds them up in order. The state S never leaves the device, so that steps queued behind the last one
 * that is wanted see it and do nothing. */

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
    NEXT(VALUE, int, before)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

/* Of all kernels that update P. */
#define ARGUMENTS_ranks_update(FIRST, NEXT)                                                                  \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, wide, S)                                                                                        \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(OUT, real, next)                                                                                    \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(IN, real, factor)                                                                                   \
    NEXT(IN, real, teleport)                                                                                 \
    NEXT(IN, real, dangling)                                                                                 \
    NEXT(VALUE, wide, damping)                                                                               \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, before)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, teleport_cols)                                                                          \
    NEXT(VALUE, int, dangling_cols)

#define ARGUMENTS_ranks_rows(FIRST, NEXT)                                                                    \
    ARGUMENTS_ranks_update(FIRST, NEXT)                                                                      \
    NEXT(TABLE, int, source)                                                                                 \
    NEXT(TABLE, real, weight)

#define ARGUMENTS_ranks_windows(FIRST, NEXT)                                                                 \
    ARGUMENTS_ranks_rows(FIRST, NEXT)                                                                        \
    NEXT(TABLE, int, place)

/* row: those of which `rows` are, NULL = all; part: of each share what it has of the row that it begins within, and then, behind all
 * of these, of each what it has of the row that it ends within. */
#define ARGUMENTS_ranks_shares(FIRST, NEXT)                                                                  \
    ARGUMENTS_ranks_rows(FIRST, NEXT)                                                                        \
    NEXT(SPACE, real, part)                                                                                  \
    NEXT(TABLE, int, first_row)                                                                              \
    NEXT(TABLE, int, row)                                                                                    \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, links)                                                                                 \
    NEXT(VALUE, long, shares)

#define ARGUMENTS_ranks_join(FIRST, NEXT)                                                                    \
    ARGUMENTS_ranks_update(FIRST, NEXT)                                                                      \
    NEXT(TABLE, real, part)                                                                                  \
    NEXT(TABLE, int, first_row)                                                                              \
    NEXT(TABLE, int, row)                                                                                    \
    NEXT(VALUE, long, shares)                                                                                \
    NEXT(VALUE, long, each)

#define ARGUMENTS_ranks_settle(FIRST, NEXT)                                                                  \
    FIRST(OUT, wide, S)                                                                                      \
    NEXT(TABLE, wide, space)                                                                                 \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slot)

#ifndef KI_HOST
/* Mass and change of this group, for columns from `first` on. */
#define LEAVE_SUMS(mass, change)                                                                             \
    for (int c = 0; c < K; c++) {                                                                            \
        const int at = (first + c) * groups + before + (int)get_group_id(0);                                 \
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
        factor[i] = sum == 0 && !wrong ? REAL(0.0) : wrong || !(inverse > REAL(0.0) && inverse - inverse == REAL(0.0)) ? (real)NAN : inverse;
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
    LEAVE_SUMS(mass, change)
}
#endif

#if defined(ROWS) || defined(WINDOWS) || defined(SHARES)
/* Column c of a row's update: `sum` has come in along its links. */
#define UPDATE_ONE(row, c, f, sum)                                                                           \
    do {                                                                                                     \
        const index_t at = (row)*k + first + (c);                                                            \
        const real t = teleport ? teleport[teleport_cols == 1 ? (row) : at] : uniform;                       \
        const real g = dangling ? dangling[dangling_cols == 1 ? (row) : at] : uniform;                       \
        const real x = away * t + spread[c] * g + along * (sum), former = P[at];                             \
        P[at] = x;                                                                                           \
        next[at] = x * (f);                                                                                  \
        mass[c] += (f) == REAL(0.0) ? (wide)x : 0;                                                           \
        change[c] += x > former ? (wide)x - (wide)former : (wide)former - (wide)x;                           \
    } while (0)

#define UPDATE(row, sum)                                                                                     \
    do {                                                                                                     \
        const real f = factor[row];                                                                          \
        _Pragma("unroll") for (int c = 0; c < K; c++) if (first + c < k) UPDATE_ONE(row, c, f, (sum)[c]);    \
    } while (0)

/* What is the same for all rows. */
#define UPDATE_BEGIN                                                                                         \
    wide mass[K], change[K];                                                                                 \
    real spread[K];                                                                                          \
    const real away = (real)(1 - damping), along = (real)damping, uniform = (real)(1 / (wide)n);             \
    for (int c = 0; c < K; c++) {                                                                            \
        mass[c] = change[c] = 0;                                                                             \
        spread[c] = first + c < k ? (real)(damping * S[RANKS_MASS * k + first + c]) : REAL(0.0);             \
    }

DEVICE_FN void gather(real *sum, index_t e, __global const int *source, __global const real *weight,
                      __global const real *C, int k, int first) {
    const index_t from = (index_t)load_once_int(source + e) * k + first;
#ifdef WEIGHTED
    const real w = load_once(weight + e);
#else
    const real w = REAL(1.0);
#endif
#pragma unroll
    for (int c = 0; c < K; c++)
        if (c == 0 || first + c < k) sum[c] += w * C[from + c];
}
#endif

#ifdef ROWS
__kernel GROUP_OF(BS) void ranks_rows(PARAMETERS(ranks_rows)) {
    LOCAL wide shared[BS];
    LOCAL real scratch[BS * K];
    if (S[RANKS_ACTIVE * k] == 0) return;
    const int lane = (int)get_local_id(0) % VS, vector = (int)get_local_id(0) / VS;
    UPDATE_BEGIN
    for (index_t base = (index_t)get_group_id(0) * (BS / VS); base < (index_t)n;
         base += (index_t)get_num_groups(0) * (BS / VS)) {
        const index_t row = base + vector;
        real sum[K];
        for (int c = 0; c < K; c++) sum[c] = REAL(0.0);
        if (row < (index_t)n)
            for (index_t e = start[row] + lane; e < (index_t)start[row + 1]; e += VS)
                gather(sum, e, source, weight, C, k, first);
        group_sums(sum, K, scratch);
        if (lane == 0 && row < (index_t)n) UPDATE(row, sum);
    }
    LEAVE_SUMS(mass, change)
}
#endif

#ifdef WINDOWS
/* The links of a run of equal rows lie column by column: neighbouring threads load what is side by side. */
__kernel GROUP_OF(BS) void ranks_windows(PARAMETERS(ranks_windows)) {
    LOCAL wide shared[BS];
    if (S[RANKS_ACTIVE * k] == 0) return;
    UPDATE_BEGIN
    for (index_t i = (index_t)get_global_id(0); i < (index_t)n; i += (index_t)get_global_size(0)) {
        const int word = load_once_int(place + i);
        if (word < 0) continue; /* a long row, which shares have */
        const index_t window = i / WINDOW * WINDOW, run = window + (word >> 10 & 1023);
        const int length = start[i + 1] - start[i], rows = (word >> 20) + 1;
        const index_t from = (index_t)start[run] + (i - run), row = window + (word & 1023);
        real sum[K];
        for (int c = 0; c < K; c++) sum[c] = REAL(0.0);
#pragma unroll 4
        for (int j = 0; j < length; j++) gather(sum, from + (index_t)j * rows, source, weight, C, k, first);
        UPDATE(row, sum);
    }
    LEAVE_SUMS(mass, change)
}
#endif

#ifdef SHARES
#define EACH (BS * A_THREAD)
#define ROW(r) (row ? (index_t)row[r] : (r))

/* How many of `rows` rows, which end at links ends[0 ...], end before that place in the line of rows and links. */
DEVICE_FN int rows_before(LOCAL_PTR const int *ends, int rows, int line) {
    int low = 0, high = rows;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (ends[middle] + middle < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Every thread's `sum` becomes that of the row which is open at the thread's end, from the row's begin in the share on; `ended`: a row
 * has ended in the thread, so that what came before does not count. Returns what the thread before has then. */
DEVICE_FN real sum_open(real sum, bool ended, LOCAL_PTR real *open, LOCAL_PTR int *closed) {
    const int id = (int)get_local_id(0);
    open[id] = sum;
    closed[id] = ended;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < BS; reach *= 2) {
        const real more = id >= reach ? open[id - reach] : REAL(0.0);
        const int more_closed = id >= reach ? closed[id - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!closed[id]) open[id] += more;
        closed[id] |= more_closed;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return id > 0 ? open[id - 1] : REAL(0.0);
}

/* A share is a stretch of the line in which each row stands behind its links. Its links are gathered as they lie, side by side;
 * then each thread walks a stretch of its own in on-chip memory. One column. */
__kernel GROUP_OF(BS) void ranks_shares(PARAMETERS(ranks_shares)) {
    LOCAL wide shared[BS];
    LOCAL real in[EACH], open[BS];
    LOCAL int ends[EACH], closed[BS];
    if (S[RANKS_ACTIVE * k] == 0) return;
    const int id = (int)get_local_id(0);
    UPDATE_BEGIN
    for (index_t share = (index_t)get_group_id(0); share < (index_t)shares;
         share += (index_t)get_num_groups(0)) {
        const index_t begin = share * EACH, row0 = (index_t)first_row[share], link0 = begin - row0;
        const index_t length = (index_t)(rows + links) - begin < EACH ? (index_t)(rows + links) - begin : EACH;
        const int ending = (int)((index_t)first_row[share + 1] - row0), coming = (int)length - ending;
        for (int i = id; i < coming; i += BS) {
            real sum[1] = {REAL(0.0)};
            gather(sum, link0 + i, source, weight, C, k, first);
            in[i] = sum[0];
        }
        for (int i = id; i < ending; i += BS) ends[i] = (int)((index_t)start[row0 + i + 1] - link0);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int from = id * A_THREAD < (int)length ? id * A_THREAD : (int)length,
                  to = from + A_THREAD < (int)length ? from + A_THREAD : (int)length;
        const int row_from = rows_before(ends, ending, from);
        int r = row_from, e = from - row_from;
        real sum = REAL(0.0), head = REAL(0.0);
        for (int item = from; item < to; item++) {
            if (r == ending || e < ends[r]) {
                sum += in[e++];
                continue;
            }
            if (r == row_from)
                head = sum; /* the row may have begun before */
            else
                UPDATE_ONE(ROW(row0 + r), 0, factor[ROW(row0 + r)], sum);
            sum = REAL(0.0);
            r++;
        }
        const real before_it = sum_open(sum, r > row_from, open, closed);
        if (r > row_from) {
            const real all = head + before_it;
            if (row_from == 0 && (index_t)start[row0] < link0)
                part[share] = all;
            else
                UPDATE_ONE(ROW(row0 + row_from), 0, factor[ROW(row0 + row_from)], all);
        }
        if (id == BS - 1) part[shares + share] = open[id];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    LEAVE_SUMS(mass, change)
}

/* Rows that end in another share than they began in: a vector of threads adds up what the shares have of them. */
__kernel GROUP_OF(BS) void ranks_join(PARAMETERS(ranks_join)) {
    LOCAL wide shared[BS];
    LOCAL real scratch[BS];
    if (S[RANKS_ACTIVE * k] == 0) return;
    const int lane = (int)get_local_id(0) % VS, vector = (int)get_local_id(0) / VS;
    UPDATE_BEGIN
    for (index_t base = (index_t)get_group_id(0) * (BS / VS); base < (index_t)shares;
         base += (index_t)get_num_groups(0) * (BS / VS)) {
        const index_t share = base + vector;
        real sum[1] = {REAL(0.0)};
        index_t r = 0;
        bool ends_here = false;
        if (share < (index_t)shares) {
            r = (index_t)first_row[share];
            ends_here = (index_t)first_row[share + 1] > r &&
                        (index_t)start[r] < share * (index_t)each - r;
        }
        if (ends_here) {
            for (index_t s = ((index_t)start[r] + r) / (index_t)each + lane; s < share; s += VS)
                sum[0] += part[shares + s];
            if (lane == 0) sum[0] += part[share];
        }
        group_sums(sum, 1, scratch);
        if (lane == 0 && ends_here) UPDATE_ONE(ROW(r), 0, factor[ROW(r)], sum[0]);
    }
    LEAVE_SUMS(mass, change)
}
#endif

#ifdef SETTLE
/* The new state, by one group; slot < 0: that at the beginning. */
__kernel GROUP_OF(BS) void ranks_settle(PARAMETERS(ranks_settle)) {
    LOCAL wide shared[BS];
    const bool begin = slot < 0;
    bool more = begin;
    if (!begin && S[RANKS_ACTIVE * k] == 0) return;
    for (int c = 0; c < k; c++) {
        wide mass = 0, change = 0;
        for (int g = (int)get_local_id(0); g < groups; g += BS) {
            mass += space[c * groups + g];
            change += begin ? 0 : space[(k + c) * groups + g];
        }
        mass = group_total(mass, shared);
        change = group_total(change, shared);
        more = more || !(change <= S[RANKS_GOAL * k + c]);
        if (get_local_id(0) != 0) continue;
        S[RANKS_MASS * k + c] = mass;
        if (!begin) S[(RANKS_ROWS + slot) * k + c] = change;
    }
    for (int c = (int)get_local_id(0); c < k; c += BS) {
        S[RANKS_TAKEN * k + c] = begin ? 0 : S[RANKS_TAKEN * k + c] + 1;
        S[RANKS_ACTIVE * k + c] = more ? 1 : 0;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build FACTOR BS=128 VS=1 K=1
// build BEGIN BS=128 VS=1 K=1
// build BEGIN BS=256 VS=1 K=8 INDEX64
// build ROWS BS=64 VS=1 K=1
// build ROWS BS=256 VS=8 K=1 WEIGHTED
// build ROWS BS=256 VS=32 K=8 WEIGHTED INDEX64
// build WINDOWS BS=64 VS=1 K=1 WINDOW=1024
// build WINDOWS BS=256 VS=1 K=8 WINDOW=1024 WEIGHTED INDEX64
// build SHARES BS=64 VS=4 K=1 A_THREAD=7
// build SHARES BS=256 VS=32 K=1 A_THREAD=7 WEIGHTED INDEX64
// build SETTLE BS=256 VS=1 K=1
#endif
