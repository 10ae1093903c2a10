/* One run of an operation that members of a group share, for group.c, which runs it, and group_operands.c. */
#ifndef KI_GROUP_PASS_H
#define KI_GROUP_PASS_H

#include "pass/group.h"

/* A member's part of the operation. */
struct ki_pass_part {
    kiln_device *device;
    void *slice; /* the operation's struct */
    kiln_matrix views[KI_RULES_MOST];
    kiln_matrix *sum[KI_RULES_MOST];   /* SUM parts, and OWN copies, for this time */
    kiln_matrix *moved[KI_RULES_MOST]; /* the same on the first member */
    struct ki_operand held[KI_RULES_MOST];
    bool holds;
    double *sums;
    kiln_status status;
    struct ki_error_copy error;
};

struct ki_pass {
    const struct ki_shared *shared;
    const struct ki_rules *rules;
    kiln_device *device;
    const struct ki_split *split;
    struct ki_pass_part *parts;
    int64_t round;
    void *memory;                  /* the parts' slices, then their sums */
    bool collected[KI_RULES_MOST]; /* a COLUMN or SUM operand that goes by collectives */
};

/* The members behind the first that have rows; those without would add nothing. */
static inline bool ki_takes_part(const struct ki_pass *pass, int i) {
    return i == 0 || pass->split->first[i + 1] > pass->split->first[i];
}

static inline kiln_matrix *ki_pass_whole(const struct ki_pass *pass, int j) {
    return ki_operand_of(pass->shared->whole, &pass->rules->rule[j]);
}

static inline enum ki_role ki_pass_role(const struct ki_pass *pass, int j) {
    return pass->rules->rule[j].role[pass->shared->kind];
}

static inline bool ki_pass_writes(const struct ki_pass *pass, int j) {
    return pass->rules->rule[j].use & KI_WRITES;
}

/* Returns what is no result of a member's, or has come to the first between rounds. */
static inline bool ki_pass_stays(const struct ki_pass *pass, int j) {
    return ki_role_is_whole(ki_pass_role(pass, j));
}

static inline int64_t ki_pass_bytes(const kiln_matrix *A) {
    return A->nnz * ki_type_bytes(A->type);
}

/* ---- group_operands.c ---- */

/* Finds which operands go by collectives: these take all members. */
void ki_pass_choose(struct ki_pass *pass);
/* Finds where the parts of sums arrive, made before any member is told to begin: what they send must not
 * overtake what the first member still does with that memory. */
kiln_status ki_pass_room(struct ki_pass *pass);
/* Member i's struct of the operation, with its operands, which it holds from then on. */
kiln_status ki_pass_prepare(struct ki_pass *pass, int i);
/* The first member's operand j and what the others have for it, by a collective. */
kiln_status ki_pass_collect(struct ki_pass *pass, int j);

#endif
