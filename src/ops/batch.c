/* Reductions of many vectors at once. */
#include <stdio.h>

#include "bodies/bodies.h"
#include "core/arguments.h"
#include "core/size.h"
#include "ops/batch.cl"

KI_ARGUMENTS(batch_reduce);

static kiln_status reduce_gpu(kiln_matrix *result, kiln_batch_kind kind, const kiln_matrix *X) {
    enum { GROUP = 128 };
    struct ki_kernel *kernel;
    char defines[64];
    const int64_t groups = ki_min(X->rows, (int64_t)X->device->properties.compute_units * 16);
    snprintf(defines, sizeof defines, "-DKIND=%d -DGROUP=%d", (int)kind, GROUP);
    const kiln_status status = ki_kernel_get(&kernel, X->device, "batch", "batch_reduce", X->type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(
        X->device, kernel, groups, GROUP,
        KI_PACK(batch_reduce, X, .result = result, .X = X, .count = X->rows, .length = X->cols));
}

kiln_status kiln_batch_reduce(kiln_matrix *result, kiln_batch_kind kind, const kiln_matrix *X) {
    static const char call[] = "kiln_batch_reduce";
    kiln_status status;
    if (!X || X->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: X must be dense", call);
    TRY(ki_check_dense(call, "result", result, X, X->rows, 1));
    if (result == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result must not be X", call);
    if (kind < KILN_BATCH_SUM || kind > KILN_BATCH_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no reduction has the number %d", call, (int)kind);
    if (X->device->lost) return kiln_device_sync(X->device);
    if (X->rows == 0) return KILN_OK;
    if (!ki_on_cpu(X->device)) return reduce_gpu(result, kind, X);
    ki_bodies(X)->batch_reduce(result, (int)kind, X);
done:
    return status;
}
