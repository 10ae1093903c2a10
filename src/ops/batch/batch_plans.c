/* Ways to reduce a batch, and what each is expected to take.
 *
 * seconds = the most of: bytes / bandwidth; bytes / (bytes under way) * latency; turns of the memory pipe,
 * which takes a line of 128 bytes at a time; instructions; and a share of the other three. They only have to
 * rank. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "ops/batch/batch.h"
#include "pass/predict.h"
#include "pass/unit.h"

enum { LINE = 128, WARP = 32, TILES_A_UNIT = 8, SHORTEST_PIECE = 8192 };
static const double BANDWIDTH_UNKNOWN = 1e11;

#define VALUE(name, value) .name = (value),
static const struct ki_batch_constants fitted = {KI_BATCH_CONSTANTS(VALUE)};
const struct ki_batch_constants *ki_batch_constants = &fitted;

static const char *const way_names[KI_BATCH_WAYS] = {"vector a thread", "few threads",      "vector a block",
                                                     "looped block",    "vector in pieces", "tiles"};

enum { BOUNDS = 4 };
static const char *const limits[BOUNDS] = {"memory", "latency", "memory pipe", "instructions"};

/* Lines that the load of a warp touches: those of a vector, for as many vectors as it takes, of which near
 * ones share lines. */
static double lines_of_load(const struct ki_batch_plan *plan, const kiln_batch *batch, double length,
                            double element, double load) {
    const double lanes = ki_min(plan->lanes, WARP), vectors = WARP / lanes;
    const double apart = element * (batch->stride ? (double)batch->stride : length);
    const double spread = lanes * load * (double)batch->step * element / LINE,
                 of_vector = spread > 1 ? spread : 1;
    const double far = vectors * of_vector, near = vectors * apart / LINE + of_vector;
    const double lines = near < far ? near : far;
    return lines < WARP ? lines : WARP;
}

/* Threads that the device holds. */
static int64_t room_of(const kiln_device *device) {
    return device->properties.compute_units * ki_unit_of(device).threads;
}

static void predict(struct ki_batch_plan *plan, const kiln_device *device, const kiln_batch *batch,
                    kiln_type type) {
    const struct ki_batch_constants *c = ki_batch_constants;
    const double element = (double)ki_type_bytes(type), units = device->properties.compute_units;
    const double bandwidth = ki_promised_bandwidth(device, BANDWIDTH_UNKNOWN);
    const double count = (double)batch->count, elements = (double)batch->elements,
                 pieces = count * (double)plan->parts;
    const double length = elements / ki_max(1, batch->count) / (double)plan->parts,
                 load = plan->wide ? 16 / element : 1;
    const double turns = 1 + (length - 1) / (plan->lanes * load); /* of one thread's loads */
    const bool tiled = plan->way == KI_BATCH_TILED;
    double seconds[BOUNDS], under_way, lines, instructions;
    plan->bytes = element * (elements + count);
    const double threads = (double)ki_min(plan->groups * KI_BATCH_GROUP, room_of(device));
    if (tiled) {
        under_way = (double)ki_min(plan->groups, (int64_t)units * TILES_A_UNIT) * KI_BATCH_TILE_BYTES;
        lines = elements * element / LINE * 2 + elements / WARP * c->tile_lines;
        instructions =
            elements / WARP * c->tile_element +
            count * plan->lanes / WARP * (c->tile_vector + c->tile_exchange * ki_halvings(plan->lanes));
    } else {
        const double ahead = turns < (plan->wide ? 4 : 8) ? turns : plan->wide ? 4 : 8;
        const double busy = length / (turns * plan->lanes * load);
        under_way = threads * ahead * load * element * (busy < 1 ? busy : 1);
        lines = pieces * turns * plan->lanes / WARP * lines_of_load(plan, batch, length, element, load);
        instructions = pieces * plan->lanes / WARP *
                       (c->vector + c->exchange * ki_halvings(plan->lanes) + turns * load * c->element);
    }
    seconds[0] = plan->bytes / bandwidth;
    seconds[1] = plan->bytes / (under_way > 1 ? under_way : 1) * c->latency;
    seconds[2] = lines / (units * c->lines);
    seconds[3] = instructions / (units * c->issued);
    if (plan->way == KI_BATCH_BLOCK) /* each group begins with nothing under way */
        seconds[1] += (double)plan->groups / (units * TILES_A_UNIT) * c->latency / 2;
    int worst;
    plan->seconds = ki_bounded(seconds, BOUNDS, c->not_hidden, &worst) + c->latency +
                    c->launch * (plan->parts > 1 || (tiled && batch->pieces.count > 0) ? 2 : 1);
    plan->limit = limits[worst];
}

struct offering {
    struct ki_batch_plan *plans;
    int count;
    const kiln_device *device;
    const kiln_batch *batch;
    kiln_type type;
};

static void offer(struct offering *of, enum ki_batch_way way, int lanes, bool wide, int64_t parts,
                  int64_t groups, int64_t together) {
    if (of->count == KI_BATCH_PLANS) return;
    struct ki_batch_plan *plan = &of->plans[of->count++];
    *plan = (struct ki_batch_plan){.way = way,
                                   .lanes = lanes,
                                   .group = KI_BATCH_GROUP,
                                   .wide = wide,
                                   .parts = parts,
                                   .groups = ki_max(groups, 1),
                                   .together = together};
    predict(plan, of->device, of->batch, of->type);
}

/* 16 bytes a load where vectors fill them and their elements lie side by side. */
static bool wide_pays(const struct offering *of, int lanes) {
    const kiln_batch *b = of->batch;
    return b->step == 1 && lanes >= 4 && b->elements / b->count >= 2 * lanes * 16 / ki_type_bytes(of->type);
}

static void offer_direct(struct offering *of) {
    const kiln_batch *b = of->batch;
    const int64_t most = (int64_t)of->device->properties.compute_units * 32;
    for (int lanes = 1; lanes <= WARP; lanes *= 2)
        offer(of, lanes == 1 ? KI_BATCH_THREAD : KI_BATCH_LANES, lanes, wide_pays(of, lanes), 1,
              ki_min(ki_ceil_div(b->count, KI_BATCH_GROUP / lanes), most), 0);
    if (b->count < INT32_MAX)
        offer(of, KI_BATCH_BLOCK, KI_BATCH_GROUP, wide_pays(of, KI_BATCH_GROUP), 1, b->count, 0);
    offer(of, KI_BATCH_LOOP, KI_BATCH_GROUP, wide_pays(of, KI_BATCH_GROUP), 1, ki_min(b->count, most), 0);
}

/* Pieces for so many groups as the device has room for, four times, and fewer. Columns of a matrix go to
 * threads side by side. */
static void offer_pieces(struct offering *of) {
    const kiln_batch *b = of->batch;
    const int64_t most = (int64_t)of->device->properties.compute_units * 32;
    const int lanes = b->stride < b->step ? 1 : KI_BATCH_GROUP;
    const int64_t a_group = KI_BATCH_GROUP / lanes, shortest = lanes == 1 ? 64 : SHORTEST_PIECE;
    for (int64_t groups = most / 16; groups <= most; groups *= 4) {
        const int64_t parts = ki_min(groups * a_group / ki_max(b->count, 1), b->length / shortest);
        if (parts > 1)
            offer(of, KI_BATCH_SPLIT, lanes, wide_pays(of, lanes), parts,
                  ki_min(ki_ceil_div(b->count * parts, a_group), most), 0);
    }
}

static void offer_tiles(struct offering *of) {
    const kiln_batch *b = of->batch;
    const int64_t tile = KI_BATCH_TILE_BYTES / ki_type_bytes(of->type) - 8,
                  most = (int64_t)of->device->properties.compute_units * 32;
    if (b->offsets) {
        const int64_t tiles = b->tile_count[of->type == KILN_F64];
        offer(of, KI_BATCH_TILED, b->lanes, true, 1, ki_min(ki_max(tiles, b->pieces.count), most), 0);
    }
    if (!ki_batch_adjoins(b) || b->length > tile / 4 || b->length < 1) return;
    for (int lanes = 1; lanes <= WARP && lanes <= b->length; lanes *= 2) {
        const int64_t together = ki_max(1, tile / b->length);
        offer(of, KI_BATCH_TILED, lanes, true, 1, ki_min(ki_ceil_div(b->count, together), most), together);
    }
}

int ki_batch_plans(struct ki_batch_plan plans[KI_BATCH_PLANS], const kiln_device *device,
                   const kiln_batch *batch, kiln_type type) {
    struct offering of = {.plans = plans, .device = device, .batch = batch, .type = type};
    int best = 0;
    offer_direct(&of);
    if (!batch->offsets) offer_pieces(&of);
    offer_tiles(&of);
    for (int i = 1; i < of.count; i++)
        if (plans[i].seconds < plans[best].seconds) best = i;
    const struct ki_batch_plan chosen = plans[best];
    memmove(plans + 1, plans, (size_t)best * sizeof *plans);
    plans[0] = chosen;
    return of.count;
}

/* ------------------------------------------------------------------------------------------ kiln/tune.h */

static kiln_plan as_plan(const struct ki_batch_plan *plan, int number, const kiln_device *device,
                         const kiln_batch *batch) {
    kiln_plan out = {
        .number = number,
        .chosen = number == 0,
        .vector = plan->lanes,
        .group = plan->group,
        .load = plan->wide ? 16 : 0,
        .rows = (int)plan->together,
        .team = (int)plan->parts,
        .groups = plan->groups,
        .coarsening = ki_ceil_div(batch->count * plan->parts * plan->lanes, plan->groups * plan->group),
        .occupancy = (double)ki_min(plan->groups * plan->group, room_of(device)) / (double)room_of(device),
        .bytes = plan->bytes,
        .seconds = plan->seconds};
    snprintf(out.variant, sizeof out.variant, "%s", way_names[plan->way]);
    snprintf(out.limit, sizeof out.limit, "%s", plan->limit);
    return out;
}

kiln_status kiln_batch_plans(kiln_plan **plans, int64_t *count, kiln_device *device, const kiln_batch *batch,
                             kiln_type type) {
    static const char call[] = "kiln_batch_plans";
    struct ki_batch_plan found[KI_BATCH_PLANS];
    if (!plans || !count || !device || !batch)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (type != KILN_F32 && type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: type is %d, but must be KILN_F32 or KILN_F64", call,
                       (int)type);
    if (batch->elements == 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the batch has no elements, so there is nothing to plan", call);
    const bool cpu = ki_on_cpu(device);
    const int n = cpu ? 1 : ki_batch_plans(found, device, batch, type);
    kiln_plan *out = ki_calloc((size_t)n * sizeof *out);
    if (!out) return ki_fail_nomem((size_t)n * sizeof *out, "plans");
    const double bytes = (double)ki_type_bytes(type) * (double)(batch->elements + batch->count);
    for (int i = 0; i < n; i++)
        out[i] = cpu ? ki_cpu_plan(device, bytes) : as_plan(&found[i], i, device, batch);
    *plans = out;
    *count = n;
    return KILN_OK;
}

kiln_status kiln_batch_reduce_with(const kiln_plan *plan, kiln_matrix *result, kiln_batch_kind kind,
                                   const kiln_matrix *X, const kiln_batch *batch) {
    static const char call[] = "kiln_batch_reduce_with";
    struct ki_batch_plan found[KI_BATCH_PLANS];
    kiln_status status;
    if (!plan || !X || !batch) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_batch_check_reduce(call, result, kind, X, batch));
    const int n =
        ki_on_cpu(X->device) || batch->elements == 0 ? 1 : ki_batch_plans(found, X->device, batch, X->type);
    if (plan->number < 0 || plan->number >= n)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: plan %lld is none of this batch's %d", call,
                       (long long)plan->number, n);
    TRY(ki_batch_run(result, (int)kind, X, batch, n > 1 ? &found[plan->number] : NULL));
done:
    return status;
}
