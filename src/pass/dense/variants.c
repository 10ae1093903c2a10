/* The ways of a dense pass, and the choice among their plans by the cost that each is predicted to have. */
#include "pass/dense/variants.h"

#include <math.h>
#include <string.h>

#include "core/limits.h"
#include "core/memory.h"
#include "core/seams.h"
#include "core/size.h"
#include "pass/dense/local_declared.h"

enum { LIST_MAX = 2048 };

/* In the order in which plans are listed. The last is for rows that nothing else has registers for. */
static const struct ki_variant *const variants[] = {&ki_dense_tile, &ki_dense_team, &ki_dense_ring,
                                                    &ki_dense_rows, &ki_dense_wide};
enum { VARIANTS = sizeof variants / sizeof *variants };

void ki_offer(struct ki_offers *offers, const struct ki_plan *plan, int64_t groups) {
    struct ki_candidate candidate = {.plan = *plan};
    if (offers->count == LIST_MAX) return;
    plan->variant->cost(&candidate, offers->chain, groups);
    if (offers->count == 0 || candidate.seconds < offers->best.seconds) {
        offers->best = candidate;
        offers->chosen = offers->count;
    }
    if (offers->rows) offers->rows[offers->count] = candidate;
    offers->count++;
}

/* Returns whether a kernel that is there is taken, and none is compiled: where the pass takes a tenth longer
 * with it at most, or so little that a thousand passes lose less time than compiling takes. */
static bool serves(double seconds, double best) {
    static const double compiling = 0.3, passes = 1000;
    return seconds <= 1.1 * best || (seconds - best) * passes <= compiling;
}

/* Takes the fastest that serves of the plans that a pack has kernels for. The general one comes last in the
 * list, so that few others are looked up. */
static void prefer_packed(struct ki_offers *offers) {
    const struct ki_chain *chain = offers->chain;
    const double best = offers->best.seconds;
    double packed = INFINITY;
    for (int i = offers->count - 1; i >= 0; i--) {
        const struct ki_candidate *row = &offers->rows[i];
        if (row->seconds >= packed || !serves(row->seconds, best) || !ki_plan_packed(&row->plan, chain))
            continue;
        packed = row->seconds;
        offers->chosen = i;
        offers->best = *row;
    }
}

/* Beyond a hundred registers the compiler no longer keeps all loads of a step ahead of their use, and the
 * model promises too much: such kernels only serve rows that nothing else does. */
static void list_plans(struct ki_offers *offers) {
    for (offers->words = 100; offers->words <= 400 && offers->count == 0; offers->words *= 2)
        for (int i = 0; i < VARIANTS - 1; i++)
            if (!offers->chain->X->element || variants[i]->narrow) variants[i]->offer(offers);
    if (offers->count == 0) variants[VARIANTS - 1]->offer(offers);
    if (ki_kernels_packed(offers->chain->X->device)) {
        ki_offer_general(offers);
        prefer_packed(offers);
    }
}

/* ------------------------------------------------------------------------------------------ layouts */

int ki_least_columns(const struct ki_chain *chain) {
    const bool softmax = chain->map == KI_ROW_SOFTMAX || chain->map == KI_ROW_SOFTMAX_LOSS;
    return ki_chain_maps(chain) && softmax ? ki_plan_columns(chain) : 1;
}

/* Elements of a row a thread, so that VS threads hold the row: in twos of the widest load, so that matrices
 * of about the same width share a kernel. */
static int64_t load_of(const kiln_matrix *X, int VS, int W) {
    const int64_t load = ki_ceil_div(X->cols, VS), widest = 16 / ki_value_bytes(X);
    const int64_t grain = W < widest ? W : load > widest ? 2 * widest : widest;
    return ki_max(ki_ceil_div(load, grain) * grain, W);
}

void ki_each_layout(struct ki_offers *offers, int K,
                    void (*each)(struct ki_offers *offers, struct ki_plan plan)) {
    const kiln_matrix *X = offers->chain->X;
    const int64_t words = ki_type_bytes(X->type) / 4, most = X->device->properties.group_max;
    struct ki_plan plan = {.C = 1, .K = K, .W = ki_kept_width(X)};
    /* A load of narrow values may be more than a thread has registers for, with as many of y and w. */
    while (plan.W > 1 && plan.W * words * (2 * K + 1) > offers->words) plan.W /= 2;
    for (plan.VS = 1; plan.VS <= ki_min(1024, most); plan.VS *= 2) {
        const int64_t load = load_of(X, plan.VS, plan.W);
        if (load * words * K > 72 || (load == plan.W && plan.VS > 1 && X->cols <= load * plan.VS / 2))
            continue;
        plan.Q = (int)(load / plan.W);
        plan.sure = (int)(X->cols / (plan.VS * plan.W));
        for (plan.BS = (int)ki_max(plan.VS, 128); plan.BS <= ki_min(512, most); plan.BS *= 2)
            for (plan.R = 1; plan.R <= 8; plan.R *= 2) each(offers, plan);
    }
}

/* ------------------------------------------------------------------------------------------ the choice */

/* All that plans depend on. A solver asks for the same pass again and again: the last few answers are
 * kept. */
struct question {
    int64_t rows, cols;
    int type, element, kind, map, k;
    struct ki_properties device;
    struct ki_pace pace;
    double read;
};

enum { KEPT = 8 };
static _Thread_local struct {
    bool answered;
    struct question question;
    struct ki_candidate best;
} kept[KEPT];
static _Thread_local int next_kept;

static struct question question_of(const struct ki_chain *chain) {
    struct question question;
    memset(&question, 0, sizeof question); /* padding is compared, too */
    question.rows = chain->X->rows;
    question.cols = chain->X->cols;
    question.type = (int)chain->X->type;
    question.element = (int)chain->X->element;
    question.kind = (int)chain->kind;
    question.map = ki_chain_maps(chain) ? 1 + (int)chain->map : 0;
    question.k = chain->k;
    memcpy(&question.device, &chain->X->device->properties, sizeof question.device);
    question.pace = ki_pace_of(chain->X);
    question.read = ki_read_of(chain->X->device);
    return question;
}

/* Finds out what of the device plans depend on. */
static kiln_status settle(kiln_device *device) {
    const kiln_status status = ki_find_local_declared(device);
    return status == KILN_OK ? ki_find_pace(device) : status;
}

static kiln_status choose(struct ki_candidate *best, const struct ki_chain *chain) {
    const kiln_status status = settle(chain->X->device);
    if (status != KILN_OK) return status;
    const struct question question = question_of(chain);
    for (int i = 0; i < KEPT; i++) /* padding is 0 in both */
        if (kept[i].answered &&
            memcmp((const char *)&kept[i].question, (const char *)&question, sizeof question) == 0) {
            *best = kept[i].best;
            return KILN_OK;
        }
    struct ki_offers offers = {.chain = chain};
    if (ki_kernels_packed(chain->X->device) && !(offers.rows = ki_calloc(LIST_MAX * sizeof *offers.rows)))
        return ki_fail_nomem(LIST_MAX * sizeof *offers.rows, "the candidates");
    list_plans(&offers);
    ki_free(offers.rows);
    *best = offers.best;
    kept[next_kept].answered = true;
    memcpy(&kept[next_kept].question, &question, sizeof question);
    kept[next_kept].best = *best;
    next_kept = (next_kept + 1) % KEPT;
    return KILN_OK;
}

kiln_status ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain) {
    struct ki_candidate best;
    const kiln_status status = choose(&best, chain);
    if (status == KILN_OK) *plan = best.plan;
    return status;
}

bool ki_dense_gains_narrow(const struct ki_chain *chain) {
    if (ki_limits.narrow_bytes == 0) return true; /* tests go through the kernels, not the choice */
    if (!chain->X->device->properties.is_gpu || ki_dense_multiplies(chain)) return true;
    /* widened it must not begin to go by in panels */
    const int64_t bytes = chain->X->nnz * ki_type_bytes(chain->X->type);
    if (chain->X->streams || ki_matrix_bytes(chain->X) + bytes > ki_memory_room(chain->X->device))
        return true;
    kiln_matrix X = *chain->X;
    struct ki_chain other = *chain;
    struct ki_candidate narrow, wide;
    X.element = KILN_ELEMENT_TYPE;
    other.X = &X;
    return choose(&narrow, chain) != KILN_OK || choose(&wide, &other) != KILN_OK ||
           narrow.seconds <= wide.seconds;
}

kiln_status ki_dense_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain) {
    const kiln_status status = settle(chain->X->device);
    if (status != KILN_OK) return status;
    struct ki_offers made = {.chain = chain, .rows = ki_calloc(LIST_MAX * sizeof *made.rows)};
    if (!made.rows) return ki_fail_nomem(LIST_MAX * sizeof *made.rows, "the candidates");
    list_plans(&made);
    *list = made.rows;
    *count = made.count;
    *chosen = made.chosen;
    return KILN_OK;
}
