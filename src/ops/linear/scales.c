/* Scales of columns: CPU body or one launch, and its sums. */
#include "ops/linear/scales.h"

#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/limits.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "ops/linear/scales.cl"
#include "pass/combine.h"

enum { GROUP = 128, SUMS = KI_SCALES_SUMS };

KI_ARGUMENTS(scales);

static const char *defines_of(int64_t n) {
    return n > ki_limits.index32 ? "-DGROUP=128 -DINDEX64" : "-DGROUP=128";
}

void ki_scales_program(struct ki_programs *programs, kiln_type type, int64_t n) {
    ki_programs_add(programs, "scales", "scales", type, defines_of(n));
}

static kiln_status run_gpu(double *sums, const struct ki_scales *s) {
    kiln_status status;
    const kiln_matrix *square = s->square;
    kiln_device *device = square->device;
    const int64_t n = square->rows;
    const int64_t groups = ki_min(ki_ceil_div(n, GROUP), (int64_t)device->properties.compute_units * 16);
    struct ki_buffer partial;
    TRY(ki_device_scratch(device, &partial, groups * SUMS * ki_type_bytes(ki_wide_type(device))));
    TRY(ki_kernel_run(device, "scales", "scales", square->type, defines_of(n), groups, GROUP,
                      KI_PACK(scales, square, .partial = &partial, .op = (int)s->op, .square = s->square,
                              .mean = s->mean, .centred = s->centred, .inverse = s->inverse,
                              .penalty = s->penalty, .kept = s->kept, .c = s->c, .n = n, .weight = s->weight,
                              .doubted = s->doubted, .flat = s->flat, .l2 = s->l2, .intercept = s->intercept,
                              .standardize = s->standardize, .plain = s->plain)));
    if (sums) TRY(ki_group_sums(sums, SUMS, device, &partial, groups));
done:
    return status;
}

kiln_status ki_scales_run(double *sums, const struct ki_scales *scales) {
    kiln_device *device = scales->square->device;
    if (device->lost) return kiln_device_sync(device);
    if (!ki_on_cpu(device)) return run_gpu(sums, scales);
    const kiln_status status = KI_WIDEN(scales->square, scales->mean, scales->centred, scales->inverse,
                                        scales->penalty, scales->kept, scales->c);
    if (status != KILN_OK) return status;
    ki_bodies(scales->square)->scales_run(sums, scales);
    return KILN_OK;
}
