/* The launch model of dense passes: which layouts there are on a device, and how long each takes.
 *
 * The paper's section 3.3 chooses by occupancy; here every layout that fits gets a predicted bandwidth. A compute unit holds
 * G groups, each of which goes through a step of `tile` bytes in
 *   step = latencies of loads, shuffles, barriers and exchanges, one after the other,
 *   busy = what those cost the unit's issue slots, with G groups side by side,
 * and cannot go faster than its share of the memory's bandwidth:
 *   rate^-6 = memory^-6 + (tile G / step)^-6 + (tile / busy)^-6
 * where a ring of S tiles adds (tile G (S - 3/2) / latency)^-6, what it keeps under way; -4 in place of -6 for clusters. The
 * times are those of one H200, in nanoseconds, fitted to the settings of bench/results/h200-dense-plans.json: median error
 * 3 % (DENSE), 6 % (RING) and, over other settings, 3 % (CLUSTER). Registers, on-chip memory, units and bandwidth are the device's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "ops/mmchain_dense_gpu.h"
#include "ops/mmchain_tile.h"

enum {
    UNIT_THREADS = 2048,
    UNIT_GROUPS = 32,
    UNIT_REGISTERS = 65536,
    THREAD_REGISTERS = 255,
    ALONE_BYTES = 65536,
    LIST_MAX = 1024
};

/* Achieved at most of the bandwidth that the device's data sheet promises, and a unit's share where nothing is promised. */
static const double achieved = 0.945, unit_bandwidth = 25; /* bytes a nanosecond */

/* What the formulas need of a plan on a device. */
struct view {
    double words, tile, groups, warps, lanes, load, rows, columns, stages, cluster, vector_warps, conflicts,
        memory;
};

static double log2_of(double power) {
    return power > 1 ? log2(power) : 0;
}

/* The rate where each of these alone would allow so much. */
static double joint_rate(const double *rates, int count, double power, int *least) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += pow(rates[i], -power);
        if (rates[i] < rates[*least]) *least = i;
    }
    return pow(sum, -1 / power);
}

static const char *const limits[] = {"memory bandwidth", "latency of a step", "instructions",
                                     "bytes under way"};

/* Bytes a nanosecond of a compute unit. */
static double ring_rate(const struct view *v, const char **limit) {
    const double numbers = v->rows * v->columns, shared = fmin(numbers, v->lanes);
    const double shuffles =
        (numbers <= v->lanes ? numbers - 1 : numbers) + log2_of(v->lanes) - log2_of(shared);
    const double loads = 2 * v->rows * v->load * v->words, multiplies = loads * v->columns;
    double step = 759 + 13.7 * shuffles * v->words + 1.91 * loads * v->conflicts;
    if (v->vector_warps > 1) step += 3.55 * numbers * v->vector_warps;
    const double busy = v->warps * (31.3 + 0.42 * multiplies + 0.06 * loads * v->conflicts +
                                    2 * numbers * fmax(numbers / v->lanes, 1) * v->words);
    const double rates[] = {1.01 * v->memory, v->tile * v->groups / step, v->tile / busy,
                            v->tile * v->groups * (v->stages - 1.5) / 1635};
    int least = 0;
    const double rate = joint_rate(rates, 4, 6, &least);
    *limit = limits[least];
    /* One group with all of a unit's memory is served more evenly than several (0.88 against 1.02 ms for 6,000 f32). */
    return v->vector_warps > 1 ? rate * (1 - 0.01 * (v->groups - 1)) : rate;
}

/* Two steps' tiles are held for a step, so that the others are under way. */
static double cluster_rate(const struct view *v, const char **limit) {
    const double loads = v->rows * v->load * v->words;
    const double step =
        900 + 2.8 * v->warps + 1.95 * loads + 0.75 * v->cluster * v->warps * v->rows * v->columns;
    const double busy = v->warps * (12 + 2 * loads * v->columns);
    const double rates[] = {1.26 * v->memory, v->tile * v->groups / step, v->tile / busy,
                            v->tile * v->groups * (v->stages - 2) / 1660};
    int least = 0;
    const double rate = joint_rate(rates, 4, 4, &least);
    *limit = limits[least];
    /* A cluster lies within one of the device's parts, whose units are no multiple of it: 120 of 132 are used by clusters of
     * 4 or 8, 112 by those of 16. */
    return fmin(rate, 1.05 * v->memory) * (v->cluster < 4 ? 1 : v->cluster < 16 ? 0.91 : 0.85);
}

static double dense_rate(const struct view *v, double row_bytes, double loads_a_row, const char **limit) {
    const double numbers = v->rows * v->columns, shuffles = numbers * log2_of(v->lanes) * v->words;
    const double multiplies = 2 * v->rows * v->load * v->words * v->columns;
    /* Vectors of less than a warp read rows apart from each other: lines of 128 bytes that a load touches. */
    const double lines = 32 / (v->lanes * v->vector_warps) * fmin(1, v->rows * row_bytes / 128);
    /* Part of the tile's own way counts: a step begins with it. */
    double step = 906 + 5.2 * shuffles + 1.1 * v->warps + 0.47 * v->tile / v->memory;
    if (v->vector_warps > 1) step += 46 * v->columns + 11.5 * numbers * v->vector_warps;
    const double busy =
        v->warps * (0.12 * multiplies + 0.71 * v->rows * v->load * v->words + 0.62 * shuffles +
                    1.77 * numbers + 1.48 * v->rows * loads_a_row * fmax(lines / 4, 1));
    const double rates[] = {1.02 * v->memory, v->tile * v->groups / step, v->tile / busy};
    int least = 0;
    const double rate = joint_rate(rates, 3, 6, &least);
    *limit = limits[least];
    /* Lines that several loads share are fetched more than once now and then. */
    if (lines > 4 && loads_a_row > 2 && row_bytes > 128) return 0.9 * rate;
    /* So are those that two rows share, of narrow rows of f64. */
    return v->words > 1 && row_bytes < 1024 && fmod(row_bytes, 128) > 0 ? 0.98 * rate : rate;
}

static double unit_memory(const kiln_device *device) {
    const struct ki_properties *properties = &device->properties;
    if (properties->bandwidth <= 0) return unit_bandwidth;
    return achieved * properties->bandwidth * 1e-9 / properties->compute_units;
}

/* How often a warp's load of a tile's rows from on-chip memory goes through it, for once that would do: rows of some widths lie
 * in the same of the 32 banks. As many threads as take 128 bytes are served together. */
static double bank_conflicts(const struct ki_plan *plan, int64_t cols, int64_t size) {
    const int64_t words = plan->W * size / 4, together = ki_min(32 / words, 32);
    double all = 0;
    for (int64_t first = 0; first < 32; first += together) {
        int load[32] = {0}, most = 1;
        for (int64_t t = first; t < first + together; t++) {
            const int64_t lane = t % plan->VS, at = (t / plan->VS * cols + lane * plan->W) * size / 4;
            for (int64_t w = 0; w < words && lane * plan->W < cols; w++)
                most = (int)ki_max(most, ++load[(at + w) % 32]);
        }
        all += most;
    }
    return all * (double)together / 32;
}

/* Registers of a thread, by the same fit; maps need some for their formulas. */
static int64_t registers_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const double words = chain->X->type == KILN_F64 ? 2 : 1, load = plan->Q * plan->W, K = plan->K,
                 R = plan->R;
    const double map = ki_chain_maps(chain) ? 16 : 0;
    const double found = plan->stages ? 37 + words * (2.5 * load * K + 1.2 * K * R) + map
                                      : 16 + words * (2 * load * K + 1.1 * R * load + 2 * K * R) + map;
    return ((int64_t)found + 7) / 8 * 8;
}

/* Groups that a unit holds, as far as registers and threads go. */
static int64_t groups_by_registers(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t most = chain->X->device->properties.registers;
    const int64_t groups = (most ? most : UNIT_REGISTERS) / (registers_of(plan, chain) * plan->BS);
    return ki_min(groups, ki_min(UNIT_THREADS / plan->BS, UNIT_GROUPS));
}

/* The whole chain: the pass, the last groups' idle time, the partial sums and their end, for each K columns. */
static void predict(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
    const kiln_matrix *X = chain->X;
    const struct ki_plan *plan = &candidate->plan;
    const int units = X->device->properties.compute_units;
    const int64_t size = ki_type_bytes(X->type), slice = ki_ceil_div(X->cols, plan->C);
    const int64_t tile_rows = (int64_t)plan->R * (plan->BS / plan->VS),
                  passes = ki_ceil_div(chain->k, plan->K);
    const char *limit = "";
    const struct view v = {.words = size / 4.0,
                           .tile = (double)(tile_rows * slice * size),
                           .groups = (double)groups,
                           .warps = plan->BS / 32.0,
                           .lanes = plan->VS < 32 ? plan->VS : 32,
                           .load = plan->Q * plan->W,
                           .rows = plan->R,
                           .columns = plan->K,
                           .stages = plan->stages,
                           .cluster = plan->C,
                           .vector_warps = plan->VS > 32 ? plan->VS / 32 : 1,
                           .conflicts = bank_conflicts(plan, X->cols, size),
                           .memory = unit_memory(X->device)};
    const double rate = units * (plan->C > 1    ? cluster_rate(&v, &limit)
                                 : plan->stages ? ring_rate(&v, &limit)
                                                : dense_rate(&v, (double)(slice * size), plan->Q, &limit));
    const int64_t tiles = ki_max(ki_ceil_div(X->rows, tile_rows), 1);
    const int64_t sharers = ki_min(ki_max(groups * units / plan->C, 1), tiles);
    const double uneven = (double)(ki_ceil_div(tiles, sharers) * sharers) / (double)tiles;
    const double partials = chain->kind == KI_CHAIN_PLAIN ? 0 : (double)(sharers * X->cols * plan->K * size);
    const double bytes = (double)((X->nnz + X->rows) * size);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    candidate->seconds = 1e-9 * (double)passes * (6000 + bytes / rate * uneven + partials / 1500);
    candidate->occupancy = (double)(groups * plan->BS) / UNIT_THREADS;
    candidate->plan.steps = tiles;
    candidate->plan.groups = sharers * plan->C;
    snprintf(candidate->limit, sizeof candidate->limit, "%s", limit);
}

/* ------------------------------------------------------------------------------------------ the layouts */

struct list {
    struct ki_candidate *rows; /* room for LIST_MAX; NULL to keep the best alone */
    struct ki_candidate best;
    int count, chosen;
    int words; /* registers for x, y and w that a thread of a DENSE kernel may have */
};

static void offer(struct list *list, const struct ki_candidate *candidate) {
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
    const int64_t parts = plan->C > 1 ? 4 * plan->C * warps : 2 * (plan->BS / lanes + warps + 1);
    return 16 * plan->stages + numbers * size * parts + (ki_chain_maps(chain) ? 8 * plan->BS : 0) + 256;
}

/* As many tiles as `share` groups on a unit have room for. Few pay: a third hides the way through the memory. Slices of a
 * cluster are copied row by row, from a multiple of 16 bytes before their beginning. */
static bool fit_ring(struct ki_plan *plan, const struct ki_chain *chain, int64_t share) {
    const kiln_matrix *X = chain->X;
    const int64_t size = ki_type_bytes(X->type), unit = 16 / size,
                  rows = (int64_t)plan->R * (plan->BS / plan->VS);
    const int64_t slice = plan->C == 1 ? X->cols : ki_ceil_div(ki_ceil_div(X->cols, plan->C), unit) * unit;
    const int64_t room = plan->C > 1 && X->cols % unit ? slice + unit : slice;
    const int64_t tile = ki_ceil_div(rows * room, unit) * 16;
    if ((plan->C == 1 && rows * X->cols * size % 16 != 0) || slice * (plan->C - 1) >= X->cols) return false;
    plan->stages = 8;
    const int64_t most = X->device->properties.local_max;
    const int64_t left = (most + 1024) / share - 1024 - ring_static(plan, chain);
    plan->stages = (int)ki_min(left / tile, 8);
    plan->local_bytes = ki_max(tile * plan->stages, plan->BS * size);
    return plan->stages >= 3 && groups_by_registers(plan, chain) >= share;
}

/* Elements of a row a thread, so that VS threads hold `columns`: in twos of the widest load, so that matrices of about the
 * same width share a kernel. */
static int64_t load_of(const struct ki_plan *plan, int64_t columns, int64_t widest) {
    const int64_t load = ki_ceil_div(columns, plan->VS), grain = load > widest ? 2 * widest : widest;
    return ki_max(ki_ceil_div(load, grain) * grain, plan->W);
}

static void offer_rings(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    plan.file = plan.function = plan.C > 1 ? "mmchain_cluster" : "mmchain_ring";
    plan.variant = plan.C > 1 ? "CLUSTER" : "RING";
    if (plan.R * plan.K > 32 || plan.R > plan.VS) return;
    for (int64_t share = 1; share <= 6; share++) {
        if (plan.BS * share > 1536 || !fit_ring(&plan, chain, share)) continue;
        struct ki_candidate candidate = {.plan = plan};
        predict(&candidate, chain, share);
        if (list->count < LIST_MAX) offer(list, &candidate);
    }
}

static void offer_dense(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    const int64_t scratch = ki_type_bytes(chain->X->type) * plan.BS * plan.R;
    plan.file = plan.function = "mmchain_dense";
    plan.variant = "DENSE";
    const int64_t groups = groups_by_registers(&plan, chain), words = ki_type_bytes(chain->X->type) / 4;
    if (words * plan.Q * plan.W * (2 * plan.K + plan.R) > list->words) return;
    if (groups < 1 || plan.R * plan.K > 16 || scratch > 32 * 1024 || plan.C > 1) return;
    struct ki_candidate candidate = {.plan = plan};
    predict(&candidate, chain, groups);
    if (list->count < LIST_MAX) offer(list, &candidate);
}

/* All groups, loads and rows a step for C groups a row and K columns. */
static void offer_layouts(struct list *list, struct ki_plan plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t size = ki_type_bytes(X->type), widest = 16 / size, words = size / 4;
    const bool ring = device->architecture >= 90 && device->local_max > 0;
    const int64_t columns = ki_ceil_div(X->cols, plan.C);
    plan.W = (int)(X->cols % widest == 0 ? widest : X->cols % 2 == 0 ? 2 : 1);
    for (plan.VS = 1; plan.VS <= ki_min(1024, device->group_max); plan.VS *= 2) {
        const int64_t load = load_of(&plan, columns, widest);
        if (load * words * plan.K > 72 || (load == plan.W && plan.VS > 1 && columns <= load * plan.VS / 2))
            continue;
        plan.Q = (int)(load / plan.W);
        for (plan.BS = (int)ki_max(plan.VS, 128); plan.BS <= ki_min(512, device->group_max); plan.BS *= 2) {
            if (plan.C > 1 && plan.VS != plan.BS) continue;
            for (plan.R = 1; plan.R <= 8; plan.R *= 2) {
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
    struct ki_candidate candidate = {.plan = {.file = "mmchain_dense",
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
    predict(&candidate, chain, ki_max(UNIT_THREADS / 2 / plan->BS, 1));
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

static void offer_tile(void *list, const struct ki_candidate *candidate) {
    offer(list, candidate);
}

static void fill_list(struct list *list, const struct ki_chain *chain) {
    ki_tile_plans(chain, unit_memory(chain->X->device), offer_tile, list);
    const int least = takes_softmax(chain) ? ki_plan_columns(chain) : 1;
    const kiln_matrix *X = chain->X;
    for (int C = 1; C <= 16; C *= 2) {
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
        .plan = {.file = "mmchain_dense", .function = "mmchain_dense", .variant = "DENSE", .C = 1}};
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
    predict(&candidate, chain, 1);
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
    int64_t rows, cols, units, local_max;
    int type, kind, map, k;
};

enum { KEPT = 8 };
static _Thread_local struct {
    struct question question;
    struct ki_plan plan;
} kept[KEPT];
static _Thread_local int next_kept;

void ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    struct question question;
    memset(&question, 0, sizeof question); /* padding is compared too */
    question.backend = X->device->backend;
    question.rows = X->rows;
    question.cols = X->cols;
    question.units = device->compute_units;
    question.local_max = device->local_max + 2 * device->group_max + device->is_gpu;
    question.type = (int)X->type;
    question.kind = (int)chain->kind;
    question.map = ki_chain_maps(chain) ? 1 + (int)chain->map : 0;
    question.k = chain->k;
    for (int i = 0; i < KEPT; i++)
        if (memcmp(&kept[i].question, &question, sizeof question) == 0) {
            *plan = kept[i].plan;
            return;
        }
    struct list list = {0};
    list_plans(&list, chain);
    *plan = list.best.plan;
    kept[next_kept].question = question;
    kept[next_kept].plan = *plan;
    next_kept = (next_kept + 1) % KEPT;
}

kiln_status ki_dense_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain) {
    struct list made = {.rows = ki_calloc(LIST_MAX * sizeof *made.rows)};
    if (!made.rows) return ki_fail_nomem(LIST_MAX * sizeof *made.rows, "the candidates");
    list_plans(&made, chain);
    *list = made.rows;
    *count = made.count;
    *chosen = made.chosen;
    return KILN_OK;
}
