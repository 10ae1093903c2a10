/* The plans of team.cl: for GPUs whose threads exchange registers, but whose groups have no clusters, and some little
 * on-chip memory, as NVIDIA's through OpenCL. Every thread's part of the tiles under way must fit into what a group may
 * declare, and as many groups run side by side as registers and a unit's memory have room for. */
#include "pass/dense/team.h"

#include <string.h>

#include "core/arguments.h"
#include "core/size.h"
#include "pass/dense/dense.h"
#include "pass/dense/team.cl"

KI_ARGUMENTS(mmchain_team_begin);

enum {
    UNIT_LOCAL = 227 * 1024, /* of an H200's unit, which OpenCL does not tell */
    GROUP_LOCAL = 1024,      /* that the device takes for each group */
    STAGES_MAX = 8,
    LAG_MAX = 4,
    REGISTERS_MAX = 255,
    LOAD_WORDS = 160, /* registers for y and w */
    PAIRS_MAX = 128,  /* numbers that a warp receives a step */
    HEAD = 16,        /* EXCHANGE_HEAD of dialect/exchange.h */
    LINE = 16         /* 64-bit words of a line */
};

/* Tensor cores make eight columns of sums, however many there are. */
int64_t ki_team_words(const struct ki_plan *plan) {
    if (!plan->team) return 0;
    const int64_t teams = plan->groups / plan->C, numbers = (int64_t)plan->R * plan->K;
    /* For each of the tiles on their way all groups' parts, and the sums beside them. */
    if (strcmp(plan->variant, "TILE_TEAM") == 0) return HEAD + teams * plan->stages * (plan->C + 1) * numbers;
    const int64_t place =
        strcmp(plan->variant, "TEAM") ? plan->C * plan->R * 8 : ki_ceil_div(plan->C * numbers, LINE) * LINE;
    return HEAD + teams * (2 * plan->lag + 2) * place;
}

kiln_status ki_team_begin(const struct ki_plan *plan, const struct ki_chain *chain,
                          const struct ki_buffer *buffer, int64_t at) {
    struct ki_kernel *kernel;
    kiln_device *device = chain->X->device;
    kiln_status status;
    const int64_t words = ki_team_words(plan);
    TRY(ki_kernel_get(&kernel, device, "team", "mmchain_team_begin", chain->X->type, "-DTEAM_BEGIN"));
    TRY(ki_kernel_launch(
        device, kernel, ki_min(ki_ceil_div(words, 256), 1024), 256,
        KI_PACK(mmchain_team_begin, NULL, .work = buffer, .exchange_at = at, .words = words)));
done:
    return status;
}

/* As NVIDIA's OpenCL compiler gives them, and never fewer where that would launch groups that wait for others to end: what a
 * team's late groups take alone is time lost (1.6 ms for 1.25). */
int64_t ki_team_registers(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int words = chain->X->type == KILN_F64 ? 2 : 1, held = 2 * words * plan->Q * plan->W * plan->K;
    const int64_t found = 40 + held + ki_max(held - 64, 0) / 3 + words * plan->K * plan->R +
                          (ki_chain_maps(chain) ? 24 : 0) + (plan->C > 1 ? 8 : 0) +
                          (plan->VS <= 32 ? 8 * words : 0);
    return (found + 7) / 8 * 8;
}

int64_t ki_team_registers_most(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t units = ki_max(chain->X->device->properties.compute_units, 1);
    const int64_t share = ki_max(ki_ceil_div(plan->groups, units), 1);
    return ki_min(ki_unit_registers(chain) / (plan->BS * share) / 8 * 8, REGISTERS_MAX);
}

/* Bytes of on-chip memory for a group's tiles: bulk copies of rows that are no multiples of 16 bytes bring some of what is before
 * and behind them. */
static int64_t room_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = ki_type_bytes(chain->X->type);
    return plan->stages * plan->R * ((int64_t)plan->Q * plan->W * plan->BS * size + 16);
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
    if (ki_team_registers(plan, chain) > REGISTERS_MAX) return false;
    for (plan->stages = STAGES_MAX; plan->stages >= least; plan->stages--) {
        const int64_t all = room_of(plan, chain) + declared(plan, chain);
        if (all > room) continue;
        *groups = ki_min(ki_dense_groups(plan, chain), unit_local(chain) / (all + GROUP_LOCAL));
        return *groups >= 1;
    }
    return false;
}

static void offer_plan(struct ki_plan plan, const struct ki_chain *chain,
                       void (*offer)(void *list, const struct ki_candidate *candidate), void *list) {
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
        /* A team waits for all of its groups; how many a unit holds is known of compute capability 9.0 alone. */
        if (plan.C > (given || device->local_declared ? groups : 1) * device->compute_units) continue;
        if (plan.stages == stages) continue; /* the same kernel in as many groups */
        stages = plan.stages;
        plan.local_bytes = given ? room_of(&plan, chain) : 0;
        /* A team's sums are asked for a step before they are used. */
        const int most = plan.C == 1 ? (plan.VS > 32) : (int)ki_min(ki_max(plan.stages - 2, 1), LAG_MAX);
        for (plan.lag = ki_min(most, 2); plan.lag <= most; plan.lag++) {
            struct ki_candidate candidate = {.plan = plan};
            ki_dense_predict(&candidate, chain, groups);
            offer(list, &candidate);
        }
    }
}

/* Threads and loads for a slice of a row: a thread's columns in widest loads, with few threads that have none. */
static void offer_slices(struct ki_plan plan, const struct ki_chain *chain,
                         void (*offer)(void *list, const struct ki_candidate *candidate), void *list) {
    const kiln_matrix *X = chain->X;
    const int64_t size = ki_type_bytes(X->type), widest = 16 / size, unit = 128 / size;
    const int64_t slice = plan.C == 1 ? X->cols : ki_ceil_div(ki_ceil_div(X->cols, plan.C), unit) * unit;
    if (slice * (plan.C - 1) >= X->cols) return;
    plan.W = (int)(X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1);
    for (plan.VS = plan.C == 1 ? 4 : 128; plan.VS <= 512; plan.VS *= 2) {
        plan.Q = (int)ki_ceil_div(slice, plan.VS * plan.W);
        const int64_t load = (int64_t)plan.Q * plan.W, shortest = X->cols - slice * (plan.C - 1);
        plan.sure = (int)(shortest / (plan.VS * plan.W));
        if (load * plan.K * size / 2 > LOAD_WORDS || 4 * slice < 3 * load * plan.VS) continue;
        for (plan.BS = (int)ki_max(plan.VS, 128); plan.BS <= (plan.VS <= 32 ? 256 : ki_max(plan.VS, 128));
             plan.BS *= 2)
            for (plan.R = 1; plan.R <= 8; plan.R *= 2) offer_plan(plan, chain, offer, list);
    }
}

void ki_team_plans(const struct ki_chain *chain, int least,
                   void (*offer)(void *list, const struct ki_candidate *candidate), void *list) {
    const struct ki_properties *device = &chain->X->device->properties;
    static const int teams[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                12, 13, 14, 16, 18, 22, 26, 33, 44, 52, 66};
    if (!device->shuffles || device->group_max < 512) return;
    /* One group alone is ring.cl's, where it has as much memory as CUDA's. */
    const size_t begin = device->local_declared || device->architecture >= 90 ? 1 : 0;
    /* More than two columns of y are tensor cores' (tile.cl), where rows are whole words of theirs. */
    const bool tensor = (device->local_declared || device->architecture >= 90) &&
                        chain->kind == KI_CHAIN_FUSED &&
                        chain->X->cols * ki_type_bytes(chain->X->type) % 8 == 0;
    const int most = tensor ? (int)ki_min(ki_plan_columns(chain), 2) : ki_plan_columns(chain);
    for (int K = (int)ki_max(least, ki_plan_columns(chain) / 2); K <= most; K *= 2)
        for (size_t c = begin; c < sizeof teams / sizeof *teams; c++) {
            if (teams[c] > 1 && chain->X->cols < 1024) break;
            const struct ki_plan plan = {.file = "team",
                                         .function = "mmchain_team",
                                         .variant = "TEAM",
                                         .K = K,
                                         .C = teams[c],
                                         .team = teams[c] > 1};
            offer_slices(plan, chain, offer, list);
        }
}
