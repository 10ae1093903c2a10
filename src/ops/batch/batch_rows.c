/* Batches that are the rows of a dense X, whose members share them as they share its rows; other batches are the first member's. */
#include "ops/batch/batch.h"
#include "pass/group.h"

struct of_rows {
    kiln_matrix *result, *Y; /* of a reduction; of a scaling */
    const kiln_matrix *X, *scale;
    int kind;
};

static const struct ki_rule rules[] = {
    {offsetof(struct of_rows, result), KI_WRITES, {KI_ROW}},
    {offsetof(struct of_rows, Y), KI_WRITES, {KI_ROW}},
    {offsetof(struct of_rows, scale), KI_READS, {KI_ROW}},
};
static const struct ki_rules table = KI_RULES(struct of_rows, X, 0, rules);

bool ki_batch_shared(const kiln_batch *batch, const kiln_matrix *X) {
    return ki_is_split(X) && X->format == KILN_DENSE && X->nnz > 0 && ki_batch_adjoins(batch) &&
           batch->first == 0 && batch->length == X->cols && batch->count == X->rows;
}

static kiln_status reduce(const void *of) {
    const struct of_rows *call = of;
    return kiln_batch_reduce(call->result, (kiln_batch_kind)call->kind, call->X, NULL);
}

static kiln_status scale(const void *of) {
    const struct of_rows *call = of;
    return kiln_batch_scale(call->Y, call->X, call->scale, NULL);
}

kiln_status ki_batch_share_reduce(kiln_matrix *result, int kind, const kiln_matrix *X) {
    const struct of_rows call = {.result = result, .X = X, .kind = kind};
    return ki_share(&(struct ki_shared){.rules = &table, .whole = &call, .run = reduce});
}

kiln_status ki_batch_share_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *by) {
    const struct of_rows call = {.Y = Y, .X = X, .scale = by};
    return ki_share(&(struct ki_shared){.rules = &table, .whole = &call, .run = scale});
}
