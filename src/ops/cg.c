/* The vector work of conjugate gradient between two passes over X, for k recurrences at once.
 *
 * Written with dot and combine it takes a dozen launches and three waits an iteration, which cost more than the pass itself
 * where X is below a gigabyte. Here the scalars stay on the device. */
#include "ops/cg.h"

#include <stdio.h>

#include "core/kernels.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "ops/bodies.h"

static kiln_type wide_type(const kiln_device *device) {
    return device->properties.has_f64 ? KILN_F64 : KILN_F32;
}

static kiln_status step_gpu(const struct ki_cg *s) {
    kiln_device *device = s->P->device;
    const struct ki_properties *properties = &device->properties;
    /* Enough loads on their way for the memory's full speed, from few enough groups that each can add up what all left. */
    const int64_t group = ki_min(properties->is_gpu ? 512 : 128, properties->group_max);
    const int64_t n = s->P->rows, k = s->P->cols;
    const int64_t shares = ki_min(ki_ceil_div(n, group), (int64_t)properties->compute_units * 4);
    struct ki_kernel *curvature, *update, *direction;
    struct ki_buffer space;
    char defines[64];
    kiln_status status;
    snprintf(defines, sizeof defines, "-DGROUP=%d%s", (int)group,
             s->P->nnz > KILN_INDEX32_LIMIT ? " -DINDEX64" : "");
    TRY(ki_kernel_get(&curvature, device, "cg", "cg_curvature", s->P->type, defines));
    TRY(ki_kernel_get(&update, device, "cg", "cg_update", s->P->type, defines));
    TRY(ki_kernel_get(&direction, device, "cg", "cg_direction", s->P->type, defines));
    TRY(ki_device_scratch(device, &space, (2 * shares + CG_ROWS) * k * ki_type_bytes(wide_type(device))));
    const struct ki_arg scratch = ki_arg_buffer(&space), rows = ki_arg_i64(n), cols = ki_arg_i32((int32_t)k);
    const struct ki_arg S = ki_arg_values(s->S), E = ki_arg_values(s->E), G = ki_arg_values(s->G);
    const struct ki_arg P = ki_arg_values(s->P), Q = ki_arg_values(s->Q), inverse = ki_arg_values(s->inverse);
    const struct ki_arg first[] = {scratch, S, P, Q, rows, cols};
    const struct ki_arg second[] = {scratch, G, Q, inverse, rows, cols};
    const struct ki_arg third[] = {scratch, S, E, G, P, inverse, rows, cols, ki_arg_i32(s->slot)};
    TRY(ki_kernel_launch(device, curvature, shares * k, group, first, 6));
    TRY(ki_kernel_launch(device, update, shares * k, group, second, 6));
    TRY(ki_kernel_launch(device, direction, shares * k, group, third, 9));
done:
    return status;
}

kiln_status kiln_cg_step(kiln_matrix *S, kiln_matrix *E, kiln_matrix *G, kiln_matrix *P, const kiln_matrix *Q,
                         const kiln_matrix *inverse, int64_t slot) {
    static const char call[] = "kiln_cg_step";
    kiln_status status;
    if (!S || !E || !G || !P || !Q) return ki_fail(KILN_ERR_ARGUMENT, "%s: S, E, G, P or Q is NULL", call);
    if (P->cols < 1 || P->cols > KI_CG_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P has %lld columns, but must have 1 to %d", call,
                       (long long)P->cols, KI_CG_COLUMNS);
    TRY(ki_check_dense(call, "E", E, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "G", G, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "Q", Q, P, P->rows, P->cols));
    TRY(ki_check_dense(call, "P", P, P, P->rows, P->cols));
    if (inverse) TRY(ki_check_dense(call, "inverse", inverse, P, P->rows, 1));
    if (S->device != P->device || S->type != wide_type(P->device) || S->format != KILN_DENSE ||
        S->cols != P->cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: S must be dense, %s, on P's device, with P's %lld columns",
                       call, ki_type_name(wide_type(P->device)), (long long)P->cols);
    if (slot < 0 || slot >= (S->rows - CG_ROWS) / 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: slot is %lld, but S has rows for %lld", call, (long long)slot,
                       (long long)(S->rows - CG_ROWS) / 2);
    if (E == G || E == P || E == Q || G == P || G == Q || P == Q)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: E, G, P and Q must be four matrices", call);
    if (P->device->lost) return kiln_device_sync(P->device);
    const struct ki_cg step = {.S = S, .E = E, .G = G, .P = P, .Q = Q, .inverse = inverse, .slot = (int)slot};
    if (!ki_on_cpu(P->device)) return step_gpu(&step);
    ki_bodies(P)->cg_step(&step);
done:
    return status;
}
