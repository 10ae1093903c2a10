/* Launches of a batch's kernels (batch.cl). */
#include "ops/batch/batch.h"

#include "core/arguments.h"
#include "core/size.h"
#include "dialect/scalar_math.h"
#include "ops/batch/batch.cl"

KI_ARGUMENTS(reduce);
KI_ARGUMENTS(join);
KI_ARGUMENTS(reduce_tiles);
KI_ARGUMENTS(scale);
KI_ARGUMENTS(scale_flat);

enum { GROUP = KI_BATCH_GROUP, LISTED = 2 };

struct launching {
    kiln_matrix *result;
    const kiln_matrix *X;
    const kiln_batch *batch;
    int kind;
};

/* Holds what a launch of a kernel is built with. */
struct build {
    const char *part, *more;
    int where, lanes;
};

static kiln_status run(const struct launching *of, const char *function, struct build build, int64_t groups,
                       const struct ki_arg *args, int count) {
    const char *defines = KI_DEFINES("-D%s -DWHERE=%d -DREDUCTION=%d -DVS=%d -DBS=%d%s", build.part,
                                     build.where, of->kind, build.lanes, GROUP, build.more);
    return ki_kernel_run(of->X->device, "batch", function, of->X->type, defines, groups, GROUP, args, count);
}

/* NULL where the batch has no arrays. */
static const struct ki_buffer *array(const kiln_batch *batch, int which) {
    return batch->offsets ? &batch->on_device[which] : NULL;
}

static int64_t groups_for(const kiln_device *device, int64_t wanted) {
    return ki_min(wanted, (int64_t)device->properties.compute_units * 32);
}

/* Pieces of vectors, `parts` of each or those of the list, leave what they know in `partial`. */
static kiln_status pieces(const struct launching *of, const struct ki_batch_plan *plan,
                          const struct ki_buffer *partial, int where, int64_t count, int64_t groups) {
    const kiln_batch *b = of->batch;
    const char *more = plan->wide ? partial ? " -DWIDE" : " -DWIDE -DWHOLE" : partial ? "" : " -DWHOLE";
    return run(of, "reduce", (struct build){"REDUCE", more, where, plan->lanes}, groups,
               KI_PACK(reduce, of->X, .result = of->result, .partial = partial, .X = of->X,
                       .offsets = array(b, KI_BATCH_OFFSETS), .pieces = array(b, KI_BATCH_PIECES),
                       .count = count, .first = b->first, .stride = b->stride, .step = b->step,
                       .length = b->length, .parts = where == LISTED ? 1 : plan->parts));
}

static kiln_status join(const struct launching *of, const struct ki_buffer *partial, int where, int64_t count,
                        int64_t parts) {
    const kiln_batch *b = of->batch;
    return run(of, "join", (struct build){"JOIN", "", where, GROUP}, groups_for(of->X->device, count),
               KI_PACK(join, of->X, .result = of->result, .partial = partial,
                       .vectors = array(b, KI_BATCH_VECTORS), .starts = array(b, KI_BATCH_STARTS),
                       .offsets = array(b, KI_BATCH_OFFSETS), .count = count, .length = b->length,
                       .parts = parts));
}

static kiln_status tiles(const struct launching *of, const struct ki_batch_plan *plan, int64_t tile_count) {
    const kiln_batch *b = of->batch;
    const int64_t element = ki_type_bytes(of->X->type);
    const char *more = KI_DEFINES(" -DTILE_REALS=%d", (int)(KI_BATCH_TILE_BYTES / element));
    return run(of, "reduce_tiles", (struct build){"TILES", more, b->offsets != NULL, plan->lanes},
               groups_for(of->X->device, tile_count),
               KI_PACK(reduce_tiles, of->X, .result = of->result, .X = of->X,
                       .offsets = array(b, KI_BATCH_OFFSETS),
                       .tiles = array(b, KI_BATCH_TILES + (of->X->type == KILN_F64)), .count = b->count,
                       .first = b->first, .length = b->length, .together = plan->together,
                       .tile_count = tile_count, .all = of->X->nnz));
}

/* Short vectors by tiles, long ones by pieces. */
static kiln_status ragged(const struct launching *of, const struct ki_batch_plan *plan) {
    const struct ki_batch_pieces *list = &of->batch->pieces;
    const struct ki_batch_plan whole = {.lanes = GROUP, .wide = true};
    struct ki_buffer partial;
    kiln_status status;
    TRY(tiles(of, plan, of->batch->tile_count[of->X->type == KILN_F64]));
    if (list->count == 0) return status;
    TRY(ki_device_scratch(of->X->device, &partial, list->count * (int64_t)sizeof(struct batch_part)));
    TRY(pieces(of, &whole, &partial, LISTED, list->count, groups_for(of->X->device, list->count)));
    TRY(join(of, &partial, LISTED, list->vectors, 1));
done:
    return status;
}

kiln_status ki_batch_launch(kiln_matrix *result, int kind, const kiln_matrix *X, const kiln_batch *batch,
                            const struct ki_batch_plan *plan) {
    const struct launching of = {.result = result, .X = X, .batch = batch, .kind = kind};
    struct ki_buffer partial = {0};
    kiln_status status;
    if (plan->way == KI_BATCH_TILED)
        return batch->offsets ? ragged(&of, plan)
                              : tiles(&of, plan, ki_ceil_div(batch->count, plan->together));
    if (plan->parts == 1) return pieces(&of, plan, NULL, batch->offsets != NULL, batch->count, plan->groups);
    TRY(ki_device_scratch(X->device, &partial,
                          batch->count * plan->parts * (int64_t)sizeof(struct batch_part)));
    TRY(pieces(&of, plan, &partial, 0, batch->count, plan->groups));
    TRY(join(&of, &partial, 0, batch->count, plan->parts));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ scaling */

static kiln_status scale_flat(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                              const kiln_batch *b) {
    const int64_t elements = b->count * b->length, unit = 16 / ki_type_bytes(X->type);
    int shift = 31;
    while (INT64_C(1) << (shift - 31) < b->length) shift++;
    const int64_t reciprocal = (INT64_C(1) << shift) / b->length + 1; /* shift is 61 at most */
    const int64_t groups = ki_max(1, ki_ceil_div(elements, unit * 4 * GROUP));
    return ki_kernel_run(
        X->device, "batch", "scale_flat", X->type, "-DSCALE_FLAT -DWHERE=0 -DREDUCTION=0 -DBS=256",
        groups_for(X->device, groups), GROUP,
        KI_PACK(scale_flat, X, .Y = Y, .X = X, .s = scale, .first = b->first, .elements = elements,
                .length = b->length, .reciprocal = reciprocal, .shift = shift));
}

/* Straight from memory, `lanes` threads a piece. */
static kiln_status scale_pieces(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                                const kiln_batch *b, int where, int64_t count, int64_t parts, int lanes) {
    const struct launching of = {.X = X, .batch = b};
    return run(&of, "scale", (struct build){"SCALE", "", where, lanes},
               groups_for(X->device, ki_ceil_div(count * parts * lanes, GROUP)),
               KI_PACK(scale, X, .Y = Y, .X = X, .s = scale, .offsets = array(b, KI_BATCH_OFFSETS),
                       .count = count, .first = b->first, .stride = b->stride, .step = b->step,
                       .length = b->length, .parts = parts));
}

/* As many threads as a vector has room for, from 1 to `most`: a power of two. */
static int lanes_for(int64_t length, int most) {
    int lanes = 1;
    while (lanes < most && lanes < length) lanes *= 2;
    return lanes;
}

kiln_status ki_batch_launch_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                                  const kiln_batch *batch) {
    enum { LONGEST_FLAT = 1 << 30, PIECE = 1 << 14 };
    const int64_t mean = batch->elements / batch->count;
    if (batch->offsets)
        return scale_pieces(Y, X, scale, batch, 1, batch->count, ki_max(1, batch->longest / PIECE),
                            lanes_for(mean, 32));
    if (ki_batch_adjoins(batch) && batch->length <= LONGEST_FLAT) return scale_flat(Y, X, scale, batch);
    /* columns of a matrix: threads side by side take elements side by side */
    const int lanes = batch->stride < batch->step ? 1 : lanes_for(batch->length, GROUP);
    return scale_pieces(Y, X, scale, batch, 0, batch->count, ki_max(1, batch->length / PIECE), lanes);
}
