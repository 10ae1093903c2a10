/* Scales of columns: CPU body or one launch, and its sums. */
#include "ops/scales.h"

#include <stdio.h>

#include "core/kernels.h"
#include "core/seams.h"
#include "core/size.h"
#include "bodies/bodies.h"

enum { GROUP = 128, SUMS = 2 };

/* Adds up what the groups left, in order. */
static kiln_status gather(double sums[SUMS], kiln_device *device, const struct ki_buffer *partial,
                          int64_t groups, int64_t element) {
    kiln_status status;
    void *host = ki_alloc((size_t)(groups * SUMS * element));
    if (!host) return ki_fail_nomem((size_t)(groups * SUMS * element), "sums");
    TRY(ki_device_download(device, host, partial, 0, groups * SUMS * element));
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < groups * SUMS; i++)
        sums[i % SUMS] += element == 8 ? ((double *)host)[i] : (double)((float *)host)[i];
done:
    ki_free(host);
    return status;
}

static kiln_status run_gpu(double *sums, const struct ki_scales *s) {
    kiln_status status;
    const kiln_matrix *square = s->square;
    kiln_device *device = square->device;
    const kiln_type wide = ki_wide_type(device);
    const int64_t n = square->rows, element = ki_type_bytes(wide);
    const int64_t groups = ki_min(ki_ceil_div(n, GROUP), (int64_t)device->properties.compute_units * 16);
    const double numbers[] = {s->weight, s->doubted, s->rounded, s->noise, s->l2};
    struct ki_buffer partial;
    struct ki_kernel *kernel;
    struct ki_arg args[24];
    int count = 0;
    TRY(ki_kernel_get(&kernel, device, "scales", "scales", square->type,
                      n > KILN_INDEX32_LIMIT ? "-DGROUP=128 -DINDEX64" : "-DGROUP=128"));
    TRY(ki_device_scratch(device, &partial, groups * SUMS * element));
    args[count++] = ki_arg_buffer(&partial);
    args[count++] = ki_arg_i32((int32_t)s->op);
    args[count++] = ki_arg_values((const kiln_matrix *)s->square);
    args[count++] = ki_arg_values(s->mean);
    args[count++] = ki_arg_values(s->centred);
    args[count++] = ki_arg_values(s->inverse);
    args[count++] = ki_arg_values(s->penalty);
    args[count++] = ki_arg_values(s->kept);
    args[count++] = ki_arg_values(s->probes);
    args[count++] = ki_arg_values(s->probe_sums);
    args[count++] = ki_arg_i32(s->probes ? (int32_t)s->probes->cols : 0);
    args[count++] = ki_arg_i64(n);
    for (int i = 0; i < 5; i++) args[count++] = ki_arg_real(wide, numbers[i]);
    args[count++] = ki_arg_i32(s->intercept);
    args[count++] = ki_arg_i32(s->standardize);
    args[count++] = ki_arg_i32(s->plain);
    TRY(ki_kernel_launch(device, kernel, groups, GROUP, args, count));
    if (sums) TRY(gather(sums, device, &partial, groups, element));
done:
    return status;
}

kiln_status ki_scales_run(double *sums, const struct ki_scales *scales) {
    kiln_device *device = scales->square->device;
    if (device->lost) return kiln_device_sync(device);
    if (!ki_on_cpu(device)) return run_gpu(sums, scales);
    ki_bodies(scales->square)->scales_run(sums, scales);
    return KILN_OK;
}
