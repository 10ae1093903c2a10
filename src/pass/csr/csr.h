/* Passes over a sparse X on a GPU: how they are laid out (csr_model.c), for those that launch them. */
#ifndef KI_PASS_CSR_H
#define KI_PASS_CSR_H

#include "derived/derived.h"
#include "pass/launch.h"

/* Threads that share an entry. */
static inline int ki_csr_lanes(const struct ki_plan *plan) {
    return plan->K / plan->W;
}
/* Threads that share a row, so many of them an entry: by the rows' mean length, or by what is known of
 * them. */
int ki_csr_vector(const kiln_device *device, int64_t nnz, int64_t rows, const struct ki_rows *known,
                  int lanes);
/* Makes a plan suit rows of which more is known than their mean length. */
void ki_csr_suit(struct ki_plan *plan, const struct ki_chain *chain, const struct ki_rows *known);
/* Entries of a row that a thread holds at most. */
int ki_csr_turns(const kiln_device *device, int K);
struct ki_plan ki_csr_plan(const struct ki_chain *chain);
/* All plans worth a measurement, of which *chosen is ki_csr_plan's. */
enum { KI_CSR_PLANS = 6 * 3 };
int ki_csr_plans(struct ki_plan plans[KI_CSR_PLANS], int *chosen, const struct ki_chain *chain);
/* Rows of y and w, plan->K elements each, that fit in a work-group's local memory. */
int64_t ki_csr_chip_columns(const struct ki_plan *plan, const struct ki_chain *chain);
/* Time, bytes and the rest, for a candidate whose plan is complete. */
void ki_csr_predict(struct ki_candidate *candidate, const struct ki_chain *chain);

#endif
