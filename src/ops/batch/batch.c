/* Batches: vectors of one length, or between offsets, in the values of a matrix; the checks of what is
 * done to them.
 *
 * What a device needs to know beyond the shape is worked out once, when the batch is made: where a ragged
 * batch's tiles begin (see batch.cl), and how long vectors are cut into pieces. */
#include "ops/batch/batch.h"

#include <string.h>

#include "bodies/bodies.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "dialect/scalar_math.h"
#include "kiln/tune.h"

/* ------------------------------------------------------------------------------------ making batches */

static int64_t length_of(const kiln_batch *batch, int64_t v) {
    return batch->offsets ? batch->offsets[v + 1] - batch->offsets[v] : batch->length;
}

/* Counts, and once there is room, writes the pieces of vectors longer than `longest`. */
static void cut_pieces(struct ki_batch_pieces *list, const kiln_batch *batch, int64_t longest,
                       int64_t piece) {
    list->count = list->vectors = 0;
    for (int64_t v = 0; v < batch->count; v++) {
        const int64_t length = length_of(batch, v);
        if (length <= longest) continue;
        const int64_t parts = ki_ceil_div(length, piece);
        for (int64_t i = 0; list->piece && i < parts; i++) {
            int64_t *row = list->piece + 3 * (list->count + i);
            row[0] = v;
            row[1] = i * piece;
            row[2] = ki_min(length, (i + 1) * piece);
        }
        if (list->piece) {
            list->vector[list->vectors] = v;
            list->start[list->vectors] = list->count;
        }
        list->count += parts;
        list->vectors++;
    }
    if (list->piece) list->start[list->vectors] = list->count;
}

static kiln_status make_pieces(kiln_batch *batch, int64_t longest, int64_t piece) {
    struct ki_batch_pieces *list = &batch->pieces;
    if (batch->longest <= longest) return KILN_OK;
    cut_pieces(list, batch, longest, piece);
    list->piece = ki_alloc((size_t)list->count * 3 * sizeof(int64_t));
    list->vector = ki_alloc((size_t)list->vectors * sizeof(int64_t));
    list->start = ki_alloc((size_t)(list->vectors + 1) * sizeof(int64_t));
    if (!list->piece || !list->vector || !list->start)
        return ki_fail_nomem((size_t)list->count * 3 * sizeof(int64_t), "the pieces of long vectors");
    cut_pieces(list, batch, longest, piece);
    return KILN_OK;
}

/* Counts, and once there is room, writes the tiles: vectors in a row that are short and together have no
 * more than `most` elements. */
static int64_t cut_tiles(int64_t *tiles, const kiln_batch *batch, int64_t longest, int64_t most) {
    enum { VECTORS = 2048 };
    int64_t count = 0;
    for (int64_t v = 0; v < batch->count;) {
        const int64_t begin = v;
        while (v < batch->count && v - begin < VECTORS && length_of(batch, v) <= longest &&
               batch->offsets[v + 1] - batch->offsets[begin] <= most)
            v++;
        if (v == begin) {
            v++; /* a long one, which the pieces have */
            continue;
        }
        if (tiles) {
            tiles[2 * count] = begin;
            tiles[2 * count + 1] = v;
        }
        count++;
    }
    return count;
}

static kiln_status make_tiles(kiln_batch *batch, int64_t longest) {
    const int64_t mean = batch->elements / ki_max(batch->count, 1);
    batch->lanes = 1;
    while (batch->lanes < 32 && batch->lanes * 4 < mean) batch->lanes *= 2;
    for (int type = 0; type < 2; type++) {
        const int64_t most = KI_BATCH_TILE_BYTES / (type ? 8 : 4) - 8;
        batch->tile_count[type] = cut_tiles(NULL, batch, longest, most);
        const size_t bytes = (size_t)(2 * batch->tile_count[type] + 1) * sizeof(int64_t);
        batch->tiles[type] = ki_alloc(bytes);
        if (!batch->tiles[type]) return ki_fail_nomem(bytes, "the tiles of a batch");
        cut_tiles(batch->tiles[type], batch, longest, most);
    }
    return KILN_OK;
}

static kiln_status upload(kiln_batch *batch, int which, const int64_t *array, int64_t count) {
    kiln_status status;
    if (count == 0) return KILN_OK;
    TRY(ki_device_alloc(batch->device, &batch->on_device[which], count * 8));
    TRY(ki_device_upload(batch->device, &batch->on_device[which], 0, array, count * 8));
done:
    return status;
}

static kiln_status upload_all(kiln_batch *batch) {
    const struct ki_batch_pieces *list = &batch->pieces;
    kiln_status status;
    TRY(upload(batch, KI_BATCH_OFFSETS, batch->offsets, batch->count + 1));
    TRY(upload(batch, KI_BATCH_PIECES, list->piece, 3 * list->count));
    TRY(upload(batch, KI_BATCH_VECTORS, list->vector, list->vectors));
    TRY(upload(batch, KI_BATCH_STARTS, list->start, list->vectors ? list->vectors + 1 : 0));
    for (int type = 0; type < 2; type++)
        TRY(upload(batch, KI_BATCH_TILES + type, batch->tiles[type], 2 * batch->tile_count[type]));
done:
    return status;
}

/* The batch is empty once it is freed. */
static void clear(kiln_batch *batch) {
    ki_free(batch->offsets);
    ki_free(batch->pieces.piece);
    ki_free(batch->pieces.vector);
    ki_free(batch->pieces.start);
    ki_free(batch->tiles[0]);
    ki_free(batch->tiles[1]);
    for (int i = 0; batch->device && i < KI_BATCH_ARRAYS; i++)
        if (batch->on_device[i].handle) ki_device_release(batch->device, &batch->on_device[i]);
    ki_batch_members_free(batch->members);
    *batch = (kiln_batch){0};
}

void kiln_batch_free(kiln_batch *batch) {
    if (!batch) return;
    clear(batch);
    ki_free(batch);
}

/* Takes what `from` has over into a block of its own; on failure `from` is cleared. */
static kiln_status hand_out(kiln_batch **batch, kiln_batch *from, kiln_status status) {
    kiln_batch *made = status == KILN_OK ? ki_alloc(sizeof *made) : NULL;
    if (status == KILN_OK && !made) status = ki_fail_nomem(sizeof *made, "a batch");
    if (status != KILN_OK) {
        clear(from);
        return status;
    }
    *made = *from;
    *batch = made;
    return KILN_OK;
}

static kiln_status make_equal(kiln_batch *batch, const char *call, int64_t count, int64_t length,
                              int64_t first, int64_t stride, int64_t step) {
    int64_t along = 0, across = 0;
    *batch = (kiln_batch){.count = count,
                          .length = length,
                          .first = first,
                          .step = step ? step : 1,
                          .stride = stride ? stride : length,
                          .longest = count ? length : 0,
                          .end = 0};
    if (count < 0 || length < 0 || first < 0 || stride < 0 || step < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: count, length, first, stride and step must not be negative",
                       call);
    if (!ki_mul(count, length, &batch->elements) || batch->elements == 0) {
        if (count && length) return ki_fail(KILN_ERR_ARGUMENT, "%s: more elements than can be counted", call);
        return KILN_OK;
    }
    if (!ki_mul(length - 1, batch->step, &along) || !ki_mul(count - 1, batch->stride, &across) ||
        !ki_add(along, across, &along) || !ki_add(along, first, &along) || along == INT64_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: places beyond what can be counted", call);
    batch->end = along + 1;
    return make_pieces(batch, KI_BATCH_LONG_CPU, KI_BATCH_LONG_CPU / 2);
}

kiln_status kiln_batch_equal(kiln_batch **batch, int64_t count, int64_t length, int64_t first, int64_t stride,
                             int64_t step) {
    static const char call[] = "kiln_batch_equal";
    kiln_batch made;
    if (!batch) return ki_fail(KILN_ERR_ARGUMENT, "%s: batch is NULL", call);
    return hand_out(batch, &made, make_equal(&made, call, count, length, first, stride, step));
}

static kiln_status check_offsets(const char *call, const int64_t *offsets, int64_t count) {
    if (offsets[0] < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: offsets[0] is %lld", call, (long long)offsets[0]);
    for (int64_t v = 0; v < count; v++)
        if (offsets[v + 1] < offsets[v])
            return ki_fail(KILN_ERR_ARGUMENT, "%s: offsets[%lld] is %lld, less than the one before, %lld",
                           call, (long long)v + 1, (long long)offsets[v + 1], (long long)offsets[v]);
    return KILN_OK;
}

static kiln_status make_ragged(kiln_batch *batch, const char *call, kiln_device *device, int64_t count,
                               const int64_t *offsets) {
    const bool cpu = ki_on_cpu(device);
    int64_t bytes;
    kiln_status status;
    *batch = (kiln_batch){.device = device, .count = count, .step = 1};
    if (!ki_add(count, 1, &bytes) || !ki_mul(bytes, 8, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld vectors", call, (long long)count);
    TRY(check_offsets(call, offsets, count));
    batch->offsets = ki_alloc((size_t)bytes);
    if (!batch->offsets) return ki_fail_nomem((size_t)bytes, "the offsets of a batch");
    memcpy(batch->offsets, offsets, (size_t)bytes);
    batch->elements = offsets[count] - offsets[0];
    batch->end = offsets[count];
    for (int64_t v = 0; v < count; v++) batch->longest = ki_max(batch->longest, length_of(batch, v));
    if (cpu) return make_pieces(batch, KI_BATCH_LONG_CPU, KI_BATCH_LONG_CPU / 2);
    TRY(make_tiles(batch, KI_BATCH_LONG_GPU));
    TRY(make_pieces(batch, KI_BATCH_LONG_GPU, KI_BATCH_PIECE_GPU));
    TRY(upload_all(batch));
done:
    return status;
}

kiln_status kiln_batch_ragged(kiln_batch **batch, kiln_device *device, int64_t count,
                              const int64_t *offsets) {
    static const char call[] = "kiln_batch_ragged";
    kiln_batch made;
    if (!batch || !device || !offsets) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (count < 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld vectors", call, (long long)count);
    if (device->lost) return kiln_device_sync(device);
    return hand_out(batch, &made, make_ragged(&made, call, device, count, offsets));
}

kiln_status kiln_batch_rows(kiln_batch **batch, const kiln_matrix *X) {
    static const char call[] = "kiln_batch_rows";
    kiln_batch made;
    kiln_status status;
    if (!batch || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (X->format == KILN_DENSE)
        return hand_out(batch, &made, make_equal(&made, call, X->rows, X->cols, 0, 0, 1));
    int64_t *row_start = ki_alloc((size_t)(X->rows + 1) * sizeof *row_start);
    if (!row_start) return ki_fail_nomem((size_t)(X->rows + 1) * sizeof *row_start, "the rows of a batch");
    TRY(kiln_matrix_get_csr(row_start, NULL, NULL, X));
    status = make_ragged(&made, call, X->device, X->rows, row_start);
    if (status == KILN_OK) status = ki_batch_members_new(&made.members, &made, X);
    TRY(hand_out(batch, &made, status));
done:
    ki_free(row_start);
    return status;
}

int ki_batch_shares(const kiln_batch *batch) {
    enum { SHARES = 256, ELEMENTS = 1 << 15 };
    return (int)ki_max(1,
                       ki_min(SHARES, ki_min(batch->count, (batch->elements + 8 * batch->count) / ELEMENTS)));
}

/* A vector without elements counts, too: as eight. */
int64_t ki_batch_share(const kiln_batch *batch, int part, int parts) {
    enum { OWN = 8 };
    if (!batch->offsets || part == 0 || part == parts) return ki_part_begin(batch->count, part, parts);
    const int64_t goal = ki_part_begin(batch->elements + OWN * batch->count, part, parts);
    return ki_row_at(batch->offsets, batch->count, batch->offsets[0] + goal, OWN);
}

/* --------------------------------------------------------------------------------------------- calls */

static kiln_status check_batch(const char *call, const kiln_batch *batch, const kiln_matrix *X) {
    if (batch->end > X->nnz)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the batch ends at element %lld, X has %lld", call,
                       (long long)batch->end, (long long)X->nnz);
    if (batch->device && batch->device != X->device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the batch is of another device than X", call);
    return ki_check_operand(call, "X", X, X);
}

kiln_status ki_batch_check_reduce(const char *call, const kiln_matrix *result, kiln_batch_kind kind,
                                  const kiln_matrix *X, const kiln_batch *batch) {
    const int64_t exact = X && X->type == KILN_F32 ? 1 << 24 : INT64_MAX;
    kiln_status status;
    TRY(check_batch(call, batch, X));
    TRY(ki_check_dense(call, "result", result, X, batch->count, 1));
    if (result == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: result must not be X", call);
    if (kind < KILN_BATCH_SUM || kind > KILN_BATCH_VARIANCE)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no reduction has the number %d", call, (int)kind);
    if ((kind == KILN_BATCH_ARGMAX || kind == KILN_BATCH_ARGMIN) && batch->longest > exact)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: f32 holds no places beyond %lld, and a vector has %lld elements", call,
                       (long long)exact, (long long)batch->longest);
done:
    return status;
}

static kiln_status reduce_cpu(kiln_matrix *result, int kind, const kiln_matrix *X, const kiln_batch *batch) {
    const size_t bytes = (size_t)(batch->pieces.count + 1) * sizeof(struct batch_part);
    const struct ki_operand operands[] = {{.matrix = result, .written = true}, {.matrix = X}};
    kiln_status status;
    struct batch_part *partial = ki_alloc(bytes);
    if (!partial) return ki_fail_nomem(bytes, "a batch of reductions");
    TRY(ki_operands_hold(X->device, operands, 2));
    ki_bodies(X)->batch_reduce(result, X, batch, kind, partial);
    ki_operands_release(X->device, operands, 2);
done:
    ki_free(partial);
    return status;
}

kiln_status ki_batch_run(kiln_matrix *result, int kind, const kiln_matrix *X, const kiln_batch *batch,
                         const struct ki_batch_plan *plan) {
    struct ki_batch_plan plans[KI_BATCH_PLANS];
    if (batch->count == 0) return KILN_OK;
    if (ki_on_cpu(X->device)) return reduce_cpu(result, kind, X, batch);
    if (!plan) ki_batch_plans(plans, X->device, batch, X->type);
    return ki_batch_launch(result, kind, X, batch, plan ? plan : plans);
}

/* The rows of a dense X, for the time of a call. */
static kiln_status rows_for(const char *call, kiln_batch *rows, const kiln_matrix *X) {
    if (!X) return ki_fail(KILN_ERR_ARGUMENT, "%s: X is NULL", call);
    if (X->format != KILN_DENSE) {
        ki_fail(KILN_ERR_ARGUMENT, "%s: without a batch X must be dense", call);
        return ki_hint("kiln_batch_rows makes a batch of a sparse matrix's rows");
    }
    return make_equal(rows, call, X->rows, X->cols, 0, 0, 1);
}

kiln_status kiln_batch_reduce(kiln_matrix *result, kiln_batch_kind kind, const kiln_matrix *X,
                              const kiln_batch *batch) {
    static const char call[] = "kiln_batch_reduce";
    kiln_batch rows = {0};
    bool shared = false;
    kiln_status status;
    if (!batch) TRY(rows_for(call, &rows, X));
    if (!X) return ki_fail(KILN_ERR_ARGUMENT, "%s: X is NULL", call);
    const kiln_batch *of = batch ? batch : &rows;
    TRY(ki_batch_check_reduce(call, result, kind, X, of));
    TRY(ki_batch_shared(&shared, of, X));
    TRY(shared ? ki_batch_share_reduce(result, (int)kind, X, of)
               : ki_batch_run(result, (int)kind, X, of, NULL));
done:
    clear(&rows);
    return status;
}

/* Y as X is: dense of its shape, or sparse with as many entries. */
static kiln_status check_scaled(const char *call, const kiln_matrix *Y, const kiln_matrix *X) {
    if (!Y) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y is NULL", call);
    if (X->format == KILN_DENSE) return ki_check_dense(call, "Y", Y, X, X->rows, X->cols);
    if (Y->format != X->format || Y->rows != X->rows || Y->cols != X->cols || Y->nnz != X->nnz ||
        Y->type != X->type || Y->device != X->device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Y must be X or have X's shape, entries, type and device",
                       call);
    return KILN_OK;
}

static kiln_status scale_cpu(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                             const kiln_batch *batch) {
    const struct ki_operand operands[] = {{.matrix = Y, .written = true}, {.matrix = X}, {.matrix = scale}};
    kiln_status status;
    TRY(ki_operands_hold(X->device, operands, 3));
    ki_bodies(X)->batch_scale(Y, X, scale, batch);
    ki_operands_release(X->device, operands, 3);
done:
    return status;
}

kiln_status ki_batch_run_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                               const kiln_batch *batch) {
    return ki_on_cpu(X->device) ? scale_cpu(Y, X, scale, batch) : ki_batch_launch_scale(Y, X, scale, batch);
}

kiln_status kiln_batch_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                             const kiln_batch *batch) {
    static const char call[] = "kiln_batch_scale";
    kiln_batch rows = {0};
    bool shared = false;
    kiln_status status;
    if (!batch) TRY(rows_for(call, &rows, X));
    if (!X) return ki_fail(KILN_ERR_ARGUMENT, "%s: X is NULL", call);
    const kiln_batch *of = batch ? batch : &rows;
    TRY(check_batch(call, of, X));
    TRY(check_scaled(call, Y, X));
    TRY(ki_check_dense(call, "scale", scale, X, of->count, 1));
    if (scale == Y) TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: Y must not be scale", call));
    if (of->elements == 0) goto done;
    TRY(ki_batch_shared(&shared, of, X));
    TRY(shared && Y != X ? ki_batch_share_scale(Y, X, scale, of) : ki_batch_run_scale(Y, X, scale, of));
done:
    clear(&rows);
    return status;
}
