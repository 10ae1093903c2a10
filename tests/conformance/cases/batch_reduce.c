/* One number of each vector: every reduction, over rows, columns, gaps, steps and ragged vectors of any
 * length and alignment; with NaN, infinities, equals, zeros and numbers whose squares leave the type's range
 * among the values. */
#include "batches.h"

#include <float.h>

static void list(struct problem_list *list) {
    for (int kind = KILN_BATCH_SUM; kind <= KILN_BATCH_VARIANCE; kind++) {
        batches_list(list, (struct problem){.kind = kind});
        for (int64_t length = 1; length <= 2000; length = length * 7 + 2)
            if (!list->thin || (length + kind) % 3 == 0)
                problem_add(list, (struct problem){.format = KILN_DENSE,
                                                   .pattern = PATTERN_DENSE,
                                                   .rows = 77,
                                                   .cols = length,
                                                   .k = 1,
                                                   .kind = kind,
                                                   .flags = WITH_SPECIAL});
    }
}

/* Rows in turn: ordinary, huge, tiny, zero, with a NaN, of few values, with both infinities, far from zero,
 * huge with tiny. */
static double special(const struct work *work, int64_t row, int64_t i) {
    const double u = 2 * random_uniform(5, (uint64_t)(row * 4096 + i)) - 1;
    const double huge = work->type == KILN_F32 ? 1e30 : 1e200, tiny = work->type == KILN_F32 ? 1e-30 : 1e-200;
    switch (row % 9) {
    case 0: return u;
    case 1: return huge * u;
    case 2: return tiny * u;
    case 3: return 0;
    case 4: return i == work->problem->cols / 2 ? (double)NAN : u;
    case 5: return floor(3 * u);
    case 6: return i % 7 == 3 ? (double)INFINITY : i % 11 == 5 && row % 2 ? -(double)INFINITY : u;
    case 7: return 1e6 + u;
    default: return i % 2 ? huge * u : tiny * u;
    }
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(batches_prepare(work));
    if (p->flags & WITH_SPECIAL) {
        for (int64_t e = 0; e < p->rows * p->cols; e++)
            host_set(&work->X.host, e, special(work, e / p->cols, e % p->cols));
        CHECK_OK(kiln_matrix_set(work->X.matrix, work->X.host.values));
    }
    return make_output(work, batches_count(work), 1);
}

static kiln_status run(struct work *work) {
    return kiln_batch_reduce(work->w.matrix, (kiln_batch_kind)work->problem->kind, work->X.matrix,
                             batches_batch(work));
}

static long double element(const struct work *work, int64_t v, int64_t i) {
    return host_get(&work->X.host, batches_element(work, v, i));
}

/* The largest of sign * x and where it is first, or the first NaN. */
static long double largest(int64_t *place, const struct work *work, int64_t v, int sign) {
    long double best = -(long double)INFINITY;
    *place = -1;
    for (int64_t i = 0; i < batches_length(work, v); i++) {
        const long double x = sign * element(work, v, i);
        if (*place >= 0 && !(x > best) && !(isnan(x) && !isnan(best))) continue;
        best = x;
        *place = i;
    }
    return best;
}

static void expect_one(long double *value, long double *gauge, const struct work *work, int64_t v) {
    const int kind = work->problem->kind;
    const int64_t n = batches_length(work, v);
    long double sum = 0, size = 0, squares = 0, about = 0;
    int64_t place;
    for (int64_t i = 0; i < n; i++) {
        sum += element(work, v, i);
        size += fabsl(element(work, v, i));
        squares += element(work, v, i) * element(work, v, i);
    }
    const long double mean = sum / n;
    for (int64_t i = 0; i < n; i++) about += (element(work, v, i) - mean) * (element(work, v, i) - mean);
    *gauge = size;
    switch ((kiln_batch_kind)kind) {
    case KILN_BATCH_SUM: *value = sum; break;
    case KILN_BATCH_SQUARES: *value = *gauge = squares; break;
    case KILN_BATCH_L1: *value = size; break;
    case KILN_BATCH_L2: *value = *gauge = sqrtl(squares); break;
    case KILN_BATCH_MAX: *value = largest(&place, work, v, 1); break;
    case KILN_BATCH_MIN: *value = -largest(&place, work, v, -1); break;
    case KILN_BATCH_ARGMAX:
    case KILN_BATCH_ARGMIN:
        largest(&place, work, v, kind == KILN_BATCH_ARGMAX ? 1 : -1);
        *value = place;
        break;
    case KILN_BATCH_MEAN:
        *value = mean;
        *gauge = size / n;
        break;
    default:
        *value = about / n;
        *gauge = *value + fabsl(mean) * sqrtl(*value); /* what rounding the mean of one number loses */
    }
}

/* f32 is summed in double, or with compensation: all that is lost is in rounding the result. */
static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *out = &expected[RESULT_W];
    const int kind = work->problem->kind;
    const bool exact = kind >= KILN_BATCH_MAX && kind <= KILN_BATCH_ARGMIN, narrow = work->type == KILN_F32;
    int64_t longest = 0;
    *out = expected_new(work->type, batches_count(work));
    for (int64_t v = 0; v < out->count; v++) {
        const int64_t n = batches_length(work, v);
        expect_one(&out->value[v], &out->gauge[v], work, v);
        if (fabsl(out->value[v]) > (narrow ? (long double)FLT_MAX : (long double)DBL_MAX))
            out->value[v] = copysignl((long double)INFINITY, out->value[v]);
        if (narrow) out->gauge[v] = fabsl(out->value[v]) + out->gauge[v] * (long double)(n + 8) * 0x1p-29L;
        longest = n > longest ? n : longest;
    }
    out->gate = exact ? 0 : narrow ? 1.01 : gate_for_terms((double)longest + 8);
}

static double flops(const struct work *work) {
    return (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_batch *batch = NULL, *other = NULL;
    const int64_t falling[] = {0, 3, 2}, below[] = {-1, 2}, offsets[] = {0, 3, 8};
    REFUSED(kiln_batch_equal(NULL, 1, 1, 0, 0, 0));
    REFUSED_AS("negative", kiln_batch_equal(&batch, -1, 1, 0, 0, 0));
    REFUSED_AS("negative", kiln_batch_equal(&batch, 1, 1, 0, 0, -1));
    REFUSED_AS("counted", kiln_batch_equal(&batch, INT64_MAX / 2, 3, 0, 0, 0));
    REFUSED_AS("counted", kiln_batch_equal(&batch, 3, 3, 0, INT64_MAX / 2, 0));
    REFUSED(kiln_batch_ragged(NULL, s->device, 2, offsets));
    REFUSED(kiln_batch_ragged(&batch, NULL, 2, offsets));
    REFUSED(kiln_batch_ragged(&batch, s->device, 2, NULL));
    REFUSED(kiln_batch_ragged(&batch, s->device, -1, offsets));
    REFUSED_AS("offsets[2] is 2", kiln_batch_ragged(&batch, s->device, 2, falling));
    REFUSED_AS("offsets[0] is -1", kiln_batch_ragged(&batch, s->device, 1, below));
    REFUSED(kiln_batch_rows(&batch, NULL));
    check_report(context, batch == NULL, "a refused call made a batch");
    REFUSED(kiln_batch_reduce(NULL, KILN_BATCH_SUM, s->X, NULL));
    REFUSED(kiln_batch_reduce(s->d, KILN_BATCH_SUM, NULL, NULL));
    REFUSED_AS("dense", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->S, NULL));
    REFUSED(kiln_batch_reduce(s->w, KILN_BATCH_SUM, s->y, NULL));
    REFUSED(kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->y_type, NULL));
    REFUSED_AS("must not be X", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->d, NULL));
    REFUSED_AS("number 0", kiln_batch_reduce(s->d, (kiln_batch_kind)0, s->y, NULL));
    REFUSED_AS("number 11", kiln_batch_reduce(s->d, (kiln_batch_kind)11, s->y, NULL));
    const bool made = kiln_batch_equal(&batch, REFUSAL_N, REFUSAL_K + 1, 0, 0, 0) == KILN_OK &&
                      kiln_batch_ragged(&other, s->cpu, 2, offsets) == KILN_OK;
    check_report(context, made, "making batches: %s", kiln_last_error()->message);
    if (made) REFUSED_AS("ends at element 12", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->y, batch));
    if (made && s->cpu != s->device)
        REFUSED_AS("another device", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->X, other));
    kiln_batch_free(batch);
    kiln_batch_free(other);
}

const struct operation operation_batch_reduce = {.name = "batch_reduce",
                                                 .list = list,
                                                 .prepare = prepare,
                                                 .run = run,
                                                 .expect = expect,
                                                 .flops = flops,
                                                 .bytes = bytes,
                                                 .refuse = refuse,
                                                 .benchmark = {.k = 1, .kind = KILN_BATCH_SUM}};
