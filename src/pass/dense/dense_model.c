/* The launch model of dense passes: how long each layout takes on a device (dense_plans.c lists them).
 *
 * The paper's section 3.3 chooses by occupancy; here every layout that fits gets a predicted bandwidth. A compute unit holds
 * G groups, each of which goes through a step of `tile` bytes in
 *   step = latencies of loads, shuffles, barriers and exchanges, one after the other,
 *   busy = what those cost the unit's issue slots, with G groups side by side,
 * and cannot go faster than its share of the memory's bandwidth:
 *   rate^-p = memory^-p + (tile G / step)^-p + (tile / busy)^-p
 * p = 6 (DENSE) or 4. In a ring of S tiles each is used in two steps and then fetched anew: (tile G S / (latency + 2 step))^-p
 * is added; a cluster's tiles come and go in pieces. What comes once is added to the time: the launch, the partial sums, and a
 * group's vectors adding up their w one after the other, which many vectors of few threads make long.
 *
 * The times are those of one H200, in nanoseconds. DENSE and RING are fitted to bench/results/h200-plans.json, with the groups
 * that the built kernels' registers really left room for, and lightly to the several columns of h200-dense-plans.json
 * (what several groups on a unit cost, and rows asked for together gain, to h200-tile-plans.json); CLUSTER to
 * h200-cluster-plans.json, further columns of y to two of them on rows of 20,000 and 50,000, which take 6 to 9 % less than it
 * says; TEAM, which is OpenCL's, to h200-opencl-plans.json, and for rows of 12,000 to 100,000 columns to the plans of
 * h200-opencl-team-plans.json from state 4 on. Median error of the settings within 15 % of the best: 1.8 % (DENSE), 1.3 % (RING),
 * 3 % (TEAM); of CLUSTER, within 6 %, 1.5 %. Registers, on-chip memory, units and bandwidth are the device's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/size.h"
#include "pass/dense/dense.h"
#include "pass/dense/team.h"

enum { UNIT_GROUPS = 32, UNIT_LEAST_REGISTERS = 32 };

/* Achieved at most of the bandwidth that the device's data sheet promises, and a unit's share where nothing is promised. */
static const double achieved = 0.945, unit_bandwidth = 33; /* bytes a nanosecond */

/* What the formulas need of a plan on a device. */
struct view {
    double words, tile, groups, warps, lanes, load, reads, rows, columns, stages, pieces, lag, cluster,
        vector_warps, conflicts, memory;
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
                                     "bytes under way", "exchange of sums"};

/* Bytes a nanosecond of a compute unit. */
static double ring_rate(const struct view *v, const char **limit) {
    const double numbers = v->rows * v->columns, shared = fmin(numbers, v->lanes);
    const double shuffles =
        (numbers <= v->lanes ? numbers - 1 : numbers) + log2_of(v->lanes) - log2_of(shared);
    const double loads = 2 * v->rows * v->load * v->words, multiplies = loads * v->columns;
    /* A vector's R rows lie apart from each other, and so do those of a warp's vectors. */
    double step = 760 + 38 * numbers + 4.1 * v->rows * 32 / v->lanes + 0.54 * loads * v->conflicts;
    if (v->vector_warps > 1) step += 3.2 * numbers * v->vector_warps;
    const double busy =
        v->warps * (30.3 + 0.05 * multiplies + 0.25 * loads * v->conflicts +
                    0.98 * numbers * fmax(numbers / v->lanes, 1) + 0.76 * shuffles * v->words);
    const double rates[] = {1.014 * v->memory, v->tile * v->groups / step, v->tile / busy,
                            v->tile * v->groups * v->stages / (858 + 2 * step)};
    int least = 0;
    const double rate = joint_rate(rates, 4, 4, &least);
    *limit = limits[least];
    /* One group with all of a unit's memory is served more evenly than several (0.90 against 0.98 ms for 6,000 f32). */
    return rate * (1 - (v->vector_warps > 1 ? 0.011 : 0.003) * (v->groups - 1));
}

/* What the groups of a team send each other is on its way for more than a step, for which tiles wait, the longer the more groups
 * a unit has, and every group reads the parts of all. Copies of whole rows reach more of the memory's bandwidth than those of
 * threads, for which they must be multiples of 16 bytes; rows of less than a warp's loads are fetched in pieces of lines. */
static double team_rate(const struct view *v, const char **limit) {
    const double numbers = v->rows * v->columns, shared = fmin(numbers, v->lanes);
    const double shuffles =
        (numbers <= v->lanes ? numbers - 1 : numbers) + log2_of(v->lanes) - log2_of(shared);
    const double loads = 2 * v->rows * v->load * v->words, turns = 32 / v->lanes;
    const bool alone = v->cluster == 1, bulk = v->words * v->load >= 4 * v->reads;
    const double parts = alone ? 0 : v->cluster * numbers * v->words;
    double step = alone ? 714 + 5 * loads : 735 + 0.6 * loads + 0.62 * parts;
    if (v->vector_warps > 1) step += (alone ? 5.3 : 8.5) * numbers * v->vector_warps;
    const double busy =
        v->warps * (8.7 + 0.31 * loads * v->columns + 0.042 * loads + 1.14 * shuffles * v->words) +
        0.07 * parts;
    const double memory = v->memory * (alone ? 0.94 / (1 + 0.004 * turns * turns)
                                             : (bulk ? 0.95 : 0.83) + 0.026 * fmin(log2_of(v->rows), 2));
    const double exchange = 1150 * (1 + 0.2 * (v->groups - 1));
    const double under_way =
        v->tile * v->groups *
        (alone ? (v->stages - 0.5) / 310 : fmin((v->stages - v->lag) / 400, (v->lag - 0.8) / exchange));
    const double rates[] = {memory, v->tile * v->groups / step, v->tile / busy, under_way};
    int least = 0;
    const double rate = joint_rate(rates, 4, 4, &least);
    *limit = limits[least];
    return rate;
}

/* The part of a device's units that clusters of C reach: each lies within one of the device's parts, most of which have 16
 * units, and one half of that. */
static double cluster_units(double C) {
    return C <= 2 ? 1 : (0.85 * floor(16 / C) / 16 + 0.06 * floor(8 / C) / 8) * C;
}

/* A step's tile waits in pieces for its sums, which the pieces behind it hide; all others are under way, but for one that is in
 * use and one whose place waits for the slowest warp. */
static double cluster_rate(const struct view *v, const char **limit) {
    const double piece = v->tile / v->pieces, used = cluster_units(v->cluster);
    const double step = 380 + 300 / v->pieces + v->warps * v->pieces * (6 + 20 * v->rows) +
                        0.75 * v->cluster * v->warps * v->rows * (v->columns - 1);
    const double busy = v->warps * v->rows * (v->reads + v->load * v->words * (1.2 * v->columns + 0.38));
    const double rates[] = {1.025 * v->memory / used, v->tile / step, v->tile / busy,
                            (v->stages - v->lag - 2) * piece / 400, (v->lag + 1 - v->pieces) * piece / 559};
    int least = 0;
    const double rate = joint_rate(rates, 5, 4, &least);
    *limit = limits[least];
    return used * rate;
}

static double dense_rate(const struct view *v, double row_bytes, double loads_a_row, const char **limit) {
    const double numbers = v->rows * v->columns, shuffles = numbers * log2_of(v->lanes) * v->words;
    const double multiplies = 2 * v->rows * v->load * v->words * v->columns;
    /* Vectors of less than a warp read rows apart from each other: lines of 128 bytes that a load touches. */
    const double lines = 32 / (v->lanes * v->vector_warps) * fmin(1, v->rows * row_bytes / 128);
    /* Part of the tiles' own way counts: a step begins with it. */
    double step = 307 + 11.4 * shuffles + 18.2 * v->warps + 0.39 * v->tile * v->groups / v->memory;
    if (v->vector_warps > 1) step += 206 * v->columns + 10.8 * numbers * v->vector_warps;
    /* Several columns may have a v each, which every thread loads for itself. */
    const double weights = v->columns > 1 ? 1.2 * numbers : 0;
    const double busy = v->warps * (0.084 * multiplies + 1.46 * v->rows * v->load * v->words + 3.2 * numbers +
                                    weights + 1.18 * v->rows * loads_a_row * fmax(lines / 4, 1));
    /* Rows that are asked for together come in longer pieces of memory. */
    const double memory = (1 + 0.005 * log2_of(v->rows)) * v->memory;
    const double rates[] = {memory, v->tile * v->groups / step, v->tile / busy};
    int least = 0;
    const double rate = joint_rate(rates, 3, 6, &least);
    *limit = limits[least];
    /* Lines of 128 bytes that two rows share, of narrow rows of f64, are fetched more than once now and then. */
    return v->words > 1 && row_bytes < 1024 && fmod(row_bytes, 128) > 0 ? 0.954 * rate : rate;
}

/* Nanoseconds in which the vectors of a group add up their w, element after element, each with its barriers. */
static double ending(const struct ki_plan *plan) {
    const int elements = plan->K * plan->Q * plan->W, vectors = plan->BS / plan->VS;
    const int wide =
        plan->BS / (int)ki_max(plan->VS, 32); /* what a ring's warps have added up by then counts once */
    if (vectors == 1) return 0;
    return elements * (plan->stages ? 130 + 4.2 * (wide - 1) : 755 + 1.84 * (vectors - 1));
}

double ki_dense_unit_memory(const kiln_device *device) {
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

/* Registers of a thread, as the compiler gives them: few plans are off by enough to change the groups of a unit. Maps need
 * some for their formulas. NVIDIA's OpenCL compiler takes fewer for f64 than NVRTC. */
static int64_t registers_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const double words = chain->X->type == KILN_F64 ? 2 : 1, load = plan->Q * plan->W, K = plan->K,
                 R = plan->R;
    const double map = ki_chain_maps(chain) ? 16 : 0,
                 scratch =
                     plan->VS > 32 ? (chain->X->device->properties.architecture ? 8 : 12 - 4 * words) : 0;
    if (strcmp(plan->variant, "TEAM") == 0) return ki_team_registers(plan, chain);
    const double found = plan->C > 1    ? 45 + words * (2 * load * K + 1.2 * K * R)
                         : plan->stages ? 37 + words * (2.5 * load * K + 1.2 * K * R)
                                        : 8 + scratch + words * (2 * load * K + 1.1 * R * load + 2 * K * R);
    return ki_max(((int64_t)(found + map) + 7) / 8 * 8, UNIT_LEAST_REGISTERS);
}

int64_t ki_dense_groups(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t groups = ki_unit_registers(chain) / (registers_of(plan, chain) * plan->BS);
    return ki_min(groups, ki_min(KI_UNIT_THREADS / plan->BS, UNIT_GROUPS));
}

void ki_dense_predict(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
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
                           .reads = plan->Q,
                           .rows = plan->R,
                           .columns = plan->K,
                           .stages = plan->stages,
                           .pieces = plan->pieces,
                           .lag = plan->lag,
                           .cluster = plan->C,
                           .vector_warps = plan->VS > 32 ? plan->VS / 32 : 1,
                           .conflicts =
                               plan->stages && plan->C == 1 ? bank_conflicts(plan, X->cols, size) : 1,
                           .memory = ki_dense_unit_memory(X->device)};
    const bool team = strcmp(plan->variant, "TEAM") == 0;
    const double rate = units * (team           ? team_rate(&v, &limit)
                                 : plan->C > 1  ? cluster_rate(&v, &limit)
                                 : plan->stages ? ring_rate(&v, &limit)
                                                : dense_rate(&v, (double)(slice * size), plan->Q, &limit));
    const int64_t tiles = ki_max(ki_ceil_div(X->rows, tile_rows), 1);
    const int64_t sharers = ki_min(ki_max(groups * units / plan->C, 1), tiles);
    const double uneven = (double)(ki_ceil_div(tiles, sharers) * sharers) / (double)tiles;
    const bool sums = chain->kind != KI_CHAIN_PLAIN;
    const double partials = sums ? (double)(sharers * X->cols * plan->K * size) : 0;
    const double bytes = (double)((X->nnz + X->rows) * size);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    candidate->seconds =
        1e-9 * (double)passes * (6000 + bytes / rate * uneven + partials / 4000 + (sums ? ending(plan) : 0));
    candidate->occupancy = (double)(groups * plan->BS) / KI_UNIT_THREADS;
    candidate->plan.steps = tiles;
    candidate->plan.groups = sharers * plan->C;
    snprintf(candidate->limit, sizeof candidate->limit, "%s", limit);
}
