/* GPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c). A step gathers what comes in along the links, updates P, and
 * makes the next step's contributions, the mass that dangles and the change while it has the row in its registers: nothing is read
 * twice. The links lie in one of three layouts (derived/links.h): a vector of VS threads takes a row (ROWS), a thread takes one
 * beside others of the same length (WINDOWS), or a group takes a share of rows and links (SHARES), and rows that end in
 * another share than they began in are done at last (JOIN). Each group leaves its sums of K columns in `space`, mass first and
 * then change, column by column, as number `before` + its own of `groups`, which are added up in order. The state S never leaves the
 * device, so that steps queued behind the last one that is wanted see it and do nothing.
 *
 * Each part of a step is a launch of ranks_step, and ranks_settle adds up. Where groups may wait for each other (TOGETHER) all of `turns` steps
 * are one launch: groups meet before JOIN, and behind each step, when the last to come adds up; `met` counts who has come, `settled` steps. */

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

/* start, source, weight, place: of ROWS or WINDOWS; long_*: of SHARES and JOIN, which have `rows` rows: those that `row` names, or if it is
 * NULL all. part: of each share what it has of the row that it begins within, and then, behind all of these, of each what it has of the
 * row that it ends within. `slot` is the first step's, of `slots`; met: two numbers, zeros. */
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
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, before)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, teleport_cols)                                                                          \
    NEXT(VALUE, int, dangling_cols)                                                                          \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, source)                                                                                 \
    NEXT(TABLE, real, weight)                                                                                \
    NEXT(TABLE, int, place)                                                                                  \
    NEXT(TABLE, int, long_start)                                                                             \
    NEXT(TABLE, int, long_source)                                                                            \
    NEXT(TABLE, real, long_weight)                                                                           \
    NEXT(SPACE, real, part)                                                                                  \
    NEXT(TABLE, int, first_row)                                                                              \
    NEXT(TABLE, int, row)                                                                                    \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, links)                                                                                 \
    NEXT(VALUE, long, shares)                                                                                \
    NEXT(SPACE, int, met)                                                                                    \
    NEXT(VALUE, int, slot)                                                                                   \
    NEXT(VALUE, int, slots)                                                                                  \
    NEXT(VALUE, int, turns)

#define ARGUMENTS_ranks_clear(FIRST, NEXT) FIRST(SPACE, int, met)

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

#ifdef STEP
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


#if defined(SHARES) || defined(JOIN)
#define EACH (BS * A_THREAD)
#define ROW(r) (row ? (index_t)row[r] : (r))
#endif

#ifdef SHARES
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
#endif
#endif

#if defined(SETTLE) || defined(TOGETHER)
/* The new state, by one group; slot < 0: that at the beginning. */
DEVICE_FN void settle(__global wide *S, __global const wide *space, int groups, int k, int slot, LOCAL_PTR wide *shared) {
    const bool begin = slot < 0;
    bool more = begin;
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

#ifdef SETTLE
__kernel GROUP_OF(BS) void ranks_settle(PARAMETERS(ranks_settle)) {
    LOCAL wide shared[BS];
    if (slot < 0 || S[RANKS_ACTIVE * k] != 0) settle(S, space, groups, k, slot, shared);
}
#endif

#ifdef CLEAR
__kernel void ranks_clear(PARAMETERS(ranks_clear)) {
    if (get_global_id(0) < 2) met[get_global_id(0)] = 0;
}
#endif

#ifdef TOGETHER
/* The groups have all come here `times` times when the count says so; what they wrote before is seen then. True in the group that was
 * the last to come, which does not wait. */
DEVICE_FN bool arrive(__global int *met, int times, LOCAL_PTR int *last) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        memory_fence();
        *last = count_up(met) == times * (int)get_num_groups(0) - 1;
        memory_fence();
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    return *last != 0;
}

DEVICE_FN void wait_for(volatile __global int *count, int least) {
    if (get_local_id(0) == 0) {
        while (*count < least) {}
        memory_fence();
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
}
#endif

#ifdef STEP
__kernel GROUP_OF(BS) void ranks_step(PARAMETERS(ranks_step)) {
    LOCAL wide shared[BS];
#if defined(ROWS) || defined(JOIN)
    LOCAL real scratch[BS * K];
    const int lane = (int)get_local_id(0) % VS, vector = (int)get_local_id(0) / VS;
#endif
#ifdef SHARES
    LOCAL real in[EACH], open[BS];
    LOCAL int ends[EACH], closed[BS];
    const int id = (int)get_local_id(0);
#endif
#ifdef TOGETHER
    LOCAL int last;
    int meetings = 0;
    for (int turn = 0; turn < turns; turn++) {
#endif
    if (S[RANKS_ACTIVE * k] == 0) return;
    UPDATE_BEGIN
#ifdef ROWS
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
#endif
#ifdef WINDOWS
    /* The links of a run of equal rows lie column by column: neighbouring threads load what is side by side. */
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
#endif
#ifdef SHARES
    /* A share is a stretch of the line in which each row stands behind its links. Its links are gathered as they lie, side by side;
     * then each thread walks a stretch of its own in on-chip memory. One column. */
    for (index_t share = (index_t)get_group_id(0); share < (index_t)shares;
         share += (index_t)get_num_groups(0)) {
        const index_t begin = share * EACH, row0 = (index_t)first_row[share], link0 = begin - row0;
        const index_t length = (index_t)(rows + links) - begin < EACH ? (index_t)(rows + links) - begin : EACH;
        const int ending = (int)((index_t)first_row[share + 1] - row0), coming = (int)length - ending;
        for (int i = id; i < coming; i += BS) {
            real sum[1] = {REAL(0.0)};
            gather(sum, link0 + i, long_source, long_weight, C, k, first);
            in[i] = sum[0];
        }
        for (int i = id; i < ending; i += BS) ends[i] = (int)((index_t)long_start[row0 + i + 1] - link0);
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
            if (row_from == 0 && (index_t)long_start[row0] < link0)
                part[share] = all;
            else
                UPDATE_ONE(ROW(row0 + row_from), 0, factor[ROW(row0 + row_from)], all);
        }
        if (id == BS - 1) part[shares + share] = open[id];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
#ifdef JOIN
#ifdef TOGETHER
    meetings++;
    if (!arrive(met, meetings, &last)) wait_for(met, meetings * (int)get_num_groups(0));
#endif
    /* Rows that end in another share than they began in: a vector of threads adds up what the shares have of them. */
    for (index_t base = (index_t)get_group_id(0) * (BS / VS); base < (index_t)shares;
         base += (index_t)get_num_groups(0) * (BS / VS)) {
        const index_t share = base + vector;
        real sum[1] = {REAL(0.0)};
        index_t r = 0;
        bool ends_here = false;
        if (share < (index_t)shares) {
            r = (index_t)first_row[share];
            ends_here = (index_t)first_row[share + 1] > r &&
                        (index_t)long_start[r] < share * (index_t)EACH - r;
        }
        if (ends_here) {
            for (index_t s = ((index_t)long_start[r] + r) / (index_t)EACH + lane; s < share; s += VS)
                sum[0] += part[shares + s];
            if (lane == 0) sum[0] += part[share];
        }
        group_sums(sum, 1, scratch);
        if (lane == 0 && ends_here) UPDATE_ONE(ROW(r), 0, factor[ROW(r)], sum[0]);
    }
#endif
    LEAVE_SUMS(mass, change)
#ifdef TOGETHER
    meetings++;
    if (arrive(met, meetings, &last)) {
        settle(S, space, groups, k, (slot + turn) % slots, shared);
        barrier(CLK_GLOBAL_MEM_FENCE);
        if (get_local_id(0) == 0) {
            memory_fence();
            atomic_add_int(met + 1, 1);
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    } else
        wait_for(met + 1, turn + 1);
    __global real *const former_next = next;
    next = C;
    C = former_next;
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
// build STEP SHARES BS=64 VS=4 K=1 A_THREAD=7
// build STEP SHARES BS=256 VS=32 K=1 A_THREAD=7 WEIGHTED INDEX64
// build STEP JOIN BS=256 VS=32 K=1 A_THREAD=7
// build STEP ROWS BS=256 VS=8 K=4 TOGETHER
// build STEP WINDOWS SHARES JOIN BS=256 VS=32 K=1 A_THREAD=7 WINDOW=1024 TOGETHER
// build SETTLE BS=256 VS=1 K=1
// build CLEAR BS=32 VS=1 K=1
#endif
