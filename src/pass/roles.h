/* What becomes of a pass's operands where X is cut into slices of rows: panels that stream through a device, or the shares of
 * a group's members. One table (roles.c) says it for all of them, and so do the holds of a pass's operands. */
#ifndef KI_ROLES_H
#define KI_ROLES_H

#include "core/memory.h"
#include "pass/chain.h"

enum ki_role {
    KI_ROW,    /* sliced with X's rows */
    KI_COLUMN, /* the same for every slice */
    KI_SUM /* added up over the slices; one that is only read (z) is a term of the sum, for one slice to take */
};

enum { KI_CHAIN_OPERANDS = 11 }; /* all but X */

/* Operand i of a chain, which may be NULL, its role, and whether the chain writes it. */
kiln_matrix *ki_chain_operand(const struct ki_chain *chain, int i);
void ki_chain_set_operand(struct ki_chain *chain, int i, const kiln_matrix *A);
enum ki_role ki_chain_role(const struct ki_chain *chain, int i);
bool ki_chain_writes(int i);

/* The operands that there are, the others NULL, for ki_operands_hold. */
void ki_chain_operands(struct ki_operand operands[KI_CHAIN_OPERANDS], const struct ki_chain *chain);

/* A chain over some of the rows, which must stay where it is: it points into itself. */
struct ki_slice {
    struct ki_chain chain;
    kiln_matrix rows[KI_CHAIN_OPERANDS]; /* views */
};

/* The chain over the rows of X, which are the whole's from `first` on. Its sums are the whole's own matrices still; only the
 * slice that leads takes their terms. */
void ki_chain_slice(struct ki_slice *slice, const struct ki_chain *whole, const kiln_matrix *X, int64_t first,
                    bool leads);

/* The sums of slices that run one after the other on one device: `out` goes on from slice to slice, what else is summed has a
 * place of its own for the slice's part. */
struct ki_sums {
    const struct ki_chain *whole;
    kiln_matrix *part[KI_CHAIN_OPERANDS];
    int64_t slices; /* that have run */
    double value;
};
kiln_status ki_sums_begin(struct ki_sums *sums, const struct ki_chain *whole);
/* Runs the slice of these rows and adds it up; after the last, the whole's results are there, but for sums->value. */
kiln_status ki_sums_add(struct ki_sums *sums, const kiln_matrix *X, int64_t first);
void ki_sums_end(struct ki_sums *sums);

#endif
