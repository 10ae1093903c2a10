/* dot and norms: column reductions, finished on the host in a fixed order. */
#include "ops/reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/limits.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "bodies/bodies.h"
#include "ops/reduce.cl"

KI_ARGUMENTS(reduce);

/* What the groups of a launch leave, added up in order. */
static double join_column(const void *partials, kiln_type type, int64_t groups, int64_t columns, int64_t c,
                          int kind) {
    double sum = 0;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t at = g * columns + c;
        const double part = type == KILN_F64 ? ((const double *)partials)[at] : ((const float *)partials)[at];
        sum = reduce_join(sum, part, kind);
    }
    return sum;
}

/* Columns [first, first + columns) in one launch and one download, as each costs the time of many rows. */
static kiln_status reduce_columns(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                                  double scale, int64_t first, int64_t columns) {
    enum { GROUP = 128 };
    kiln_device *device = X->device;
    struct ki_buffer partial;
    struct ki_kernel *kernel;
    kiln_status status;
    const int64_t groups = ki_min(ki_ceil_div(X->rows, GROUP), (int64_t)device->properties.compute_units * 2);
    const kiln_type wide_type = ki_wide_type(device);
    const int64_t bytes = groups * columns * ki_type_bytes(wide_type);
    char defines[96];
    void *host = ki_alloc((size_t)bytes);
    if (!host) return ki_fail_nomem((size_t)bytes, "a reduction");
    snprintf(defines, sizeof defines, "-DKIND=%d -DGROUP=%d%s", kind, GROUP,
             X->nnz > ki_limits.index32 ? " -DINDEX64" : "");
    TRY(ki_device_scratch(device, &partial, bytes));
    TRY(ki_kernel_get(&kernel, device, "reduce", "reduce", X->type, defines));
    TRY(ki_kernel_launch(device, kernel, groups * columns, GROUP,
                         KI_PACK(reduce, X, .partial = &partial, .X = X, .Y = Y ? Y : X, .rows = X->rows,
                                 .k = (int32_t)X->cols, .y_cols = (int32_t)(Y ? Y : X)->cols,
                                 .first = (int32_t)first, .count = (int32_t)columns, .scale = scale)));
    TRY(ki_device_download(device, host, &partial, 0, bytes));
    for (int64_t c = 0; c < columns; c++)
        result[first + c] = join_column(host, wide_type, groups, columns, c, kind);
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
        /* A power of two, so that scaling rounds nothing. */
        for (size_t c = 0; c < cols; c++)
            if (largest[c] > 0 && isfinite(largest[c])) scale[c] = ldexp(1.0, -ilogb(largest[c]));
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
    TRY(ki_check_dense(call, "X", X, X, X->rows, X->cols));
    if (kind < KILN_NORM_1 || kind > KILN_NORM_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no norm has the number %d", call, (int)kind);
    if (kind == KILN_NORM_2) return norm_2(result, X);
    TRY(reduce(result, X, NULL, kind == KILN_NORM_1 ? KI_REDUCE_ABS : KI_REDUCE_MAX, NULL));
done:
    return status;
}
