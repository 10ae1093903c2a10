/* CPU bodies of the element-wise operations: times, map, fill_random; pass/combine.cpu.h has the others. */
#include "core/size.h"
#include "dialect/simd_math.h"
#include "pass/cpu/elements.h"

static void FN(times_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    const int64_t k = e->W->cols;
    if (e->X->cols == k && e->Y->cols == k) {
        for (int64_t i = first; i < end; i++) out[i] = VALUES(e->X)[i] * VALUES(e->Y)[i];
        return;
    }
    for (int64_t i = first / k; i * k < end; i++) {
        const struct FN(row) x = FN(row_of)(e->X, i, k), y = FN(row_of)(e->Y, i, k);
        for (int64_t c = FN(row_begin)(i, k, first); c < FN(row_end)(i, k, end); c++)
            out[i * k + c] = x.at[c * x.step] * y.at[c * y.step];
    }
}

void FN(times)(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y) {
    FN(each_element)(&(struct FN(elements)){.W = W, .X = X, .Y = Y, .range = FN(times_range)});
}

/* The kind is a constant wherever this is called, so that the compiler can make vectors of the loop. */
ALWAYS_INLINE void FN(map_each)(const struct FN(elements) * e, real *out, int64_t first, int64_t end,
                                int kind) {
    for (int64_t i = first; i < end; i++) out[i] = FN(map_value)(VALUES(e->X)[i], kind);
}

static void FN(exp_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i += LANES) {
        const FN(vreal) y = FN(vexp)(FN(load_some)(VALUES(e->X) + i, end - i));
        memcpy(out + i, &y, (size_t)ki_min(LANES, end - i) * sizeof *out);
    }
}

/* Numbers that have no logarithm, or are below the normal ones, go one by one. */
static void FN(log_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i += LANES) {
        const int64_t count = ki_min(LANES, end - i);
        const FN(vreal) x = FN(load_some)(VALUES(e->X) + i, count);
        const FN(vmask) normal = (x >= (real)LEAST_NORMAL) & (x < (real)INFINITY);
        FN(vreal) y = FN(vlog)(x);
        for (int64_t l = 0; l < count; l++)
            if (!normal[l]) y[l] = FN(map_value)(x[l], KILN_MAP_LOG);
        memcpy(out + i, &y, (size_t)count * sizeof *out);
    }
}

static void FN(map_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    switch (e->kind) {
    case KILN_MAP_ABS: FN(map_each)(e, out, first, end, KILN_MAP_ABS); return;
    case KILN_MAP_SQUARE: FN(map_each)(e, out, first, end, KILN_MAP_SQUARE); return;
    case KILN_MAP_SQRT: FN(map_each)(e, out, first, end, KILN_MAP_SQRT); return;
    case KILN_MAP_EXP: FN(exp_range)(e, out, first, end); return;
    case KILN_MAP_LOG: FN(log_range)(e, out, first, end); return;
    default: FN(map_each)(e, out, first, end, e->kind);
    }
}

void FN(map)(kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X) {
    FN(each_element)(&(struct FN(elements)){.W = W, .X = X, .kind = kind, .range = FN(map_range)});
}

static void FN(random_range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++)
        out[i] = e->kind == KILN_NORMAL ? FN(random_normal)(e->seed, e->stream, (uint64_t)i)
                                        : FN(random_uniform)(e->seed, e->stream, (uint64_t)i);
}

void FN(fill_random)(kiln_matrix *W, kiln_distribution distribution, uint64_t seed, uint64_t stream) {
    FN(each_element)
    (&(struct FN(elements)){
        .W = W, .kind = (int)distribution, .seed = seed, .stream = stream, .range = FN(random_range)});
}
