/* Batches that are the rows of an X on a group: members share them as they share its rows. Each has a batch
 * of its own for a sparse X's; other batches are the first member's. */
#include <string.h>

#include "core/seams.h"
#include "ops/batch/batch.h"
#include "pass/group.h"

/* Says where X was cut, and each member's rows of it. */
struct ki_batch_members {
    int count;
    int64_t first[KI_MEMBERS + 1];
    kiln_batch *of[KI_MEMBERS];
};

struct of_rows {
    kiln_matrix *result, *Y; /* of a reduction; of a scaling */
    const kiln_matrix *X, *scale;
    const kiln_batch *batch; /* the whole, if it has members; NULL: X is dense */
    struct ki_offset place;
    int kind;
};

enum { DENSE, SPARSE };
static const struct ki_rule rules[] = {
    {offsetof(struct of_rows, result), KI_WRITES, {KI_ROW, KI_ROW}},
    {offsetof(struct of_rows, Y), KI_WRITES, {KI_ROW, KI_ENTRY}},
    {offsetof(struct of_rows, scale), KI_READS, {KI_ROW, KI_ROW}},
};
static const struct ki_rules table = {.bytes = sizeof(struct of_rows),
                                      .X = offsetof(struct of_rows, X),
                                      .place = offsetof(struct of_rows, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

void ki_batch_members_free(struct ki_batch_members *members) {
    for (int i = 0; members && i < members->count; i++) kiln_batch_free(members->of[i]);
    ki_free(members);
}

/* The rows [first, end) of the whole, counted from the first one's beginning. */
static kiln_status member_new(kiln_batch **batch, kiln_device *device, const int64_t *offsets, int64_t first,
                              int64_t end) {
    const size_t bytes = (size_t)(end - first + 1) * sizeof *offsets;
    int64_t *own = ki_alloc(bytes);
    if (!own) return ki_fail_nomem(bytes, "the rows of a batch");
    for (int64_t v = first; v <= end; v++) own[v - first] = offsets[v] - offsets[first];
    const kiln_status status = kiln_batch_ragged(batch, device, end - first, own);
    ki_free(own);
    return status;
}

kiln_status ki_batch_members_new(struct ki_batch_members **members, const kiln_batch *batch,
                                 const kiln_matrix *X) {
    const struct ki_split *split;
    struct ki_batch_members *made = NULL;
    kiln_status status;
    if (!X->device->group || !ki_is_split(X) || X->nnz == 0) return KILN_OK;
    TRY(ki_split_of(&split, X, KI_BY_ROWS));
    made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "the rows of a batch");
    memcpy(made->first, split->first, sizeof made->first);
    for (; made->count < split->count; made->count++)
        TRY(member_new(&made->of[made->count], X->device->group->member[made->count], batch->offsets,
                       split->first[made->count], split->first[made->count + 1]));
    *members = made;
    made = NULL;
done:
    ki_batch_members_free(made);
    return status;
}

/* The batch may be of another sparse matrix, too, if its members' entries are the same. */
static kiln_status cut_alike(bool *alike, const kiln_batch *batch, const kiln_matrix *X) {
    const struct ki_split *split;
    const kiln_status status = ki_split_of(&split, X, KI_BY_ROWS);
    if (status != KILN_OK) return status;
    *alike = memcmp(split->first, batch->members->first, sizeof split->first) == 0;
    for (int i = 0; *alike && i <= split->count; i++)
        *alike = split->entry[i] == batch->offsets[split->first[i]];
    return KILN_OK;
}

kiln_status ki_batch_shared(bool *shared, const kiln_batch *batch, const kiln_matrix *X) {
    const bool split = ki_is_split(X) && X->nnz > 0;
    *shared = split && X->format == KILN_DENSE && ki_batch_adjoins(batch) && batch->first == 0 &&
              batch->length == X->cols && batch->count == X->rows;
    if (!split || X->format == KILN_DENSE || !batch->members) return KILN_OK;
    return cut_alike(shared, batch, X);
}

static const kiln_batch *own_batch(const struct of_rows *call) {
    return call->batch ? call->batch->members->of[call->place.member] : NULL;
}

static kiln_status reduce(const void *of) {
    const struct of_rows *call = of;
    return kiln_batch_reduce(call->result, (kiln_batch_kind)call->kind, call->X, own_batch(call));
}

static kiln_status scale(const void *of) {
    const struct of_rows *call = of;
    const kiln_batch *own = own_batch(call);
    if (!own) return kiln_batch_scale(call->Y, call->X, call->scale, NULL);
    return own->elements ? ki_batch_run_scale(call->Y, call->X, call->scale, own) : KILN_OK;
}

kiln_status ki_batch_share_reduce(kiln_matrix *result, int kind, const kiln_matrix *X,
                                  const kiln_batch *batch) {
    const struct of_rows call = {
        .result = result, .X = X, .batch = batch->members ? batch : NULL, .kind = kind};
    return ki_share(&(struct ki_shared){
        .rules = &table, .kind = call.batch ? SPARSE : DENSE, .whole = &call, .run = reduce});
}

kiln_status ki_batch_share_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *by,
                                 const kiln_batch *batch) {
    const struct of_rows call = {.Y = Y, .X = X, .scale = by, .batch = batch->members ? batch : NULL};
    return ki_share(&(struct ki_shared){
        .rules = &table, .kind = call.batch ? SPARSE : DENSE, .whole = &call, .run = scale});
}
