/* The passes, for one column of y, over a sparse X in strips of rows, each sorted by column (derived/strips.c):
 *
 *   out = alpha X^T (v .* (X y)) + beta z and its halves
 *
 * A work-group takes a strip, and all its rows' sums are in local memory: the entries stream past them twice, first to add up
 * the dot products, then, with the rows' factors in their place, for w. In both turns adjacent threads read y, and add to w, at
 * addresses that follow each other, where the rows' own order would take a piece of memory for each entry: what bounds
 * such passes is how many pieces the second cache level gives and adds to. Entries of one column meet on their way to w.
 *
 * An entry is a word, its row within the strip above the `bits` bits of its column within a panel. dialect/pass.h names the
 * other defines. */

#define ARGUMENTS_mmchain_strips(FIRST, NEXT)                                                                \
    FIRST(OUT, real, out)                                                                                    \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, entry)                                                                                  \
    NEXT(TABLE, real, X)                                                                                     \
    NEXT(VALUE, real, same)                                                                                  \
    ARGUMENTS_chain(NEXT, NEXT) NEXT(VALUE, int, height) NEXT(VALUE, int, buckets) NEXT(VALUE, int, panels)  \
        NEXT(VALUE, int, bits) NEXT(VALUE, int, v_cols)

#ifndef KI_HOST
#define PANEL(p) start[strip * buckets + ((p) < panels ? (p) << (bits - BUCKET_BITS) : buckets)]
#define COLUMN(e) ((int)((e) & (((uint32)1 << bits) - 1)))
#define ROW(e) ((int)((e) >> bits))
#define EACH(t) _Pragma("unroll") for (int t = 0; t < Q; t++)
#define IN(t) (turn + id + (t)*BS < end)

/* A thread's entries of a turn, asked for a turn ahead. Without values, all of them are `same`. */
#define LOAD_AHEAD                                                                                           \
    EACH(t) {                                                                                                \
        next[t] = IN(t) ? (uint32)load_once_int(entry + turn + id + t * BS) : 0;                             \
        next_x[t] = !IN(t) ? REAL(0.0) : X ? load_once(X + turn + id + t * BS) : same;                       \
    }
#define TAKE_TURN                                                                                            \
    uint32 e[Q];                                                                                             \
    real x[Q];                                                                                               \
    bool in[Q];                                                                                              \
    EACH(t) {                                                                                                \
        e[t] = next[t];                                                                                      \
        x[t] = next_x[t];                                                                                    \
        in[t] = IN(t);                                                                                       \
    }                                                                                                        \
    turn += BS * Q;

/* Sums of the entries [turn, end) of a panel go to the rows' places. */
DEVICE_FN void add_dots(LOCAL_PTR real *row_sums, __global const int *entry, __global const real *X,
                        real same, int turn, int end, int bits, __global const real *y) {
    const int id = (int)get_local_id(0);
    uint32 next[Q];
    real next_x[Q];
    LOAD_AHEAD
    while (turn < end) {
        real element[Q];
        TAKE_TURN
        EACH(t) element[t] = in[t] ? y[COLUMN(e[t])] : REAL(0.0);
        LOAD_AHEAD
        EACH(t) if (in[t]) atomic_add_local(row_sums + ROW(e[t]), x[t] * element[t]);
    }
}

/* Adjacent lanes, up to RUN of them, that add to one column: the first gets their sum, and the others get false. */
#define RUN 8
DEVICE_FN bool run_sum(real *sum, int column) {
#ifdef FROM_LANES
    const int lane = (int)get_local_id(0) % 32, within = lane % RUN;
#pragma unroll
    for (int step = 1; step < RUN; step *= 2) {
        const real other = real_of_lane(*sum, lane + step);
        const bool same = int_of_lane(column, lane + step) == column;
        if (same && within + step < RUN) *sum += other;
    }
    return int_of_lane(column, lane - 1) != column || within == 0;
#else
    (void)sum, (void)column;
    return true;
#endif
}

/* w of a panel += the entries [turn, end) times their rows' factors. */
DEVICE_FN void add_sums(LOCAL_PTR const real *factors, __global const int *entry, __global const real *X,
                        real same, int turn, int end, int bits, __global real *w) {
    const int id = (int)get_local_id(0);
    uint32 next[Q];
    real next_x[Q];
    LOAD_AHEAD
    while (turn < end) {
        TAKE_TURN
        LOAD_AHEAD
        EACH(t) {
            const int column = in[t] ? COLUMN(e[t]) : -1;
#if SQUARES
            x[t] *= x[t];
#endif
            real sum = in[t] ? factors[ROW(e[t])] * x[t] : REAL(0.0);
            if (run_sum(&sum, column) && in[t]) atomic_add_global(w + column, sum);
        }
    }
}

/* out holds beta z already, unless PLAIN. */
__kernel GROUP_OF(BS) void mmchain_strips(PARAMETERS(mmchain_strips) MAP_PARAMETERS LOCAL_PARAMETER(chip)) {
    const int id = (int)get_local_id(0);
    const long strip = (long)get_group_id(0), row0 = strip * height;
    const int here = row0 + height < rows ? height : (int)(rows - row0);
    LOCAL_BEGIN(chip)
    MAP_BEGIN
#if FUSED || PLAIN
    for (int i = id; i < here; i += BS) chip[i] = REAL(0.0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = 0; p < panels; p++)
        add_dots(chip, entry, X, same, PANEL(p), PANEL(p + 1), bits, y + ((index_t)p << bits));
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int i = id; i < here; i += BS) {
        real p[1] = {REAL(0.0)};
#if FUSED || PLAIN
        p[0] = chip[i];
#endif
#if PLAIN
        write_plain(out, p[0], z, alpha, beta, (index_t)(row0 + i));
#else
        row_factors(p, v, y, (index_t)(row0 + i), 0, 1, v_cols MAP_ARGUMENTS(true));
        chip[i] = alpha * p[0];
#endif
    }
#if !PLAIN
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = 0; p < panels; p++)
        add_sums(chip, entry, X, same, PANEL(p), PANEL(p + 1), bits, out + ((index_t)p << bits));
#endif
    MAP_END
}

/* The variants that differ in text, as the tests build them. */
// build KIND=0 VS=1 BS=1024 Q=4 W=1 R=1 K=1 BUCKET_BITS=10
// build KIND=0 VS=1 BS=1024 Q=4 W=1 R=1 K=1 BUCKET_BITS=10 MAP=2 LOSS=2 FAMILY=0 LINK=0
// build KIND=1 VS=1 BS=64 Q=4 W=1 R=1 K=1 BUCKET_BITS=3
// build KIND=3 VS=1 BS=1024 Q=4 W=1 R=1 K=1 BUCKET_BITS=10 INDEX64
#endif
