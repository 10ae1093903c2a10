/* CPU bodies of kiln_batch_reduce and kiln_batch_scale. A vector, or a piece of a long one, is one
 * thread's; how they are shared out depends on the batch alone. Numbers come in blocks that the first
 * cache level keeps, so that what takes two looks (a variance, the place of a maximum) reads memory once. */
#include "core/limits.h"
#include "ops/batch/batch.h"

enum {
    FN(BATCH_SIDE) = 16,
    FN(BATCH_BLOCK) = 1024,
    FN(BATCH_SHORT) = 96,
    FN(BATCH_AHEAD) =
        8192, /* bytes: so far ahead two cores keep their memory busy, a quarter of it does not */
    FN(BATCH_SHORT_SCALED) = 64
};

/* Asks for what comes BATCH_AHEAD behind so many bytes. */
ALWAYS_INLINE void FN(batch_ask)(const real *x, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const char *)x + FN(BATCH_AHEAD) + at, 0, 2);
}

/* Kinds whose part is one number, in double. */
ALWAYS_INLINE double FN(batch_term)(double a, double x, int kind) {
    switch (kind) {
    case BATCH_SQUARES:
    case BATCH_L2: return a + x * x;
    case BATCH_L1: return a + fabs(x);
    case BATCH_MAX: return x > a || x != x ? x : a;
    case BATCH_MIN: return -x > a || x != x ? -x : a;
    default: return a + x;
    }
}

/* ---- kinds whose part is one number: numbers that lie side by side, one a lane ---- */

ALWAYS_INLINE FN(vdouble) FN(batch_terms)(const real *x, int kind) {
    const FN(vdouble) v = FN(load_doubles)(x);
    if (kind == BATCH_SQUARES || kind == BATCH_L2) return v * v;
    if (kind == BATCH_MIN) return -v;
    return kind == BATCH_L1 ? (FN(vdouble))((FN(vdouble_mask))v & INT64_MAX) : v;
}

ALWAYS_INLINE FN(vdouble) FN(batch_either)(FN(vdouble_mask) which, FN(vdouble) a, FN(vdouble) b) {
    return (FN(vdouble))(((FN(vdouble_mask))a & which) | ((FN(vdouble_mask))b & ~which));
}

/* Two parts in each lane become one. */
ALWAYS_INLINE FN(vdouble) FN(batch_joined)(FN(vdouble) a, FN(vdouble) b, int kind) {
    return kind == BATCH_MAX || kind == BATCH_MIN ? FN(larger_doubles)(a, b) : a + b;
}

ALWAYS_INLINE FN(vdouble) FN(batch_values)(FN(vdouble) part, int kind, double n) {
    if (kind == BATCH_MIN) return -part;
    if (kind == BATCH_MEAN) return part / n;
    for (int l = 0; kind == BATCH_L2 && l < DOUBLE_LANES; l++) part[l] = sqrt(part[l]);
    return part;
}

/* Kinds that are sums go in four chains of whole vectors, so that additions do not wait for each other. */
ALWAYS_INLINE double FN(batch_sum)(const real *x, int64_t n, int kind) {
    enum { CHAINS = 4, L = DOUBLE_LANES, STEP = CHAINS * L };
    FN(vdouble) part[CHAINS] = {{0}};
    double sum = 0;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        FN(batch_ask)(x + i, STEP * real_bytes);
        for (int c = 0; c < CHAINS; c++) part[c] += FN(batch_terms)(x + i + c * L, kind);
    }
    for (; i + L <= n; i += L) part[0] += FN(batch_terms)(x + i, kind);
    part[0] = (part[0] + part[1]) + (part[2] + part[3]);
    for (int l = 0; l < L; l++) sum += part[0][l];
    for (; i < n; i++) sum = FN(batch_term)(sum, (double)x[i], kind);
    return sum;
}

/* The largest x, or -x, or NaN: whole vectors, in the type itself. */
ALWAYS_INLINE real FN(batch_largest)(const real *x, int64_t n, bool negated) {
    enum { CHAINS = 4 };
    FN(vreal) best[CHAINS];
    real a = -(real)INFINITY;
    int64_t i = 0;
    for (int c = 0; c < CHAINS; c++) best[c] = a - (FN(vreal)){0};
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES) {
        FN(batch_ask)(x + i, CHAINS * SIMD_BYTES);
        for (int c = 0; c < CHAINS; c++) {
            const FN(vreal) v = negated ? -FN(load)(x + i + c * LANES) : FN(load)(x + i + c * LANES);
            const FN(vmask) take = (v > best[c]) | ~((v > (real)0) | (v <= (real)0)); /* or NaN */
            best[c] = (FN(vreal))(((FN(vmask))v & take) | ((FN(vmask))best[c] & ~take));
        }
    }
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LANES; l++) a = best[c][l] > a || best[c][l] != best[c][l] ? best[c][l] : a;
    for (; i < n; i++) {
        const real v = negated ? -x[i] : x[i];
        a = v > a || v != v ? v : a;
    }
    return a;
}

/* One block of a vector, from its element `at` on. */
ALWAYS_INLINE void FN(batch_block)(struct batch_part *p, const real *x, int64_t n, int64_t at, int kind) {
    if (kind == BATCH_VARIANCE) {
        const double mean = FN(batch_sum)(x, n, BATCH_SUM) / (double)n;
        double squares[FN(BATCH_SIDE)] = {0};
        int64_t i = 0;
        for (; i + FN(BATCH_SIDE) <= n; i += FN(BATCH_SIDE))
            for (int l = 0; l < FN(BATCH_SIDE); l++)
                squares[l] += ((double)x[i + l] - mean) * ((double)x[i + l] - mean);
        for (int l = 1; l < FN(BATCH_SIDE); l++) squares[0] += squares[l];
        for (; i < n; i++) squares[0] += ((double)x[i] - mean) * ((double)x[i] - mean);
        batch_join(p, (struct batch_part){.a = mean, .b = squares[0], .at = (uint64)n}, kind);
    } else if (kind == BATCH_MAX || kind == BATCH_MIN) {
        batch_join(p, (struct batch_part){.a = FN(batch_largest)(x, n, kind == BATCH_MIN)}, kind);
    } else if (kind == BATCH_ARGMAX || kind == BATCH_ARGMIN) {
        const double best = FN(batch_largest)(x, n, kind == BATCH_ARGMIN);
        const bool none = p->at == BATCH_NOWHERE;
        int64_t i = 0;
        if (!none && !(best > p->a) && !(best != best && p->a == p->a)) return;
        while (kind == BATCH_ARGMIN ? -x[i] != best && x[i] == x[i] : x[i] != best && x[i] == x[i]) i++;
        *p = (struct batch_part){.a = best, .at = (uint64)(at + i)};
    } else if (kind == BATCH_L2 && real_bytes == 8) {
        const double sum = FN(batch_sum)(x, n, kind);
        if (sum > 0x1p-900 && sum < 0x1p970)
            p->a += sum;
        else
            for (int64_t i = 0; i < n; i++) batch_step(p, x[i], 0, kind);
    } else {
        p->a += FN(batch_sum)(x, n, kind);
    }
}

ALWAYS_INLINE struct batch_part FN(batch_piece)(const real *x, int64_t step, int64_t from, int64_t to,
                                                int kind) {
    struct batch_part p = batch_none(kind);
    if (step != 1) {
        for (int64_t i = from; i < to; i++) batch_step(&p, x[i * step], (uint64)i, kind);
        return p;
    }
    for (int64_t i = from; i < to; i += FN(BATCH_BLOCK))
        FN(batch_block)(&p, x + i, to - i < FN(BATCH_BLOCK) ? to - i : FN(BATCH_BLOCK), i, kind);
    return p;
}

/* ---- short vectors of equal length that lie side by side ---- */

/* Neighbouring lanes of the sequence (a, b) join. */
#if SIMD_BYTES == 64
#define BATCH_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define BATCH_ODD 1, 3, 5, 7, 9, 11, 13, 15
#elif SIMD_BYTES == 32
#define BATCH_EVEN 0, 2, 4, 6
#define BATCH_ODD 1, 3, 5, 7
#else
#define BATCH_EVEN 0, 2
#define BATCH_ODD 1, 3
#endif
#ifdef __clang__
#define BATCH_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BATCH_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (FN(vdouble_mask)){__VA_ARGS__})
#endif
ALWAYS_INLINE FN(vdouble) FN(batch_neighbours)(FN(vdouble) a, FN(vdouble) b, int kind) {
    return FN(batch_joined)(BATCH_SHUFFLE(a, b, BATCH_EVEN), BATCH_SHUFFLE(a, b, BATCH_ODD), kind);
}
#undef BATCH_SHUFFLE
#undef BATCH_EVEN
#undef BATCH_ODD

/* A vector of n elements has this, in lanes. `last`: the lanes of the last load that are its own, which takes
 * its last elements, or, of a vector shorter than the lanes, its first and what is behind them. */
ALWAYS_INLINE FN(vdouble)
    FN(batch_lanes)(const real *x, int64_t n, FN(vdouble_mask) last, bool shorter, int kind) {
    enum { L = DOUBLE_LANES };
    const FN(vdouble) none = batch_none(kind).a - (FN(vdouble)){0};
    const int64_t whole = n / L * L;
    FN(vdouble) a = none, b = none;
    int64_t i = 0;
    if (shorter) return FN(batch_either)(last, FN(batch_terms)(x, kind), none);
    if (whole < n) a = FN(batch_either)(last, FN(batch_terms)(x + n - L, kind), none);
    for (; i + 2 * L <= whole; i += 2 * L) {
        a = FN(batch_joined)(a, FN(batch_terms)(x + i, kind), kind);
        b = FN(batch_joined)(b, FN(batch_terms)(x + i + L, kind), kind);
    }
    if (i < whole) b = FN(batch_joined)(b, FN(batch_terms)(x + i, kind), kind);
    return FN(batch_joined)(a, b, kind);
}

ALWAYS_INLINE FN(vdouble_mask) FN(batch_last)(int64_t n) {
    enum { L = DOUBLE_LANES };
    FN(vdouble_mask) lane = {0};
    for (int l = 0; l < L; l++) lane[l] = l;
    return n < L ? (FN(vdouble_mask))(lane < n) : (FN(vdouble_mask))(lane >= L - n % L);
}

/* Vectors from `first` on while there are enough for a vector of results: a tree halves the lanes of
 * `pieces` loads together. pieces < lanes: so long are the vectors, of which a load takes several; else
 * each has a piece. Constants: pieces, shorter. */
ALWAYS_INLINE int64_t FN(batch_short)(real *result, const real *x, int64_t n, int64_t first, int64_t end,
                                      int pieces, bool shorter, bool past, int kind) {
    enum { L = DOUBLE_LANES };
    const FN(vdouble_mask) last = FN(batch_last)(n);
    for (; first + L <= end; first += L) {
        const real *from = x + first * n;
        FN(vdouble) part[L];
        FN(batch_ask)(from, L * n * real_bytes);
#pragma GCC unroll 8
        for (int l = 0; l < pieces; l++)
            part[l] = pieces < L ? FN(batch_terms)(from + l * L, kind)
                                 : FN(batch_lanes)(from + l * n, n, last, shorter, kind);
#pragma GCC unroll 3
        for (int left = pieces / 2; left > 0; left /= 2)
#pragma GCC unroll 4
            for (int l = 0; l < left; l++) part[l] = FN(batch_neighbours)(part[2 * l], part[2 * l + 1], kind);
        if (past)
            FN(store_doubles_past)(result + first, FN(batch_values)(part[0], kind, (double)n));
        else
            FN(store_doubles)(result + first, FN(batch_values)(part[0], kind, (double)n));
    }
    return first;
}

/* Vectors [first, end) of `count`, as far as no load would go beyond the last; what follows is the
 * caller's. */
ALWAYS_INLINE int64_t FN(batch_side_by_side)(real *result, const real *x, int64_t n, int64_t first,
                                             int64_t end, int64_t count, bool past, int kind) {
    enum { L = DOUBLE_LANES };
    if (n == 1) return FN(batch_short)(result, x, 1, first, end, 1, false, past, kind);
    if (n == 2) return FN(batch_short)(result, x, 2, first, end, 2, false, past, kind);
    if (n == 4 && L > 4) return FN(batch_short)(result, x, 4, first, end, 4, false, past, kind);
    if (n >= L) return FN(batch_short)(result, x, n, first, end, L, false, past, kind);
    return FN(batch_short)(result, x, n, first, ki_min(end, count - ki_ceil_div(L, n)), L, true, past, kind);
}

/* Columns [first, end) of a matrix: `stride` is 1, and blocks of columns go down the rows together. */
ALWAYS_INLINE void FN(batch_columns)(real *result, const real *X, const kiln_batch *b, int64_t first,
                                     int64_t end, int kind) {
    enum { TOGETHER = 64 };
    for (int64_t v = first; v < end; v += TOGETHER) {
        const int64_t count = end - v < TOGETHER ? end - v : TOGETHER;
        struct batch_part p[TOGETHER];
        for (int64_t l = 0; l < count; l++) p[l] = batch_none(kind);
        for (int64_t i = 0; i < b->length; i++)
            for (int64_t l = 0; l < count; l++)
                batch_step(&p[l], X[b->first + v + l + i * b->step], (uint64)i, kind);
        for (int64_t l = 0; l < count; l++) result[v + l] = (real)batch_value(p[l], kind, (double)b->length);
    }
}

struct FN(batching) {
    kiln_matrix *result;
    const kiln_matrix *X, *scale;
    const kiln_batch *batch;
    struct batch_part *partial;
    int kind, parts;
    bool past; /* the result is stored past the caches */
};

/* Vectors one after the other, all but those that the list of pieces has. */
ALWAYS_INLINE void FN(batch_each)(const struct FN(batching) * of, int64_t first, int64_t end, int kind) {
    const kiln_batch *b = of->batch;
    const real *X = VALUES(of->X);
    for (int64_t v = first; v < end; v++) {
        const int64_t origin = b->offsets ? b->offsets[v] : b->first + v * b->stride;
        const int64_t length = b->offsets ? b->offsets[v + 1] - origin : b->length;
        if (length > KI_BATCH_LONG_CPU) continue;
        VALUES(of->result)
        [v] = (real)batch_value(FN(batch_piece)(X + origin, b->step, 0, length, kind), kind, (double)length);
    }
}

/* The same, in the way that suits them. */
ALWAYS_INLINE void FN(batch_vectors)(const struct FN(batching) * of, int64_t first, int64_t end, int kind) {
    const kiln_batch *b = of->batch;
    const real *X = VALUES(of->X);
    real *result = VALUES(of->result);
    const bool one_number = kind <= BATCH_MIN || kind == BATCH_MEAN,
               scaled = kind == BATCH_L2 && real_bytes == 8;
    if (ki_batch_adjoins(b) && one_number && !scaled && b->length > 0 && b->length <= FN(BATCH_SHORT)) {
        int64_t begin = first;
        while (of->past && begin < end && (uintptr_t)(result + begin) % (DOUBLE_LANES * real_bytes) != 0)
            begin++;
        FN(batch_each)(of, first, begin, kind);
        first = FN(batch_side_by_side)(result, X + b->first, b->length, begin, end, b->count, of->past, kind);
        if (of->past) FN(end_of_stores_past)();
    }
    if (!b->offsets && b->stride == 1 && b->step > 1)
        FN(batch_columns)(result, X, b, first, end, kind);
    else
        FN(batch_each)(of, first, end, kind);
}

/* kind is a constant in each row, for the compiler to make a loop of its own of. */
#define EACH_KIND(call)                                                                                      \
    switch (of->kind) {                                                                                      \
    case BATCH_SUM: call(BATCH_SUM); break;                                                                  \
    case BATCH_SQUARES: call(BATCH_SQUARES); break;                                                          \
    case BATCH_L1: call(BATCH_L1); break;                                                                    \
    case BATCH_L2: call(BATCH_L2); break;                                                                    \
    case BATCH_MAX: call(BATCH_MAX); break;                                                                  \
    case BATCH_MIN: call(BATCH_MIN); break;                                                                  \
    case BATCH_ARGMAX: call(BATCH_ARGMAX); break;                                                            \
    case BATCH_ARGMIN: call(BATCH_ARGMIN); break;                                                            \
    case BATCH_MEAN: call(BATCH_MEAN); break;                                                                \
    default: call(BATCH_VARIANCE);                                                                           \
    }

static void FN(batch_part_of_vectors)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const int64_t first = ki_batch_share(of->batch, part, of->parts);
    const int64_t end = ki_batch_share(of->batch, part + 1, of->parts);
#define BATCH_VECTORS(kind) FN(batch_vectors)(of, first, end, kind)
    EACH_KIND(BATCH_VECTORS)
#undef BATCH_VECTORS
}

static void FN(batch_one_piece)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const kiln_batch *b = of->batch;
    const int64_t *piece = b->pieces.piece + 3 * (int64_t)part;
    const int64_t origin = b->offsets ? b->offsets[piece[0]] : b->first + piece[0] * b->stride;
    const real *x = VALUES(of->X) + origin;
#define BATCH_PIECE(kind) of->partial[part] = FN(batch_piece)(x, b->step, piece[1], piece[2], kind)
    EACH_KIND(BATCH_PIECE)
#undef BATCH_PIECE
}
#undef EACH_KIND

/* `partial` has room for each piece. */
void FN(batch_reduce)(kiln_matrix *result, const kiln_matrix *X, const kiln_batch *batch, int kind,
                      struct batch_part *partial) {
    struct FN(batching) of = {.result = result, .X = X, .batch = batch, .partial = partial, .kind = kind};
    const struct ki_batch_pieces *list = &batch->pieces;
    of.parts = ki_batch_shares(batch);
    of.past = batch->count * real_bytes >= ki_limits.cpu_past_bytes;
    if (list->vectors < batch->count)
        ki_parallel(X->device->threads, of.parts, FN(batch_part_of_vectors), &of);
    ki_parallel(X->device->threads, (int)list->count, FN(batch_one_piece), &of);
    for (int64_t i = 0; i < list->vectors; i++) {
        const int64_t v = list->vector[i];
        struct batch_part p = batch_none(kind);
        for (int64_t e = list->start[i]; e < list->start[i + 1]; e++) batch_join(&p, partial[e], kind);
        VALUES(result)
        [v] = (real)batch_value(
            p, kind, (double)(batch->offsets ? batch->offsets[v + 1] - batch->offsets[v] : batch->length));
    }
}

/* ------------------------------------------------------------------------------------------ scaling */

/* Numbers that lie side by side; past: Y is larger than the caches. */
ALWAYS_INLINE void FN(batch_multiply)(real *y, const real *x, int64_t n, real factor, bool past) {
    int64_t i = 0;
    for (; past && i < n && (uintptr_t)(y + i) % SIMD_BYTES != 0; i++) y[i] = factor * x[i];
    for (; past && i + LANES <= n; i += LANES) {
        FN(batch_ask)(x + i, SIMD_BYTES);
        FN(store_past)(y + i, factor * FN(load)(x + i));
    }
    for (; i < n; i++) y[i] = factor * x[i];
}

/* Vectors [first, end) that lie side by side, of n elements each: so many loads have the elements of as
 * many vectors as there are lanes, whose factors are put beside them. What follows is the caller's. */
ALWAYS_INLINE int64_t FN(batch_scale_short)(const struct FN(batching) * of, int64_t first, int64_t end) {
    const int64_t n = of->batch->length;
    const real *X = VALUES(of->X) + of->batch->first, *scale = VALUES(of->scale);
    real *Y = VALUES(of->result) + of->batch->first;
    FN(vmask) which[FN(BATCH_SHORT_SCALED)];
    for (int64_t j = 0; j < n; j++)
        for (int l = 0; l < LANES; l++) which[j][l] = (real_bits)((j * LANES + l) / n);
    const bool past = of->past && (uintptr_t)(Y + first * n) % SIMD_BYTES == 0;
    for (; first + LANES <= end; first += LANES) {
        const FN(vreal) factors = FN(load)(scale + first);
        const real *x = X + first * n;
        real *y = Y + first * n;
        for (int64_t j = 0; j < n; j++) {
            const FN(vreal) scaled = FN(permuted)(factors, which[j]) * FN(load)(x + j * LANES);
            FN(batch_ask)(x + j * LANES, SIMD_BYTES);
            if (past)
                FN(store_past)(y + j * LANES, scaled);
            else
                FN(store)(y + j * LANES, scaled);
        }
    }
    return first;
}

static void FN(batch_scale_vectors)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const kiln_batch *b = of->batch;
    const real *X = VALUES(of->X);
    real *Y = VALUES(of->result);
    const int64_t end = ki_batch_share(b, part + 1, of->parts);
    const bool few = ki_batch_adjoins(b) && b->length > 0 && b->length <= FN(BATCH_SHORT_SCALED);
    for (int64_t v = ki_batch_share(b, part, of->parts); v < end; v++) {
        const int64_t origin = b->offsets ? b->offsets[v] : b->first + v * b->stride;
        const int64_t length = b->offsets ? b->offsets[v + 1] - origin : b->length;
        const real factor = VALUES(of->scale)[v];
        if (length > KI_BATCH_LONG_CPU) continue;
        if (few && end - v >= LANES && (!of->past || (uintptr_t)(Y + origin) % SIMD_BYTES == 0))
            v = FN(batch_scale_short)(of, v, end) - 1;
        else if (b->step == 1)
            FN(batch_multiply)
        (Y + origin, X + origin, length, factor, of->past && length > FN(BATCH_SHORT_SCALED));
        else for (int64_t i = 0; i < length; i++) Y[origin + i * b->step] = factor * X[origin + i * b->step];
    }
    if (of->past) FN(end_of_stores_past)();
}

static void FN(batch_scale_piece)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const kiln_batch *b = of->batch;
    const int64_t *piece = b->pieces.piece + 3 * (int64_t)part;
    const int64_t origin = b->offsets ? b->offsets[piece[0]] : b->first + piece[0] * b->stride;
    const real factor = VALUES(of->scale)[piece[0]];
    real *y = VALUES(of->result) + origin;
    const real *x = VALUES(of->X) + origin;
    if (b->step == 1) {
        FN(batch_multiply)(y + piece[1], x + piece[1], piece[2] - piece[1], factor, of->past);
        if (of->past) FN(end_of_stores_past)();
        return;
    }
    for (int64_t i = piece[1]; i < piece[2]; i++) y[i * b->step] = factor * x[i * b->step];
}

void FN(batch_scale)(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                     const kiln_batch *batch) {
    struct FN(batching)
        of = {.result = Y, .X = X, .scale = scale, .batch = batch, .parts = ki_batch_shares(batch)};
    of.past = VALUES(Y) != VALUES(X) && batch->elements * real_bytes >= ki_limits.cpu_past_bytes;
    if (batch->pieces.vectors < batch->count)
        ki_parallel(X->device->threads, of.parts, FN(batch_scale_vectors), &of);
    ki_parallel(X->device->threads, (int)batch->pieces.count, FN(batch_scale_piece), &of);
}
