/* An operation on an X that the members of a group share. */
#ifndef KI_PASS_GROUP_H
#define KI_PASS_GROUP_H

#include "core/group/group.h"
#include "pass/chain.h"
#include "pass/roles.h"

/* An X in slices of rows, or of columns, a matrix on each member. */
struct ki_split {
    int count;
    int64_t first[KI_MEMBERS + 1]; /* member i has the rows, or columns, [first[i], first[i + 1]) */
    int64_t entry[KI_MEMBERS + 1]; /* and these entries */
    kiln_matrix *X[KI_MEMBERS];
};

/* Says how X is cut: into rows with as many entries; rows with as many pairs (i, j), j > i; columns; as the
 * rows of X, a vector that is away, lie already. */
enum ki_split_by { KI_BY_ROWS, KI_BY_PAIRS, KI_BY_COLUMNS, KI_AS_IT_LIES };
/* The slices of X, on a group: made at its first pass, and kept in a slot. ERR_UNSUPPORTED: X lies in a
 * file. */
kiln_status ki_split_of(const struct ki_split **split, const kiln_matrix *X, enum ki_split_by cut);

/* Says how much of X the members before each one have, from 0 to 1 (split_shares.c). */
struct ki_shares {
    int count;
    bool even;
    double until[KI_MEMBERS + 1];
};
void ki_shares_of(struct ki_shares *shares, const kiln_matrix *X);
/* Returns how many of all rows or entries lie before member i's. */
int64_t ki_shares_begin(const struct ki_shares *shares, int64_t all, int i);
/* Seconds that a pass over X would take the member alone, from its figures, which are measured where the
 * machine's profile has none (choose/members.c). */
kiln_status ki_member_seconds(double *seconds, const kiln_matrix *X, int member);

/* The row of n before which that share of all pairs (i, j), j > i, lies, each one row i's. Whole tiles of
 * rows, if there are many. */
int64_t ki_row_of_pairs(int64_t n, double share);

/* The same of a sparse X in slices of columns, with about as many columns and entries each: matrices of the
 * members' own. */
kiln_status ki_split_columns_of(const struct ki_split **split, const kiln_matrix *X);

/* X to host memory, from where slices by columns are taken; ERR_UNSUPPORTED: it lies in a file. And what
 * frees a split. */
kiln_status ki_split_in_memory(const kiln_matrix *X);
void ki_split_free(kiln_device *device, void *split);

/* The members' copies of their part of an operand that is sliced with X, kept in a slot of it while nobody
 * writes it. NULL: none yet. `first`: where their parts begin, in rows or in entries. */
struct ki_rows {
    int count;
    int64_t first[KI_MEMBERS + 1];
    kiln_matrix *rows[KI_MEMBERS];
};
kiln_status ki_rows_of(struct ki_rows **rows, const kiln_matrix *A, int count,
                       const int64_t first[KI_MEMBERS + 1]);
/* The same of the members' copies of all of an operand, and whether there are any. */
kiln_status ki_copies_of(struct ki_rows **copies, const kiln_matrix *A, int count);
bool ki_copies_there(const kiln_matrix *A);
/* The members' rows of A, or NULL. */
const struct ki_rows *ki_rows_there(const kiln_matrix *A);
/* Drops what may not be whole, as an operation has failed: copies that were begun, and rows, if these are not
 * all that there is of an A that was only read. */
void ki_copies_drop(const kiln_matrix *A, bool written);

/* Returns whether the members share operations on X: it lies on a group, and its values came from outside.
 * What operations make stays on the first member, where they want it next. */
bool ki_is_split(const kiln_matrix *X);

/* Who share them: a group's devices, or processes. */
int ki_members_of(const kiln_device *device);

struct ki_shared {
    const struct ki_rules *rules;
    int kind;             /* of roles */
    const void *whole;    /* the operation's struct, its arguments checked */
    int64_t sums;         /* doubles where rules->sums points to, if to anything */
    bool narrow;          /* as in struct ki_single */
    bool fresh;           /* what KI_CHANGES says of an operand does not hold this time: it is only written */
    enum ki_split_by cut; /* of X; into columns: what has the role KI_ROW is cut like them */
    kiln_status (*run)(const void *slice); /* on one device; holds its operands itself */
    /* In place of `run`: so many rounds, between which the members exchange what has the role KI_GATHER or
     * KI_MEMBER. Kinds 0 and 1 take turns, so that a round overwrites nothing that another member still reads
     * in the one before: its results have another matrix for their place than theirs. */
    int64_t rounds;
    kiln_status (*run_round)(const void *slice, int64_t round);
};
/* Runs the operation on each member's slice of X, all at once, and puts the results together. */
kiln_status ki_share(const struct ki_shared *shared);

#endif
