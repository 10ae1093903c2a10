/* The plans of tile.cl: tensor cores for several columns of y, on GPUs that copy in bulk.
 *
 * A compute unit holds `share` groups, which go through tiles of `bytes` each, and
 *   rate^-4 = memory^-4 + (bytes under way / latency)^-4 + (bytes share / step)^-4 + (bytes / busy)^-4
 * where step is a warp's way through a tile and busy the time that the unit's issue slots are taken
 * (hopper.h). Rows of several groups are a team's, as in team.c. */
#include <math.h>
#include <stdio.h>

#include "core/size.h"
#include "pass/dense/hopper.h"
#include "pass/dense/team.h"
#include "pass/dense/variants.h"
#include "pass/unit.h"

enum {
    REGISTERS_MAX = 255,
    TEAM_MAX = 44,
    TEAM_BYTES = 2048, /* of a slice, at least */
    LAG_MAX = 4,
    BLOCK_BYTES = 64,
    STAGES_MAX = 8
};

/* Holds what follows from a plan. */
struct tile {
    const struct ki_plan *plan;
    const struct ki_chain *chain;
    double memory;
    int share, sharers, vectors, units; /* groups a compute unit; warps a row; vectors a group; R / 8 */
    int64_t slice, bytes;               /* of a row, of a tile */
};

static struct tile tile_of(const struct ki_plan *plan, const struct ki_chain *chain, int64_t share) {
    const kiln_matrix *X = chain->X;
    struct tile t = {
        .plan = plan, .chain = chain, .memory = ki_dense_unit_memory(X->device), .share = (int)share};
    const int64_t size = ki_type_bytes(X->type), unit = 16 / size;
    t.sharers = plan->VS / 32;
    t.vectors = t.sharers > 1 ? 1 : plan->BS / 32 - 1;
    t.units = plan->R / 8;
    t.slice = (plan->C == 1 ? X->cols : ki_ceil_div(ki_ceil_div(X->cols, plan->C), unit) * unit) * size;
    /* 32 bytes beyond a multiple of 128, as in the kernel. */
    t.bytes = 8 * ((t.units * t.vectors * t.slice + 127 - 32) / 128 * 128 + 32);
    return t;
}

static bool joint(const struct tile *t) {
    return t->plan->VS > 32;
}

/* 64-bit words that a lane takes of each group of a team, and in how many rounds: PAIR_WORDS, ROUNDS of
 * tile.cl. */
static int64_t group_words(const struct tile *t) {
    return t->units * ki_type_bytes(t->chain->X->type) / 4;
}

static int64_t rounds_of(const struct tile *t) {
    return ki_ceil_div(t->plan->C * group_words(t), 52);
}

/* Tensor cores make eight columns of sums, however many there are. */
static int64_t words_of(const struct ki_plan *plan) {
    return KI_EXCHANGE_HEAD + plan->groups / plan->C * (2 * plan->lag + 2) * plan->C * plan->R * 8;
}

/* ------------------------------------------------------------------------------------------ cost */

/* Parts that a team sends are on their way while its tiles wait, and asked for ahead if that is two steps;
 * every group reads all parts, one warp of it in rounds, which adds up those of the group's warps, too. */
static void team_rates(double *rates, const struct tile *t, double under_way) {
    const struct ki_plan *plan = t->plan;
    const int64_t size = ki_type_bytes(t->chain->X->type);
    const struct ki_dense_constants *all = ki_dense_constants;
    const struct ki_tile_team_constants *c = size == 8                   ? &all->team_f64
                                             : plan->sure == 8 * plan->Q ? &all->team_f32_whole
                                                                         : &all->team_f32;
    const double bytes = (double)t->bytes, share = t->share, blocks = (double)plan->Q * t->units;
    const double step = c->step + c->block * blocks;
    const double parts = plan->C * t->units * 8.0 * (double)size * plan->K;
    const double clerk = c->clerk + t->units * (c->clerk_warp * t->sharers + c->clerk_group * plan->C) +
                         411 * (double)(rounds_of(t) - 1);
    rates[0] = 1.25 * t->memory / (1 + 0.03 * parts / bytes);
    rates[1] = c->under_way * under_way;
    const struct ki_pace pace = ki_pace_of(t->chain->X);
    rates[2] = bytes * share / (pace.latency * step);
    rates[3] = bytes / (pace.issue * t->sharers * (c->warp + c->warp_block * blocks));
    rates[4] = bytes * share * plan->lag / (pace.latency * ((plan->lag > 1 ? c->more : c->one) + step));
    rates[5] = bytes * share / (pace.latency * clerk);
}

static double rate_of(const char **limit, const struct ki_plan *plan, const struct ki_chain *chain,
                      int64_t groups) {
    static const char *const limits[] = {"memory bandwidth", "bytes under way", "latency of a step",
                                         "instructions",     "the team's sums", "the team's sums"};
    const bool f64 = chain->X->type == KILN_F64;
    const struct ki_tile_constants *c = f64 ? &ki_dense_constants->tile_f64 : &ki_dense_constants->tile_f32;
    const struct tile t = tile_of(plan, chain, groups);
    const double bytes = (double)t.bytes, share = t.share, warps = t.sharers * t.vectors;
    const double blocks = (double)plan->Q * t.units; /* of 8 words and 8 rows, a warp and tile */
    const double begin = plan->lag ? c->ahead : joint(&t) ? c->meeting : c->own;
    const double step = begin + c->block * blocks + c->words * plan->Q;
    const double busy = warps * (c->warp + (joint(&t) ? c->shared_block : c->own_block) * blocks);
    const struct ki_pace pace = ki_pace_of(chain->X);
    const double under_way =
        bytes * share * fmax(plan->stages - plan->lag - 1, 0.5) / (pace.latency * c->way);
    double rates[6] = {c->reach * t.memory, under_way, bytes * share / (pace.latency * step),
                       bytes / (pace.issue * busy)};
    int least;
    if (plan->C > 1) team_rates(rates, &t, under_way);
    const double rate = fmin(ki_joint_rate(rates, plan->C > 1 ? 6 : 4, 4, &least), t.memory);
    *limit = limits[least];
    if (plan->C > 1) return rate * (1 - 0.06 * (share - 1));
    /* With two tiles in a group's ring, and the sums in between, one of them is on its way only while the
     * other is used. */
    return joint(&t) && plan->stages == 2 ? 0.8 * rate : rate;
}

static void cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t share) {
    const kiln_matrix *X = chain->X;
    struct ki_plan *plan = &candidate->plan;
    const struct tile t = tile_of(plan, chain, share);
    const char *limit;
    const int64_t places =
        share * X->device->properties.compute_units; /* for groups, some of which teams leave empty */
    const int64_t size = ki_type_bytes(X->type), passes = ki_ceil_div(chain->k, plan->K);
    const int64_t tiles = ki_max(ki_ceil_div(X->rows, (int64_t)plan->R * t.vectors), 1);
    const int64_t sharers = ki_min(ki_max(places / plan->C, 1), tiles);
    const double uneven = (double)(ki_ceil_div(tiles, sharers) * sharers) / (double)tiles;
    const double busy = (double)(places - places % plan->C) / (double)share;
    const double partials = (double)(sharers * X->cols * plan->K * size),
                 bytes = (double)((X->nnz + X->rows) * size);
    const double all = busy * rate_of(&limit, plan, chain, share);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    candidate->seconds = 1e-9 * (double)passes * (6000 + bytes / all * uneven + partials / 1500);
    candidate->occupancy = (double)(share * plan->BS) / (double)ki_unit_of(X->device).threads;
    plan->steps = tiles;
    plan->groups = sharers * plan->C;
    snprintf(candidate->limit, sizeof candidate->limit, "%s", limit);
}

/* ------------------------------------------------------------------------------------------ plans */

/* Most rows of a vector in a tile, in eights. Warps that have f32 rows of their own have registers for more,
 * so that less of their time goes into the ring; a map takes a row a lane. */
static int most_units(const struct ki_plan *plan, const struct ki_chain *chain) {
    return plan->VS > 32 || chain->X->type == KILN_F64 || ki_chain_maps(chain) ? 4 : 8;
}

/* Registers of a thread, as the compiler gives them. */
static int64_t registers_of(const struct tile *t) {
    const struct ki_plan *plan = t->plan;
    const int words = t->chain->X->type == KILN_F64 ? 2 : 1, map = ki_chain_maps(t->chain) ? 38 : 0;
    const int64_t work = words == 2 ? 32 + 8 * plan->Q + (joint(t) ? 16 : 24) * t->units
                         : joint(t) ? 24 + 13 * plan->Q + 8 * t->units
                                    : 28 + 18 * plan->Q + 8 * t->units;
    const int64_t receive = plan->C == 1 ? 0 : 40 + 2 * group_words(t) * ki_ceil_div(plan->C, rounds_of(t));
    const int64_t needed = (ki_max(work, receive) + map + 7) / 8 * 8;
    return words == 2 && joint(t) && needed <= 264 ? ki_min(needed, REGISTERS_MAX)
                                                   : needed; /* 264: none are spilled */
}

/* Returns whether a unit has registers for the groups, and each of its quarters for a quarter of a group's
 * warps. A few that are spilled do no harm. */
static bool has_registers(const struct tile *t) {
    const int64_t registers = registers_of(t), all = ki_unit_of(t->chain->X->device).registers,
                  BS = t->plan->BS;
    return registers <= REGISTERS_MAX && registers * BS * t->share <= all &&
           registers * ki_ceil_div(BS, 128) * 128 <= all * 13 / 12;
}

/* Bytes of on-chip memory that the kernel declares. */
static int64_t declared(const struct tile *t) {
    const struct ki_plan *plan = t->plan;
    const int64_t sums = 64 * t->units * ki_type_bytes(t->chain->X->type);
    const int64_t map = ki_chain_maps(t->chain) ? plan->BS / 32 * 8 * ki_chain_record(t->chain, plan->K) : 0;
    const int64_t places = joint(t) ? 2 * (t->sharers + 1) : ki_chain_maps(t->chain) ? t->vectors : 0;
    return 16 * STAGES_MAX + 128 + sums * places + map;
}

/* As many tiles as `share` groups have room for, and the loads of a row. */
static bool fit(struct ki_plan *plan, const struct ki_chain *chain, int share) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const struct tile t = tile_of(plan, chain, share);
    const int64_t size = ki_type_bytes(X->type), row = X->cols * size;
    if ((plan->C == 1 ? t.units * t.vectors : 1) * row % 16 != 0 || row % 8 != 0) return false;
    if (t.slice * (plan->C - 1) >= row || (plan->C > 1 && t.slice < TEAM_BYTES)) return false;
    plan->Q = (int)ki_ceil_div(ki_ceil_div(t.slice, BLOCK_BYTES), t.sharers);
    /* Whole: no warp has less of a row than the others; where each has rows of its own, all but a row's last
     * block is sure. */
    const bool whole = t.slice * plan->C == row && t.slice == (int64_t)BLOCK_BYTES * plan->Q * t.sharers;
    plan->sure = whole ? 8 * plan->Q : t.sharers == 1 ? 8 * (plan->Q - 1) : 0;
    if (!has_registers(&t) || plan->BS * share > ki_unit_of(X->device).threads) return false;
    if (!device->local_declared && declared(&t) > device->local_bytes) return false;
    /* A team waits for all of its groups. */
    if (plan->C > (int64_t)share * device->compute_units) return false;
    const int64_t most = ki_max(device->local_declared, device->local_max);
    const int64_t room = (most + 1024) / share - 1024 - declared(&t);
    plan->stages = (int)ki_min(room / t.bytes, STAGES_MAX);
    plan->local_bytes = t.bytes * plan->stages;
    plan->lag = joint(&t) && plan->stages > 2;
    return plan->stages >= (plan->C > 1 ? 3 : 2);
}

/* Counts of groups that leave few of the device's units idle. */
static int next_team(int C, int units) {
    do C++;
    while (C < TEAM_MAX && units % C * 32 > units);
    return C;
}

/* The longer a team's sums may take, the fewer tiles are under way. */
static void offer_lags(struct ki_offers *offers, struct ki_plan plan, int share) {
    const int most = plan.C > 1 ? (int)ki_min(plan.stages - 2, LAG_MAX) : plan.lag;
    for (; plan.lag <= most; plan.lag++) ki_offer(offers, &plan, share);
}

/* Layouts of `sharers` warps a row and `vectors` such rows side by side. */
static void offer_layouts(struct ki_offers *offers, struct ki_plan plan, int sharers, int vectors) {
    plan.VS = 32 * sharers;
    plan.BS = plan.VS * vectors + (sharers > 1 ? 64 : 32);
    const int most = plan.C > 1 ? 1 : most_units(&plan, offers->chain);
    for (int units = 1; units <= most; units *= 2)
        for (int share = 1; share <= (plan.C > 1 ? 2 : 4); share++) {
            plan.R = 8 * units;
            if (fit(&plan, offers->chain, share)) offer_lags(offers, plan, share);
        }
}

static void offer(struct ki_offers *offers) {
    /* Seven and the one that fetches are 256 threads, whose registers fill a unit, as are six of a team, or
     * ten of 384, which share rows so wide that nothing else has the registers for them, and two more. */
    static const int vectors[] = {1, 2, 4, 7, 8}, sharers[] = {2, 4, 8, 16},
                     team_sharers[] = {4, 6, 8, 10, 16};
    const struct ki_chain *chain = offers->chain;
    const struct ki_properties *device = &chain->X->device->properties;
    const bool f64 = chain->X->type == KILN_F64; /* as fast with fewer than ten */
    struct ki_plan plan = {.variant = &ki_dense_tile, .C = 1, .K = ki_plan_columns(chain)};
    if (chain->kind != KI_CHAIN_FUSED || !device->is_gpu || !ki_copies_in_bulk(device) || chain->k == 1)
        return;
    plan.W = (int)(16 / ki_type_bytes(chain->X->type));
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) offer_layouts(offers, plan, 1, vectors[i]);
    for (size_t i = 0; i < sizeof sharers / sizeof *sharers; i++) offer_layouts(offers, plan, sharers[i], 1);
    for (plan.C = 2; plan.C <= TEAM_MAX; plan.C = next_team(plan.C, device->compute_units))
        for (size_t i = 0; i < sizeof team_sharers / sizeof *team_sharers; i++)
            if (team_sharers[i] != 10 || !f64) offer_layouts(offers, plan, team_sharers[i], 1);
}

const struct ki_variant ki_dense_tile = {.name = "tile",
                                         .file = "tile",
                                         .function = "mmchain_tile",
                                         .define = "TILE",
                                         .offer = offer,
                                         .cost = cost,
                                         .words = words_of};
