/* dot and norms: column reductions, finished on the host in a fixed order. */
#include "ops/reduce.h"

#include <math.h>
#include <stdio.h>

#include "core/kernels.h"
#include "core/seams.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "ops/bodies.h"

/* Each group leaves one partial sum a column; groups are few, so that adding them up here costs nothing. */
static kiln_status reduce_gpu(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                              const double *scale) {
    enum { GROUP = 128 };
    kiln_device *device = X->device;
    struct ki_buffer partial;
    struct ki_kernel *kernel;
    kiln_status status;
    const int64_t groups = ki_min(ki_ceil_div(X->rows, GROUP), (int64_t)device->properties.compute_units * 2);
    const kiln_type wide_type = device->properties.has_f64 ? KILN_F64 : KILN_F32;
    const int64_t bytes = groups * ki_type_bytes(wide_type);
    void *host = ki_alloc((size_t)bytes);
    char defines[96];
    TRY(host ? KILN_OK : ki_fail_nomem((size_t)bytes, "a reduction"));
    snprintf(defines, sizeof defines, "-DKIND=%d -DGROUP=%d%s", kind, GROUP,
             X->nnz > KILN_INDEX32_LIMIT ? " -DINDEX64" : "");
    TRY(ki_device_scratch(device, &partial, bytes));
    TRY(ki_kernel_get(&kernel, device, "reduce", "reduce", X->type, defines));
    for (int64_t c = 0; c < X->cols; c++) {
        const struct ki_arg args[] = {
            ki_arg_buffer(&partial),      ki_arg_values(X),
            ki_arg_values(Y ? Y : X),     ki_arg_i64(X->rows),
            ki_arg_i32((int32_t)X->cols), ki_arg_i32((int32_t)(Y ? Y : X)->cols),
            ki_arg_i32((int32_t)c),       ki_arg_real(wide_type, scale ? scale[c] : 1.0)};
        TRY(ki_kernel_launch(device, kernel, groups, GROUP, args, 8));
        TRY(ki_device_download(device, host, &partial, 0, bytes));
        result[c] = 0;
        for (int64_t g = 0; g < groups; g++) {
            double part = wide_type == KILN_F64 ? ((double *)host)[g] : ((float *)host)[g];
            result[c] = reduce_join(result[c], part, kind);
        }
    }
done:
    ki_free(host);
    return status;
}

static kiln_status reduce(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind,
                          const double *scale) {
    for (int64_t c = 0; c < X->cols; c++) result[c] = 0;
    if (X->device->lost) return kiln_device_sync(X->device);
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
    const size_t bytes = (size_t)X->cols * sizeof(double);
    double *largest = NULL, *scale = NULL;
    TRY(reduce(result, X, NULL, KI_REDUCE_SQUARES, NULL));
    int extreme = 0;
    for (int64_t c = 0; c < X->cols; c++)
        extreme |= !(result[c] > 1e-280 && result[c] < 1e300) && result[c] == result[c];
    if (extreme) {
        largest = ki_alloc(bytes);
        scale = ki_alloc(bytes);
        TRY(largest && scale ? KILN_OK : ki_fail_nomem(bytes, "a norm"));
        TRY(reduce(largest, X, NULL, KI_REDUCE_MAX, NULL));
        /* A power of two, so that scaling rounds nothing. */
        for (int64_t c = 0; c < X->cols; c++)
            scale[c] = largest[c] > 0 && isfinite(largest[c]) ? ldexp(1.0, -ilogb(largest[c])) : 1.0;
        TRY(reduce(result, X, NULL, KI_REDUCE_SQUARES, scale));
    }
    for (int64_t c = 0; c < X->cols; c++) result[c] = sqrt(result[c]) / (extreme ? scale[c] : 1.0);
done:
    ki_free(largest);
    ki_free(scale);
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
