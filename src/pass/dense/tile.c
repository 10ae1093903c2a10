/* The launch model of the tensor cores' kernel: which plans there are on a device, and how long each takes.
 *
 * As in dense_model.c a compute unit holds `share` groups, which go through tiles of `bytes` each, and
 *   rate^-4 = memory^-4 + (bytes under way / latency)^-4 + (bytes share / step)^-4 + (bytes / busy)^-4
 * where step is a warp's way through a tile and busy the time that the unit's issue slots are taken. Times are those of one
 * H200: f64 fitted to 145 timings of plans of 28 to 8,192 columns, median error 4.5 %; f32 to
 * bench/results/h200-tile-plans.json, where what it chooses is at most 3 % slower than the best; teams to those of
 * bench/results/h200-team-plans.json for rows of 12,000 to 100,000 columns: 3 %; f32's anew, since two of their sums are one word, to
 * 41 timings of bench/results/h200-tile-team-plans.json, of 12,000 to 50,000 columns: 3.5 %. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/size.h"
#include "pass/dense/tile_plans.h"

enum {
    UNIT_THREADS = 2048,
    REGISTERS_MAX = 255,
    CLUSTER_MAX = 16,
    TEAM_MAX = 44,
    TEAM_BYTES = 2048, /* of a slice, at least */
    LAG_MAX = 4,
    BLOCK_BYTES = 64,
    STAGES_MAX = 8,
    SPREAD_STAGES_MAX = 12, /* each has a barrier */
    SPREAD_CLERKS = 6,      /* warps beside the workers */
    SPREAD_ASKED = 6,       /* pairs that a lane receives at once */
    SPREAD_BYTES = 65536    /* of a row, from which on that is of use */
};

/* A plan being made, with what follows from it. */
struct tile {
    struct ki_candidate candidate;
    const struct ki_chain *chain;
    double memory;
    bool spread;                        /* a team of tile_team.cl */
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

/* A team of tile.cl, each of whose groups adds up the parts of all. */
static bool is_team(const struct tile *t) {
    return t->candidate.plan.team && !t->spread;
}

/* 64-bit words that a lane takes of each group of a team, and in how many rounds: PAIR_WORDS, ROUNDS of tile.cl. */
static int64_t group_words(const struct tile *t) {
    return t->units * ki_type_bytes(t->chain->X->type) / 4;
}

static int64_t rounds_of(const struct tile *t) {
    return ki_ceil_div(t->candidate.plan.C * group_words(t), 52);
}

static int64_t receiver_registers(const struct tile *t) {
    if (!is_team(t)) return 0;
    return 40 + 2 * group_words(t) * ki_ceil_div(t->candidate.plan.C, rounds_of(t));
}

/* Registers of a thread, as the compiler gives them. */
static int64_t registers_of(const struct tile *t) {
    const struct ki_plan *plan = &t->candidate.plan;
    const int words = t->chain->X->type == KILN_F64 ? 2 : 1, map = ki_chain_maps(t->chain) ? 38 : 0;
    const int64_t found = words == 2 ? 32 + 8 * plan->Q + (joint(t) ? 16 : 24) * t->units
                          : joint(t) ? 24 + 13 * plan->Q + 8 * t->units
                                     : 28 + 18 * plan->Q + 8 * t->units;
    const int64_t needed = (ki_max(found, receiver_registers(t)) + map + (t->spread ? 16 : 0) + 7) / 8 * 8;
    if (t->spread && words == 2 && needed <= 160) return ki_min(needed, 128); /* none are spilled */
    return words == 2 && joint(t) && needed <= 264 ? ki_min(needed, REGISTERS_MAX)
                                                   : needed; /* 264: none are spilled */
}

/* Whether a unit has registers for the groups, and each of its quarters for a quarter of a group's warps. A few that are
 * spilled do no harm. */
static bool has_registers(const struct tile *t) {
    const int64_t registers = registers_of(t), all = ki_unit_registers(t->chain), BS = t->candidate.plan.BS;
    return registers <= REGISTERS_MAX && registers * BS * t->share <= all &&
           registers * ki_ceil_div(BS, 128) * 128 <= all * 13 / 12;
}

/* Bytes of on-chip memory that the kernel declares. */
static int64_t declared(const struct tile *t) {
    const struct ki_plan *plan = &t->candidate.plan;
    const int64_t sums = 64 * t->units * ki_type_bytes(t->chain->X->type);
    const int64_t map = ki_chain_maps(t->chain) ? plan->BS / 32 * 8 * ki_chain_record(t->chain, plan->K) : 0;
    const int64_t places = t->spread  ? 2 * t->sharers + SPREAD_STAGES_MAX
                           : joint(t) ? 2 * (t->sharers + 1 + (plan->C > 1 && !plan->team ? plan->C : 0))
                           : ki_chain_maps(t->chain) ? t->vectors
                                                     : 0;
    return 16 * SPREAD_STAGES_MAX + 64 + sums * places + map;
}

/* As many tiles as the groups have room for. */
static bool fit(struct tile *t) {
    const kiln_matrix *X = t->chain->X;
    struct ki_plan *plan = &t->candidate.plan;
    const int64_t size = ki_type_bytes(X->type), rows = (int64_t)t->units * t->vectors;
    const struct ki_properties *device = &X->device->properties;
    if ((plan->C == 1 ? rows : 1) * X->cols * size % 16 != 0 || X->cols * size % 8 != 0) return false;
    const int64_t unit = 16 / size, columns = ki_ceil_div(ki_ceil_div(X->cols, plan->C), unit) * unit;
    if ((plan->C == 1 ? X->cols : columns) * (plan->C - 1) >= X->cols) return false;
    if (plan->team && columns * size < TEAM_BYTES) return false;
    t->slice = (plan->C == 1 ? X->cols : columns) * size;
    plan->Q = (int)ki_ceil_div(ki_ceil_div(t->slice, BLOCK_BYTES), t->sharers);
    const bool whole =
        t->slice * plan->C == X->cols * size && t->slice == (int64_t)BLOCK_BYTES * plan->Q * t->sharers;
    /* WHOLE: no warp has less of a row than the others. */
    plan->variant = t->spread ? "TILE_TEAM" : whole ? "TILE_WHOLE" : "TILE";
    if (!has_registers(t)) return false;
    if (!device->local_declared && declared(t) > device->local_bytes) return false;
    if (plan->BS * t->share > UNIT_THREADS) return false;
    /* A team waits for all of its groups. */
    if (plan->C > (int64_t)t->share * device->compute_units) return false;
    /* 32 bytes beyond a multiple of 128, as in the kernel. */
    t->bytes = 8 * ((rows * t->slice + 127 - 32) / 128 * 128 + 32);
    const int64_t most = ki_max(device->local_declared, device->local_max);
    const int64_t room = (most + 1024) / t->share - 1024 - declared(t);
    plan->stages = (int)ki_min(room / t->bytes, t->spread ? SPREAD_STAGES_MAX : STAGES_MAX);
    plan->local_bytes = t->bytes * plan->stages;
    plan->lag = joint(t) && plan->stages > 2;
    if (t->spread) return plan->stages >= 4;
    return plan->stages >= (plan->team || (plan->C > 1 && plan->C < CLUSTER_MAX) ? 3 : 2);
}

/* Nanoseconds on an H200, of a team: of a worker's step and for each of its blocks; of the warp that adds up, at all and for each
 * warp and group whose parts it takes; of the sums' way where one tile waits for them and where more do; of the issue slots of a
 * warp and a block. under_way: what is left of the bytes under way. f32_whole, where no load is tested, is of rows of 1,024 to
 * 8,192 columns. */
struct team_costs {
    double step, block, clerk, clerk_warp, clerk_group, one, more, warp, warp_block, under_way;
};
static const struct team_costs team_f64 = {613, 27.6, 45, 66, 14, 2060, 1490, 10, 3.26, 1},
                               team_f32 = {300, 94.3, 0, 20, 25.7, 453, 202, 16.8, 16, 0.94},
                               team_f32_whole = {613, 58.8, 45, 66, 14, 2060, 1490, 10, 6.6, 0.88};

/* What a team sends is on its way while its tiles wait, and asked for ahead if that is two steps; every group reads all parts,
 * one warp of it in rounds, which adds up those of the group's warps, too. */
static void team_rates(double *rates, const struct tile *t, double under_way) {
    const struct ki_plan *plan = &t->candidate.plan;
    const int64_t size = ki_type_bytes(t->chain->X->type);
    const struct team_costs *f32 = strcmp(plan->variant, "TILE") ? &team_f32_whole : &team_f32;
    const struct team_costs *c = size == 8 ? &team_f64 : f32;
    const double bytes = (double)t->bytes, share = t->share, blocks = (double)plan->Q * t->units;
    const double step = c->step + c->block * blocks;
    const double parts = plan->C * t->units * 8.0 * (double)size * plan->K;
    const double clerk = c->clerk + t->units * (c->clerk_warp * t->sharers + c->clerk_group * plan->C) +
                         411 * (double)(rounds_of(t) - 1);
    rates[0] = 1.25 * t->memory / (1 + 0.03 * parts / bytes);
    rates[1] = c->under_way * under_way;
    rates[2] = bytes * share / step;
    rates[3] = bytes / (t->sharers * (c->warp + c->warp_block * blocks));
    rates[4] = bytes * share * plan->lag / ((plan->lag > 1 ? c->more : c->one) + step);
    rates[5] = bytes * share / clerk;
}

/* Nanoseconds on an H200: of a tile's way to the ring; of a warp's way through a tile where it looks ahead, where it
 * does not and where its rows are its own; of a block of 8 words and 8 rows, and of one whatever its rows; of the
 * issue slots of a warp and of a block, shared and own; of a cluster's sums; of a team's over all units: for all of
 * them and for each group, of the warps that see to them and for each of a worker's blocks. */
struct costs {
    double way, ahead, meeting, own, block, words, warp, shared_block, own_block, sums, reach;
    double spread, spread_group, clerks, clerks_block;
};
static const struct costs costs_f64 = {1358, 822, 822, 822,  33.3, 0,   59.3, 3.26,
                                       3.26, 800, 1.1, 6060, 3.5,  731, 21},
                          costs_f32 = {1189, 1157, 904,   1078, 61.7, 19.4, 18.3, 9.83,
                                       15.2, 1050, 1.043, 5500, 7.6,  903,  77};

/* What a tile waits for is on its way all over the device, the longer the more groups send theirs; it is used once
 * before and once after that. */
static void spread_rates(double *rates, const struct tile *t, const struct costs *c) {
    const struct ki_plan *plan = &t->candidate.plan;
    const double bytes = (double)t->bytes, blocks = (double)plan->Q * t->units;
    const double latency =
        c->way + c->spread + c->spread_group * plan->C + 600 * (t->units - 1) + 18 * blocks;
    rates[0] = c->reach * t->memory;
    rates[1] = bytes * (plan->stages - 0.8) / latency;
    rates[2] = bytes / (c->clerks + c->clerks_block * blocks);
    rates[3] = bytes / (t->sharers * (28 + c->shared_block * blocks));
}

static double rate_of(struct tile *t) {
    static const char *const limits[] = {"memory bandwidth", "bytes under way", "latency of a step",
                                         "instructions",     "the team's sums", "the team's sums"};
    const struct ki_plan *plan = &t->candidate.plan;
    const struct costs *c = t->chain->X->type == KILN_F64 ? &costs_f64 : &costs_f32;
    const bool team = is_team(t);
    const double bytes = (double)t->bytes, share = t->share, warps = t->sharers * t->vectors;
    const double blocks = (double)plan->Q * t->units; /* of 8 words and 8 rows, a warp and tile */
    const double step = (plan->lag  ? c->ahead
                         : joint(t) ? c->meeting
                                    : c->own) +
                        c->block * blocks + c->words * plan->Q;
    const double busy = warps * (c->warp + (joint(t) ? c->shared_block : c->own_block) * blocks);
    /* A cluster with two tiles cannot look ahead: each is fetched, waits for the sums of all groups, and is used. */
    const double round = c->way + bytes / t->memory + c->ahead + c->block * blocks + c->sums;
    const double under_way = plan->C > 1 && plan->stages == 2
                                 ? bytes * share * 2 / round
                                 : bytes * share * fmax(plan->stages - plan->lag - 1, 0.5) / c->way;
    double alone[] = {c->reach * t->memory, under_way, bytes * share / step, bytes / busy};
    double shared[6];
    if (team) team_rates(shared, t, under_way);
    if (t->spread) spread_rates(alone, t, c);
    const double *const rates = team ? shared : alone;
    double sum = 0;
    int least = 0;
    for (int i = 0; i < (team ? 6 : 4); i++) {
        sum += 1 / (rates[i] * rates[i] * rates[i] * rates[i]);
        if (rates[i] < rates[least]) least = i;
    }
    snprintf(t->candidate.limit, sizeof t->candidate.limit, "%s", limits[least]);
    const double rate = fmin(1 / sqrt(sqrt(sum)), t->memory);
    if (team) return rate * (1 - 0.06 * (share - 1));
    /* Clusters of 16 leave more of the device's units idle than smaller ones; with two tiles in a group's ring, and the
     * sums in between, one of them is on its way only while the other is used. */
    if (plan->C == CLUSTER_MAX && !plan->team) return 0.93 * rate;
    return plan->C == 1 && joint(t) && plan->stages == 2 ? 0.8 * rate : rate;
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
    const int places =
        t->share * units; /* for groups, some of which teams leave empty; clusters' rates have it */
    const double busy = plan->team ? (double)(places - places % plan->C) / t->share : units;
    const double partials = (double)(sharers * X->cols * plan->K * size),
                 bytes = (double)((X->nnz + X->rows) * size);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    candidate->seconds =
        1e-9 * (double)passes * (6000 + bytes / (busy * rate_of(t)) * uneven + partials / 1500);
    candidate->occupancy = (double)(t->share * plan->BS) / UNIT_THREADS;
    plan->steps = tiles;
    plan->groups = sharers * plan->C;
}

/* Counts of groups that leave few of the device's units idle. */
static int next_team(const struct tile *t) {
    const int units = t->chain->X->device->properties.compute_units;
    int C = t->candidate.plan.C;
    do C++;
    while (C < TEAM_MAX && units % C * 32 > units);
    return C;
}

/* The longer a team's sums may take, the fewer tiles are under way. */
static void offer_lags(struct tile *t, void (*offer)(void *list, const struct ki_candidate *candidate),
                       void *list) {
    struct ki_plan *plan = &t->candidate.plan;
    const int most = plan->team ? (int)ki_min(plan->stages - 2, LAG_MAX) : plan->lag;
    for (; plan->lag <= most; plan->lag++) {
        predict(t);
        offer(list, &t->candidate);
    }
}

/* Teams of all units, of half of them, and so on; a unit holds one group. The kernel has no maps. */
static void offer_spread(struct tile *t, void (*offer)(void *list, const struct ki_candidate *candidate),
                         void *list) {
    static const int sharers[] = {4, 6, 8, 12};
    const kiln_matrix *X = t->chain->X;
    const int units = X->device->properties.compute_units;
    struct ki_plan *plan = &t->candidate.plan;
    if (X->cols * ki_type_bytes(X->type) < SPREAD_BYTES || ki_chain_maps(t->chain)) return;
    t->spread = true;
    t->share = t->vectors = 1;
    plan->file = "tile_team";
    plan->function = "mmchain_tile_team";
    for (int teams = 1; teams <= 12 && units / teams > 4; teams++)
        for (size_t h = 0; h < sizeof sharers / sizeof *sharers; h++)
            for (t->units = 1; t->units <= 4; t->units *= 2) {
                plan->C = units / teams;
                t->sharers = sharers[h];
                plan->VS = 32 * t->sharers;
                plan->BS = plan->VS + 32 * SPREAD_CLERKS;
                plan->R = 8 * t->units;
                const int64_t pairs = ki_ceil_div(4 * t->units * plan->K, plan->C);
                if (pairs * ki_ceil_div(plan->C, 32) > SPREAD_ASKED || !fit(t)) continue;
                predict(t);
                offer(list, &t->candidate);
            }
}

/* Layouts of a group alone, or of C that share rows. */
static void offer_layouts(struct tile *t, void (*offer)(void *list, const struct ki_candidate *candidate),
                          void *list) {
    /* Seven and the one that fetches are 256 threads, whose registers fill a unit, as are six, or ten of 384, that share rows so
     * wide that nothing else has the registers for them, and two more. */
    static const int vectors[] = {1, 2, 4, 7, 8}, sharers[] = {1, 2, 4, 6, 8, 10, 16};
    enum {
        VECTOR_COUNTS = sizeof vectors / sizeof *vectors,
        SHARER_COUNTS = sizeof sharers / sizeof *sharers
    };
    struct ki_plan *plan = &t->candidate.plan;
    const bool wide = t->chain->X->type == KILN_F64; /* as fast with fewer */
    for (int h = 0; h < SHARER_COUNTS; h++)
        for (int v = 0; v < VECTOR_COUNTS; v++)
            for (t->units = 1; t->units <= 8; t->units *= 2)
                for (t->share = 1; t->share <= 4; t->share++) {
                    t->vectors = vectors[v];
                    t->sharers = sharers[h];
                    plan->VS = 32 * t->sharers;
                    if (sharers[h] == 6 && plan->C < CLUSTER_MAX && !plan->team) continue;
                    if (sharers[h] == 10 && (!plan->team || wide)) continue;
                    if (t->sharers == 1 ? plan->C > 1 : t->vectors > 1) continue;
                    if (plan->team && (t->sharers < 4 || t->share > 2 || t->units > 1)) continue;
                    if (t->units > most_units(t)) continue;
                    plan->BS = plan->VS * t->vectors + (joint(t) ? 64 : 32);
                    plan->R = 8 * t->units;
                    if (fit(t)) offer_lags(t, offer, list);
                }
}

void ki_tile_plans(const struct ki_chain *chain, double memory,
                   void (*offer)(void *list, const struct ki_candidate *candidate), void *list) {
    const struct ki_properties *device = &chain->X->device->properties;
    const bool clusters = device->architecture >= 90 && device->local_max > 0;
    if (chain->kind != KI_CHAIN_FUSED || (!clusters && !device->local_declared)) return;
    /* For one column of y clusters do as well by threads. */
    if (chain->k == 1 && clusters) return;
    struct tile t = {.chain = chain, .memory = memory};
    struct ki_plan *plan = &t.candidate.plan;
    *plan = (struct ki_plan){.file = "tile", .function = "mmchain_tile"};
    plan->K = ki_plan_columns(chain);
    plan->W = (int)(16 / ki_type_bytes(chain->X->type));
    const int most = chain->k == 1 ? 0 : clusters ? CLUSTER_MAX : 1;
    for (plan->C = 1; plan->C <= most; plan->C *= 2) offer_layouts(&t, offer, list);
    plan->team = true;
    for (plan->C = 2; plan->C <= TEAM_MAX; plan->C = next_team(&t)) offer_layouts(&t, offer, list);
    if (chain->k > 1) offer_spread(&t, offer, list);
}
