/* The plans of dense.cl, which run on every GPU: rows in registers (dense), and rows wider than those
 * (wide). */
#include <math.h>

#include "core/size.h"
#include "pass/dense/hopper.h"
#include "pass/dense/variants.h"
#include "pass/unit.h"

static double rate_of(const char **limit, const struct ki_plan *plan, const struct ki_chain *chain,
                      int64_t groups) {
    static const char *const limits[] = {"memory bandwidth", "latency of a step", "instructions"};
    const struct ki_dense_constants *c = ki_dense_constants;
    const double words = (double)ki_type_bytes(chain->X->type) / 4, R = plan->R, K = plan->K;
    const int vectors = plan->BS / plan->VS;
    const double row_bytes = (double)(chain->X->cols * ki_value_bytes(chain->X)),
                 tile = R * vectors * row_bytes;
    const double lanes = plan->VS < 32 ? plan->VS : 32, vector_warps = plan->VS > 32 ? plan->VS / 32.0 : 1;
    const double warps = plan->BS / 32.0, load = plan->Q * plan->W, numbers = R * K, G = (double)groups;
    const double unit_memory = ki_dense_unit_memory(chain->X->device);
    const double shuffles = numbers * ki_log2_of(lanes) * words, multiplies = 2 * R * load * words * K;
    /* Vectors of less than a warp read rows apart from each other: lines of 128 bytes that a load touches. */
    const double lines = 32 / (lanes * vector_warps) * fmin(1, (plan->VS == 1 ? 1 : R) * row_bytes / 128);
    /* Part of the tiles' own way counts: a step begins with it. */
    const struct ki_pace pace = ki_pace_of(chain->X);
    const double meeting =
        vector_warps > 1 ? c->dense_barrier * K + c->dense_meeting * numbers * vector_warps : 0;
    const double step =
        pace.latency * (c->dense_step + c->dense_shuffle * shuffles + c->dense_warp * warps + meeting) +
        c->dense_own * tile * G / unit_memory;
    /* Several columns may have a v each, which every thread loads for itself. */
    const double weights = K > 1 ? c->dense_weight * numbers : 0;
    /* A thread's own row comes from as many lines either way. */
    const double narrow = plan->VS > 1 ? ki_narrow_loads(plan, chain->X) : 0;
    const double busy =
        pace.issue * warps *
        (c->dense_multiply * multiplies + c->dense_element * R * load * words + c->dense_number * numbers +
         weights + c->dense_exchange * R * plan->Q * fmax(lines / 4, 1) + c->dense_narrow * narrow);
    /* Rows that are asked for together come in longer pieces of memory. */
    const double memory = (1 + c->dense_rows_gain * ki_log2_of(R)) * unit_memory;
    const double rates[] = {memory, tile * G / step, tile / busy};
    int least;
    const double rate = ki_joint_rate(rates, 3, 6, &least);
    *limit = limits[least];
    /* Lines of 128 bytes that two rows share, of narrow rows of f64, are fetched more than once now and
     * then. */
    return words > 1 && row_bytes < 1024 && fmod(row_bytes, 128) > 0 ? c->dense_split_lines * rate : rate;
}

/* The vectors of a group add up their w element after element, each with its barriers. */
static double ending_of(const struct ki_plan *plan) {
    const struct ki_dense_constants *c = ki_dense_constants;
    const int vectors = plan->BS / plan->VS;
    if (vectors == 1) return 0;
    return plan->K * plan->Q * plan->W * (c->dense_end + c->dense_end_vector * (vectors - 1));
}

static void cost(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
    ki_cost(candidate, chain, groups, rate_of, ending_of(&candidate->plan));
}

/* Registers of a thread, as the compiler gives them: few plans are off by enough to change the groups of a
 * unit. Maps need some for their formulas. NVIDIA's OpenCL compiler takes fewer for f64 than NVRTC. */
static double registers_of(const struct ki_plan *plan, const struct ki_chain *chain) {
    const double words = chain->X->type == KILN_F64 ? 2 : 1, load = plan->Q * plan->W, K = plan->K,
                 R = plan->R;
    const bool cuda = chain->X->device->properties.architecture > 0;
    const double scratch = plan->VS <= 32                                   ? 0
                           : chain->X->device->properties.shuffles && !cuda ? 12 - 4 * words
                                                                            : 8;
    return 8 + scratch + words * (2 * load * K + 1.1 * R * load + 2 * K * R) +
           (ki_chain_maps(chain) ? 16 : 0);
}

static void offer_layout(struct ki_offers *offers, struct ki_plan plan) {
    const struct ki_chain *chain = offers->chain;
    const int64_t size = ki_type_bytes(chain->X->type), scratch = size * plan.BS * plan.R;
    const int64_t groups = ki_unit_groups(&plan, chain, registers_of(&plan, chain));
    if (size / 4 * plan.Q * plan.W * (2 * plan.K + plan.R) > offers->words) return;
    if (groups < 1 || plan.R * plan.K > 16 || scratch > 32 * 1024) return;
    plan.variant = &ki_dense_rows;
    ki_offer(offers, &plan, groups);
}

/* A CPU behind OpenCL: few threads a group, four rows a step, one shape, as each is slow to build. */
static void offer_for_cpu(struct ki_offers *offers) {
    const struct ki_chain *chain = offers->chain;
    const kiln_matrix *X = chain->X;
    const int words = X->type == KILN_F64 ? 2 : 1;
    struct ki_plan plan = {
        .variant = &ki_dense_rows, .C = 1, .K = ki_plan_columns(chain), .W = ki_load_width(X)};
    plan.R = plan.K == 1 ? 4 : plan.K < 4 ? 2 : 1;
    const int64_t most = 96 / (words * (2 * plan.K + plan.R)), load = ki_max(ki_min(4, most), plan.W);
    plan.VS = ki_power_of_two(ki_ceil_div(X->cols, load));
    plan.Q = (int)ki_max(load / plan.W, 1);
    plan.BS = (int)ki_max(plan.VS, 64);
    if (plan.VS <= 256 && plan.BS <= X->device->properties.group_max) ki_offer(offers, &plan, 1);
}

static void offer(struct ki_offers *offers) {
    const struct ki_chain *chain = offers->chain;
    if (!chain->X->device->properties.is_gpu) {
        offer_for_cpu(offers);
        return;
    }
    for (int K = ki_least_columns(chain); K <= ki_plan_columns(chain); K *= 2)
        ki_each_layout(offers, K, offer_layout);
}

const struct ki_variant ki_dense_rows = {.name = "dense",
                                         .file = "dense",
                                         .function = "mmchain_dense",
                                         .define = "DENSE",
                                         .narrow = true,
                                         .offer = offer,
                                         .cost = cost};

/* ------------------------------------------------------------------------------------------ wide */

static void cost_wide(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups) {
    ki_cost(candidate, chain, groups, rate_of, 0);
    candidate->seconds *= 2; /* X is read twice */
}

static struct ki_plan wide_plan(const struct ki_chain *chain) {
    const struct ki_properties *device = &chain->X->device->properties;
    struct ki_plan plan = {.variant = &ki_dense_wide, .C = 1, .Q = 1, .W = 1, .K = ki_plan_columns(chain)};
    plan.VS = plan.BS = (int)ki_min(device->is_gpu ? 512 : 64, device->group_max);
    /* Each step reads and writes all of the group's w, which its rows must be worth. */
    plan.R = plan.K == 1 ? 8 : plan.K == 2 ? 4 : 2;
    return plan;
}

static int64_t wide_groups(const struct ki_plan *plan, const struct ki_chain *chain) {
    return ki_max(ki_unit_of(chain->X->device).threads / 2 / plan->BS, 1);
}

static void offer_wide(struct ki_offers *offers) {
    const struct ki_plan plan = wide_plan(offers->chain);
    ki_offer(offers, &plan, wide_groups(&plan, offers->chain));
}

const struct ki_variant ki_dense_wide = {.name = "wide",
                                         .file = "dense",
                                         .function = "mmchain_wide",
                                         .define = "WIDE",
                                         .narrow = true,
                                         .offer = offer_wide,
                                         .cost = cost_wide};

/* ------------------------------------------------------------------------------------------ general */

enum { GENERAL_THREADS = 512 };

static struct ki_plan general_plan(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const int K = ki_plan_columns(chain), held = K * (int)ki_type_bytes(X->type) / 4;
    struct ki_plan plan = {.variant = &ki_dense_rows, .C = 1, .K = K, .W = 1};
    plan.Q = held <= 4 ? 8 : 32 / held;
    plan.R = held <= 4 ? 4 / held : 1;
    plan.VS = ki_power_of_two(ki_ceil_div(X->cols, plan.Q));
    plan.BS = (int)ki_max(plan.VS, 128);
    return plan.VS <= GENERAL_THREADS ? plan : wide_plan(chain);
}

void ki_offer_general(struct ki_offers *offers) {
    const struct ki_plan plan = general_plan(offers->chain);
    const int64_t groups = plan.variant == &ki_dense_rows
                               ? ki_unit_groups(&plan, offers->chain, registers_of(&plan, offers->chain))
                               : wide_groups(&plan, offers->chain);
    if (plan.BS <= offers->chain->X->device->properties.group_max) ki_offer(offers, &plan, groups);
}
