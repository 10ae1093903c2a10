/* The vector work of a truncated Newton step: CPU body or one launch, and its sums. */
#include "ops/linear/newton.h"

#include <stdio.h>
#include <string.h>

#include "core/arguments.h"
#include "core/seams.h"
#include "core/limits.h"
#include "core/size.h"
#include "core/threads.h"
#include "bodies/bodies.h"
#include "ops/linear/newton.cl"

enum { GROUP = 128, SUMS = 3 };

KI_ARGUMENTS(pairs);

/* Adds up what the groups left, in order. */
static kiln_status gather(double *sums, kiln_device *device, const struct ki_buffer *partial, int64_t groups,
                          int64_t element) {
    kiln_status status;
    double all[SUMS] = {0};
    void *host = ki_alloc((size_t)(groups * SUMS * element));
    if (!host) return ki_fail_nomem((size_t)(groups * SUMS * element), "sums");
    TRY(ki_device_download(device, host, partial, 0, groups * SUMS * element));
    for (int64_t i = 0; i < groups * SUMS; i++)
        all[i % SUMS] += element == 8 ? ((double *)host)[i] : (double)((float *)host)[i];
    memcpy(sums, all, sizeof all);
done:
    ki_free(host);
    return status;
}

static kiln_status run_gpu(double *sums, const struct ki_pairs *p) {
    kiln_status status;
    const kiln_matrix *W = p->out.w;
    kiln_device *device = W->device;
    const int64_t element = device->properties.has_f64 ? 8 : 4, count = W->nnz + W->cols;
    const int64_t groups = ki_min(ki_ceil_div(count, GROUP), (int64_t)device->properties.compute_units * 8);
    struct ki_buffer partial;
    struct ki_kernel *kernel;
    char defines[64];
    snprintf(defines, sizeof defines, "-DOP=%d -DGROUP=%d%s", (int)p->op, GROUP,
             count > ki_limits.index32 ? " -DINDEX64" : "");
    TRY(ki_kernel_get(&kernel, device, "newton", "pairs", W->type, defines));
    TRY(ki_device_scratch(device, &partial, groups * SUMS * element));
    TRY(ki_kernel_launch(device, kernel, groups, GROUP,
                         KI_PACK(pairs, W, .partial = &partial, .out = p->out.w, .out_b = p->out.b,
                                 .second = p->second.w, .second_b = p->second.b, .x = p->x.w, .x_b = p->x.b,
                                 .y = p->y.w, .y_b = p->y.b, .inverse = p->inverse.w,
                                 .inverse_b = p->inverse.b, .mean = p->mean, .column = p->column,
                                 .count = W->nnz, .k = (int32_t)W->cols, .scalar = p->scalar)));
    if (sums) TRY(gather(sums, device, &partial, groups, element));
done:
    return status;
}

kiln_status ki_pairs_run(double *sums, const struct ki_pairs *pairs) {
    kiln_device *device = pairs->out.w->device;
    if (device->lost) return kiln_device_sync(device);
    if (!ki_on_cpu(device)) return run_gpu(sums, pairs);
    ki_bodies(pairs->out.w)->pairs_run(sums, pairs);
    return KILN_OK;
}

int ki_newton_threads(const kiln_device *device) {
    enum { ASSUMED = 4 };
    const bool same_bits = device->options.deterministic && ki_on_cpu(device);
    return same_bits ? ASSUMED : device->info.threads;
}

void ki_newton_parallel(const kiln_device *device, int parts, void (*body)(void *arg, int part), void *arg) {
    ki_parallel(device->threads, parts, body, arg);
}
