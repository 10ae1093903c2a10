/* This file says what kiln_ranks_step is predicted to take in each layout of the links (derived/links.h), for
 * kiln/tune.h. */
#include <stdio.h>

#include "core/memory.h"
#include "core/seams.h"
#include "derived/links.h"
#include "kiln/tune.h"
#include "ops/graph/ranks.h"
#include "ops/graph/ranks_error.h"

static const char *const names[] = {"", "csr", "hybrid", "balanced"};

static kiln_plan as_plan(const struct ki_links_cost *cost, bool best, const kiln_device *device) {
    kiln_plan plan = {.number = cost->layout,
                      .chosen = best,
                      .group = ki_on_cpu(device) ? device->threads : 512,
                      .bytes = cost->bytes,
                      .seconds = cost->seconds};
    snprintf(plan.variant, sizeof plan.variant, "%s", names[cost->layout]);
    snprintf(plan.limit, sizeof plan.limit, "%s", cost->limit);
    return plan;
}

kiln_status kiln_ranks_plans(kiln_plan **plans, int64_t *count, const kiln_matrix *A, int64_t k,
                             int weighted) {
    static const char call[] = "kiln_ranks_plans";
    struct ki_links_shape shape;
    struct ki_links_cost costs[KI_LAYOUTS];
    kiln_plan *made;
    kiln_status status;
    if (!plans || !count || !A) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (A->format != KILN_CSR || A->rows != A->cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A must be sparse and square", call);
    if (k < 1 || k > KI_RANKS_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: k is %lld, but must be 1 to %d", call, (long long)k,
                       KI_RANKS_COLUMNS);
    bool any = false;
    if (weighted) TRY(ki_links_weighted(&any, A));
    const struct ki_operand operand = {A, false};
    TRY(ki_operands_hold(A->device, &operand, 1));
    status = ki_links_shape_get(&shape, A);
    ki_operands_release(A->device, &operand, 1);
    if (status != KILN_OK) return status;
    if (!(made = ki_calloc(KI_LAYOUTS * sizeof *made)))
        return ki_fail_nomem(KI_LAYOUTS * sizeof *made, "plans");
    ki_links_costs(costs, A->device, &shape, A->type, k, any);
    for (int i = 0; i < KI_LAYOUTS; i++) made[i] = as_plan(&costs[i], i == 0, A->device);
    *plans = made;
    *count = KI_LAYOUTS;
done:
    return status;
}
