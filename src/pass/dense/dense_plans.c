/* The layouts of dense passes that a device can run, and the choice among them by the launch model (dense_model.c). */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "pass/dense/local_declared.h"
#include "pass/dense/dense.h"
#include "pass/dense/team.h"
#include "pass/dense/tile_plans.h"

enum {
    ALONE_BYTES = 65536,
    RING_MAX = 8,
    GROUP_BYTES = 1024, /* on chip, that the device takes */
    LIST_MAX = 2048
};

/* Clusters: groups that share a row; threads of a group; rows a step, more of which gain nothing; registers for y, and as many
 * for w, that a thread has room for; bytes that a group takes up while sums are on their way, more of which only take room; a
 * piece's least, as smaller ones take as long, and most, as of larger ones too few are under way. */
enum {
    CLUSTER_MAX = 16,
    CLUSTER_THREADS = 256,
    CLUSTER_ROWS = 2,
    HELD_WORDS = 100,
    HIDDEN_LEAST = 36000,
    HIDDEN_MOST = 60000,
    PIECE_LEAST = 24576,
    PIECE_MOST = 58000
};

struct list {
    struct ki_candidate *rows; /* room for LIST_MAX; NULL to keep the best alone */
    struct ki_candidate best;
    int count, chosen;
    int words; /* registers for x, y and w that a thread of a DENSE kernel may have */
};

static void offer(struct list *list, const struct ki_candidate *candidate) {
    if (list->count == LIST_MAX) return;
    if (list->count == 0 || candidate->seconds < list->best.seconds) {
        list->best = *candidate;
        list->chosen = list->count;
    }
    if (list->rows) list->rows[list->count] = *candidate;
    list->count++;
}

/* Bytes of on-chip memory that a kernel with a ring declares: tickets, and what its warps exchange. */
static int64_t ring_static(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = ki_type_bytes(chain->X->type), numbers = (int64_t)plan->K * plan->R;
    const int64_t lanes = ki_min(plan->VS, 32), warps = plan->BS / 32;
    const int64_t rounds = plan->C > 1 ? 2 * ((plan->lag + 1) / plan->pieces) : 0;
    const int64_t parts = plan->C > 1 ? rounds * plan->C * warps : 2 * (plan->BS / lanes + warps + 1);
    return 16 * plan->stages + 8 * rounds + numbers * size * parts +
           (ki_chain_maps(chain) ? 8 * plan->BS : 0) + 256;
}

/* As many tiles as `share` groups on a unit have room for, and the groups that there are then. Few tiles pay: a third hides
 * the way through the memory. */
static bool fit_ring(struct ki_plan *plan, int64_t *groups, const struct ki_chain *chain, int64_t share) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t size = ki_type_bytes(X->type), rows = (int64_t)plan->R * (plan->BS / plan->VS);
    const int64_t beyond =
        plan->W * size < 16 ? 16 - size : 0; /* where a tile begins and ends between copies */
    const int64_t tile = ki_ceil_div(rows * X->cols * size + beyond, 16) * 16;
    if (X->cols == 0) return false;
    plan->stages = RING_MAX;
    if (ring_static(plan, chain) > device->local_bytes && !device->local_declared) return false;
    const int64_t most = ki_max(device->local_max, device->local_declared) + GROUP_BYTES;
    const int64_t left = most / share - GROUP_BYTES - ring_static(plan, chain);
    plan->stages = (int)ki_min(left / tile, RING_MAX);
    plan->local_bytes = ki_max(tile * plan->stages, plan->BS * size);
    *groups = ki_min(ki_dense_groups(plan, chain),
                     most / (plan->local_bytes + ring_static(plan, chain) + GROUP_BYTES));
    return plan->stages >= 3 && *groups >= share;
}

/* The same for the pieces of a cluster's slices, one group on a unit. They are copied row by row, from a multiple of 16 bytes
 * before their beginning; none but the last is cut short. Two are held beside those that wait for their sums, one of them until
 * all warps are done with it. */
static bool fit_pieces(struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t size = ki_type_bytes(X->type), unit = 16 / size, loads = ki_ceil_div(plan->Q, plan->pieces);
    const int64_t slice = ki_ceil_div(ki_ceil_div(X->cols, plan->C), unit) * unit;
    const int64_t columns = loads * plan->BS * plan->W, shortest = X->cols - slice * (plan->C - 1);
    const int64_t room = ki_min(slice, columns) + (X->cols % unit ? unit : 0), place = plan->R * room * size;
    if (ki_ceil_div(plan->Q, loads) != plan->pieces || shortest <= (plan->pieces - 1) * columns) return false;
    if ((plan->pieces > 1 && place < PIECE_LEAST) || place > PIECE_MOST) return false;
    const int64_t hiding = ki_ceil_div(HIDDEN_LEAST, place);
    if (hiding * place > HIDDEN_MOST) return false;
    plan->lag = (int)(plan->pieces - 1 + hiding);
    plan->stages = 2 * RING_MAX;
    if (ring_static(plan, chain) > device->local_bytes) return false;
    plan->stages = (int)ki_min((device->local_max - ring_static(plan, chain)) / place, 2 * RING_MAX);
    plan->local_bytes = place * plan->stages;
    return (plan->stages - plan->lag - 2) * place >= HIDDEN_LEAST && ki_dense_groups(plan, chain) > 0;
}

/* Elements of a row a thread, so that VS threads hold `columns`: in twos of the widest load, so that matrices of about the
 * same width share a kernel. In clusters there is no room for more than it takes. */
static int64_t load_of(const struct ki_plan *plan, int64_t columns, int64_t widest) {
    const int64_t load = ki_ceil_div(columns, plan->VS), grain = plan->W < widest && plan->C == 1 ? plan->W
                                                                 : load > widest && plan->C == 1  ? 2 * widest
                                                                                                  : widest;
    return ki_max(ki_ceil_div(load, grain) * grain, plan->W);
}

static void offer_rings(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    plan.file = "ring";
    plan.function = "mmchain_ring";
    plan.variant = "RING";
    /* Rows of threads alone need no exchange; of others more rows than threads gain nothing. */
    if (plan.C > 1 || plan.R * plan.K > 32 || (plan.R > plan.VS && plan.VS > 1)) return;
    plan.sure = (int)(chain->X->cols / (plan.VS * plan.W));
    int stages = 0;
    for (int64_t share = 1, groups; share <= 6; share++) {
        if (plan.BS * share > 1536 || !fit_ring(&plan, &groups, chain, share)) continue;
        if (plan.stages == stages) continue; /* the same kernel in as many groups */
        struct ki_candidate candidate = {.plan = plan};
        ki_dense_predict(&candidate, chain, groups);
        offer(list, &candidate);
        stages = plan.stages;
    }
}

static void offer_clusters(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    plan.file = "cluster";
    plan.function = "mmchain_cluster";
    plan.variant = "CLUSTER";
    const bool whole =
        plan.W * ki_type_bytes(chain->X->type) == 16; /* others gain nothing from a second row */
    if (plan.R * plan.K > 32 || plan.R > (whole ? CLUSTER_ROWS : 1) || plan.BS != CLUSTER_THREADS) return;
    for (plan.pieces = 1; plan.pieces <= plan.Q; plan.pieces++) {
        if (!fit_pieces(&plan, chain)) continue;
        struct ki_candidate candidate = {.plan = plan};
        ki_dense_predict(&candidate, chain, 1);
        offer(list, &candidate);
    }
}

static void offer_dense(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    const int64_t scratch = ki_type_bytes(chain->X->type) * plan.BS * plan.R;
    plan.file = "dense";
    plan.function = "mmchain_dense";
    plan.variant = "DENSE";
    const int64_t groups = ki_dense_groups(&plan, chain), words = ki_type_bytes(chain->X->type) / 4;
    if (words * plan.Q * plan.W * (2 * plan.K + plan.R) > list->words) return;
    if (groups < 1 || plan.R * plan.K > 16 || scratch > 32 * 1024 || plan.C > 1) return;
    struct ki_candidate candidate = {.plan = plan};
    ki_dense_predict(&candidate, chain, groups);
    offer(list, &candidate);
}

/* All groups, loads and rows a step for C groups a row and K columns. */
static void offer_layouts(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t size = ki_type_bytes(X->type), widest = 16 / size, words = size / 4;
    const bool clusters = device->architecture >= 90 && device->local_max > 0;
    const bool ring = clusters || device->local_declared > 0;
    const int64_t columns = ki_ceil_div(X->cols, plan.C);
    plan.W = (int)(X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1);
    for (plan.VS = 1; plan.VS <= ki_min(1024, device->group_max); plan.VS *= 2) {
        const int64_t load = load_of(&plan, columns, widest);
        if (load * words * plan.K > (plan.C > 1 ? HELD_WORDS : 72) ||
            (load == plan.W && plan.VS > 1 && columns <= load * plan.VS / 2))
            continue;
        plan.Q = (int)(load / plan.W);
        for (plan.BS = (int)ki_max(plan.VS, 128); plan.BS <= ki_min(512, device->group_max); plan.BS *= 2) {
            if (plan.C > 1 && plan.VS != plan.BS) continue;
            for (plan.R = 1; plan.R <= 8; plan.R *= 2) {
                if (clusters && plan.C > 1) offer_clusters(list, plan, chain);
                if (ring) offer_rings(list, plan, chain);
                offer_dense(list, plan, chain);
            }
        }
    }
}

/* The two-step layout, for rows that no group or cluster has registers for. */
static void offer_wide(struct list *list, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    struct ki_candidate candidate = {.plan = {.file = "dense",
                                              .function = "mmchain_wide",
                                              .variant = "WIDE",
                                              .C = 1,
                                              .Q = 1,
                                              .W = 1,
                                              .K = ki_plan_columns(chain)}};
    struct ki_plan *plan = &candidate.plan;
    plan->VS = plan->BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
    /* Each step reads and writes all of the group's w, which its rows must be worth. */
    plan->R = plan->K == 1 ? 8 : plan->K == 2 ? 4 : 2;
    ki_dense_predict(&candidate, chain, ki_max(KI_UNIT_THREADS / 2 / plan->BS, 1));
    candidate.seconds *= 2; /* X is read twice */
    offer(list, &candidate);
}

void ki_dense_wide(struct ki_plan *plan, const struct ki_chain *chain) {
    struct list list = {0};
    offer_wide(&list, chain);
    *plan = list.best.plan;
}

static bool takes_softmax(const struct ki_chain *chain) {
    return ki_chain_maps(chain) && (chain->map == KI_ROW_SOFTMAX || chain->map == KI_ROW_SOFTMAX_LOSS);
}

static void offer_made(void *list, const struct ki_candidate *candidate) {
    offer(list, candidate);
}

static void fill_list(struct list *list, const struct ki_chain *chain) {
    ki_tile_plans(chain, ki_dense_unit_memory(chain->X->device), offer_made, list);
    const int least = takes_softmax(chain) ? ki_plan_columns(chain) : 1;
    const kiln_matrix *X = chain->X;
    ki_team_plans(chain, least, offer_made, list);
    for (int C = 1; C <= CLUSTER_MAX; C++) {
        if (C > 1 && (X->device->properties.architecture < 90 || X->cols < 1024)) break;
        /* One group is as fast as several as long as its unit has room for rows enough. */
        if (C > 1 && list->count > 0 && X->cols * ki_type_bytes(X->type) <= ALONE_BYTES) break;
        for (int K = least; K <= ki_plan_columns(chain); K *= 2)
            offer_layouts(list, (struct ki_plan){.C = C, .K = K}, chain);
    }
}

/* A CPU behind OpenCL: few threads a group, four rows a step, few shapes, as each is slow to build. */
static void plan_for_cpu(struct list *list, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const int words = X->type == KILN_F64 ? 2 : 1, widest = X->type == KILN_F64 ? 2 : 4;
    struct ki_candidate candidate = {
        .plan = {.file = "dense", .function = "mmchain_dense", .variant = "DENSE", .C = 1}};
    struct ki_plan *plan = &candidate.plan;
    plan->K = ki_plan_columns(chain);
    plan->R = plan->K == 1 ? 4 : plan->K < 4 ? 2 : 1;
    plan->W = X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1;
    const int64_t most = 96 / (words * (2 * plan->K + plan->R)), load = ki_max(ki_min(4, most), plan->W);
    plan->VS = ki_power_of_two(ki_ceil_div(X->cols, load));
    plan->Q = (int)ki_max(load / plan->W, 1);
    plan->BS = ki_max(plan->VS, 64);
    if (plan->VS > 256 || plan->BS > X->device->properties.group_max) {
        offer_wide(list, chain);
        return;
    }
    ki_dense_predict(&candidate, chain, 1);
    offer(list, &candidate);
}

/* Beyond a hundred registers the compiler no longer keeps all loads of a step ahead of their use, and the model promises too
 * much: such kernels only serve rows that nothing else does. */
static void list_plans(struct list *list, const struct ki_chain *chain) {
    if (!chain->X->device->properties.is_gpu) {
        plan_for_cpu(list, chain);
        return;
    }
    for (list->words = 100; list->words <= 400 && list->count == 0; list->words *= 2) fill_list(list, chain);
    if (list->count == 0) offer_wide(list, chain);
}

/* ------------------------------------------------------------------------------------------ the choice */

/* A solver asks for the same pass again and again: the last few answers are kept. */
struct question {
    const struct ki_backend *backend;
    int64_t rows, cols, units, architecture, local_max, declared;
    int type, kind, map, k;
};

enum { KEPT = 8 };
static _Thread_local struct {
    struct question question;
    struct ki_plan plan;
} kept[KEPT];
static _Thread_local int next_kept;

kiln_status ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    struct question question;
    const kiln_status status = ki_find_local_declared(X->device);
    if (status != KILN_OK) return status;
    memset(&question, 0, sizeof question); /* padding is compared too */
    question.backend = X->device->backend;
    question.rows = X->rows;
    question.cols = X->cols;
    question.units = device->compute_units;
    question.architecture = device->architecture;
    question.local_max = device->local_max + 2 * device->group_max + device->is_gpu;
    question.declared = 2 * device->local_declared + device->shuffles;
    question.type = (int)X->type;
    question.kind = (int)chain->kind;
    question.map = ki_chain_maps(chain) ? 1 + (int)chain->map : 0;
    question.k = chain->k;
    for (int i = 0; i < KEPT; i++)
        if (memcmp(&kept[i].question, &question, sizeof question) == 0) {
            *plan = kept[i].plan;
            return KILN_OK;
        }
    struct list list = {0};
    list_plans(&list, chain);
    *plan = list.best.plan;
    kept[next_kept].question = question;
    kept[next_kept].plan = *plan;
    next_kept = (next_kept + 1) % KEPT;
    return KILN_OK;
}

kiln_status ki_dense_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain) {
    const kiln_status status = ki_find_local_declared(chain->X->device);
    if (status != KILN_OK) return status;
    struct list made = {.rows = ki_calloc(LIST_MAX * sizeof *made.rows)};
    if (!made.rows) return ki_fail_nomem(LIST_MAX * sizeof *made.rows, "the candidates");
    list_plans(&made, chain);
    *list = made.rows;
    *count = made.count;
    *chosen = made.chosen;
    return KILN_OK;
}
