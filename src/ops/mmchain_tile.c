/* The launch model of the tensor cores' kernel: which plans there are on a device, and how long each takes.
 *
 * As in mmchain_dense_model.c a compute unit holds `share` groups, which go through tiles of `bytes` each, and
 *   rate^-4 = memory^-4 + (bytes under way / latency)^-4 + (bytes share / step)^-4 + (bytes / busy)^-4
 * where step is a warp's way through a tile and busy the time that the unit's issue slots are taken. Times are those of one
 * H200, in nanoseconds, fitted to 145 timings of plans of 28 to 8,192 columns: median error 4.5 %; clusters of CLUSTER_MAX to
 * those of 20,000 (bench/results/h200-dense-cuda.json). */
#include <math.h>
#include <stdio.h>

#include "core/size.h"
#include "ops/mmchain_tile.h"

enum {
    UNIT_REGISTERS = 65536,
    UNIT_THREADS = 2048,
    REGISTERS_MAX = 255,
    CLUSTER_MAX = 16,
    BLOCK_BYTES = 64,
    STAGES_MAX = 8
};

/* A plan being made, with what follows from it. */
struct tile {
    struct ki_candidate candidate;
    const struct ki_chain *chain;
    double memory;
    int share, sharers, vectors, units; /* groups a compute unit; warps a row; vectors a group; R / 8 */
    int64_t slice, bytes;               /* of a row, of a tile */
};

static bool joint(const struct tile *t) {
    return t->candidate.plan.VS > 32;
}

/* Most rows of a vector in a tile, in eights. Warps that have f32 rows of their own have registers for more, so that less of
 * their time goes into the ring; a map takes a row a lane. */
static int most_units(const struct tile *t) {
    return joint(t) || t->chain->X->type == KILN_F64 || ki_chain_maps(t->chain) ? 4 : 8;
}

/* Registers of a thread, as the compiler gives them. */
static int64_t registers_of(const struct tile *t) {
    const struct ki_plan *plan = &t->candidate.plan;
    const int words = t->chain->X->type == KILN_F64 ? 2 : 1, map = ki_chain_maps(t->chain) ? 38 : 0;
    const int64_t found = words == 1 && !joint(t)
                              ? 28 + 18 * plan->Q + 8 * t->units
                              : 32 + (words == 2 ? 8 : 12) * plan->Q + (joint(t) ? 8 : 12) * words * t->units;
    const int64_t needed = (found + map + 7) / 8 * 8;
    return words == 2 && joint(t) && needed <= 264 ? ki_min(needed, REGISTERS_MAX)
                                                   : needed; /* 264: none are spilled */
}

/* Bytes of on-chip memory that the kernel declares. */
static int64_t declared(const struct tile *t) {
    const struct ki_plan *plan = &t->candidate.plan;
    const int64_t sums = 64 * t->units * ki_type_bytes(t->chain->X->type);
    const int64_t map = ki_chain_maps(t->chain) ? plan->BS / 32 * 8 * ki_chain_record(t->chain, plan->K) : 0;
    const int64_t places = joint(t)                  ? 2 * (t->sharers + 1 + (plan->C > 1 ? plan->C : 0))
                           : ki_chain_maps(t->chain) ? t->vectors
                                                     : 0;
    return 16 * STAGES_MAX + 64 + sums * places + map;
}

/* As many tiles as the groups have room for. */
static bool fit(struct tile *t) {
    const kiln_matrix *X = t->chain->X;
    struct ki_plan *plan = &t->candidate.plan;
    const int64_t size = ki_type_bytes(X->type), rows = (int64_t)t->units * t->vectors;
    const int64_t registers =
        X->device->properties.registers ? X->device->properties.registers : UNIT_REGISTERS;
    if ((plan->C == 1 ? rows : 1) * X->cols * size % 16 != 0 || X->cols * size % 8 != 0) return false;
    const int64_t unit = 16 / size, columns = ki_ceil_div(ki_ceil_div(X->cols, plan->C), unit) * unit;
    if ((plan->C == 1 ? X->cols : columns) * (plan->C - 1) >= X->cols) return false;
    t->slice = (plan->C == 1 ? X->cols : columns) * size;
    plan->Q = (int)ki_ceil_div(ki_ceil_div(t->slice, BLOCK_BYTES), t->sharers);
    const bool whole =
        t->slice * plan->C == X->cols * size && t->slice == (int64_t)BLOCK_BYTES * plan->Q * t->sharers;
    plan->variant = whole ? "TILE_WHOLE" : "TILE"; /* WHOLE: no warp has less of a row than the others */
    if (registers_of(t) > REGISTERS_MAX || registers_of(t) * plan->BS * t->share > registers) return false;
    if (declared(t) > X->device->properties.local_bytes || plan->BS * t->share > UNIT_THREADS) return false;
    /* 32 bytes beyond a multiple of 128, as in the kernel. */
    t->bytes = 8 * ((rows * t->slice + 127 - 32) / 128 * 128 + 32);
    const int64_t room = (X->device->properties.local_max + 1024) / t->share - 1024 - declared(t);
    plan->stages = (int)ki_min(room / t->bytes, STAGES_MAX);
    plan->local_bytes = t->bytes * plan->stages;
    return plan->stages >= (plan->C > 1 && plan->C < CLUSTER_MAX ? 3 : 2);
}

static double rate_of(struct tile *t) {
    static const char *const limits[] = {"memory bandwidth", "bytes under way", "latency of a step",
                                         "instructions"};
    const struct ki_plan *plan = &t->candidate.plan;
    const bool wide = t->chain->X->type == KILN_F64, ahead = joint(t) && plan->stages > 2;
    const double bytes = (double)t->bytes, share = t->share, warps = t->sharers * t->vectors;
    const double blocks = (double)plan->Q * t->units; /* of 8 words and 8 rows, a warp and tile */
    const double step = 822 + (wide ? 33.3 : 98.4) * blocks + (wide ? 0 : 2.8 * plan->Q);
    const double busy = warps * (59.3 + (wide ? 3.26 : 10.3) * blocks);
    /* A cluster with two tiles cannot look ahead: each is fetched, waits for the sums of all groups, and is used. */
    const double round = 1358 + bytes / t->memory + step + 900;
    const double under_way = plan->C > 1 && plan->stages == 2
                                 ? bytes * share * 2 / round
                                 : bytes * share * fmax(plan->stages - (ahead ? 2 : 1), 0.5) / 1358;
    const double rates[] = {1.1 * t->memory, under_way, bytes * share / step, bytes / busy};
    double sum = 0;
    int least = 0;
    for (int i = 0; i < 4; i++) {
        sum += 1 / (rates[i] * rates[i] * rates[i] * rates[i]);
        if (rates[i] < rates[least]) least = i;
    }
    snprintf(t->candidate.limit, sizeof t->candidate.limit, "%s", limits[least]);
    /* Clusters of 16 leave more of the device's units idle than smaller ones. */
    return fmin(1 / sqrt(sqrt(sum)), t->memory) * (plan->C == CLUSTER_MAX ? 0.93 : 1);
}

static void predict(struct tile *t) {
    const kiln_matrix *X = t->chain->X;
    struct ki_candidate *candidate = &t->candidate;
    struct ki_plan *plan = &candidate->plan;
    const int units = X->device->properties.compute_units;
    const int64_t size = ki_type_bytes(X->type), passes = ki_ceil_div(t->chain->k, plan->K);
    const int64_t tiles = ki_max(ki_ceil_div(X->rows, (int64_t)plan->R * t->vectors), 1);
    const int64_t sharers = ki_min(ki_max((int64_t)t->share * units / plan->C, 1), tiles);
    const double uneven = (double)(ki_ceil_div(tiles, sharers) * sharers) / (double)tiles;
    const double partials = (double)(sharers * X->cols * plan->K * size),
                 bytes = (double)((X->nnz + X->rows) * size);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    candidate->seconds =
        1e-9 * (double)passes * (6000 + bytes / (units * rate_of(t)) * uneven + partials / 1500);
    candidate->occupancy = (double)(t->share * plan->BS) / UNIT_THREADS;
    plan->steps = tiles;
    plan->groups = sharers * plan->C;
}

void ki_tile_plans(const struct ki_chain *chain, double memory,
                   void (*offer)(void *list, const struct ki_candidate *candidate), void *list) {
    const struct ki_properties *device = &chain->X->device->properties;
    if (chain->kind != KI_CHAIN_FUSED || chain->k < 2 || device->architecture < 90 || device->local_max == 0)
        return;
    struct tile t = {.chain = chain, .memory = memory};
    struct ki_plan *plan = &t.candidate.plan;
    *plan = (struct ki_plan){.file = "mmchain_tile", .function = "mmchain_tile"};
    /* Seven and the one that fetches are 256 threads, whose registers fill a unit, as are six that share rows so wide that
     * nothing else has the registers for them, and two more. */
    static const int vectors[] = {1, 2, 4, 7, 8}, sharers[] = {1, 2, 4, 6, 8, 16};
    enum {
        VECTOR_COUNTS = sizeof vectors / sizeof *vectors,
        SHARER_COUNTS = sizeof sharers / sizeof *sharers
    };
    plan->K = ki_plan_columns(chain);
    plan->W = (int)(16 / ki_type_bytes(chain->X->type));
    for (plan->C = 1; plan->C <= CLUSTER_MAX; plan->C *= 2)
        for (int h = 0; h < SHARER_COUNTS; h++)
            for (int v = 0; v < VECTOR_COUNTS; v++)
                for (t.units = 1; t.units <= 8; t.units *= 2)
                    for (t.share = 1; t.share <= 4; t.share++) {
                        t.vectors = vectors[v];
                        t.sharers = sharers[h];
                        plan->VS = 32 * t.sharers;
                        if (sharers[h] == 6 && plan->C < CLUSTER_MAX) continue;
                        if (t.sharers == 1 ? plan->C > 1 : t.vectors > 1) continue;
                        if (t.units > most_units(&t)) continue;
                        plan->BS = plan->VS * t.vectors + (joint(&t) ? 64 : 32);
                        plan->R = 8 * t.units;
                        if (!fit(&t)) continue;
                        predict(&t);
                        offer(list, &t.candidate);
                    }
}
