/* dot, norms and sums: column reductions, finished in a fixed order where X lies. */
#include "ops/vectors/reduce.h"
#include "pass/rows.h"

#include <math.h>
#include <string.h>

#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/limits.h"
#include "core/processes.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "bodies/bodies.h"
#include "ops/vectors/reduce.cl"
#include "pass/combine.h"
#include "pass/group.h"

KI_ARGUMENTS(reduce);
KI_ARGUMENTS(reduce_finish);

enum {
    GROUP = 128,
    SPAN_MOST = 32, /* columns of a group: of f32 they fill a line of a cache */
    FEW = 32        /* rows a thread, with which a group is through before a second launch would begin */
};

/* Says what the kernels for so many entries are built with. */
#define REDUCE_DEFINES(entries, kind)                                                                        \
    KI_DEFINES("-DKIND=%d -DGROUP=%d%s", kind, GROUP, (entries) > ki_limits.index32 ? " -DINDEX64" : "")

void ki_reduce_program(struct ki_programs *programs, kiln_type type, int64_t entries,
                       enum ki_reduce_kind kind) {
    ki_programs_add(programs, "reduce", "reduce", type, REDUCE_DEFINES(entries, (int)kind));
}

/* Row `row` of R; of squares, their sums' roots. scaled: the row holds the columns' largest elements, by
 * which squares are scaled. A group takes `span` columns and one of `groups` shares of the rows; of few rows
 * all, and then nothing is left to join. */
static kiln_status reduce_on_gpu(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y,
                                 int kind, bool scaled) {
    kiln_device *device = X->device;
    const char *defines = REDUCE_DEFINES(X->nnz, kind);
    const int64_t k = X->cols, most = (int64_t)device->properties.compute_units * 8;
    struct ki_buffer partial;
    kiln_status status;
    int span = 1;
    while (span < SPAN_MOST && 2 * span <= k) span *= 2;
    const int64_t at_once = ki_ceil_div(X->rows, GROUP / span),
                  groups = at_once > FEW ? ki_min(at_once, most) : 1;
    TRY(ki_device_scratch(device, &partial, groups * k * ki_type_bytes(ki_wide_type(device))));
    TRY(ki_kernel_run(device, "reduce", "reduce", X->type, defines, groups * ki_ceil_div(k, span), GROUP,
                      KI_PACK(reduce, X, .R = R, .partial = &partial, .X = X, .Y = Y ? Y : X, .row = row,
                              .rows = X->rows, .k = (int32_t)k, .y_cols = (int32_t)(Y ? Y : X)->cols,
                              .span = span, .scaled = scaled)));
    if (groups == 1) goto done;
    TRY(ki_kernel_run(device, "reduce", "reduce_finish", X->type, defines, k, GROUP,
                      KI_PACK(reduce_finish, X, .R = R, .partial = &partial, .row = row,
                              .groups = (int32_t)groups, .k = (int32_t)k, .scaled = scaled)));
done:
    return status;
}

/* Into work space, from where the host reads it. What holds the operands holds that too, while the sums'
 * parts want some. */
static kiln_status reduce_gpu(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                              bool scaled) {
    kiln_matrix R = {.device = X->device, .type = ki_wide_type(X->device), .rows = 1, .cols = X->cols};
    const struct ki_operand operands[] = {{X, false}, {Y, false}};
    kiln_status status = ki_operands_hold(R.device, operands, 2);
    if (status != KILN_OK) return status;
    R.nnz = R.cols;
    R.view = true;
    TRY(ki_device_space(R.device, 0, &R.values, R.cols * ki_type_bytes(R.type)));
    if (scaled) TRY(reduce_on_gpu(&R, 0, X, NULL, KI_REDUCE_MAX, false));
    TRY(reduce_on_gpu(&R, 0, X, Y, kind, scaled));
    TRY(ki_download_wide(result, R.device, &R.values, 0, R.cols));
done:
    ki_operands_release(R.device, operands, 2);
    return status;
}

static kiln_status reduce(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, bool scaled);

/* A reduction of rows that lie in parts. */
struct reduction {
    const kiln_matrix *cut, *X, *Y;
    double *sums; /* of the columns; the largest of each member's in places of its own */
    int kind;
    struct ki_offset place;
};

static const struct ki_rule rules[] = {
    {offsetof(struct reduction, X), KI_READS, {KI_ROW}},
    {offsetof(struct reduction, Y), KI_READS, {KI_ROW}},
};
static const struct ki_rules table = {.bytes = sizeof(struct reduction),
                                      .X = offsetof(struct reduction, cut),
                                      .sums = offsetof(struct reduction, sums),
                                      .place = offsetof(struct reduction, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

/* Squares add up, not their root. */
static kiln_status reduce_part(const void *part) {
    const struct reduction *of = part;
    const int64_t k = of->X->cols;
    double *sums = of->sums + (of->kind == KI_REDUCE_MAX ? of->place.member * k : 0);
    const kiln_status status = reduce(sums, of->X, of->Y, of->kind, false);
    for (int64_t c = 0; c < k && of->kind == KI_REDUCE_SQUARES; c++) sums[c] *= sums[c];
    return status;
}

/* NaN stays NaN. */
static void take_largest(double *largest, const double *each, int64_t members, int64_t k) {
    for (int64_t i = 0; i < members * k; i++)
        if (i < k || (!(each[i] <= largest[i % k]) && largest[i % k] == largest[i % k]))
            largest[i % k] = each[i];
}

static kiln_status reduce_apart(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind) {
    const int64_t members = kind == KI_REDUCE_MAX ? ki_members_of(X->device) : 1, count = members * X->cols;
    double *sums = ki_calloc((size_t)count * sizeof *sums);
    kiln_status status;
    if (!sums) return ki_fail_nomem((size_t)count * sizeof *sums, "a reduction");
    TRY(ki_share(&(struct ki_shared){
        .rules = &table,
        .whole =
            &(struct reduction){.cut = ki_is_away(X) ? X : Y, .X = X, .Y = Y, .sums = sums, .kind = kind},
        .sums = count,
        .cut = KI_AS_IT_LIES,
        .run = reduce_part}));
    take_largest(result, sums, members, X->cols);
    for (int64_t c = 0; c < X->cols && kind == KI_REDUCE_SQUARES; c++) result[c] = sqrt(result[c]);
done:
    ki_free(sums);
    return status;
}

/* scaled: squares by the largest of each column. */
static kiln_status reduce(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, bool scaled) {
    if (X->device->lost) return kiln_device_sync(X->device);
    for (int64_t c = 0; X->nnz == 0 && c < X->cols; c++) result[c] = 0;
    if (X->nnz == 0) return KILN_OK;
    if (!scaled && (ki_is_away(X) || (Y && ki_is_away(Y)))) return reduce_apart(result, X, Y, kind);
    if (!ki_on_cpu(X->device)) return reduce_gpu(result, X, Y, kind, scaled);
    kiln_status status = ki_matrix_home(X);
    if (status == KILN_OK) status = KI_WIDEN(X, Y);
    if (status != KILN_OK) return status;
    if (scaled) ki_bodies(X)->reduce(result, X, NULL, KI_REDUCE_MAX, false);
    ki_bodies(X)->reduce(result, X, Y, kind, scaled);
    return KILN_OK;
}

kiln_status kiln_dot(double *result, const kiln_matrix *X, const kiln_matrix *Y) {
    static const char call[] = "kiln_dot";
    kiln_status status;
    if (!result || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result or X is NULL", call);
    TRY(ki_check_rows(call, "X", X, X, X->rows, X->cols));
    TRY(ki_check_rows(call, "Y", Y, X, X->rows, Y && Y->cols == 1 ? 1 : X->cols));
    TRY(reduce(result, X, Y, KI_REDUCE_DOT, false));
done:
    return status;
}

/* sqrt(sum x^2). Squares of numbers near the ends of the range overflow or vanish; only then a second pass
 * scales by the largest element. */
static kiln_status norm_2(double *result, const kiln_matrix *X) {
    kiln_status status;
    const size_t bytes = (size_t)X->cols * sizeof(double);
    double *norm = ki_alloc(bytes); /* result stays as it is if anything fails */
    if (!norm) return ki_fail_nomem(bytes, "a norm");
    TRY(reduce(norm, X, NULL, KI_REDUCE_SQUARES, false));
    bool extreme = false;
    for (int64_t c = 0; c < X->cols; c++)
        extreme |= !(norm[c] > 1e-140 && norm[c] < 1e150) && norm[c] == norm[c];
    if (extreme) TRY(reduce(norm, X, NULL, KI_REDUCE_SQUARES, true));
    memcpy(result, norm, bytes);
done:
    ki_free(norm);
    return status;
}

kiln_status kiln_norm(double *result, const kiln_matrix *X, kiln_norm_kind kind) {
    static const char call[] = "kiln_norm";
    kiln_status status;
    if (!result || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result or X is NULL", call);
    if (X->here && kind == KILN_NORM_MAX && X->format == KILN_DENSE)
        return X->device->processes->largest(result, X);
    TRY(ki_check_rows(call, "X", X, X, X->rows, X->cols));
    if (kind < KILN_NORM_1 || kind > KILN_NORM_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no norm has the number %d", call, (int)kind);
    if (kind == KILN_NORM_2) return norm_2(result, X);
    TRY(reduce(result, X, NULL, kind == KILN_NORM_1 ? KI_REDUCE_ABS : KI_REDUCE_MAX, false));
done:
    return status;
}

/* ------------------------------------------------------------------------------ entries of a matrix */

/* A reduction of all entries of X to one number, of whatever rows of X a device has. */
struct entries {
    const kiln_matrix *X;
    double *sum;
    int kind, limits;
    double limit[KI_REDUCE_LIMITS]; /* with which the largest is compared */
};

static const struct ki_rules entries_table = {
    .bytes = sizeof(struct entries), .X = offsetof(struct entries, X), .sums = offsetof(struct entries, sum)};

/* Squares add up, not their root; and of largest entries, that they are beyond a limit. */
static kiln_status entries_there(const void *given) {
    const struct entries *of = given;
    const kiln_matrix *X = of->X;
    const kiln_matrix values = {.device = X->device,
                                .type = X->type,
                                .format = KILN_DENSE,
                                .rows = X->nnz,
                                .cols = 1,
                                .nnz = X->nnz,
                                .values = X->values,
                                .view = true};
    double found;
    const kiln_status status = reduce(&found, &values, NULL, of->kind, false);
    if (status != KILN_OK) return status;
    *of->sum = of->kind == KI_REDUCE_SQUARES ? found * found : found;
    for (int i = 0; i < of->limits; i++) of->sum[i] = found > of->limit[i];
    return KILN_OK;
}

static int sums_of(const struct entries *of) {
    return of->limits > 0 ? of->limits : 1;
}

static kiln_status entries_single(const void *of) {
    const int sums = sums_of(of);
    return ki_run_single(
        &(struct ki_single){.rules = &entries_table, .whole = of, .sums = sums, .run = entries_there});
}

static kiln_status run_entries(const struct entries *of) {
    return !ki_is_split(of->X)
               ? entries_single(of)
               : ki_share(&(struct ki_shared){
                     .rules = &entries_table, .whole = of, .sums = sums_of(of), .run = entries_single});
}

kiln_status ki_reduce_entries(double *sum, const kiln_matrix *X, enum ki_reduce_kind kind) {
    double found = 0;
    const kiln_status status = run_entries(&(struct entries){.X = X, .sum = &found, .kind = (int)kind});
    if (status == KILN_OK) *sum = found;
    return status;
}

kiln_status ki_reduce_beyond(bool *beyond, const kiln_matrix *X, const double *limits, int count) {
    double found[KI_REDUCE_LIMITS] = {0};
    struct entries of = {.X = X, .sum = found, .kind = KI_REDUCE_MAX, .limits = count};
    memcpy(of.limit, limits, (size_t)count * sizeof *limits);
    const kiln_status status = run_entries(&of);
    for (int i = 0; i < count && status == KILN_OK; i++) beyond[i] = found[i] > 0;
    return status;
}

kiln_status ki_reduce_outcomes(double *ones, bool *signs, const kiln_matrix *y) {
    kiln_status status;
    *signs = false;
    TRY(reduce(ones, y, NULL, KI_REDUCE_ONES, false));
    *signs = isnan(*ones);
    if (*signs) TRY(reduce(ones, y, NULL, KI_REDUCE_SIGNS, false));
done:
    return status;
}

/* ------------------------------------------------------------------------------ results on the device */

static kiln_status check_into(const char *call, const kiln_matrix *R, int64_t row, const kiln_matrix *X) {
    if (!R || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: R or X is NULL", call);
    const kiln_status status = ki_check_wide(call, "R", R, X, R->rows, X->cols);
    if (status != KILN_OK) return status;
    if (row < 0 || row >= R->rows)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: row is %lld, but R has %lld", call, (long long)row,
                       (long long)R->rows);
    if (R == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: R must not be X", call);
    return ki_check_dense(call, "X", X, X, X->rows, X->cols);
}

static kiln_status reduce_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y,
                               int kind) {
    if (X->cols == 0) return KILN_OK;
    if (ki_on_cpu(X->device)) return reduce((double *)ki_host(&R->values) + row * R->cols, X, Y, kind, false);
    return reduce_on_gpu(R, row, X, Y, kind, false);
}

kiln_status kiln_dot_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y) {
    static const char call[] = "kiln_dot_into";
    kiln_status status;
    TRY(check_into(call, R, row, X));
    TRY(ki_check_dense(call, "Y", Y, X, X->rows, Y && Y->cols == 1 ? 1 : X->cols));
    if (R == Y) TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: R must not be Y", call));
    TRY(reduce_into(R, row, X, Y, KI_REDUCE_DOT));
done:
    return status;
}

kiln_status kiln_sum_into(kiln_matrix *R, int64_t row, const kiln_matrix *X) {
    kiln_status status;
    TRY(check_into("kiln_sum_into", R, row, X));
    TRY(reduce_into(R, row, X, NULL, KI_REDUCE_SUM));
done:
    return status;
}

/* Squares of f32 fit a double. Elsewhere a second read costs less than the launches that would find out
 * whether it is needed. */
kiln_status kiln_norm_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, kiln_norm_kind kind) {
    static const char call[] = "kiln_norm_into";
    kiln_status status;
    TRY(check_into(call, R, row, X));
    if (kind < KILN_NORM_1 || kind > KILN_NORM_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no norm has the number %d", call, (int)kind);
    if (kind != KILN_NORM_2)
        return reduce_into(R, row, X, NULL, kind == KILN_NORM_1 ? KI_REDUCE_ABS : KI_REDUCE_MAX);
    if (X->cols == 0) return KILN_OK;
    if (ki_on_cpu(X->device)) return norm_2((double *)ki_host(&R->values) + row * R->cols, X);
    const bool scaled = X->type == R->type;
    if (scaled) TRY(reduce_into(R, row, X, NULL, KI_REDUCE_MAX));
    TRY(reduce_on_gpu(R, row, X, NULL, KI_REDUCE_SQUARES, scaled));
done:
    return status;
}
