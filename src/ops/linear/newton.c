/* The vector work of a truncated Newton step: CPU body or one launch, and its sums. */
#include "ops/linear/newton.h"

#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/limits.h"
#include "core/size.h"
#include "core/threads.h"
#include "bodies/bodies.h"
#include "ops/linear/newton.cl"
#include "pass/combine.h"

enum { GROUP = 128, SUMS = 3 };

KI_ARGUMENTS(pairs);

#define PAIRS_DEFINES(op, count)                                                                             \
    KI_DEFINES("-DOP=%d -DGROUP=%d%s", (int)(op), GROUP, (count) > ki_limits.index32 ? " -DINDEX64" : "")

void ki_pairs_program(struct ki_programs *programs, kiln_type type, int64_t count, enum ki_pair_op op) {
    ki_programs_add(programs, "newton", "pairs", type, PAIRS_DEFINES(op, count));
}

static kiln_status run_gpu(double *sums, const struct ki_pairs *p) {
    kiln_status status;
    const kiln_matrix *W = p->out.w;
    kiln_device *device = W->device;
    const int64_t count = W->nnz + W->cols;
    const int64_t groups = ki_min(ki_ceil_div(count, GROUP), (int64_t)device->properties.compute_units * 8);
    struct ki_buffer partial;
    TRY(ki_device_scratch(device, &partial, groups * SUMS * ki_type_bytes(ki_wide_type(device))));
    TRY(ki_kernel_run(device, "newton", "pairs", W->type, PAIRS_DEFINES(p->op, count), groups, GROUP,
                      KI_PACK(pairs, W, .partial = &partial, .out = p->out.w, .out_b = p->out.b,
                              .second = p->second.w, .second_b = p->second.b, .x = p->x.w, .x_b = p->x.b,
                              .y = p->y.w, .y_b = p->y.b, .inverse = p->inverse.w, .inverse_b = p->inverse.b,
                              .mean = p->mean, .column = p->column, .count = W->nnz, .k = (int32_t)W->cols,
                              .scalar = p->scalar)));
    if (sums) TRY(ki_group_sums(sums, SUMS, device, &partial, groups));
done:
    return status;
}

kiln_status ki_pairs_run(double *sums, const struct ki_pairs *pairs) {
    kiln_device *device = pairs->out.w->device;
    if (device->lost) return kiln_device_sync(device);
    if (!ki_on_cpu(device)) return run_gpu(sums, pairs);
    const kiln_status status =
        KI_WIDEN(pairs->out.w, pairs->out.b, pairs->second.w, pairs->second.b, pairs->x.w, pairs->x.b,
                 pairs->y.w, pairs->y.b, pairs->inverse.w, pairs->inverse.b, pairs->mean, pairs->column);
    if (status != KILN_OK) return status;
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
