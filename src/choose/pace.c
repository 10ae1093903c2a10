/* Two plans of dense.cl tell a GPU's pace, because next to nothing but one number bounds each:
 *
 *   latency: one group on each compute unit, a row a warp; it waits for its loads, shuffles and barriers,
 *   issue:   as many groups as there is room for, a row a thread and eight columns of y; its instructions
 *            fill the issue slots, and no thread waits for another.
 *
 * The model's time grows with either number, so that bisection finds the one that gives the measured time. As
 * each has a small part in the other's probe, they are found in turns. */
#include "choose/pace.h"

#include <math.h>

#include "core/size.h"
#include "pass/dense/variants.h"

enum {
    COLUMNS_OF_Y = 8,
    ROWS_OF_WARPS = 2048,    /* for each compute unit: 512 steps of a group */
    ROWS_OF_THREADS = 49152, /* ... some 64 of each group that it holds */
    TURNS = 12,
    HALVINGS = 40
};

void ki_pace_probe(struct ki_pace_probe *probe, kiln_device *device, kiln_type type,
                   enum ki_pace_number number) {
    const struct ki_properties *properties = &device->properties;
    const bool issue = number == KI_PACE_ISSUE;
    const int64_t size = ki_type_bytes(type);
    struct ki_plan *plan = &probe->plan;
    *plan = (struct ki_plan){
        .variant = &ki_dense_rows, .VS = issue ? 1 : 32, .BS = KI_PACE_GROUP, .R = 1, .C = 1};
    plan->W = (int)(16 / size);
    plan->Q = plan->sure = issue ? 2 : 1;
    plan->K = issue ? COLUMNS_OF_Y : 1;
    const int64_t cols = (int64_t)plan->VS * plan->Q * plan->W;
    const int64_t room = ki_min(properties->alloc_max, device->budget - device->statistics.memory_used) / 3;
    const int64_t rows = properties->compute_units * (int64_t)(issue ? ROWS_OF_THREADS : ROWS_OF_WARPS);
    probe->X = (kiln_matrix){.device = device, .type = type, .format = KILN_DENSE, .cols = cols};
    probe->X.rows = ki_max(ki_min(rows, room / (cols * size)), 1);
    probe->X.nnz = probe->X.rows * cols;
    probe->chain = (struct ki_chain){.kind = KI_CHAIN_FUSED, .map = KI_ROW_SCALE, .alpha = 1, .k = plan->K};
    probe->groups = 1;
}

struct ki_candidate ki_pace_candidate(const struct ki_pace_probe *probe) {
    struct ki_candidate candidate = {.plan = probe->plan};
    struct ki_chain chain = probe->chain;
    chain.X = &probe->X;
    probe->plan.variant->cost(&candidate, &chain, probe->groups);
    return candidate;
}

static double pace_predicted(const struct ki_pace_probe *probe) {
    return ki_pace_candidate(probe).seconds;
}

/* number becomes what gives the probe's time. A time below that of the least pace is no pace's: something
 * else of the model does not hold there, and the number stays what it is for a GPU that was not measured. */
static void solve_for(double *number, const struct ki_pace_probe *probe) {
    double least = log(KI_PACE_LEAST), most = log(KI_PACE_MOST);
    *number = KI_PACE_LEAST;
    if (probe->seconds <= pace_predicted(probe)) {
        *number = 1;
        return;
    }
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (least + most) / 2;
        *number = exp(middle);
        if (pace_predicted(probe) < probe->seconds)
            least = middle;
        else
            most = middle;
    }
}

struct ki_pace ki_pace_fit(const struct ki_pace_probe probes[KI_PACE_NUMBERS]) {
    const kiln_matrix *X = &probes[0].X;
    struct ki_pace *pace = &X->device->cache->recalled.pace[X->type == KILN_F64];
    *pace = (struct ki_pace){1, 1};
    for (int turn = 0; turn < TURNS; turn++) {
        solve_for(&pace->latency, &probes[KI_PACE_LATENCY]);
        solve_for(&pace->issue, &probes[KI_PACE_ISSUE]);
    }
    return *pace;
}
