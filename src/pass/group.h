/* A pass over X on a group of devices. */
#ifndef KI_PASS_GROUP_H
#define KI_PASS_GROUP_H

#include "core/group.h"
#include "pass/chain.h"

/* An X in slices of rows, a matrix on each member. */
struct ki_split {
    int count;
    int64_t first[KI_MEMBERS + 1]; /* member i has the rows [first[i], first[i + 1]) */
    kiln_matrix *X[KI_MEMBERS];
};

/* The slices of X, on a group: made at its first pass, and kept in a slot. ERR_UNSUPPORTED: X lies in a file. */
kiln_status ki_split_of(const struct ki_split **split, const kiln_matrix *X);

/* The members' copies of their rows of an operand that is sliced with X, kept in a slot of it while nobody writes it. NULL: none
 * yet. */
struct ki_rows {
    int count;
    int64_t first[KI_MEMBERS + 1];
    kiln_matrix *rows[KI_MEMBERS];
};
kiln_status ki_rows_of(struct ki_rows **rows, const kiln_matrix *A, const struct ki_split *split);

/* Whether the members split the chain: X lies on a group, and its values came from outside. What operations make stays on the
 * first member, where they want it next. */
bool ki_chain_is_split(const struct ki_chain *chain);
kiln_status ki_chain_group(const struct ki_chain *chain);

#endif
