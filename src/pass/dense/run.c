/* Running a pass over a dense X: the kernel of the chosen layout, then the sum of what its groups have
 * found. */
#include "core/arguments.h"
#include "core/size.h"
#include "pass/dense/dense.cl"
#include "pass/dense/variants.h"
#include "pass/unit.h"

KI_ARGUMENTS(mmchain_finish);

#define FINISH_DEFINES(chain)                                                                                \
    KI_DEFINES("-DFINISH -DKIND=0 -DVS=1 -DBS=1 -DQ=1 -DW=1 -DR=1 -DK=1%s", ki_index_define(chain, 0))

static kiln_status find_finish(struct ki_kernel **kernel, const struct ki_chain *chain) {
    return ki_kernel_get(kernel, chain->X->device, "dense", "mmchain_finish", chain->X->type,
                         FINISH_DEFINES(chain));
}

void ki_dense_programs(struct ki_programs *programs, const struct ki_chain *chain) {
    struct ki_plan plan;
    if (ki_dense_multiplies(chain))
        ki_dense_products_programs(programs, chain);
    else if (ki_dense_choose(&plan, chain) == KILN_OK)
        ki_plan_program(programs, &plan, chain);
    if (chain->kind != KI_CHAIN_PLAIN)
        ki_programs_add(programs, "dense", "mmchain_finish", chain->X->type, FINISH_DEFINES(chain));
}

/* Elements that a group of 256 threads adds up: few share a thread's work where the partials are many, and
 * the more the fewer they are, so that each thread has several loads under way, and no more threads than the
 * device holds are started. */
static int finish_width(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = chain->X->cols * plan->K, partials = plan->groups / plan->C;
    const int64_t room = ki_unit_of(chain->X->device).threads * chain->X->device->properties.compute_units;
    int width = 8;
    while (width < 256 && (4 * 256 / width > partials || size * 256 / width > room)) width *= 2;
    return width;
}

static kiln_status finish(const struct ki_plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
                          const struct ki_buffer *partial, int first) {
    const kiln_matrix *X = chain->X;
    const int width = finish_width(plan, chain);
    return ki_kernel_launch(X->device, kernel, ki_ceil_div(X->cols * plan->K, width), 256,
                            KI_PACK(mmchain_finish, X, .out = chain->out, .partial = partial, .z = chain->z,
                                    .alpha = chain->alpha, .beta = chain->beta,
                                    .groups = (int32_t)(plan->groups / plan->C), .n = (int32_t)X->cols,
                                    .k = chain->k, .first = first, .columns = plan->K, .width = width));
}

/* Dense: one partial w a group, then their sum. PLAIN writes its result directly. */
static kiln_status run(struct ki_plan *plan, const struct ki_chain *chain) {
    struct ki_kernel *pass, *last = NULL;
    const kiln_matrix *X = chain->X;
    kiln_status status;
    const bool partials = chain->kind != KI_CHAIN_PLAIN;
    struct ki_work work;
    int64_t bytes = 0;
    TRY(ki_plan_kernel(&pass, plan, chain));
    if (partials && !ki_mul3(plan->groups * plan->K, X->cols, ki_type_bytes(X->type), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the partial results overflow: %lld columns", (long long)X->cols);
    if (partials) TRY(find_finish(&last, chain));
    TRY(ki_plan_work(&work, plan, chain, bytes));
    for (int first = 0; first < chain->k; first += plan->K) {
        TRY(ki_plan_launch(plan, chain, pass, partials ? &work.buffer : &chain->out->values, &work, first));
        if (partials) TRY(finish(plan, chain, last, &work.buffer, first));
    }
    TRY(ki_map_value(chain, &work));
done:
    return status;
}

/* One product of many columns. */
static kiln_status multiply(const struct ki_chain *chain) {
    struct ki_plan plan = {.K = chain->k, .C = 1};
    struct ki_kernel *last = NULL;
    struct ki_buffer partials;
    const bool sums = chain->kind == KI_CHAIN_TRANSPOSED;
    kiln_status status;
    if (sums) TRY(find_finish(&last, chain));
    TRY(ki_dense_products(&plan.groups, &partials, chain));
    if (sums) TRY(finish(&plan, chain, last, &partials, 0));
done:
    return status;
}

kiln_status ki_chain_gpu_dense(const struct ki_chain *chain, const struct ki_plan *forced) {
    struct ki_plan plan;
    kiln_status status = KILN_OK;
    if (!forced && ki_dense_multiplies(chain)) return multiply(chain);
    if (forced)
        plan = *forced;
    else
        status = ki_dense_choose(&plan, chain);
    return status == KILN_OK ? run(&plan, chain) : status;
}
