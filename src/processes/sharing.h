/* Both sides of a shared operation know this: the leader (share.c) and the others (serve_share.c). */
#ifndef KI_SHARING_H
#define KI_SHARING_H

#include "pass/group.h"
#include "processes/processes.h"

static inline bool ki_is_part(const struct ki_order_operand *operand) {
    return operand->role == KI_ROW || operand->role == KI_ENTRY;
}

/* Rows that have been written stay with their processes until somebody wants the whole (ki_matrix_home);
 * written entries are the leader's again. */
static inline bool ki_stays(const struct ki_order_operand *operand) {
    return operand->role == KI_ROW && (operand->use & KI_WRITES);
}

static inline bool ki_comes_back(const struct ki_order_operand *operand) {
    return operand->role == KI_ENTRY && (operand->use & KI_WRITES) && !operand->away;
}

static inline bool ki_adds_up(const struct ki_order_operand *operand) {
    return operand->role == KI_SUM && (operand->use & KI_WRITES);
}

/* Operands that are only read come before those that are written, which may be the same matrix: the j-th in
 * that order, from 0. */
static inline int ki_in_turn(const struct ki_rules *rules, int j) {
    for (int written = 0; written < 2; written++)
        for (int i = 0; i < rules->count; i++)
            if (((rules->rule[i].use & KI_WRITES) != 0) == written && j-- == 0) return i;
    return 0;
}

/* Returns what is whole in every process: the same numbers after the operation as before it, or as all have
 * written them in rounds. */
static inline bool ki_is_whole(const struct ki_order_operand *operand) {
    return ki_role_is_whole(operand->role);
}

/* A matrix for this operation alone. */
static inline bool ki_is_passing(const struct ki_order_operand *operand) {
    return operand->role == KI_OWN || ki_adds_up(operand);
}

/* Returns the bytes of a cut's places, which lie one after the other. */
static inline int64_t ki_cut_bytes(const struct kiln_processes *p) {
    return 2 * ((int64_t)p->transport.count + 1) * (int64_t)sizeof(int64_t);
}

/* Rows that process i takes part with. */
static inline int64_t ki_share_rows(const int64_t *first, int i) {
    return first[i + 1] - first[i];
}

/* An operation in rounds (ki_shared.rounds), between which each process sends the others what it has written
 * for all. */
struct ki_rounds {
    struct kiln_processes *p;
    const struct ki_order *order;
    const struct ki_rules *rules;
    const int64_t *first; /* process i has the rows [first[i], first[i + 1]) */
    kiln_status (*run_round)(const void *slice, int64_t round);
    const void *slice; /* whose operands are held */
};
/* rounds.c. *outcome: what went wrong here; the exchanges go on all the same. */
kiln_status ki_rounds_run(const struct ki_rounds *rounds, kiln_status *outcome);

#endif
