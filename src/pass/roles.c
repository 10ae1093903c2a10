/* The table of a pass's operands, and slices of rows by it. */
#include "pass/roles.h"

#include <stddef.h>
#include <string.h>

#include "pass/combine.h"

/* The role of each operand in FUSED, PLAIN, TRANSPOSED and SQUARES. */
static const struct operand {
    size_t at; /* of the pointer in struct ki_chain */
    bool written;
    enum ki_role role[KI_CHAIN_SQUARES + 1];
} table[KI_CHAIN_OPERANDS] = {
    {offsetof(struct ki_chain, out), true, {KI_SUM, KI_ROW, KI_SUM, KI_SUM}},
    {offsetof(struct ki_chain, z), false, {KI_SUM, KI_ROW, KI_SUM, KI_SUM}},
    {offsetof(struct ki_chain, y), false, {KI_COLUMN, KI_COLUMN, KI_ROW, KI_ROW}},
    {offsetof(struct ki_chain, v), false, {KI_ROW}},
    {offsetof(struct ki_chain, shift), false, {KI_COLUMN}},
    {offsetof(struct ki_chain, curvature), true, {KI_ROW}},
    {offsetof(struct ki_chain, sums), true, {KI_SUM}},
    {offsetof(struct ki_chain, products), true, {KI_SUM}},
    {offsetof(struct ki_chain, loss.y), false, {KI_ROW}},
    {offsetof(struct ki_chain, loss.weights), false, {KI_ROW}},
    {offsetof(struct ki_chain, loss.offset), false, {KI_ROW}},
};
enum { OUT = 0 };

kiln_matrix *ki_chain_operand(const struct ki_chain *chain, int i) {
    kiln_matrix *A;
    memcpy(&A, (const char *)chain + table[i].at, sizeof A);
    return A;
}

void ki_chain_set_operand(struct ki_chain *chain, int i, const kiln_matrix *A) {
    memcpy((char *)chain + table[i].at, &A, sizeof A);
}

enum ki_role ki_chain_role(const struct ki_chain *chain, int i) {
    return table[i].role[chain->kind];
}

bool ki_chain_writes(int i) {
    return table[i].written;
}

static bool has_role(const struct ki_chain *chain, int i, enum ki_role role) {
    return ki_chain_operand(chain, i) && ki_chain_role(chain, i) == role;
}

void ki_chain_operands(struct ki_operand operands[KI_CHAIN_OPERANDS], const struct ki_chain *chain) {
    for (int i = 0; i < KI_CHAIN_OPERANDS; i++)
        operands[i] = (struct ki_operand){ki_chain_operand(chain, i), table[i].written};
}

void ki_chain_slice(struct ki_slice *slice, const struct ki_chain *whole, const kiln_matrix *X, int64_t first,
                    bool leads) {
    struct ki_chain *chain = &slice->chain;
    *chain = *whole;
    chain->X = X;
    for (int i = 0; i < KI_CHAIN_OPERANDS; i++) {
        if (has_role(whole, i, KI_SUM) && !table[i].written && !leads) ki_chain_set_operand(chain, i, NULL);
        if (!has_role(whole, i, KI_ROW)) continue;
        kiln_matrix *view = &slice->rows[i];
        *view = *ki_chain_operand(whole, i);
        view->view = true;
        view->slots = NULL;
        view->rows = X->rows;
        view->nnz = X->rows * view->cols;
        view->values.offset += first * view->cols * ki_type_bytes(view->type);
        ki_chain_set_operand(chain, i, view);
    }
}

/* Sums beside `out`, which a pass can add to. */
static bool apart(const struct ki_chain *whole, int i) {
    return i != OUT && table[i].written && has_role(whole, i, KI_SUM);
}

kiln_status ki_sums_begin(struct ki_sums *sums, const struct ki_chain *whole) {
    kiln_status status = KILN_OK;
    *sums = (struct ki_sums){.whole = whole};
    for (int i = 0; i < KI_CHAIN_OPERANDS; i++) {
        const kiln_matrix *A = ki_chain_operand(whole, i);
        if (apart(whole, i)) TRY(ki_matrix_new(&sums->part[i], A->device, A->type, A->rows, A->cols));
    }
done:
    if (status != KILN_OK) ki_sums_end(sums);
    return status;
}

kiln_status ki_sums_add(struct ki_sums *sums, const kiln_matrix *X, int64_t first) {
    const struct ki_chain *whole = sums->whole;
    const bool leads = sums->slices == 0;
    struct ki_slice slice;
    double value = 0;
    kiln_status status;
    ki_chain_slice(&slice, whole, X, first, leads);
    if (!leads && has_role(whole, OUT, KI_SUM)) {
        slice.chain.z = whole->out;
        slice.chain.beta = 1;
    }
    for (int i = 0; !leads && i < KI_CHAIN_OPERANDS; i++)
        if (apart(whole, i)) ki_chain_set_operand(&slice.chain, i, sums->part[i]);
    if (whole->value) slice.chain.value = &value;
    TRY(ki_chain_run_here(&slice.chain));
    for (int i = 0; !leads && i < KI_CHAIN_OPERANDS; i++)
        if (apart(whole, i))
            TRY(ki_combine_all(ki_chain_operand(whole, i), 1, ki_chain_operand(whole, i), 1, sums->part[i]));
    sums->value += value;
    sums->slices++;
done:
    return status;
}

void ki_sums_end(struct ki_sums *sums) {
    for (int i = 0; i < KI_CHAIN_OPERANDS; i++) {
        kiln_matrix_free(sums->part[i]);
        sums->part[i] = NULL;
    }
}
