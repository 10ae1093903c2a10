/* CPU bodies of kiln_batch_reduce and kiln_batch_scale. A vector, or a piece of a long one, is one thread's; how they are shared out
 * hangs on the batch alone. Numbers come in blocks that the first cache level keeps, so that what takes two looks (a variance, the
 * place of a maximum) reads memory once. */
#include "ops/batch/batch.h"

enum { FN(BATCH_SIDE) = 16, FN(BATCH_BLOCK) = 1024, FN(BATCH_SHORT) = 64, FN(BATCH_SHORT_SUMS) = 160 };

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

typedef double FN(batch_wide) __attribute__((vector_size(SIMD_BYTES)));
typedef int64_t FN(batch_bits) __attribute__((vector_size(SIMD_BYTES)));
typedef real FN(batch_narrow) __attribute__((vector_size(SIMD_BYTES / 8 * real_bytes)));
enum { FN(BATCH_LANES) = SIMD_BYTES / 8, FN(BATCH_AHEAD) = 2048 };

/* What numbers that lie side by side add to sums that do: of the kinds that are sums. */
ALWAYS_INLINE FN(batch_wide) FN(batch_terms)(const real *x, int kind) {
    FN(batch_narrow) narrow;
    memcpy(&narrow, x, sizeof narrow);
    const FN(batch_wide) v = __builtin_convertvector(narrow, FN(batch_wide));
    if (kind == BATCH_SQUARES || kind == BATCH_L2) return v * v;
    return kind == BATCH_L1 ? (FN(batch_wide))((FN(batch_bits))v & INT64_MAX) : v;
}

ALWAYS_INLINE double FN(batch_lane_sum)(FN(batch_wide) v) {
    double part[FN(BATCH_LANES)];
    memcpy(part, &v, sizeof part);
    for (int half = FN(BATCH_LANES) / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) part[l] += part[l + half];
    return part[0];
}

/* The last lanes, `count` of them. */
ALWAYS_INLINE FN(batch_bits) FN(batch_last)(int64_t count) {
    FN(batch_bits) lane = {0};
    for (int l = 0; l < FN(BATCH_LANES); l++) lane[l] = l;
    return (FN(batch_bits))(lane >= FN(BATCH_LANES) - count);
}

/* Sixteen chains side by side, which the compiler makes vectors of. */
ALWAYS_INLINE double FN(batch_sum)(const real *x, int64_t n, int kind) {
    double part[FN(BATCH_SIDE)], a;
    int64_t i = 0;
    for (int l = 0; l < FN(BATCH_SIDE); l++) part[l] = 0;
    for (; i + FN(BATCH_SIDE) <= n; i += FN(BATCH_SIDE))
        for (int l = 0; l < FN(BATCH_SIDE); l++) part[l] = FN(batch_term)(part[l], (double)x[i + l], kind);
    for (int half = FN(BATCH_SIDE) / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) part[l] += part[l + half];
    for (a = part[0]; i < n; i++) a = FN(batch_term)(a, (double)x[i], kind);
    return a;
}

/* The largest x, or -x, or NaN: whole vectors, in the type itself. */
ALWAYS_INLINE real FN(batch_largest)(const real *x, int64_t n, bool negated) {
    enum { CHAINS = 4 };
    FN(vreal) best[CHAINS];
    real a = -(real)INFINITY;
    int64_t i = 0;
    for (int c = 0; c < CHAINS; c++) best[c] = a - (FN(vreal)){0};
    for (; i + CHAINS * LANES <= n; i += CHAINS * LANES)
        for (int c = 0; c < CHAINS; c++) {
            const FN(vreal) v = negated ? -FN(load)(x + i + c * LANES) : FN(load)(x + i + c * LANES);
            const FN(vmask) take = (v > best[c]) | ~((v > (real)0) | (v <= (real)0)); /* or NaN */
            best[c] = (FN(vreal))(((FN(vmask))v & take) | ((FN(vmask))best[c] & ~take));
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

/* Vectors [first, end) of n elements each that lie side by side, one a lane; the rest is the caller's. */
ALWAYS_INLINE int64_t FN(batch_side_by_side)(real *result, const real *X, int64_t n, int64_t first,
                                             int64_t end, int kind) {
    const double none = batch_none(kind).a;
    for (; first + FN(BATCH_SIDE) <= end; first += FN(BATCH_SIDE)) {
        const real *x = X + first * n;
        double part[FN(BATCH_SIDE)];
        for (int l = 0; l < FN(BATCH_SIDE); l++) part[l] = none;
        for (int64_t i = 0; i < n; i++)
            for (int l = 0; l < FN(BATCH_SIDE); l++)
                part[l] = FN(batch_term)(part[l], (double)x[l * n + i], kind);
        for (int l = 0; l < FN(BATCH_SIDE); l++)
            result[first + l] = (real)batch_value((struct batch_part){.a = part[l]}, kind, (double)n);
    }
    return first;
}

/* Vectors [first, end) of n elements each, few of them, one after the other: four chains each, and the processor works on several
 * vectors at a time by itself. Vector instructions would take longer to add up their lanes than to fill them. */
ALWAYS_INLINE void FN(batch_short)(real *result, const real *x, int64_t n, int64_t first, int64_t end,
                                   int kind) {
    const double none = batch_none(kind).a;
    for (int64_t v = first; v < end; v++, x += n) {
        double a = none, b = none, c = none, d = none;
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            a = FN(batch_term)(a, (double)x[i], kind);
            b = FN(batch_term)(b, (double)x[i + 1], kind);
            c = FN(batch_term)(c, (double)x[i + 2], kind);
            d = FN(batch_term)(d, (double)x[i + 3], kind);
        }
        for (; i < n; i++) a = FN(batch_term)(a, (double)x[i], kind);
        struct batch_part p = {.a = a}, q = {.a = c};
        batch_join(&p, (struct batch_part){.a = b}, kind);
        batch_join(&q, (struct batch_part){.a = d}, kind);
        batch_join(&p, q, kind);
        result[v] = (real)batch_value(p, kind, (double)n);
    }
}

/* The same for kinds that are sums, and vectors that fill the lanes: what is left at the end comes again with those before it. */
ALWAYS_INLINE void FN(batch_short_sums)(real *result, const real *x, int64_t n, int64_t first, int64_t end,
                                        int kind) {
    enum { L = FN(BATCH_LANES) };
    const int64_t whole = n / L * L;
    const FN(batch_bits) last = FN(batch_last)(n - whole);
    for (int64_t v = first; v < end; v++, x += n) {
        FN(batch_wide)
        sum = (FN(batch_wide))((FN(batch_bits))FN(batch_terms)(x + n - L, kind) & last), more = {0};
        __builtin_prefetch((const char *)x + FN(BATCH_AHEAD), 0, 2);
        int64_t i = 0;
        for (; i + 2 * L <= whole; i += 2 * L) {
            sum += FN(batch_terms)(x + i, kind);
            more += FN(batch_terms)(x + i + L, kind);
        }
        if (i < whole) more += FN(batch_terms)(x + i, kind);
        result[v] =
            (real)batch_value((struct batch_part){.a = FN(batch_lane_sum)(sum + more)}, kind, (double)n);
    }
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
};

/* Vectors, all but those that the list of pieces has. */
ALWAYS_INLINE void FN(batch_vectors)(const struct FN(batching) * of, int64_t first, int64_t end, int kind) {
    const kiln_batch *b = of->batch;
    const real *X = VALUES(of->X);
    real *result = VALUES(of->result);
    const bool one_number = kind <= BATCH_MIN || kind == BATCH_MEAN,
               scaled = kind == BATCH_L2 && real_bytes == 8;
    const bool sums = kind != BATCH_MAX && kind != BATCH_MIN;
    if (!b->offsets && b->step == 1 && b->stride == b->length && one_number && !scaled &&
        b->length <= (sums ? FN(BATCH_SHORT_SUMS) : FN(BATCH_SHORT))) {
        if (b->length < 4) first = FN(batch_side_by_side)(result, X + b->first, b->length, first, end, kind);
        const real *x = X + b->first + first * b->length;
        if (sums && b->length >= 2 * FN(BATCH_LANES))
            FN(batch_short_sums)(result, x, b->length, first, end, kind);
        else
            FN(batch_short)(result, x, b->length, first, end, kind);
        return;
    }
    if (!b->offsets && b->stride == 1 && b->step > 1) {
        FN(batch_columns)(result, X, b, first, end, kind);
        return;
    }
    for (int64_t v = first; v < end; v++) {
        const int64_t origin = b->offsets ? b->offsets[v] : b->first + v * b->stride;
        const int64_t length = b->offsets ? b->offsets[v + 1] - origin : b->length;
        if (length > KI_BATCH_LONG_CPU) continue;
        result[v] =
            (real)batch_value(FN(batch_piece)(X + origin, b->step, 0, length, kind), kind, (double)length);
    }
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

static void FN(batch_scale_vectors)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const kiln_batch *b = of->batch;
    const real *X = VALUES(of->X);
    real *Y = VALUES(of->result);
    const int64_t end = ki_batch_share(b, part + 1, of->parts);
    for (int64_t v = ki_batch_share(b, part, of->parts); v < end; v++) {
        const int64_t origin = b->offsets ? b->offsets[v] : b->first + v * b->stride;
        const int64_t length = b->offsets ? b->offsets[v + 1] - origin : b->length;
        const real factor = VALUES(of->scale)[v];
        if (length > KI_BATCH_LONG_CPU) continue;
        if (b->step == 1)
            for (int64_t i = origin; i < origin + length; i++) Y[i] = factor * X[i];
        else
            for (int64_t i = 0; i < length; i++) Y[origin + i * b->step] = factor * X[origin + i * b->step];
    }
}

static void FN(batch_scale_piece)(void *arg, int part) {
    const struct FN(batching) *of = arg;
    const kiln_batch *b = of->batch;
    const int64_t *piece = b->pieces.piece + 3 * (int64_t)part;
    const int64_t origin = b->offsets ? b->offsets[piece[0]] : b->first + piece[0] * b->stride;
    const real factor = VALUES(of->scale)[piece[0]];
    for (int64_t i = piece[1]; i < piece[2]; i++)
        VALUES(of->result)[origin + i * b->step] = factor * VALUES(of->X)[origin + i * b->step];
}

void FN(batch_scale)(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                     const kiln_batch *batch) {
    struct FN(batching)
        of = {.result = Y, .X = X, .scale = scale, .batch = batch, .parts = ki_batch_shares(batch)};
    if (batch->pieces.vectors < batch->count)
        ki_parallel(X->device->threads, of.parts, FN(batch_scale_vectors), &of);
    ki_parallel(X->device->threads, (int)batch->pieces.count, FN(batch_scale_piece), &of);
}
