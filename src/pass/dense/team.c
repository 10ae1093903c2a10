/* The plans of team.cl: rows that several groups share; and where nothing copies in bulk, rows of one group,
 * too. Every thread's part of the tiles under way must fit into on-chip memory, and as many groups run side
 * by side as that and registers have room for. */
#include "pass/dense/team.h"

#include <math.h>

#include "core/arguments.h"
#include "core/size.h"
#include "pass/dense/hopper.h"
#include "pass/dense/team.cl"
#include "pass/dense/variants.h"
#include "pass/unit.h"

KI_ARGUMENTS(mmchain_team_begin);

enum {
    UNIT_LOCAL = 227 * 1024, /* of an H200's unit, which OpenCL does not tell */
    GROUP_LOCAL = 1024,      /* that the device takes for each group */
    STAGES_MAX = 8,
    LAG_MAX = 4,
    REGISTERS_MAX = 255,
    LOAD_WORDS = 160, /* registers for y and w */
    PAIRS_MAX = 128,  /* numbers that a warp receives a step */
    LINE = 16         /* 64-bit words of a line */
};

static int64_t words_of(const struct ki_plan *plan) {
    const int64_t teams = plan->groups / plan->C, numbers = (int64_t)plan->R * plan->K;
    return KI_EXCHANGE_HEAD + teams * (2 * plan->lag + 2) * ki_ceil_div(plan->C * numbers, LINE) * LINE;
}

kiln_status ki_team_begin(const struct ki_chain *chain, const struct ki_buffer *buffer, int64_t at,
                          int64_t words) {
    return ki_kernel_run(
        chain->X->device, "team", "mmchain_team_begin", chain->X->type, "-DTEAM_BEGIN",
        ki_min(ki_ceil_div(words, 256), 1024), 256,
        KI_PACK(mmchain_team_begin, NULL, .work = buffer, .exchange_at = at, .words = words));
}

/* ------------------------------------------------------------------------------------------ cost */

/* Parts that the groups of a team send each other are on their way for more than a step, for which tiles
 * wait, the longer the more groups a unit has, and every group reads the parts of all. Copies of whole rows
 * reach more of the memory's bandwidth than those of threads; rows of less than a warp's loads are fetched in
 * pieces of lines. */
static double rate_of(const char **limit, const struct ki_plan *plan, const struct ki_chain *chain,
                      int64_t groups) {
    static const char *const limits[] = {"memory bandwidth", "latency of a step", "instructions",
                                         "bytes under way"};
    const struct ki_dense_constants *c = ki_dense_constants;
    const int64_t size = ki_type_bytes(chain->X->type);
    const double words = (double)size / 4, R = plan->R, numbers = R * plan->K, G = (double)groups,
                 S = plan->stages;
    const double lanes = plan->VS < 32 ? plan->VS : 32, warps = plan->BS / 32.0, turns = 32 / lanes;
    const int64_t vectors = plan->BS / plan->VS;
    const double tile = R * (double)(vectors * ki_ceil_div(chain->X->cols, plan->C) * size);
    const double loads = 2 * R * plan->Q * plan->W * words, shuffles = ki_sum_shuffles(numbers, lanes);
    const double unit_memory = ki_dense_unit_memory(chain->X->device);
    const bool alone = plan->C == 1, bulk = ki_copies_in_bulk(&chain->X->device->properties);
    const double parts = alone ? 0 : plan->C * numbers * words;
    double step = alone ? c->team_alone_step + c->team_alone_load * loads
                        : c->team_step + c->team_load * loads + c->team_part * parts;
    if (bulk)
        step += c->team_narrow * 2 * ki_narrow_loads(plan, chain->X) +
                (plan->W * size < 8 ? c->team_odd_row * R : 0);
    if (plan->VS > 32) step += (alone ? c->team_alone_meeting : c->team_meeting) * numbers * plan->VS / 32;
    const double busy = warps * (c->team_warp + c->team_multiply * loads * plan->K +
                                 c->team_busy_load * loads + c->team_shuffle * shuffles * words) +
                        c->team_busy_part * parts;
    const double memory =
        unit_memory * (alone ? c->team_alone_memory / (1 + c->team_alone_turns * turns * turns)
                             : (bulk ? c->team_memory : c->team_memory_copies) +
                                   c->team_rows_gain * fmin(ki_log2_of(R), 2));
    const double exchange = c->team_exchange * (1 + c->team_exchange_group * (G - 1));
    const double under_way = tile * G *
                             (alone ? (S - 0.5) / c->team_alone_latency
                                    : fmin((S - plan->lag) / c->team_latency, (plan->lag - 0.8) / exchange));
    const struct ki_pace pace = ki_pace_of(chain->X);
    const double rates[] = {memory, tile * G / (pace.latency * step), tile / (pace.issue * busy),
                            under_way / pace.latency};
    int least;
    const double rate = ki_joint_rate(rates, 4, 4, &least);
    *limit = limits[least];
    return rate;
}

static void cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
    const struct ki_plan *plan = &candidate->plan;
    const int vectors = plan->BS / plan->VS;
    const double element = ki_dense_constants->ring_end + ki_dense_constants->ring_end_vector * (vectors - 1);
    ki_cost(candidate, chain, groups, rate_of, vectors > 1 ? plan->K * plan->Q * plan->W * element : 0);
}

/* ------------------------------------------------------------------------------------------ plans */

/* As NVIDIA's OpenCL compiler gives them, and never fewer where that would launch groups that wait for others
 * to end: what a team's late groups take alone is time lost (1.6 ms for 1.25). */
static int64_t registers_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int words = chain->X->type == KILN_F64 ? 2 : 1, held = 2 * words * plan->Q * plan->W * plan->K;
    const int64_t found = 40 + held + ki_max(held - 64, 0) / 3 + words * plan->K * plan->R +
                          (ki_chain_maps(chain) ? 24 : 0) + (plan->C > 1 ? 8 : 0) +
                          (plan->VS <= 32 ? 8 * words : 0);
    return (found + 7) / 8 * 8;
}

int64_t ki_team_registers_most(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t units = ki_max(chain->X->device->properties.compute_units, 1);
    const int64_t share = ki_max(ki_ceil_div(plan->groups, units), 1);
    return ki_min(ki_unit_of(chain->X->device).registers / (plan->BS * share) / 8 * 8, REGISTERS_MAX);
}

/* Bytes of on-chip memory for a group's tiles: bulk copies of rows that are no multiples of 16 bytes bring
 * some of what is before and behind them. */
static int64_t room_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = ki_type_bytes(chain->X->type);
    const int64_t beyond = plan->W * size < 16 ? 128 : 0; /* BULK_LINE of dialect/bulk.h */
    return plan->stages * plan->R * ((int64_t)plan->Q * plan->W * plan->BS * size + beyond);
}

/* Bytes that it takes beside them. */
static int64_t declared(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = ki_type_bytes(chain->X->type), numbers = (int64_t)plan->K * plan->R;
    const int64_t vectors = plan->BS / plan->VS, parts = plan->VS > 32 ? plan->VS / 32 : 0;
    return size * numbers * 2 * vectors * (1 + parts) + 8 * plan->stages +
           (ki_chain_maps(chain) ? 8 * plan->BS : 0) + 64;
}

/* A compute unit's on-chip memory. OpenCL does not tell. */
static int64_t unit_local(const struct ki_chain *chain) {
    const struct ki_properties *device = &chain->X->device->properties;
    return (device->architecture ? device->local_max : UNIT_LOCAL) + GROUP_LOCAL;
}

/* As many tiles as a group has room for. */
static bool fit(struct ki_plan *plan, int64_t *groups, const struct ki_chain *chain, int64_t room) {
    const int least = plan->VS <= 32 ? 2 : 3;
    if (registers_of(plan, chain) > REGISTERS_MAX) return false;
    for (plan->stages = STAGES_MAX; plan->stages >= least; plan->stages--) {
        const int64_t all = room_of(plan, chain) + declared(plan, chain);
        if (all > room) continue;
        *groups = ki_min(ki_unit_groups(plan, chain, (double)registers_of(plan, chain)),
                         unit_local(chain) / (all + GROUP_LOCAL));
        return *groups >= 1;
    }
    return false;
}

static void offer_plan(struct ki_offers *offers, struct ki_plan plan) {
    const struct ki_chain *chain = offers->chain;
    const struct ki_properties *device = &chain->X->device->properties;
    const bool given = device->architecture > 0; /* by CUDA, at launch */
    const int64_t most_room =
        given ? device->local_max : ki_max(device->local_declared, ki_min(device->local_bytes, 48 * 1024));
    int stages = 0;
    if (plan.K * plan.R > 32 || plan.C * plan.K * plan.R > PAIRS_MAX) return;
    for (int share = 1; share <= 4; share++) {
        int64_t groups = 0;
        const int64_t room = ki_min(most_room, unit_local(chain) / share - GROUP_LOCAL);
        if (!fit(&plan, &groups, chain, room)) return;
        /* A team waits for all of its groups; how many a unit holds is not known of other devices. */
        if (plan.C > (given || device->local_declared ? groups : 1) * device->compute_units) continue;
        if (plan.stages == stages) continue; /* the same kernel in as many groups */
        stages = plan.stages;
        plan.local_bytes = given ? room_of(&plan, chain) : 0;
        /* A team's sums are asked for a step before they are used. */
        const int most = plan.C == 1 ? (plan.VS > 32) : (int)ki_min(ki_max(plan.stages - 2, 1), LAG_MAX);
        for (plan.lag = (int)ki_min(most, 2); plan.lag <= most; plan.lag++) ki_offer(offers, &plan, groups);
    }
}

/* Threads and loads for a slice of a row: a thread's columns in widest loads, with few threads that have
 * none. */
static void offer_slices(struct ki_offers *offers, struct ki_plan plan) {
    const kiln_matrix *X = offers->chain->X;
    const int64_t size = ki_type_bytes(X->type), unit = 128 / size;
    const int64_t slice = plan.C == 1 ? X->cols : ki_ceil_div(ki_ceil_div(X->cols, plan.C), unit) * unit;
    const int64_t shortest = X->cols - slice * (plan.C - 1);
    if (shortest <= 0) return;
    plan.W = ki_load_width(X);
    for (plan.VS = plan.C == 1 ? 4 : 128; plan.VS <= 512; plan.VS *= 2) {
        plan.Q = (int)ki_ceil_div(slice, plan.VS * plan.W);
        const int64_t load = (int64_t)plan.Q * plan.W;
        if (load * plan.K * size / 2 > LOAD_WORDS || 4 * slice < 3 * load * plan.VS) continue;
        plan.sure = (int)(shortest / (plan.VS * plan.W));
        const int64_t least = ki_max(plan.VS, 128);
        for (plan.BS = (int)least; plan.BS <= (plan.VS <= 32 ? 256 : least); plan.BS *= 2)
            for (plan.R = 1; plan.R <= 8; plan.R *= 2) offer_plan(offers, plan);
    }
}

static void offer(struct ki_offers *offers) {
    static const int teams[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                12, 13, 14, 16, 18, 22, 26, 33, 44, 52, 66};
    const struct ki_chain *chain = offers->chain;
    const struct ki_properties *device = &chain->X->device->properties;
    const int64_t row = chain->X->cols * ki_type_bytes(chain->X->type);
    const bool bulk = ki_copies_in_bulk(device);
    if (!device->is_gpu || !device->shuffles || device->group_max < 512) return;
    /* Three columns of y and more are tensor cores' (tile.cl), where rows are whole words of theirs. */
    const bool tensor = bulk && chain->kind == KI_CHAIN_FUSED && row % 8 == 0;
    const int columns = ki_plan_columns(chain), most = tensor ? (int)ki_min(columns, 2) : columns;
    for (int K = (int)ki_max(ki_least_columns(chain), columns / 2); K <= most; K *= 2)
        for (size_t i = bulk ? 1 : 0; i < sizeof teams / sizeof *teams; i++) {
            if (teams[i] > 1 && chain->X->cols < 1024) break;
            offer_slices(offers, (struct ki_plan){.variant = &ki_dense_team, .K = K, .C = teams[i]});
        }
}

const struct ki_variant ki_dense_team = {.name = "team",
                                         .file = "team",
                                         .function = "mmchain_team",
                                         .define = "TEAM",
                                         .offer = offer,
                                         .cost = cost,
                                         .words = words_of};
