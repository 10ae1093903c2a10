/* The vector work of conjugate gradient between two passes over X, for k recurrences at once.
 *
 * Written with dot and combine it takes a dozen launches and three waits an iteration, which cost more than the pass itself
 * where X is below a gigabyte. Here the scalars stay on the device, and a vector that a launch has in its hands serves all that
 * needs it: the start of the next pass (Q = L P) comes from the launch that makes P, what centres its rows from the one
 * that reads the means to correct Q. */
#include "ops/cg.h"

#include <stdio.h>

#include "core/kernels.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "ops/bodies.h"

static kiln_type wide_type(const kiln_device *device) {
    return device->properties.has_f64 ? KILN_F64 : KILN_F32;
}

static kiln_status step_gpu(const struct ki_cg *step) {
    enum { STEPS = 3 };
    static const char *const names[STEPS] = {"cg_curvature", "cg_update", "cg_direction"};
    const kiln_cg *on = &step->on;
    kiln_device *device = on->P->device;
    const struct ki_properties *properties = &device->properties;
    const int64_t group = ki_min(properties->is_gpu ? 512 : 128, properties->group_max);
    const int64_t n = on->P->rows, k = on->P->cols;
    int64_t shares = ki_ceil_div(n, group);
    struct ki_kernel *kernels[STEPS];
    struct ki_buffer space;
    char defines[64];
    kiln_status status;
    /* A thread's batch reaches beyond the last row. */
    snprintf(defines, sizeof defines, "-DGROUP=%d%s", (int)group,
             on->P->nnz > KILN_INDEX32_LIMIT / 2 ? " -DINDEX64" : "");
    /* As many groups as run at once in each of the launches: one that had to wait would find the memory half idle. */
    for (int i = 0; i < STEPS; i++) {
        int64_t resident;
        TRY(ki_kernel_get(&kernels[i], device, "cg", names[i], on->P->type, defines));
        TRY(ki_kernel_resident(device, &resident, kernels[i], group));
        shares = ki_min(shares, resident);
    }
    TRY(ki_device_scratch(device, &space, (3 * shares + CG_ROWS) * k * ki_type_bytes(wide_type(device))));
    const struct ki_arg scratch = ki_arg_buffer(&space), rows = ki_arg_i64(n), cols = ki_arg_i32((int32_t)k);
    const struct ki_arg S = ki_arg_values(on->S), E = ki_arg_values(on->E), G = ki_arg_values(on->G);
    const struct ki_arg P = ki_arg_values(on->P), Q = ki_arg_values(on->Q);
    const struct ki_arg inverse = ki_arg_values(on->inverse), penalty = ki_arg_values(on->penalty);
    const struct ki_arg mean = ki_arg_values(on->mean), sums = ki_arg_values(on->mean ? on->sums : NULL);
    const struct ki_arg shift = ki_arg_values(on->mean ? on->shift : NULL), slot = ki_arg_i32(step->slot);
    const struct ki_arg l2 = ki_arg_real(on->P->type, on->l2);
    const struct ki_arg first[] = {scratch, S, P, Q, sums, shift, rows, cols};
    const struct ki_arg second[] = {scratch, G, Q, inverse, mean, sums, rows, cols, slot};
    const struct ki_arg third[] = {scratch, S, E, G, P, Q, inverse, penalty, l2, shift, rows, cols, slot};
    if (step->slot != KI_CG_BEGIN) TRY(ki_kernel_launch(device, kernels[0], shares * k, group, first, 8));
    TRY(ki_kernel_launch(device, kernels[1], shares * k, group, second, 9));
    TRY(ki_kernel_launch(device, kernels[2], shares * k, group, third, 13));
done:
    return status;
}

static kiln_status check_state(const char *call, const kiln_cg *on, int64_t slot) {
    const kiln_matrix *S = on->S, *P = on->P;
    if (S->device != P->device || S->type != wide_type(P->device) || S->format != KILN_DENSE ||
        S->cols != P->cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: S must be dense, %s, on P's device, with P's %lld columns",
                       call, ki_type_name(wide_type(P->device)), (long long)P->cols);
    if (slot < KI_CG_BEGIN || slot >= (S->rows - CG_ROWS) / 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: slot is %lld, but S has rows for %lld", call, (long long)slot,
                       (long long)(S->rows - CG_ROWS) / 2);
    return KILN_OK;
}

static kiln_status check(const char *call, const kiln_cg *on) {
    kiln_status status;
    if (!on || !on->S || !on->E || !on->G || !on->P || !on->Q)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: cg, S, E, G, P or Q is NULL", call);
    const kiln_matrix *P = on->P;
    if (P->cols < 1 || P->cols > KI_CG_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P has %lld columns, but must have 1 to %d", call,
                       (long long)P->cols, KI_CG_COLUMNS);
    TRY(ki_check_dense(call, "E", on->E, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "G", on->G, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "Q", on->Q, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "P", P, P, P->rows, P->cols));
    if (on->inverse) TRY(ki_check_dense(call, "inverse", on->inverse, P, P->rows, 1));
    if (on->penalty) TRY(ki_check_dense(call, "penalty", on->penalty, P, P->rows, 1));
    if (on->mean) {
        TRY(ki_check_dense(call, "mean", on->mean, P, P->rows, 1));
        TRY(ki_check_dense(call, "sums", on->sums, P, 1, P->cols));
        TRY(ki_check_dense(call, "shift", on->shift, P, 1, P->cols));
    }
    if (on->E == on->G || on->E == on->P || on->E == on->Q || on->G == on->P || on->G == on->Q ||
        on->P == on->Q || (on->mean && on->sums == on->shift))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: E, G, P and Q must be four matrices, sums and shift two",
                       call);
done:
    return status;
}

static kiln_status run(const char *call, const kiln_cg *on, int64_t slot) {
    kiln_status status;
    TRY(check(call, on));
    TRY(check_state(call, on, slot));
    if (on->P->device->lost) return kiln_device_sync(on->P->device);
    const struct ki_cg step = {.on = *on, .slot = (int)slot};
    if (!ki_on_cpu(on->P->device)) return step_gpu(&step);
    ki_bodies(on->P)->cg_step(&step);
done:
    return status;
}

kiln_status kiln_cg_begin(const kiln_cg *cg) {
    return run("kiln_cg_begin", cg, KI_CG_BEGIN);
}

kiln_status kiln_cg_step(const kiln_cg *cg, int64_t slot) {
    if (slot >= 0) return run("kiln_cg_step", cg, slot);
    return ki_fail(KILN_ERR_ARGUMENT, "kiln_cg_step: slot is %lld, but must be >= 0", (long long)slot);
}
