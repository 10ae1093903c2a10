/* The plans of a pass, for people: what kiln_mmchain could do on a device, what it does, and what that is
 * expected to take. GPUs: the launch model's candidates (launch.h). CPU: numbers of threads. */
#include <stdio.h>
#include <string.h>

#include "choose/cost.h"
#include "core/seams.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "pass/csr/csr.h"
#include "pass/launch.h"
#include "pass/predict.h"

/* --------------------------------------------------------------------------------------------- CPU */

/* 1, 2, 4, ... threads, and all. */
static int thread_counts(int counts[16], int threads) {
    int n = 0;
    for (int t = 1; t < threads && n < 15; t *= 2) counts[n++] = t;
    counts[n++] = threads;
    return n;
}

/* A matrix of the work's shape without contents: plans depend on no more. */
static kiln_matrix shell(kiln_device *device, const kiln_work *work, kiln_format format, int64_t rows,
                         int64_t cols, int64_t nnz) {
    return (kiln_matrix){
        .device = device, .type = work->type, .format = format, .rows = rows, .cols = cols, .nnz = nnz};
}

/* Bytes at the bandwidth of all threads, of which fewer get their share. */
static kiln_status list_cpu(kiln_plan **plans, int64_t *count, kiln_device *device, const kiln_work *work) {
    int threads[16];
    double bandwidth;
    const int n = thread_counts(threads, device->threads);
    kiln_status status = kiln_device_bandwidth(&bandwidth, device, 0);
    if (status != KILN_OK) return status;
    kiln_plan *made = ki_calloc((size_t)n * sizeof *made);
    if (!made) return ki_fail_nomem((size_t)n * sizeof *made, "the plans");
    const kiln_matrix X = shell(device, work, work->format, work->rows, work->cols, work->nnz);
    const enum ki_isa isa = ki_chain_isa(&(struct ki_chain){.X = &X, .k = (int)work->k});
    for (int i = 0; i < n; i++) {
        kiln_plan *plan = &made[i];
        *plan = ki_cpu_plan(device, ki_work_bytes(work));
        plan->number = i;
        plan->chosen = i == n - 1;
        snprintf(plan->variant, sizeof plan->variant, "cpu %s", ki_isa_names[isa]);
        plan->group = threads[i];
        plan->columns = (int)work->k;
        plan->coarsening = ki_ceil_div(work->rows, threads[i]);
        plan->seconds = plan->bytes / bandwidth * device->threads / threads[i];
    }
    *plans = made;
    *count = n;
    return KILN_OK;
}

/* --------------------------------------------------------------------------------------------- GPU */

static kiln_plan public_plan(const struct ki_candidate *candidate, int number, int64_t rows) {
    const struct ki_plan *plan = &candidate->plan;
    kiln_plan made = {.number = number,
                      .vector = plan->VS,
                      .group = plan->BS,
                      .load = plan->Q * plan->W,
                      .rows = plan->R,
                      .columns = plan->K,
                      .team = plan->C,
                      .stages = plan->stages,
                      .shared = plan->shared_w,
                      .groups = plan->groups,
                      .occupancy = candidate->occupancy,
                      .bytes = (double)candidate->bytes,
                      .atomics = (double)candidate->atomics,
                      .seconds = candidate->seconds};
    const int64_t vectors = plan->groups / ki_max(plan->C, 1) * ki_max(plan->BS / ki_max(plan->VS, 1), 1);
    made.coarsening = ki_ceil_div(rows, ki_max(vectors, 1));
    snprintf(made.variant, sizeof made.variant, "%s", plan->variant->name);
    snprintf(made.limit, sizeof made.limit, "%s", candidate->limit);
    return made;
}

static kiln_status list_gpu(kiln_plan **plans, int64_t *count, kiln_device *device, const kiln_work *work) {
    kiln_matrix X = shell(device, work, work->format, work->rows, work->cols, work->nnz);
    kiln_matrix y = shell(device, work, KILN_DENSE, work->cols, work->k, work->cols * work->k);
    kiln_matrix v = shell(device, work, KILN_DENSE, work->rows, 1, work->rows);
    const struct ki_chain chain = {
        .kind = KI_CHAIN_FUSED, .out = &y, .alpha = 1, .X = &X, .v = &v, .y = &y, .k = (int)work->k};
    struct ki_candidate *list = NULL;
    kiln_plan *made = NULL;
    kiln_status status;
    int n = 0, chosen = 0;
    TRY(ki_chain_candidates(&list, &n, &chosen, &chain));
    made = ki_calloc((size_t)ki_max(n, 1) * sizeof *made);
    if (!made) TRY(ki_fail_nomem((size_t)n * sizeof *made, "the plans"));
    for (int i = 0; i < n; i++) made[i] = public_plan(&list[i], i, work->rows);
    if (n > 0) made[chosen].chosen = 1;
    *plans = made;
    *count = n;
done:
    ki_free(list);
    return status;
}

kiln_status kiln_mmchain_plans(kiln_plan **plans, int64_t *count, kiln_device *device,
                               const kiln_work *work) {
    kiln_work full;
    kiln_status status;
    if (!plans || !count || !device)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_mmchain_plans: an argument is NULL");
    TRY(ki_work_check(&full, work));
    TRY(ki_check_columns("kiln_mmchain_plans", "work", full.k));
    TRY(ki_check_single("kiln_mmchain_plans", device));
    if (full.rows == 0 || full.nnz == 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_mmchain_plans: X has no entries, so there is nothing to plan");
    TRY(ki_on_cpu(device) ? list_cpu(plans, count, device, &full) : list_gpu(plans, count, device, &full));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- running one */

static kiln_status run_numbered(const struct ki_chain *chain, const kiln_plan *plan,
                                const struct ki_plan *found, int n) {
    if (!found || found->VS != plan->vector || found->BS != plan->group)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_mmchain_with: plan %lld is none of this shape's %d",
                       (long long)plan->number, n);
    kiln_device *device = chain->X->device;
    const struct ki_operand operands[] = {
        {chain->out, true}, {chain->X, false}, {chain->v, false}, {chain->y, false}};
    kiln_status status = ki_operands_hold(device, operands, 4);
    if (status != KILN_OK) return status;
    status = ki_chain_run_plan(chain, found);
    ki_operands_release(device, operands, 4);
    return status;
}

static kiln_status run_on_gpu(const struct ki_chain *chain, const kiln_plan *plan) {
    struct ki_candidate *list = NULL;
    struct ki_plan plans[KI_CSR_PLANS];
    int n = 0, chosen;
    kiln_status status;
    /* Those of a sparse X are complete without their kernels, and looking for these takes longer than a short
     * pass. */
    if (chain->X->format == KILN_CSR) {
        n = ki_csr_plans(plans, &chosen, chain);
        return run_numbered(chain, plan, plan->number >= 0 && plan->number < n ? &plans[plan->number] : NULL,
                            n);
    }
    TRY(ki_chain_candidates(&list, &n, &chosen, chain));
    TRY(run_numbered(chain, plan, plan->number >= 0 && plan->number < n ? &list[plan->number].plan : NULL,
                     n));
done:
    ki_free(list);
    return status;
}

static kiln_status run_on_cpu(const struct ki_chain *chain, const kiln_plan *plan) {
    kiln_device *device = chain->X->device;
    const int threads = device->threads;
    if (plan->group < 1 || plan->group > threads)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_mmchain_with: %d threads, the device has %d", plan->group,
                       threads);
    device->threads = plan->group;
    const kiln_status status = ki_chain_run(chain);
    device->threads = threads;
    return status;
}

kiln_status kiln_mmchain_with(const kiln_plan *plan, kiln_matrix *w, const kiln_matrix *X,
                              const kiln_matrix *v, const kiln_matrix *y) {
    static const char call[] = "kiln_mmchain_with";
    struct ki_chain chain;
    kiln_status status;
    if (!plan) return ki_fail(KILN_ERR_ARGUMENT, "%s: plan is NULL", call);
    TRY(ki_mmchain_check(&chain, call, w, 1, X, v, y, 0, NULL));
    TRY(ki_check_single(call, X->device));
    TRY(ki_on_cpu(X->device) ? run_on_cpu(&chain, plan) : run_on_gpu(&chain, plan));
done:
    return status;
}
