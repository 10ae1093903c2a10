/* How a pass over a sparse X is laid out on a GPU: threads a row, and where w gathers. */
#include "core/seams.h"
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
    const int64_t room = ki_min(device->local_bytes, 48 * 1024) / ki_type_bytes(X->type) -
                         plan->K * plan->BS - (ki_chain_maps(chain) ? 2 * plan->BS : 0);
    /* A power of two, so that matrices of different widths share a built kernel. */
    const int size = ki_power_of_two(X->cols * plan->K);
    if (chain->kind != KI_CHAIN_PLAIN && X->cols * plan->K <= size && size <= room) plan->shared_w = size;
    plan->steps = ki_ceil_div(X->rows, plan->BS / plan->VS);
}

/* CSR: out = beta z, then every pass adds to it. */
static kiln_status run(struct ki_plan *plan, const struct ki_chain *chain) {
    struct ki_kernel *pass;
    struct ki_work work;
    kiln_status status;
    TRY(ki_plan_kernel(&pass, plan, chain));
    TRY(ki_plan_work(&work, plan, chain, 0));
    if (chain->kind != KI_CHAIN_PLAIN) {
        double beta[KI_COLUMNS_MAX];
        for (int c = 0; c < chain->k; c++) beta[c] = chain->beta;
        if (chain->z)
            TRY(kiln_combine(chain->out, beta, chain->z, NULL, NULL));
        else
            TRY(kiln_fill(chain->out, 0.0));
    }
    for (int first = 0; first < chain->k; first += plan->K)
        TRY(ki_plan_launch(plan, chain, pass, &chain->out->values, &work, first));
    TRY(ki_map_value(chain, &work));
done:
    return status;
}

static struct ki_plan choose(const struct ki_chain *chain) {
    struct ki_plan plan = {
        .file = "mmchain_csr", .function = "mmchain_csr", .variant = "CSR", .K = ki_plan_columns(chain)};
    plan_csr(&plan, chain);
    return plan;
}

kiln_status ki_chain_gpu_csr(const struct ki_chain *chain, const struct ki_plan *forced) {
    struct ki_plan plan = forced ? *forced : choose(chain);
    return run(&plan, chain);
}

kiln_status ki_csr_candidates(struct ki_candidate **list, int *count, int *chosen,
                              const struct ki_chain *chain) {
    struct ki_candidate *made = ki_calloc(sizeof *made);
    struct ki_kernel *kernel;
    kiln_status status;
    if (!made) return ki_fail_nomem(sizeof *made, "the candidates");
    made->plan = choose(chain);
    TRY(ki_plan_kernel(&kernel, &made->plan, chain));
    made->bytes = chain->X->nnz * (4 + ki_type_bytes(chain->X->type));
    *list = made;
    *count = 1;
    *chosen = 0;
    return KILN_OK;
done:
    ki_free(made);
    return status;
}
