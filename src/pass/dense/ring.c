/* The plans of ring.cl, for GPUs that copy in bulk. A ring of S tiles of which each is used in two steps and
 * then fetched anew adds (tile G S / (latency + 2 step))^-4 to the rate of cost.c. */
#include <math.h>

#include "core/size.h"
#include "pass/dense/hopper.h"
#include "pass/dense/variants.h"

enum {
    RING_MAX = 8,
    GROUP_BYTES = 1024, /* on chip, that the device takes */
    GROUPS_MAX = 6,     /* on a unit */
    THREADS_MAX = 1536  /* on a unit */
};

/* Returns how often a warp's load of a tile's rows from on-chip memory goes through it, for once that would
 * do: rows of some widths lie in the same of the 32 banks. As many threads as take 128 bytes are served
 * together. */
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

static double rate_of(const char **limit, const struct ki_plan *plan, const struct ki_chain *chain,
                      int64_t groups) {
    static const char *const limits[] = {"memory bandwidth", "latency of a step", "instructions",
                                         "bytes under way"};
    const struct ki_dense_constants *c = ki_dense_constants;
    const int64_t size = ki_type_bytes(chain->X->type);
    const double words = (double)size / 4, R = plan->R, numbers = R * plan->K, G = (double)groups;
    const double lanes = plan->VS < 32 ? plan->VS : 32, warps = plan->BS / 32.0;
    const int64_t vectors = plan->BS / plan->VS;
    const double tile = R * (double)(vectors * chain->X->cols * size);
    const double conflicts = bank_conflicts(plan, chain->X->cols, size);
    const double loads = 2 * R * plan->Q * plan->W * words, shuffles = ki_sum_shuffles(numbers, lanes);
    /* A vector's R rows lie apart from each other, and so do those of a warp's vectors. */
    double step = c->ring_step + c->ring_number * numbers + c->ring_spread * R * 32 / lanes +
                  c->ring_load * loads * conflicts + c->ring_narrow * 2 * ki_narrow_loads(plan, chain->X);
    if (plan->VS > 32) step += c->ring_meeting * numbers * plan->VS / 32;
    const double busy =
        warps *
        (c->ring_warp + c->ring_multiply * loads * plan->K + c->ring_busy_load * loads * conflicts +
         c->ring_busy_number * numbers * fmax(numbers / lanes, 1) + c->ring_shuffle * shuffles * words);
    const struct ki_pace pace = ki_pace_of(chain->X);
    const double rates[] = {c->ring_memory * ki_dense_unit_memory(chain->X->device),
                            tile * G / (pace.latency * step), tile / (pace.issue * busy),
                            tile * G * plan->stages / (pace.latency * (c->ring_latency + 2 * step))};
    int least;
    const double rate = ki_joint_rate(rates, 4, 4, &least);
    *limit = limits[least];
    /* One group with all of a unit's memory is served more evenly than several (0.90 against 0.98 ms for
     * 6,000 f32). */
    return rate * (1 - (plan->VS > 32 ? c->ring_share_warps : c->ring_share) * (G - 1));
}

/* The vectors of a group add up their w element after element; those of a warp by exchanging registers. */
static double ending_of(const struct ki_plan *plan) {
    const int vectors = plan->BS / (int)ki_max(plan->VS, 32);
    if (plan->BS == plan->VS) return 0;
    return plan->K * plan->Q * plan->W *
           (ki_dense_constants->ring_end + ki_dense_constants->ring_end_vector * (vectors - 1));
}

static void cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
    ki_cost(candidate, chain, groups, rate_of, ending_of(&candidate->plan));
}

static double registers_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const double words = chain->X->type == KILN_F64 ? 2 : 1, load = plan->Q * plan->W;
    return 37 + words * (2.5 * load * plan->K + 1.2 * plan->K * plan->R) + (ki_chain_maps(chain) ? 16 : 0);
}

/* Bytes of on-chip memory that the kernel declares: tickets, and what its warps exchange. */
static int64_t declared(const struct ki_plan *plan, const struct ki_chain *chain) {
    const int64_t size = ki_type_bytes(chain->X->type), numbers = (int64_t)plan->K * plan->R;
    const int64_t lanes = ki_min(plan->VS, 32), warps = plan->BS / 32;
    return 16 * RING_MAX + numbers * size * 2 * (plan->BS / lanes + warps + 1) +
           (ki_chain_maps(chain) ? 8 * plan->BS : 0) + 256;
}

/* As many tiles as `share` groups on a unit have room for, and the groups that there are then. Few tiles pay:
 * a third hides the way through the memory. */
static bool fit(struct ki_plan *plan, int64_t *groups, const struct ki_chain *chain, int64_t share) {
    const kiln_matrix *X = chain->X;
    const struct ki_properties *device = &X->device->properties;
    const int64_t size = ki_type_bytes(X->type), rows = (int64_t)plan->R * (plan->BS / plan->VS);
    const int64_t bytes = rows * X->cols * size,
                  beyond = bytes % 128 ? 128 : 0; /* BULK_LINE of dialect/bulk.h */
    const int64_t tile = ki_ceil_div(bytes, 128) * 128 + beyond;
    if (bytes == 0 || (declared(plan, chain) > device->local_bytes && !device->local_declared)) return false;
    const int64_t most = ki_max(device->local_max, device->local_declared) + GROUP_BYTES;
    const int64_t left = most / share - GROUP_BYTES - declared(plan, chain);
    plan->stages = (int)ki_min(left / tile, RING_MAX);
    plan->local_bytes = ki_max(tile * plan->stages, plan->BS * size);
    *groups = ki_min(ki_unit_groups(plan, chain, registers_of(plan, chain)),
                     most / (plan->local_bytes + declared(plan, chain) + GROUP_BYTES));
    return plan->stages >= 3 && *groups >= share;
}

static void offer_layout(struct ki_offers *offers, struct ki_plan plan) {
    /* Rows of threads alone need no exchange; of others more rows than threads gain nothing. */
    if (plan.R * plan.K > 32 || (plan.R > plan.VS && plan.VS > 1)) return;
    plan.variant = &ki_dense_ring;
    int stages = 0;
    for (int64_t share = 1, groups; share <= GROUPS_MAX; share++) {
        if (plan.BS * share > THREADS_MAX || !fit(&plan, &groups, offers->chain, share)) continue;
        if (plan.stages == stages) continue; /* the same kernel in as many groups */
        ki_offer(offers, &plan, groups);
        stages = plan.stages;
    }
}

static void offer(struct ki_offers *offers) {
    const struct ki_chain *chain = offers->chain;
    if (!ki_copies_in_bulk(&chain->X->device->properties)) return;
    for (int K = ki_least_columns(chain); K <= ki_plan_columns(chain); K *= 2)
        ki_each_layout(offers, K, offer_layout);
}

const struct ki_variant ki_dense_ring = {.name = "ring",
                                         .file = "ring",
                                         .function = "mmchain_ring",
                                         .define = "RING",
                                         .offer = offer,
                                         .cost = cost};
