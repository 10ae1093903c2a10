/* How a pass over a dense X is laid out on a GPU: threads a row, rows a step, loads a thread. */
#include <stdio.h>

#include "core/seams.h"
#include "core/size.h"
#include "ops/mmchain_gpu.h"

/* Registers (of 32 bits) that a thread may spend on x, y and w. */
enum { REGISTERS = 96, REGISTERS_BIG_GROUP = 48 };

static int thread_load_max(const struct ki_plan *plan, int words, int registers) {
    return registers / (words * (2 * plan->K + plan->R));
}

/* Rows in registers if a vector of at most 1024 threads can hold one, else the two-step variant. The load of a
 * thread is fixed first and the vector follows from it, so that few shapes of kernel serve all widths: four
 * elements, or eight where that would take more than 256 threads, and more only where a row needs it. Several
 * rows a step share the latency of the group sum. Small groups keep more of them on a compute unit: in f64, 128
 * threads are up to 4 % faster than 256, and 512 up to 39 % slower (bench/results/h200-launch-shapes.json). */
static void plan_dense(struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int words = X->type == KILN_F64 ? 2 : 1, widest = X->type == KILN_F64 ? 2 : 4;
    plan->W = X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1;
    plan->R = plan->K == 1 ? 4 : plan->K < 4 ? 2 : 1;
    int load = (int)ki_max(ki_min(4, thread_load_max(plan, words, REGISTERS)), plan->W);
    plan->VS = ki_power_of_two(ki_ceil_div(X->cols, load));
    if (plan->VS > 256) {
        plan->R = plan->K == 1 ? 2 : 1;
        plan->VS = X->cols > 256 * 8 ? 512 : 256;
        load = ki_power_of_two(ki_ceil_div(X->cols, plan->VS));
    }
    if (load > thread_load_max(plan, words, REGISTERS)) {
        plan->R = 1;
        plan->VS = 1024;
        load = ki_power_of_two(ki_ceil_div(X->cols, plan->VS));
    }
    plan->Q = (int)ki_max(load / plan->W, 1);
    const int limit = thread_load_max(plan, words, plan->VS == 1024 ? REGISTERS_BIG_GROUP : REGISTERS);
    plan->BS = (int)ki_max(plan->VS, device->is_gpu ? 128 : 64);
    plan->variant = "DENSE";
    plan->function = "mmchain_dense";
    if (plan->Q * plan->W > ki_max(limit, plan->W) || plan->BS > device->group_max) {
        plan->variant = "WIDE";
        plan->function = "mmchain_wide";
        plan->VS = plan->BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
        plan->Q = plan->W = 1;
        /* Each step reads and writes all of the group's w, which its rows must be worth. */
        plan->R = plan->K == 1 ? 8 : plan->K == 2 ? 4 : 2;
    }
    plan->steps = ki_ceil_div(X->rows, (int64_t)plan->R * (plan->BS / plan->VS));
}

static kiln_status find_finish(struct ki_kernel **kernel, const struct ki_chain *chain) {
    char defines[96];
    snprintf(defines, sizeof defines, "-DFINISH -DKIND=0 -DVS=1 -DBS=1 -DQ=1 -DW=1 -DR=1 -DK=1%s",
             ki_index_define(chain));
    return ki_kernel_get(kernel, chain->X->device, "mmchain_dense", "mmchain_finish", chain->X->type,
                         defines);
}

static kiln_status finish(const struct ki_plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
                          const struct ki_buffer *partial, int first) {
    const kiln_matrix *X = chain->X;
    const struct ki_arg args[] = {ki_arg_values(chain->out),
                                  ki_arg_buffer(partial),
                                  ki_arg_values(chain->z),
                                  ki_arg_real(X->type, chain->alpha),
                                  ki_arg_real(X->type, chain->beta),
                                  ki_arg_i32((int32_t)plan->groups),
                                  ki_arg_i32((int32_t)X->cols),
                                  ki_arg_i32(chain->k),
                                  ki_arg_i32(first),
                                  ki_arg_i32(plan->K)};
    return ki_kernel_launch(X->device, kernel, ki_ceil_div(X->cols * plan->K, 32), 256, args, 10);
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

static struct ki_plan choose(const struct ki_chain *chain) {
    struct ki_plan plan = {.file = "mmchain_dense", .K = ki_plan_columns(chain)};
    plan_dense(&plan, chain);
    return plan;
}

kiln_status ki_chain_gpu_dense(const struct ki_chain *chain, const struct ki_plan *forced) {
    struct ki_plan plan = forced ? *forced : choose(chain);
    return run(&plan, chain);
}

kiln_status ki_dense_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain) {
    struct ki_candidate *made = ki_calloc(sizeof *made);
    struct ki_kernel *kernel;
    kiln_status status;
    if (!made) return ki_fail_nomem(sizeof *made, "the candidates");
    made->plan = choose(chain);
    TRY(ki_plan_kernel(&kernel, &made->plan, chain));
    made->bytes = chain->X->nnz * ki_type_bytes(chain->X->type);
    *list = made;
    *count = 1;
    *chosen = 0;
    return KILN_OK;
done:
    ki_free(made);
    return status;
}
