/* This file has what the predicted times of all dense passes have in common.
 *
 * The fused-kernels paper's section 3.3 chooses by occupancy; here every layout that fits gets a predicted
 * bandwidth. A compute unit holds G groups, each of which goes through a step of `tile` bytes in
 *   step = latencies of loads, shuffles, barriers and exchanges, one after the other,
 *   busy = what those cost the unit's issue slots, with G groups side by side,
 * and cannot go faster than its share of the memory's bandwidth:
 *   rate^-p = memory^-p + (tile G / step)^-p + (tile / busy)^-p + ...
 * What comes once is added to the time: the launch, the partial sums, and a group's vectors adding up their
 * w. Each variant has its own step, busy and further limits; the numbers in them are in hopper.h. */
#include <math.h>
#include <stdio.h>

#include "core/size.h"
#include "pass/dense/hopper.h"
#include "pass/dense/variants.h"
#include "pass/unit.h"

enum { UNIT_LEAST_REGISTERS = 32, LAUNCH_NS = 6000 };

/* Achieved at most of the bandwidth that the device's data sheet promises; a unit's share, in bytes a
 * nanosecond, where nothing is promised and nothing was measured; and the part of the bandwidth with which
 * partial sums are written and read. */
static const double achieved = 0.945, unit_bandwidth = 33, partials_share = 0.879;

#define VALUE(name, value) value,
#define OF_F64(name, f64, f32) f64,
#define OF_F32(name, f64, f32) f32,
#define TEAM_F64(name, f64, f32, whole) f64,
#define TEAM_F32(name, f64, f32, whole) f32,
#define TEAM_WHOLE(name, f64, f32, whole) whole,
/* clang-format off */
static const struct ki_dense_constants hopper = {
    KI_DENSE_CONSTANTS(VALUE) KI_RING_CONSTANTS(VALUE) KI_TEAM_CONSTANTS(VALUE)
    {KI_TILE_CONSTANTS(OF_F64)}, {KI_TILE_CONSTANTS(OF_F32)},
    {KI_TILE_TEAM_CONSTANTS(TEAM_F64)}, {KI_TILE_TEAM_CONSTANTS(TEAM_F32)},
    {KI_TILE_TEAM_CONSTANTS(TEAM_WHOLE)}};
/* clang-format on */
const struct ki_dense_constants *ki_dense_constants = &hopper;

double ki_log2_of(double power) {
    return power > 1 ? log2(power) : 0;
}

double ki_sum_shuffles(double numbers, double lanes) {
    const double shared = fmin(numbers, lanes);
    return (numbers <= lanes ? numbers - 1 : numbers) + ki_log2_of(lanes) - ki_log2_of(shared);
}

double ki_joint_rate(const double *rates, int count, double power, int *least) {
    double sum = 0;
    *least = 0;
    for (int i = 0; i < count; i++) {
        sum += pow(rates[i], -power);
        if (rates[i] < rates[*least]) *least = i;
    }
    return pow(sum, -1 / power);
}

double ki_dense_unit_memory(const kiln_device *device) {
    const struct ki_properties *properties = &device->properties;
    const double units = properties->compute_units * 1e9;
    if (properties->bandwidth > 0) return achieved * properties->bandwidth / units;
    const double read = ki_read_of(device);
    return read > 0 ? read / units : unit_bandwidth;
}

int64_t ki_unit_groups(const struct ki_plan *plan, const struct ki_chain *chain, double registers) {
    const int64_t rounded = ki_max(((int64_t)registers + 7) / 8 * 8, UNIT_LEAST_REGISTERS);
    const struct ki_unit unit = ki_unit_of(chain->X->device);
    return ki_min(unit.registers / (rounded * plan->BS), ki_min(unit.threads / plan->BS, unit.groups));
}

void ki_cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups, ki_rate *rate,
             double ending) {
    const kiln_matrix *X = chain->X;
    struct ki_plan *plan = &candidate->plan;
    const char *limit = "";
    const int64_t size = ki_type_bytes(X->type), units = X->device->properties.compute_units;
    const int64_t passes = ki_ceil_div(chain->k, plan->K);
    const int64_t tiles = ki_max(ki_ceil_div(X->rows, (int64_t)plan->R * (plan->BS / plan->VS)), 1);
    const int64_t sharers = ki_min(ki_max(groups * units / plan->C, 1), tiles);
    const double uneven = (double)(ki_ceil_div(tiles, sharers) * sharers) / (double)tiles;
    const bool sums = chain->kind != KI_CHAIN_PLAIN;
    const double partials = sums ? (double)(sharers * X->cols * plan->K * size) : 0;
    const double bytes = (double)(X->nnz * ki_value_bytes(X) + X->rows * size);
    const double all = (double)units * rate(&limit, plan, chain, groups);
    candidate->bytes = passes * (int64_t)(bytes + 2 * partials);
    const double partials_rate = partials_share * (double)units * ki_dense_unit_memory(X->device);
    candidate->seconds = 1e-9 * (double)passes *
                         (LAUNCH_NS + bytes / all * uneven + partials / partials_rate +
                          (sums ? ki_pace_of(X).latency * ending : 0));
    candidate->occupancy = (double)(groups * plan->BS) / (double)ki_unit_of(X->device).threads;
    plan->steps = tiles;
    plan->groups = sharers * plan->C;
    snprintf(candidate->limit, sizeof candidate->limit, "%s", limit);
}
