/* dot, norms and sums: column reductions, finished in a fixed order, on the host or, for a result that stays there, on the
 * device. */
#include "ops/vectors/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/limits.h"
#include "core/processes.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "bodies/bodies.h"
#include "ops/vectors/reduce.cl"
#include "pass/combine.h"

KI_ARGUMENTS(reduce);
KI_ARGUMENTS(reduce_finish);

enum { GROUP = 128, SPAN_MOST = 32 /* columns of a group: of f32 they fill a line of a cache */ };
enum { REDUCE_DEFINES = 64 };

/* What the groups of a launch leave, added up in order. */
static double join_column(const double *partials, int64_t groups, int64_t columns, int64_t c, int kind) {
    double sum = 0;
    for (int64_t g = 0; g < groups; g++) sum = reduce_join(sum, partials[g * columns + c], kind);
    return sum;
}

/* A reduction of columns [first, first + columns), of which a group takes `span`, by `groups` shares of the rows: what it leaves in
 * `partial`. */
struct reduction {
    const kiln_matrix *X, *Y; /* Y may be NULL */
    int kind;
    int64_t first, columns, span, groups;
    double scale;
    const kiln_matrix *largest; /* the row from which the columns' scales come; NULL: `scale` */
    int64_t row;
    char defines[REDUCE_DEFINES];
};

static void defines_of(char text[REDUCE_DEFINES], int64_t entries, int kind) {
    snprintf(text, REDUCE_DEFINES, "-DKIND=%d -DGROUP=%d%s", kind, GROUP,
             entries > ki_limits.index32 ? " -DINDEX64" : "");
}

void ki_reduce_program(struct ki_programs *programs, kiln_type type, int64_t entries,
                       enum ki_reduce_kind kind) {
    char defines[REDUCE_DEFINES];
    defines_of(defines, entries, (int)kind);
    ki_programs_add(programs, "reduce", "reduce", type, defines);
}

static struct reduction reduction_of(const kiln_matrix *X, const kiln_matrix *Y, int kind, int64_t first,
                                     int64_t columns) {
    const int64_t most = (int64_t)X->device->properties.compute_units * 8;
    struct reduction r = {
        .X = X, .Y = Y, .kind = kind, .first = first, .columns = columns, .span = 1, .scale = 1};
    while (r.span < SPAN_MOST && 2 * r.span <= columns) r.span *= 2;
    r.groups = ki_min(ki_ceil_div(X->rows, GROUP / r.span), most);
    defines_of(r.defines, X->nnz, kind);
    return r;
}

static int64_t partial_bytes(const struct reduction *r) {
    return ki_max(r->groups, 1) * r->columns * ki_type_bytes(ki_wide_type(r->X->device));
}

static kiln_status launch(const struct ki_buffer *partial, const struct reduction *r) {
    const kiln_matrix *X = r->X, *Y = r->Y ? r->Y : X;
    return ki_kernel_run(X->device, "reduce", "reduce", X->type, r->defines,
                         r->groups * ki_ceil_div(r->columns, r->span), GROUP,
                         KI_PACK(reduce, X, .partial = partial, .X = X, .Y = Y, .largest = r->largest,
                                 .rows = X->rows, .row = r->row, .k = (int32_t)X->cols,
                                 .y_cols = (int32_t)Y->cols, .first = (int32_t)r->first,
                                 .count = (int32_t)r->columns, .span = (int32_t)r->span, .scale = r->scale));
}

/* Columns [first, first + columns) in one launch and one download, as each costs the time of many rows. */
static kiln_status reduce_columns(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                                  double scale, int64_t first, int64_t columns) {
    struct reduction r = reduction_of(X, Y, kind, first, columns);
    r.scale = scale;
    struct ki_buffer partial;
    kiln_status status;
    const size_t bytes = (size_t)(ki_max(r.groups, 1) * columns) * sizeof(double);
    double *host = ki_alloc(bytes);
    if (!host) return ki_fail_nomem(bytes, "a reduction");
    TRY(ki_device_scratch(X->device, &partial, partial_bytes(&r)));
    TRY(launch(&partial, &r));
    TRY(ki_download_wide(host, X->device, &partial, 0, r.groups * columns));
    for (int64_t c = 0; c < columns; c++) result[first + c] = join_column(host, r.groups, columns, c, kind);
done:
    ki_free(host);
    return status;
}

/* A scale of its own for each column comes up for extreme values only: then column by column. */
static kiln_status reduce_gpu(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                              const double *scale) {
    kiln_status status = KILN_OK;
    double *sums = ki_alloc((size_t)X->cols * sizeof *sums); /* result stays as it is if anything fails */
    if (!sums) return ki_fail_nomem((size_t)X->cols * sizeof *sums, "a reduction");
    if (!scale) TRY(reduce_columns(sums, X, Y, kind, 1, 0, X->cols));
    for (int64_t c = 0; scale && c < X->cols; c++) TRY(reduce_columns(sums, X, Y, kind, scale[c], c, 1));
    memcpy(result, sums, (size_t)X->cols * sizeof *sums);
done:
    ki_free(sums);
    return status;
}

static kiln_status reduce(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                          const double *scale) {
    if (X->device->lost) return kiln_device_sync(X->device);
    for (int64_t c = 0; X->nnz == 0 && c < X->cols; c++) result[c] = 0;
    if (X->nnz == 0) return KILN_OK;
    if (!ki_on_cpu(X->device)) return reduce_gpu(result, X, Y, kind, scale);
    ki_bodies(X)->reduce(result, X, Y, kind, scale);
    return KILN_OK;
}

kiln_status kiln_dot(double *result, const kiln_matrix *X, const kiln_matrix *Y) {
    static const char call[] = "kiln_dot";
    kiln_status status;
    if (!result || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result or X is NULL", call);
    TRY(ki_check_dense(call, "X", X, X, X->rows, X->cols));
    TRY(ki_check_dense(call, "Y", Y, X, X->rows, Y && Y->cols == 1 ? 1 : X->cols));
    TRY(reduce(result, X, Y, KI_REDUCE_DOT, NULL));
done:
    return status;
}

/* sqrt(sum x^2). Squares of numbers near the ends of the range overflow or vanish; only then a second pass
 * scales by the largest element. */
static kiln_status norm_2(double *result, const kiln_matrix *X) {
    kiln_status status;
    const size_t cols = (size_t)X->cols;
    double *sum = ki_alloc(3 * cols * sizeof *sum);
    if (!sum) return ki_fail_nomem(3 * cols * sizeof *sum, "a norm");
    double *largest = sum + cols, *scale = largest + cols;
    TRY(reduce(sum, X, NULL, KI_REDUCE_SQUARES, NULL));
    bool extreme = false;
    for (size_t c = 0; c < cols; c++) {
        scale[c] = 1.0;
        extreme |= !(sum[c] > 1e-280 && sum[c] < 1e300) && sum[c] == sum[c];
    }
    if (extreme) {
        TRY(reduce(largest, X, NULL, KI_REDUCE_MAX, NULL));
        for (size_t c = 0; c < cols; c++) scale[c] = reduce_scale(largest[c]);
        TRY(reduce(sum, X, NULL, KI_REDUCE_SQUARES, scale));
    }
    for (size_t c = 0; c < cols; c++) result[c] = sqrt(sum[c]) / scale[c];
done:
    ki_free(sum);
    return status;
}

kiln_status kiln_norm(double *result, const kiln_matrix *X, kiln_norm_kind kind) {
    static const char call[] = "kiln_norm";
    kiln_status status;
    if (!result || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result or X is NULL", call);
    if (X->here && kind == KILN_NORM_MAX && X->format == KILN_DENSE)
        return X->device->processes->largest(result, X);
    TRY(ki_check_dense(call, "X", X, X, X->rows, X->cols));
    if (kind < KILN_NORM_1 || kind > KILN_NORM_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no norm has the number %d", call, (int)kind);
    if (kind == KILN_NORM_2) return norm_2(result, X);
    TRY(reduce(result, X, NULL, kind == KILN_NORM_1 ? KI_REDUCE_ABS : KI_REDUCE_MAX, NULL));
done:
    return status;
}

kiln_status ki_reduce_outcomes(double *ones, bool *signs, const kiln_matrix *y) {
    kiln_status status;
    *signs = false;
    TRY(reduce(ones, y, NULL, KI_REDUCE_ONES, NULL));
    *signs = isnan(*ones);
    if (*signs) TRY(reduce(ones, y, NULL, KI_REDUCE_SIGNS, NULL));
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

/* scaled: row `row` holds the columns' largest elements, by which squares are scaled. */
static kiln_status reduce_into_gpu(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y,
                                   int kind, bool scaled) {
    struct reduction r = reduction_of(X, Y, kind, 0, X->cols);
    struct ki_buffer partial;
    kiln_status status;
    r.largest = scaled ? R : NULL;
    r.row = row;
    TRY(ki_device_scratch(X->device, &partial, partial_bytes(&r)));
    if (r.groups > 0) TRY(launch(&partial, &r));
    TRY(ki_kernel_run(X->device, "reduce", "reduce_finish", X->type, r.defines, r.columns, GROUP,
                      KI_PACK(reduce_finish, X, .R = R, .partial = &partial, .row = row,
                              .groups = (int32_t)r.groups, .k = (int32_t)X->cols, .scaled = scaled)));
done:
    return status;
}

static kiln_status reduce_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y,
                               int kind) {
    if (X->cols == 0) return KILN_OK;
    if (ki_on_cpu(X->device)) return reduce((double *)ki_host(&R->values) + row * R->cols, X, Y, kind, NULL);
    return reduce_into_gpu(R, row, X, Y, kind, false);
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

/* Squares of f32 fit a double. Elsewhere a second read costs less than the launches that would find out whether it is needed. */
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
    TRY(reduce_into_gpu(R, row, X, NULL, KI_REDUCE_SQUARES, scaled));
done:
    return status;
}
