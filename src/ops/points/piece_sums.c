/* Sums of pieces of a vector whose rows may lie with others: each adds up what it has of a piece, and these
 * are added up. */
#include "ops/points/piece_sums.h"
#include "core/home.h"

#include "core/seams.h"
#include "core/size.h"
#include "pass/combine.h"
#include "pass/group.h"

struct piece_sums {
    kiln_matrix *sums;
    const kiln_matrix *P;
    int64_t piece;
    struct ki_offset place;
};

static const struct ki_rule rules[] = {
    {offsetof(struct piece_sums, P), KI_READS, {KI_ROW}},
    {offsetof(struct piece_sums, sums), KI_WRITES, {KI_SUM}},
};
static const struct ki_rules table = {.bytes = sizeof(struct piece_sums),
                                      .X = offsetof(struct piece_sums, P),
                                      .place = offsetof(struct piece_sums, place),
                                      .count = sizeof rules / sizeof *rules,
                                      .rule = rules};

/* The pieces that rows [first, first + rows) have a share of, counted from there. */
static kiln_status own_pieces(kiln_batch **pieces, kiln_device *device, int64_t piece, int64_t first,
                              int64_t rows) {
    const int64_t count = ki_ceil_div(first + rows, piece) - first / piece;
    int64_t *offsets = ki_alloc((size_t)(count + 1) * sizeof *offsets);
    if (!offsets) return ki_fail_nomem((size_t)(count + 1) * sizeof *offsets, "pieces of a vector");
    for (int64_t b = 0; b <= count; b++)
        offsets[b] = ki_min(ki_max((first / piece + b) * piece - first, 0), rows);
    const kiln_status status = kiln_batch_ragged(pieces, device, count, offsets);
    ki_free(offsets);
    return status;
}

static kiln_status run(const void *part) {
    const struct piece_sums *of = part;
    const int64_t first = of->place.row, real = ki_type_bytes(of->sums->type);
    const struct ki_operand held = {of->sums, false};
    kiln_device *device = of->P->device;
    kiln_batch *pieces = NULL;
    kiln_matrix *own = NULL;
    kiln_status status;
    TRY(ki_set_all(of->sums, 0));
    TRY(own_pieces(&pieces, device, of->piece, first, of->P->rows));
    TRY(ki_matrix_new_held(&own, device, of->P->type,
                           ki_ceil_div(first + of->P->rows, of->piece) - first / of->piece, 1));
    TRY(kiln_batch_reduce(own, KILN_BATCH_SUM, of->P, pieces));
    TRY(ki_operands_hold(device, &held, 1));
    status = ki_device_copy(device, device, &of->sums->values, first / of->piece * real, device, &own->values,
                            0, own->nnz * real);
    ki_operands_release(device, &held, 1);
done:
    kiln_matrix_free(own);
    kiln_batch_free(pieces);
    return status;
}

kiln_status ki_piece_sums(kiln_matrix *sums, const kiln_matrix *P, int64_t piece, const kiln_batch *pieces) {
    if (!ki_is_away(P)) return kiln_batch_reduce(sums, KILN_BATCH_SUM, P, pieces);
    return ki_share(&(struct ki_shared){.rules = &table,
                                        .whole = &(struct piece_sums){.sums = sums, .P = P, .piece = piece},
                                        .cut = KI_AS_IT_LIES,
                                        .run = run});
}
