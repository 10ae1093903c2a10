/* GPU bodies of kiln_batch_reduce and kiln_batch_scale (ops/batch/batch.h): vectors straight from memory, VS
 * threads each, or by tiles that pass through local memory.
 *
 * A tile is a stretch of X from one 16-byte boundary to another, whatever vectors lie in it: it is read by
 * loads of 16 bytes that know nothing of vectors, and VS threads take each vector from there. That is how
 * vectors of any length and alignment come at the memory's speed. After each 32 numbers four places stay
 * empty, so that threads whose vectors are a power of two apart meet in different banks.
 *
 * REDUCTION: kiln_batch_kind. WHERE: 0 = vectors of one length, 1 = between offsets, 2 = pieces of long
 * vectors from a list (to be reduced). */

#define ARGUMENTS_reduce(FIRST, NEXT)                                                                       \
    FIRST(OUT, real, result)                                                                                \
    NEXT(SPACE, struct batch_part, partial)                                                                 \
    NEXT(IN, real, X)                                                                                       \
    NEXT(TABLE, long, offsets)                                                                              \
    NEXT(TABLE, long, pieces)                                                                               \
    NEXT(VALUE, long, count)                                                                                \
    NEXT(VALUE, long, first)                                                                                \
    NEXT(VALUE, long, stride)                                                                               \
    NEXT(VALUE, long, step)                                                                                 \
    NEXT(VALUE, long, length)                                                                               \
    NEXT(VALUE, long, parts)

#define ARGUMENTS_join(FIRST, NEXT)                                                                         \
    FIRST(OUT, real, result)                                                                                \
    NEXT(TABLE, struct batch_part, partial)                                                                 \
    NEXT(TABLE, long, vectors)                                                                              \
    NEXT(TABLE, long, starts)                                                                               \
    NEXT(TABLE, long, offsets)                                                                              \
    NEXT(VALUE, long, count)                                                                                \
    NEXT(VALUE, long, length)                                                                               \
    NEXT(VALUE, long, parts)

#define ARGUMENTS_reduce_tiles(FIRST, NEXT)                                                                 \
    FIRST(OUT, real, result)                                                                                \
    NEXT(IN, real, X)                                                                                       \
    NEXT(TABLE, long, offsets)                                                                              \
    NEXT(TABLE, long, tiles)                                                                                \
    NEXT(VALUE, long, count)                                                                                \
    NEXT(VALUE, long, first)                                                                                \
    NEXT(VALUE, long, length)                                                                               \
    NEXT(VALUE, long, together)                                                                             \
    NEXT(VALUE, long, tile_count)                                                                           \
    NEXT(VALUE, long, all)

#define ARGUMENTS_scale(FIRST, NEXT)                                                                        \
    FIRST(OUT, real, Y)                                                                                     \
    NEXT(IN, real, X)                                                                                       \
    NEXT(IN, real, s)                                                                                       \
    NEXT(TABLE, long, offsets)                                                                              \
    NEXT(VALUE, long, count)                                                                                \
    NEXT(VALUE, long, first)                                                                                \
    NEXT(VALUE, long, stride)                                                                               \
    NEXT(VALUE, long, step)                                                                                 \
    NEXT(VALUE, long, length)                                                                               \
    NEXT(VALUE, long, parts)

#define ARGUMENTS_scale_flat(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, Y)                                                                                     \
    NEXT(IN, real, X)                                                                                       \
    NEXT(IN, real, s)                                                                                       \
    NEXT(VALUE, long, first)                                                                                \
    NEXT(VALUE, long, elements)                                                                             \
    NEXT(VALUE, long, length)                                                                               \
    NEXT(VALUE, long, reciprocal)                                                                           \
    NEXT(VALUE, int, shift)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/scalar_math.h"

#ifdef REAL_F64
#define UNIT double2
#define UNIT_REALS 2
#else
#define UNIT float4
#define UNIT_REALS 4
#endif

/* Doubles hold squares of floats. */
#if REDUCTION == BATCH_L2 && !defined(REAL_F64) && !defined(NO_F64)
#define STEPS_AS BATCH_SQUARES
#else
#define STEPS_AS REDUCTION
#endif

#if defined(REDUCE) || defined(TILES) || defined(JOIN)

/* Says what several threads know, as one, in the first of each VS threads; all threads make the call.
 * NVIDIA's exchange registers. */
#ifdef SHUFFLES
DEVICE_FN struct batch_part from_lane(uint mask, struct batch_part p, int step) {
    struct batch_part q = {0, 0, 0, 0};
    q.a = shuffle_double(mask, p.a, step);
    if (STEPS_AS == BATCH_L2 || STEPS_AS == BATCH_VARIANCE) q.b = shuffle_double(mask, p.b, step);
    if (STEPS_AS == BATCH_L2) q.c = shuffle_double(mask, p.c, step);
    if (STEPS_AS == BATCH_VARIANCE || STEPS_AS == BATCH_ARGMAX || STEPS_AS == BATCH_ARGMIN)
        q.at = (uint64)shuffle_double(mask, (double)p.at, step); /* at most 2^62 */
    return q;
}

DEVICE_FN void join_threads(struct batch_part *p, LOCAL_PTR struct batch_part *scratch) {
#pragma unroll
    for (int step = (VS < 32 ? VS : 32) / 2; step > 0; step /= 2)
        batch_join(p, from_lane(0xffffffffu, *p, step), STEPS_AS);
#if VS > 32
    const int id = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id % 32 == 0) scratch[id / 32] = *p;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id % VS == 0)
        for (int w = 1; w < VS / 32; w++) batch_join(p, scratch[id / 32 + w], STEPS_AS);
#endif
}
#define SCRATCH (BS / 32)
#else
DEVICE_FN void join_threads(struct batch_part *p, LOCAL_PTR struct batch_part *scratch) {
#if VS > 1
    const int id = (int)get_local_id(0), lane = id % VS;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[id] = *p;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = VS / 2; reach > 0; reach /= 2) {
        if (lane < reach) {
            batch_join(p, scratch[id + reach], STEPS_AS);
            scratch[id] = *p;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
}
#define SCRATCH BS
#endif

/* `count` numbers, those of elements `at` and on. */
DEVICE_FN void take_numbers(struct batch_part *p, const real *x, const int count, long at) {
#if STEPS_AS == BATCH_VARIANCE
    struct batch_part these = {0, 0, 0, (uint64)count};
    for (int i = 0; i < count; i++) these.a += x[i];
    these.a /= (wide)count;
    for (int i = 0; i < count; i++) these.b += (x[i] - these.a) * (x[i] - these.a);
    batch_join(p, these, STEPS_AS);
#else
#pragma unroll
    for (int i = 0; i < count; i++) batch_step(p, x[i], (uint64)(at + i), STEPS_AS);
#endif
}

DEVICE_FN real finished(struct batch_part p, long length) {
    return (real)batch_value(p, REDUCTION, (wide)length);
}
#endif

/* Vector v of a batch that is no list: its first element, and the one behind its last, in steps from
 * `origin`. */
#if WHERE == 0
#define ORIGIN(v) (first + (v) * stride)
#define LENGTH(v) length
#else
#define ORIGIN(v) offsets[v]
#define LENGTH(v) (offsets[(v) + 1] - offsets[v])
#endif

#ifdef REDUCE
DEVICE_FN void unpack(real *x, UNIT unit) {
    x[0] = unit.x;
    x[1] = unit.y;
#if UNIT_REALS == 4
    x[2] = unit.z;
    x[3] = unit.w;
#endif
}

/* Elements [from, to) of the vector at `origin`, by this thread of VS. WIDE: `step` is 1, and the body comes
 * by units. */
DEVICE_FN void take(struct batch_part *p, __global const real *X, long origin, long step, long from, long to,
                    int lane) {
#ifdef WIDE
    enum { AHEAD = 4 };
    real x[AHEAD * UNIT_REALS];
    const long begin = origin + from, end = origin + to,
               up = (begin + UNIT_REALS - 1) / UNIT_REALS * UNIT_REALS;
    const long body = up < end ? up : end, behind = body + (end - body) / UNIT_REALS * UNIT_REALS;
    __global const UNIT *units = (__global const UNIT *)X;
    long e = body + (long)lane * UNIT_REALS;
    if (begin + lane < body) batch_step(p, X[begin + lane], (uint64)(begin + lane - origin), STEPS_AS);
    for (; e + (AHEAD - 1) * VS * UNIT_REALS < behind; e += AHEAD * VS * UNIT_REALS) {
        UNIT unit[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) unit[u] = units[e / UNIT_REALS + u * VS];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) unpack(x + u * UNIT_REALS, unit[u]);
#if STEPS_AS == BATCH_VARIANCE
        take_numbers(p, x, AHEAD * UNIT_REALS, 0);
#else
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            take_numbers(p, x + u * UNIT_REALS, UNIT_REALS, e + u * VS * UNIT_REALS - origin);
#endif
    }
    for (; e < behind; e += VS * UNIT_REALS) {
        unpack(x, units[e / UNIT_REALS]);
        take_numbers(p, x, UNIT_REALS, e - origin);
    }
    if (behind + lane < end) batch_step(p, X[behind + lane], (uint64)(behind + lane - origin), STEPS_AS);
#else
    enum { AHEAD = 8 };
    real x[AHEAD];
    long i = from + lane;
    for (; i + (AHEAD - 1) * VS < to; i += AHEAD * VS) {
#pragma unroll
        for (int u = 0; u < AHEAD; u++) x[u] = X[origin + (i + u * VS) * step];
#if STEPS_AS == BATCH_VARIANCE
        take_numbers(p, x, AHEAD, 0);
#else
#pragma unroll
        for (int u = 0; u < AHEAD; u++) batch_step(p, x[u], (uint64)(i + u * VS), STEPS_AS);
#endif
    }
    for (; i < to; i += VS) batch_step(p, X[origin + i * step], (uint64)i, STEPS_AS);
#endif
}

/* Straight from memory. Without WHOLE each vector is cut into `parts` pieces, whose parts are left for
 * `join`; as are those of a list, whose rows are a piece's vector, first element and the one behind its
 * last. */
#ifdef WHOLE
#define PARTS 1 /* no division */
#else
#define PARTS parts
#endif
__kernel GROUP_OF(BS) void reduce(PARAMETERS(reduce)) {
    LOCAL struct batch_part scratch[SCRATCH];
    const int id = (int)get_local_id(0), lane = id % VS;
    const long items = count * PARTS, turn = (long)get_num_groups(0) * (BS / VS);
    for (long begin = (long)get_group_id(0) * (BS / VS); begin < items; begin += turn) {
        const long item = begin + id / VS;
        struct batch_part p = batch_none(STEPS_AS);
        long mine = 0;
        if (item < items) {
#if WHERE == 2
            const long v = pieces[3 * item], from = pieces[3 * item + 1], to = pieces[3 * item + 2];
#else
            const long v = item / PARTS, part = item % PARTS;
            const long from =
                LENGTH(v) / PARTS * part + (part < LENGTH(v) % PARTS ? part : LENGTH(v) % PARTS);
            const long to = from + LENGTH(v) / PARTS + (part < LENGTH(v) % PARTS);
#endif
            mine = v;
            take(&p, X, ORIGIN(v), step, from, to, lane);
        }
        join_threads(&p, scratch);
        if (item < items && lane == 0) {
#ifdef WHOLE
            result[mine] = finished(p, LENGTH(mine));
#else
            partial[item] = p;
#endif
        }
    }
}
#endif

#ifdef JOIN
/* The pieces of vectors as one: parts to each vector, or, of a list, from starts[i] to starts[i + 1] to
 * vector vectors[i]. */
__kernel GROUP_OF(BS) void join(PARAMETERS(join)) {
    LOCAL struct batch_part scratch[SCRATCH];
    const int lane = (int)get_local_id(0);
    for (long i = (long)get_group_id(0); i < count; i += (long)get_num_groups(0)) {
        struct batch_part p = batch_none(STEPS_AS);
#if WHERE == 2
        const long v = vectors[i], from = starts[i], to = starts[i + 1];
#else
        const long v = i, from = i * parts, to = from + parts;
#endif
        for (long piece = from + lane; piece < to; piece += BS) batch_join(&p, partial[piece], STEPS_AS);
        join_threads(&p, scratch);
        if (lane == 0) result[v] = finished(p, LENGTH(v));
    }
}
#endif

#ifdef TILES
#define PLACE(i) ((i) + (i) / 32 * 4)

/* Elements [from, to) of a tile, by this thread of VS. The variance goes through them twice. */
DEVICE_FN void take_local(struct batch_part *p, LOCAL_PTR const real *tile, int from, int to, int lane) {
#if STEPS_AS == BATCH_VARIANCE
    wide sum = 0;
    int mine = 0;
    for (int i = from + lane; i < to; i += VS, mine++) sum += tile[PLACE(i)];
    if (mine == 0) return;
    p->a = sum / (wide)mine;
    for (int i = from + lane; i < to; i += VS) p->b += (tile[PLACE(i)] - p->a) * (tile[PLACE(i)] - p->a);
    p->at = (uint64)mine;
#else
    for (int i = from + lane; i < to; i += VS) batch_step(p, tile[PLACE(i)], (uint64)(i - from), STEPS_AS);
#endif
}

/* Tile t has vectors [t * together, (t + 1) * together), or those between tile[2 t] and tile[2 t + 1]. `all`:
 * elements of X. */
__kernel GROUP_OF(BS) void reduce_tiles(PARAMETERS(reduce_tiles)) {
    LOCAL struct batch_part scratch[SCRATCH];
    LOCAL UNIT memory[(TILE_REALS + TILE_REALS / 8) / UNIT_REALS + 4];
    LOCAL_PTR real *tile = (LOCAL_PTR real *)memory;
    enum { AHEAD = 4 }; /* units of a thread that are under way at once */
    const int id = (int)get_local_id(0), lane = id % VS;
    const long stride = length;
    for (long t = (long)get_group_id(0); t < tile_count; t += (long)get_num_groups(0)) {
#if WHERE == 0
        const long begin = t * together, end = begin + together < count ? begin + together : count;
        const long from = ORIGIN(begin), to = ORIGIN(end);
#else
        const long begin = tiles[2 * t], end = tiles[2 * t + 1], from = offsets[begin], to = offsets[end];
#endif
        const long base = from / UNIT_REALS * UNIT_REALS, units = (to - base + UNIT_REALS - 1) / UNIT_REALS;
        const long whole = all / UNIT_REALS - base / UNIT_REALS; /* the last unit of X may be a part of one */
        const int loads = (int)(units < whole ? units : whole);
        __global const UNIT *source = (__global const UNIT *)X + base / UNIT_REALS;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int first = id; first < loads; first += AHEAD * BS) {
            UNIT unit[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (first + u * BS < loads) unit[u] = source[first + u * BS];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (first + u * BS < loads)
                    memory[PLACE((first + u * BS) * UNIT_REALS) / UNIT_REALS] = unit[u];
        }
        for (long e = base + (long)loads * UNIT_REALS + id; e < to; e += BS)
            tile[PLACE((int)(e - base))] = X[e];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (long turn = begin; turn < end; turn += BS / VS) {
            const long v = turn + id / VS;
            struct batch_part p = batch_none(STEPS_AS);
            if (v < end)
                take_local(&p, tile, (int)(ORIGIN(v) - base), (int)(ORIGIN(v) + LENGTH(v) - base), lane);
            join_threads(&p, scratch);
            if (v < end && lane == 0) result[v] = finished(p, LENGTH(v));
        }
    }
}
#endif

#ifdef SCALE
/* Y = s_v X, straight from memory: VS threads side by side take one of a vector's parts. */
__kernel GROUP_OF(BS) void scale(PARAMETERS(scale)) {
    const int id = (int)get_local_id(0), lane = id % VS;
    const long items = count * parts, turn = (long)get_num_groups(0) * (BS / VS);
    for (long item = (long)get_group_id(0) * (BS / VS) + id / VS; item < items; item += turn) {
        const long v = item / parts, part = item % parts;
        const long from = LENGTH(v) / parts * part + (part < LENGTH(v) % parts ? part : LENGTH(v) % parts);
        const long to = from + LENGTH(v) / parts + (part < LENGTH(v) % parts);
        const long origin = ORIGIN(v);
        const real factor = s[v];
        for (long i = from + lane; i < to; i += VS) Y[origin + i * step] = factor * X[origin + i * step];
    }
}
#endif

#ifdef SCALE_FLAT
/* Number / length for numbers below 2^31: the upper bits of a product (Granlund and Montgomery, PLDI
 * 1994). */
DEVICE_FN uint quotient(uint number, uint64 reciprocal, int shift) {
    return (uint)((uint64)number * reciprocal >> shift);
}

/* The same for vectors of one length that lie side by side, from one unit of 16 bytes to the next whatever
 * vectors they belong to. `elements`: of all vectors. */
__kernel GROUP_OF(BS) void scale_flat(PARAMETERS(scale_flat)) {
    enum { AHEAD = 4, TILE_UNITS = AHEAD * BS };
    const int id = (int)get_local_id(0);
    const long head = (UNIT_REALS - first % UNIT_REALS) % UNIT_REALS,
               body = head < elements ? head : elements;
    const long units = (elements - body) / UNIT_REALS, behind = body + units * UNIT_REALS;
    __global const UNIT *from = (__global const UNIT *)(X + first + body);
    __global UNIT *to = (__global UNIT *)(Y + first + body);
    for (long tile = (long)get_group_id(0) * TILE_UNITS; tile < units;
         tile += (long)get_num_groups(0) * TILE_UNITS) {
        const long element = body + tile * UNIT_REALS, vector = element / length;
        const uint rest = (uint)(element - vector * length);
        UNIT x[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (tile + id + u * BS < units) x[u] = from[tile + id + u * BS];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const long at = tile + id + u * BS;
            const uint number = rest + (uint)(id + u * BS) * UNIT_REALS,
                       v = quotient(number, (uint64)reciprocal, shift);
            __global const real *factor = s + vector + v;
            uint left = (uint)length - (number - v * (uint)length); /* elements up to the next vector's */
            real f = 0;
            if (at >= units) continue;
            f = *factor;
#define NEXT(part)                                                                                           \
    x[u].part *= f;                                                                                          \
    if (--left == 0) left = (uint)length, factor++, f = factor < s + elements / length ? *factor : f
            NEXT(x);
            NEXT(y);
#if UNIT_REALS == 4
            NEXT(z);
            NEXT(w);
#endif
            to[at] = x[u];
        }
    }
    if (get_group_id(0) > 0) return;
    if (id < body) Y[first + id] = X[first + id] * s[id / length];
    if (behind + id < elements) Y[first + behind + id] = X[first + behind + id] * s[(behind + id) / length];
}
#endif

/* The variants that differ in text, as the tests build them. */
// build REDUCE WHERE=0 REDUCTION=1 VS=1 BS=256 WHOLE
// build REDUCE WHERE=0 REDUCTION=4 VS=256 BS=256 WIDE
// build REDUCE WHERE=1 REDUCTION=10 VS=32 BS=256 WIDE WHOLE
// build REDUCE WHERE=0 REDUCTION=7 VS=8 BS=256 WHOLE
// build REDUCE WHERE=2 REDUCTION=10 VS=256 BS=256 WIDE
// build JOIN WHERE=0 REDUCTION=1 VS=256 BS=256
// build JOIN WHERE=2 REDUCTION=8 VS=256 BS=256
// build TILES WHERE=0 REDUCTION=1 VS=1 BS=256 TILE_REALS=4096
// build TILES WHERE=0 REDUCTION=4 VS=4 BS=256 TILE_REALS=2048
// build TILES WHERE=1 REDUCTION=10 VS=8 BS=256 TILE_REALS=2048
// build TILES WHERE=1 REDUCTION=7 VS=32 BS=256 TILE_REALS=2048
// build SCALE WHERE=0 REDUCTION=0 VS=32 BS=256
// build SCALE WHERE=1 REDUCTION=0 VS=8 BS=256
// build SCALE_FLAT WHERE=0 REDUCTION=0 BS=256
// pack {f32|f64} JOIN WHERE=2 REDUCTION={5|6} VS=256 BS=256
// pack {f32|f64} REDUCE WHERE=1 REDUCTION=1 VS=256 BS=256 WIDE WHOLE
// pack {f32|f64} REDUCE WHERE=2 REDUCTION={5|6} VS=256 BS=256 WIDE
// pack {f32|f64} SCALE_FLAT WHERE=0 REDUCTION=0 BS=256
// pack f32 TILES WHERE=1 REDUCTION={5|6} VS=32 BS=256 TILE_REALS=4096
#endif
