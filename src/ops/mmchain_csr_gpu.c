/* How a pass over a sparse X is laid out on a GPU: threads a row, and where w gathers. */
#include "core/size.h"
#include "ops/mmchain_gpu.h"

/* A vector half as long as the mean row, and large groups: 512 threads are up to 1.8 times as fast as 256 where w is
 * shared (bench/results/h200-launch-shapes.json); w in local memory where it fits beside the scratch of the group
 * sums. */
static void plan_csr(struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    plan->Q = plan->W = plan->R = 1;
    plan->BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
    plan->VS = (int)ki_min(ki_power_of_two(X->nnz / ki_max(X->rows, 1) / 2), device->is_gpu ? 32 : 4);
    const int64_t room = ki_min(device->local_bytes, 48 * 1024) / ki_type_bytes(X->type) - plan->K * plan->BS;
    /* A power of two, so that matrices of different widths share a built kernel. */
    const int size = ki_power_of_two(X->cols * plan->K);
    if (chain->kind != KI_CHAIN_PLAIN && X->cols * plan->K <= size && size <= room) plan->shared_w = size;
    plan->steps = ki_ceil_div(X->rows, plan->BS / plan->VS);
}

/* CSR: out = beta z, then every pass adds to it. */
static kiln_status run(struct ki_plan *plan, const struct ki_chain *chain) {
    struct ki_kernel *pass;
    kiln_status status;
    TRY(ki_plan_kernel(&pass, plan, chain));
    if (chain->kind != KI_CHAIN_PLAIN) {
        double beta[KI_COLUMNS_MAX];
        for (int c = 0; c < chain->k; c++) beta[c] = chain->beta;
        if (chain->z)
            TRY(kiln_combine(chain->out, beta, chain->z, NULL, NULL));
        else
            TRY(kiln_fill(chain->out, 0.0));
    }
    for (int first = 0; first < chain->k; first += plan->K)
        TRY(ki_plan_launch(plan, chain, pass, &chain->out->values, first));
done:
    return status;
}

kiln_status ki_chain_gpu_csr(const struct ki_chain *chain) {
    struct ki_plan plan = {.file = "mmchain_csr",
                           .function = "mmchain_csr",
                           .variant = "CSR",
                           .K = chain->k > 4 ? 8 : ki_power_of_two(chain->k)};
    plan_csr(&plan, chain);
    return run(&plan, chain);
}
