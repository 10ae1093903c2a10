/* Passes over X on a GPU: what the dense and the sparse layouts share. A plan says how a pass is laid out (the
 * paper's launch parameters, its Table 3), with the columns of y taken K at a time. */
#ifndef KI_MMCHAIN_GPU_H
#define KI_MMCHAIN_GPU_H

#include "core/kernels.h"
#include "ops/mmchain.h"

struct ki_plan {
    const char *file, *function; /* the kernel, in src/ops/<file>.cl */
    const char *variant;         /* its define: DENSE or WIDE, "" for CSR */
    int VS, BS;                  /* threads in a vector, which shares a row, and in a work-group */
    int Q, W, R, K;              /* loads a thread and row, elements a load, rows a step, columns of y */
    int shared_w;                /* CSR: elements of w in local memory, 0 = none */
    int64_t steps;               /* of work for one group */
    int64_t groups;              /* launched, each taking steps/groups of them */
};

int ki_power_of_two(int64_t at_least);
/* Builds the pass's kernel and fits the grid to what the device holds at once. */
kiln_status ki_plan_kernel(struct ki_kernel **kernel, struct ki_plan *plan, const struct ki_chain *chain);
/* The pass for columns [first, first + K) of y; `out` is the result or the partials. */
kiln_status ki_plan_launch(const struct ki_plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
                           const struct ki_buffer *out, int first);
/* " -DINDEX64" where offsets into some operand need 64 bits, else "". */
const char *ki_index_define(const struct ki_chain *chain);

kiln_status ki_chain_gpu_dense(const struct ki_chain *chain);
kiln_status ki_chain_gpu_csr(const struct ki_chain *chain);

#endif
