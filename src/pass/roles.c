/* Operands by their rules, slices of them, and the table of a pass. */
#include "pass/roles.h"

#include <string.h>
kiln_matrix *ki_operand_of(const void *operation, const struct ki_rule *rule) {
    kiln_matrix *A;
    memcpy(&A, (const char *)operation + rule->at, sizeof A);
    return A;
}

void ki_operand_set(void *operation, const struct ki_rule *rule, const kiln_matrix *A) {
    memcpy((char *)operation + rule->at, &A, sizeof A);
}

void ki_operands_list(struct ki_operand operands[KI_RULES_MOST], const struct ki_rules *rules,
                      const void *operation) {
    for (int i = 0; i < KI_RULES_MOST; i++)
        operands[i] = i < rules->count ? (struct ki_operand){ki_operand_of(operation, &rules->rule[i]),
                                                             (rules->rule[i].use & KI_WRITES) != 0}
                                       : (struct ki_operand){NULL, false};
}

/* `whole`, of which the slice has `rows` rows, or as many entries as X, from element `first` on. */
static void view_part(kiln_matrix *view, const kiln_matrix *whole, int64_t rows, int64_t elements,
                      int64_t first) {
    *view = *whole;
    view->view = true;
    view->slots = NULL;
    view->rows = rows;
    view->nnz = elements;
    view->values.offset += first * ki_type_bytes(view->type);
}

void ki_slice(void *slice, kiln_matrix views[KI_RULES_MOST], const struct ki_rules *rules, int kind,
              const void *whole, const kiln_matrix *X, struct ki_offset place) {
    memcpy(slice, whole, rules->bytes);
    memcpy((char *)slice + rules->X, &X, sizeof X);
    if (rules->place) memcpy((char *)slice + rules->place, &place, sizeof place);
    for (int i = 0; i < rules->count; i++) {
        const struct ki_rule *rule = &rules->rule[i];
        const kiln_matrix *A = ki_operand_of(whole, rule);
        const enum ki_role role = rule->role[kind];
        if (!A) continue;
        if (role == KI_SUM && rule->use == KI_READS && !place.leads) ki_operand_set(slice, rule, NULL);
        if (role != KI_ROW && role != KI_ENTRY) continue;
        if (role == KI_ROW)
            view_part(&views[i], A, place.rows, place.rows * A->cols, place.row * A->cols);
        else
            view_part(&views[i], A, place.rows, X->nnz, place.entry);
        ki_operand_set(slice, rule, &views[i]);
    }
}

/* The role of each operand in FUSED, PLAIN, TRANSPOSED and SQUARES. */
static const struct ki_rule chain_operands[] = {
    {offsetof(struct ki_chain, out), KI_WRITES, {KI_SUM, KI_ROW, KI_SUM, KI_SUM}},
    {offsetof(struct ki_chain, z), KI_READS, {KI_SUM, KI_ROW, KI_SUM, KI_SUM}},
    {offsetof(struct ki_chain, y), KI_READS, {KI_COLUMN, KI_COLUMN, KI_ROW, KI_ROW}},
    {offsetof(struct ki_chain, v), KI_READS, {KI_ROW}},
    {offsetof(struct ki_chain, shift), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_chain, curvature), KI_WRITES, {KI_ROW}},
    {offsetof(struct ki_chain, sums), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_chain, products), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_chain, loss.y), KI_READS, {KI_ROW}},
    {offsetof(struct ki_chain, loss.weights), KI_READS, {KI_ROW}},
    {offsetof(struct ki_chain, loss.offset), KI_READS, {KI_ROW}},
};

const struct ki_rules ki_chain_rules =
    KI_RULES(struct ki_chain, X, offsetof(struct ki_chain, value), chain_operands);
