/* The vector work of conjugate gradient between two passes over X, for k recurrences at once.
 *
 * Written with dot and combine it takes a dozen launches and three waits an iteration, which cost more than
 * the pass itself where X is below a gigabyte. Here the scalars stay on the device, and a vector that a
 * launch has in its hands serves all that needs it: the start of the next pass (Q = L P) comes from the
 * launch that makes P, what centres its rows from the one that reads the means to correct Q. */
#include "ops/linear/cg.h"
#include "pass/rows.h"

#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "core/sized.h"
#include "dialect/scalar_math.h"
#include "bodies/bodies.h"
#include "ops/linear/cg.cl"
#include "pass/chain.h"

KI_ARGUMENTS(cg_update);
KI_ARGUMENTS(cg_direction);
KI_ARGUMENTS(cg_settle);

static int64_t group_of(const kiln_device *device) {
    return ki_min(device->properties.is_gpu ? 512 : 128, device->properties.group_max);
}

/* A thread's batch reaches beyond the last of `count` numbers. */
#define CG_DEFINES(device, count)                                                                            \
    KI_DEFINES("-DGROUP=%d%s", (int)group_of(device), (count) > ki_limits.index32 / 2 ? " -DINDEX64" : "")

void ki_cg_program(struct ki_programs *programs, const kiln_matrix *X, int64_t targets) {
    ki_programs_add(programs, "cg", "cg_update", X->type, CG_DEFINES(X->device, X->cols * targets));
}

static kiln_status step_gpu(const struct ki_cg *step) {
    enum { STEPS = 3 };
    static const char *const names[STEPS] = {"cg_update", "cg_direction", "cg_settle"};
    const kiln_cg *on = &step->on;
    kiln_device *device = on->P->device;
    const int64_t group = group_of(device);
    const int64_t n = on->P->rows, k = on->P->cols;
    int64_t shares = ki_ceil_div(n, group);
    struct ki_kernel *kernels[STEPS];
    struct ki_buffer space;
    kiln_status status;
    const char *defines = CG_DEFINES(device, on->P->nnz);
    /* As many groups as run at once in each of the launches: one that had to wait would find the memory half
     * idle. */
    for (int i = 0; i < STEPS; i++) {
        int64_t resident;
        TRY(ki_kernel_get(&kernels[i], device, "cg", names[i], on->P->type, defines));
        if (i == STEPS - 1) break;
        TRY(ki_kernel_resident(device, &resident, kernels[i], group));
        shares = ki_min(shares, resident);
    }
    TRY(ki_device_scratch(device, &space, 3 * shares * k * ki_type_bytes(ki_wide_type(device))));
    const int32_t cols = (int32_t)k, groups = (int32_t)(shares * k), begin = step->slot == KI_CG_BEGIN;
    TRY(ki_kernel_launch(device, kernels[0], shares * k, group,
                         KI_PACK(cg_update, on->P, .space = &space, .S = on->S, .curvature = on->curvature,
                                 .G = on->G, .Q = on->Q, .inverse = on->inverse, .mean = on->mean,
                                 .sums = on->mean ? on->sums : NULL, .n = n, .k = cols, .begin = begin)));
    TRY(ki_kernel_launch(device, kernels[1], shares * k, group,
                         KI_PACK(cg_direction, on->P, .space = &space, .S = on->S, .curvature = on->curvature,
                                 .E = on->E, .G = on->G, .P = on->P, .Q = on->Q, .inverse = on->inverse,
                                 .penalty = on->penalty, .l2 = on->l2, .n = n, .k = cols, .begin = begin)));
    TRY(ki_kernel_launch(device, kernels[2], k, group,
                         KI_PACK(cg_settle, on->P, .space = &space, .S = on->S, .curvature = on->curvature,
                                 .shift = on->mean ? on->shift : NULL, .groups = groups, .k = cols,
                                 .slot = step->slot)));
done:
    return status;
}

static kiln_status check_state(const char *call, const kiln_cg *on, int64_t slot) {
    const kiln_matrix *S = on->S, *P = on->P;
    kiln_status status;
    TRY(ki_check_wide(call, "curvature", on->curvature, P, 1, P->cols));
    TRY(ki_check_wide(call, "S", S, P, S->rows, P->cols));
    if (slot < KI_CG_BEGIN || slot >= (S->rows - CG_ROWS) / 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: slot is %lld, but S has rows for %lld", call, (long long)slot,
                       (long long)(S->rows - CG_ROWS) / 2);
done:
    return status;
}

static kiln_status check(const char *call, const kiln_cg *on) {
    kiln_status status;
    if (!on->S || !on->E || !on->G || !on->P || !on->Q || !on->curvature)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: S, E, G, P, Q or curvature is NULL", call);
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

static kiln_status run(const char *call, const kiln_cg *cg, int64_t slot) {
    kiln_status status;
    kiln_cg own;
    const kiln_cg *on = &own;
    TRY(KI_TAKE(kiln_cg, &own, cg));
    TRY(check(call, on));
    TRY(check_state(call, on, slot));
    const struct ki_cg step = {.on = *on, .slot = (int)slot};
    if (!ki_on_cpu(on->P->device)) return step_gpu(&step);
    ki_bodies(on->P)->cg_step(&step);
done:
    return status;
}

kiln_status kiln_cg_pass(const kiln_cg *cg, const kiln_matrix *X, const kiln_matrix *weights) {
    static const char call[] = "kiln_cg_pass";
    kiln_status status;
    if (!X) return ki_fail(KILN_ERR_ARGUMENT, "%s: X is NULL", call);
    kiln_cg own;
    TRY(KI_TAKE(kiln_cg, &own, cg));
    cg = &own;
    TRY(check(call, cg));
    TRY(check_state(call, cg, 0));
    TRY(ki_check_dense(call, "P", cg->P, X, X->cols, cg->P->cols));
    if (weights) TRY(ki_check_rows(call, "weights", weights, X, X->rows, 1));
    if (cg->Q == X || cg->Q == weights)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Q must not be X or the weights", call);
    TRY(ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                        .map = KI_ROW_SCALE,
                                        .out = cg->Q,
                                        .alpha = 1,
                                        .beta = 1,
                                        .X = X,
                                        .v = weights,
                                        .y = cg->P,
                                        .z = cg->Q,
                                        .k = (int)cg->P->cols,
                                        .shift = cg->mean ? cg->shift : NULL,
                                        .sums = cg->mean ? cg->sums : NULL,
                                        .products = cg->curvature}));
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
