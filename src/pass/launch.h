/* Passes over X on a GPU: what the dense and the sparse layouts share. A plan says how a pass is laid out
 * (the paper's launch parameters, its Table 3), with the columns of y taken K at a time. */
#ifndef KI_MMCHAIN_GPU_H
#define KI_MMCHAIN_GPU_H

#include "core/kernels/kernels.h"
#include "pass/chain.h"

struct ki_offers;
struct ki_candidate;
struct ki_plan;

/* A way of going about a pass: a row of a table (dense/variants.c, csr/csr_model.c). All that tells ways
 * apart is here. */
struct ki_variant {
    bool narrow;                          /* its kernel loads narrow values */
    const char *name;                     /* of its plans, for people */
    const char *file, *function, *define; /* its kernel in <file>.cl, and what that is built with */
    /* Offers every plan that the device of the list's chain can run (ki_offer). */
    void (*offer)(struct ki_offers *offers);
    /* Fills in what a plan takes with `groups` on each compute unit: the pass, the last groups' idle time,
     * the partial sums and their end, for each K columns. */
    void (*cost)(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups);
    /* 64-bit words of work space through which groups that share rows exchange sums: they are cleared before
     * the launch, which begins when there is room for all groups. NULL: groups never wait for each other. */
    int64_t (*words)(const struct ki_plan *plan);
};

struct ki_plan {
    const struct ki_variant *variant;
    int VS, BS;     /* threads in a vector, which shares a row, and in a work-group */
    int Q, W, R, K; /* loads a thread and row, elements a load, rows a step, columns of y */
    int shared_w;   /* CSR: elements of w in local memory, 0 = none */
    int C;          /* dense: groups that share a row, a team where there are several */
    int stages;     /* tiles on their way to on-chip memory; 0 = loads go straight to registers */
    int lag;        /* steps from a tile's dot products to their use */
    int sure;       /* loads, or words of tile.cl, that are within the row, or slice, in every thread */
    int64_t
        local_bytes; /* of on-chip memory that a launch gives, or a kernel declares, for a group's tiles */
    int64_t steps;   /* of work for one group */
    int64_t groups;  /* launched, each taking steps/groups of them */
};

/* Work space of a pass, in the device's scratch: partial results first, then, with a map, the groups'
 * records, and what teams of groups exchange. */
struct ki_work {
    struct ki_buffer buffer;
    int64_t records_at; /* in elements of ki_wide_type */
};

/* A plan with the time that it is predicted to take. */
struct ki_candidate {
    struct ki_plan plan;
    double seconds;   /* of the whole chain */
    double occupancy; /* threads that a compute unit holds at once, of those that it can */
    int64_t bytes;    /* moved to and from memory */
    int64_t atomics;  /* on memory */
    char limit[48];   /* what bounds it, in words */
};
/* The plans that fit the chain's device, and which of them the chain is run with. Free the list with
 * ki_free. */
kiln_status ki_chain_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain);
/* Runs a checked chain with a plan from that list. */
kiln_status ki_chain_run_plan(const struct ki_chain *chain, const struct ki_plan *plan);

/* The values of ARGUMENTS_chain (dialect/chain_arguments.h) among those of a kernel that makes the whole
 * chain. */
#define KI_CHAIN_VALUES(chain)                                                                               \
    .v = (chain)->v, .y = (chain)->y, .z = (chain)->z, .alpha = (chain)->alpha, .beta = (chain)->beta,       \
    .rows = (chain)->X->rows

/* Returns whether rows go through more than v .* q, which kernels are built for. */
static inline bool ki_chain_maps(const struct ki_chain *chain) {
    return chain->kind == KI_CHAIN_FUSED &&
           (chain->map != KI_ROW_SCALE || chain->shift || chain->sums || chain->products);
}

/* Numbers in a group's record, of K columns (dialect/pass.h). */
static inline int ki_chain_record(const struct ki_chain *chain, int K) {
    return (chain->map == KI_ROW_SCALE ? K : 1) + K;
}

int ki_power_of_two(int64_t at_least);
/* Columns of y that one launch takes. */
int ki_plan_columns(const struct ki_chain *chain);
/* Lists the plan's kernel. */
void ki_plan_program(struct ki_programs *programs, const struct ki_plan *plan, const struct ki_chain *chain);
/* Returns whether a pack has it. */
bool ki_plan_packed(const struct ki_plan *plan, const struct ki_chain *chain);
/* Builds the pass's kernel and fits the grid to what the device holds at once. */
kiln_status ki_plan_kernel(struct ki_kernel **kernel, struct ki_plan *plan, const struct ki_chain *chain);
/* Scratch for `partials` bytes and, with a map, the records. */
kiln_status ki_plan_work(struct ki_work *work, const struct ki_plan *plan, const struct ki_chain *chain,
                         int64_t partials);
/* The pass for columns [first, first + K) of y, and the sum of its records; `out` is the result or the
 * partials. */
kiln_status ki_plan_launch(const struct ki_plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
                           const struct ki_buffer *out, const struct ki_work *work, int first);
/* " -DINDEX64" where offsets into some operand, or into `own` elements of the kernel's own, need 64 bits,
 * else "". */
const char *ki_index_define(const struct ki_chain *chain, int64_t own);

/* Row maps: " -DMAP=2 -DLOSS=..." or "" of a chain, the arguments that follow (nine at most, returns their
 * number), the sum of the records of `columns` columns, and the value. */
enum { KI_MAP_DEFINES = 80, KI_MAP_ARGS = 9 };
void ki_map_defines(char *text, const struct ki_chain *chain);
int ki_map_args(struct ki_arg *args, const struct ki_chain *chain, const struct ki_work *work);
kiln_status ki_map_records(const struct ki_chain *chain, const struct ki_work *work, int64_t groups,
                           int columns, int first);
kiln_status ki_map_value(const struct ki_chain *chain, const struct ki_work *work);
/* Lists the kernel that sums the records. */
void ki_map_programs(struct ki_programs *programs, const struct ki_chain *chain);
/* Softmax over more columns than a launch holds: X y, the map, X^T. */
kiln_status ki_chain_gpu_composed(const struct ki_chain *chain);

kiln_status ki_chain_gpu_dense(const struct ki_chain *chain, const struct ki_plan *plan);
kiln_status ki_chain_gpu_csr(const struct ki_chain *chain, const struct ki_plan *plan);
/* X keeps categories as codes, and has no plans to choose from. */
kiln_status ki_chain_gpu_codes(const struct ki_chain *chain);
/* Returns whether a pass over a narrow X is predicted to be as fast as one over the wide X: with several
 * columns of y these have kernels that load no narrow values. */
bool ki_dense_gains_narrow(const struct ki_chain *chain);
/* Lists the kernels of a chain's pass, as far as its shape tells; again: an earlier pass has scattered into
 * w. Of its operands only X is looked at, and which of the others there are. */
void ki_chain_programs(struct ki_programs *programs, const struct ki_chain *chain, bool again);
/* The same, where X is dense; and where it is sparse. */
void ki_dense_programs(struct ki_programs *programs, const struct ki_chain *chain);
void ki_csr_programs(struct ki_programs *programs, const struct ki_chain *chain, bool again);
void ki_codes_programs(struct ki_programs *programs, const struct ki_chain *chain);
/* The plans that each layout offers. */
kiln_status ki_dense_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain);
kiln_status ki_csr_candidates(struct ki_candidate **list, int *count, int *chosen,
                              const struct ki_chain *chain);

#endif
