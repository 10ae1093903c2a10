/* How a pass over X is laid out on a GPU: threads a row, rows a step, work-groups, variant. */
#include <stdio.h>

#include "core/kernels.h"
#include "core/size.h"
#include "ops/mmchain.h"

/* The paper's launch parameters for one pass (its Table 3), with the columns of y taken K at a time. */
struct plan {
    int VS, BS, Q, W, R, K;
    int64_t steps,
        groups;          /* steps of work for one group; groups launched, each taking steps/groups of them */
    const char *variant; /* the kernel's define: DENSE, WIDE or CSR */
    int shared_w;        /* CSR: elements of w in local memory, 0 = none */
};

static int power_of_two(int64_t at_least) {
    int p = 1;
    while (p < at_least && p < 1 << 20) p *= 2;
    return p;
}

/* Registers (of 32 bits) that a thread may spend on x, y and w. */
enum { REGISTERS = 96, REGISTERS_BIG_GROUP = 48 };

static int thread_load_max(const struct plan *plan, int words, int registers) {
    return registers / (words * (2 * plan->K + plan->R));
}

/* Rows in registers if a vector of at most 1024 threads can hold one, else the two-step variant. The load of a
 * thread is fixed first and the vector follows from it, so that few shapes of kernel serve all widths: four
 * elements, or eight where that would take more than 256 threads, and more only where a row needs it. Several
 * rows a step share the latency of the group sum. Small groups keep more of them on a compute unit: in f64, 128
 * threads are up to 4 % faster than 256, and 512 up to 39 % slower (bench/results/h200-launch-shapes.json). */
static void plan_dense(struct plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int words = X->type == KILN_F64 ? 2 : 1, widest = X->type == KILN_F64 ? 2 : 4;
    plan->W = X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1;
    plan->R = plan->K == 1 ? 4 : plan->K < 4 ? 2 : 1;
    int load = (int)ki_max(ki_min(4, thread_load_max(plan, words, REGISTERS)), plan->W);
    plan->VS = power_of_two(ki_ceil_div(X->cols, load));
    if (plan->VS > 256) {
        plan->R = plan->K == 1 ? 2 : 1;
        plan->VS = X->cols > 256 * 8 ? 512 : 256;
        load = power_of_two(ki_ceil_div(X->cols, plan->VS));
    }
    if (load > thread_load_max(plan, words, REGISTERS)) {
        plan->R = 1;
        plan->VS = 1024;
        load = power_of_two(ki_ceil_div(X->cols, plan->VS));
    }
    plan->Q = (int)ki_max(load / plan->W, 1);
    const int limit = thread_load_max(plan, words, plan->VS == 1024 ? REGISTERS_BIG_GROUP : REGISTERS);
    plan->BS = (int)ki_max(plan->VS, device->is_gpu ? 128 : 64);
    plan->variant = "DENSE";
    if (plan->Q * plan->W > ki_max(limit, plan->W) || plan->BS > device->group_max) {
        plan->variant = "WIDE";
        plan->VS = plan->BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
        plan->Q = plan->W = 1;
        /* Each step reads and writes all of the group's w, which its rows must be worth. */
        plan->R = plan->K == 1 ? 8 : plan->K == 2 ? 4 : 2;
    }
    plan->steps = ki_ceil_div(X->rows, (int64_t)plan->R * (plan->BS / plan->VS));
}

/* A vector half as long as the mean row, and large groups: 512 threads are up to 1.8 times as fast as 256 where w is
 * shared (bench/results/h200-launch-shapes.json); w in local memory where it fits beside the scratch of the group
 * sums. */
static void plan_csr(struct plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    plan->variant = "CSR";
    plan->Q = plan->W = plan->R = 1;
    plan->BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
    plan->VS = (int)ki_min(power_of_two(X->nnz / ki_max(X->rows, 1) / 2), device->is_gpu ? 32 : 4);
    const int64_t room = ki_min(device->local_bytes, 48 * 1024) / ki_type_bytes(X->type) - plan->K * plan->BS;
    /* A power of two, so that matrices of different widths share a built kernel. */
    const int size = power_of_two(X->cols * plan->K);
    if (chain->kind != KI_CHAIN_PLAIN && X->cols * plan->K <= size && size <= room) plan->shared_w = size;
    plan->steps = ki_ceil_div(X->rows, plan->BS / plan->VS);
}

/* Whether offsets into any operand need 64 bits. */
static const char *index_define(const struct ki_chain *chain) {
    const int64_t reach = ki_max(chain->X->nnz, ki_max(chain->X->rows, chain->X->cols) * chain->k);
    return reach > KILN_INDEX32_LIMIT ? " -DINDEX64" : "";
}

static kiln_status find_pass(struct ki_kernel **kernel, struct plan *plan, const struct ki_chain *chain) {
    static const char *const functions[] = {"mmchain_dense", "mmchain_wide", "mmchain_csr"};
    const char *function = functions[plan->variant[0] == 'D' ? 0 : plan->variant[0] == 'W' ? 1 : 2];
    const kiln_matrix *X = chain->X;
    char defines[256], shared[32] = "";
    if (plan->shared_w) snprintf(shared, sizeof shared, " -DSHARED_W=%d", plan->shared_w);
    snprintf(defines, sizeof defines, "-D%s -DKIND=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=%d -DK=%d%s%s",
             plan->variant, (int)chain->kind, plan->VS, plan->BS, plan->Q, plan->W, plan->R, plan->K, shared,
             index_define(chain));
    kiln_status status = ki_kernel_get(kernel, X->device, "mmchain", function, X->type, defines);
    if (status == KILN_OK) status = ki_kernel_resident(X->device, &plan->groups, *kernel, plan->BS);
    plan->groups = ki_min(plan->groups, plan->steps);
    return status;
}

static kiln_status find_finish(struct ki_kernel **kernel, const struct ki_chain *chain) {
    char defines[96];
    snprintf(defines, sizeof defines, "-DFINISH -DKIND=0 -DVS=1 -DBS=1 -DQ=1 -DW=1 -DR=1 -DK=1%s",
             index_define(chain));
    return ki_kernel_get(kernel, chain->X->device, "mmchain", "mmchain_finish", chain->X->type, defines);
}

/* The pass itself for columns [first, first + K) of y; `out` is the result or the partials. */
static kiln_status launch_pass(const struct plan *plan, const struct ki_chain *chain,
                               struct ki_kernel *kernel, const struct ki_buffer *out, int first) {
    const kiln_matrix *X = chain->X;
    struct ki_arg args[14];
    int n = 0;
    args[n++] = ki_arg_buffer(out);
    if (X->format == KILN_CSR) {
        args[n++] = ki_arg_buffer(&X->row_start);
        args[n++] = ki_arg_buffer(&X->col);
    }
    args[n++] = ki_arg_values(X);
    args[n++] = ki_arg_values(chain->v);
    args[n++] = ki_arg_values(chain->y);
    args[n++] = ki_arg_values(chain->z);
    args[n++] = ki_arg_real(X->type, chain->alpha);
    args[n++] = ki_arg_real(X->type, chain->beta);
    args[n++] = ki_arg_i64(X->rows);
    args[n++] = ki_arg_i32((int32_t)X->cols);
    args[n++] = ki_arg_i32(chain->k);
    args[n++] = ki_arg_i32(first);
    args[n++] = ki_arg_i32(chain->v ? (int32_t)chain->v->cols : 0);
    return ki_kernel_launch(X->device, kernel, plan->groups, plan->BS, args, n);
}

static kiln_status finish(const struct plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
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
static kiln_status run_dense(struct plan *plan, const struct ki_chain *chain) {
    struct ki_kernel *pass, *last = NULL;
    struct ki_buffer out = chain->out->values;
    const kiln_matrix *X = chain->X;
    kiln_status status;
    const bool partials = chain->kind != KI_CHAIN_PLAIN;
    int64_t bytes;
    TRY(find_pass(&pass, plan, chain));
    if (!ki_mul3(plan->groups * plan->K, X->cols, ki_type_bytes(X->type), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the partial results overflow: %lld columns", (long long)X->cols);
    if (partials) {
        TRY(find_finish(&last, chain));
        TRY(ki_device_scratch(X->device, &out, bytes));
    }
    for (int first = 0; first < chain->k; first += plan->K) {
        TRY(launch_pass(plan, chain, pass, &out, first));
        if (partials) TRY(finish(plan, chain, last, &out, first));
    }
done:
    return status;
}

/* CSR: out = beta z, then every pass adds to it. */
static kiln_status run_csr(struct plan *plan, const struct ki_chain *chain) {
    struct ki_kernel *pass;
    kiln_status status;
    TRY(find_pass(&pass, plan, chain));
    if (chain->kind != KI_CHAIN_PLAIN) {
        double beta[KI_COLUMNS_MAX];
        for (int c = 0; c < chain->k; c++) beta[c] = chain->beta;
        if (chain->z)
            TRY(kiln_combine(chain->out, beta, chain->z, NULL, NULL));
        else
            TRY(kiln_fill(chain->out, 0.0));
    }
    for (int first = 0; first < chain->k; first += plan->K)
        TRY(launch_pass(plan, chain, pass, &chain->out->values, first));
done:
    return status;
}

kiln_status ki_chain_gpu(const struct ki_chain *chain) {
    struct plan plan = {.K = chain->k > 4 ? 8 : power_of_two(chain->k)};
    if (chain->X->format == KILN_DENSE) {
        plan_dense(&plan, chain);
        return run_dense(&plan, chain);
    }
    plan_csr(&plan, chain);
    return run_csr(&plan, chain);
}
