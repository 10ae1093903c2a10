/* Launches of PageRank's steps in each layout of the links, see ranks.cl. Their groups' sums lie side by side
 * in one work space. */
#include "core/arguments.h"
#include "core/limits.h"
#include "core/size.h"
#include "derived/derived.h"
#include "dialect/scalar_math.h"
#include "ops/graph/ranks.cl"
#include "ops/graph/ranks.h"
#include "pass/combine.h"

KI_ARGUMENTS(ranks_factor);
KI_ARGUMENTS(ranks_begin);
KI_ARGUMENTS(ranks_step);
KI_ARGUMENTS(ranks_settle);
KI_ARGUMENTS(ranks_total);
KI_ARGUMENTS(ranks_clear);

enum { COLUMNS_OF_LAUNCH = 8, PART_SPACE = 1, PART_PLACE = 512 };

/* A kernel of ranks.cl and how many groups of it are worth running, for K columns at a time. */
struct launch {
    struct ki_kernel *kernel;
    int64_t groups;
    int K;
};

/* Rows in equal shares: all of them, or of the hybrid layout the long ones. */
struct shared {
    const struct ki_link_shares *shares; /* NULL: none */
    const struct ki_buffer *row;
    int64_t rows; /* of a block */
};

struct step {
    const struct ki_ranks *ranks;
    int64_t number, size; /* threads of a group */
    int64_t groups;       /* of the kernel whose sums are in `space` */
    int64_t turns;        /* steps that one launch takes */
    struct shared shared;
    struct ki_buffer space;
    struct ki_buffer met, part;   /* of groups that wait for each other, of shares */
    struct launch shares, update; /* shares.kernel NULL: not needed */
    bool together;                /* `update` takes whole steps */
};

static int64_t group_size(const kiln_device *device) {
    return ki_min(device->properties.is_gpu ? 512 : 64, device->properties.group_max);
}

/* items: what the threads of a launch take, one each. */
static kiln_status prepare(struct launch *launch, struct step *step, const char *function, const char *what,
                           int VS, int K, int64_t items) {
    const kiln_ranks *on = &step->ranks->on;
    kiln_device *device = on->P->device;
    const struct ki_link_shares *s = step->shared.shares;
    const int64_t reach =
        ki_max(ki_max(on->C->nnz, on->A->nnz), s ? s->count * s->lanes * KI_SHARE_A_THREAD : 0);
    kiln_status status;
    launch->K = K;
    const char *defines = KI_DEFINES(
        "-D%s -DBS=%d -DVS=%d -DK=%d%s%s%s", what, (int)step->size, VS, K, on->weighted ? " -DWEIGHTED" : "",
        step->ranks->sums[0] ? " -DMEMBER" : "", reach > ki_limits.index32 / 2 ? " -DINDEX64" : "");
    TRY(ki_kernel_get(&launch->kernel, device, "ranks", function, on->P->type, defines));
    TRY(ki_kernel_resident(device, &launch->groups, launch->kernel, step->size));
    launch->groups = ki_max(1, ki_min(launch->groups, ki_ceil_div(items, step->size)));
    step->groups = launch->groups;
done:
    return status;
}

static int columns_of(const kiln_ranks *on) {
    const int64_t k = on->P->cols;
    return k > 4 ? COLUMNS_OF_LAUNCH : k > 2 ? 4 : (int)k;
}

/* For the sums of two steps. */
static kiln_status take_space(struct step *step) {
    kiln_device *device = step->ranks->on.P->device;
    return ki_device_scratch(device, &step->space,
                             4 * step->ranks->on.P->cols * step->groups *
                                 ki_type_bytes(ki_wide_type(device)));
}

#define SETTLE "-DSETTLE -DBS=%d -DVS=1 -DK=1"

static int32_t slot_of(const kiln_ranks *on, int64_t number) {
    return (int32_t)(number == KI_RANKS_BEGIN ? number : number % (on->S->rows - RANKS_ROWS));
}

/* The sums that the groups have left become the new state, or a row of sums where other members have more. */
static kiln_status leave_sums(const struct step *step, int64_t number) {
    const kiln_ranks *on = &step->ranks->on;
    kiln_matrix *sums = step->ranks->sums[number == KI_RANKS_BEGIN ? 0 : number % 2];
    kiln_device *device = on->P->device;
    const int32_t groups = (int32_t)step->groups, k = (int32_t)on->P->cols;
    const char *defines = KI_DEFINES(SETTLE, (int)step->size);
    if (sums)
        return ki_kernel_run(device, "ranks", "ranks_total", on->P->type, defines, 1, step->size,
                             KI_PACK(ranks_total, on->P, .sums = sums, .space = &step->space,
                                     .groups = groups, .k = k, .member = step->ranks->place.member));
    return ki_kernel_run(device, "ranks", "ranks_settle", on->P->type, defines, 1, step->size,
                         KI_PACK(ranks_settle, on->P, .S = on->S, .space = &step->space, .groups = groups,
                                 .along = groups, .across = 1, .k = k, .slot = slot_of(on, number)));
}

kiln_status ki_ranks_settle_gpu(const struct ki_ranks *ranks, int64_t number) {
    const kiln_ranks *on = &ranks->on;
    const kiln_matrix *sums = ranks->sums[number == KI_RANKS_BEGIN ? 0 : number % 2];
    const int64_t size = group_size(on->P->device);
    const char *defines = KI_DEFINES(SETTLE, (int)size);
    return ki_kernel_run(on->P->device, "ranks", "ranks_settle", on->P->type, defines, 1, size,
                         KI_PACK(ranks_settle, on->P, .S = on->S, .space = &sums->values,
                                 .groups = (int32_t)sums->rows, .along = 1, .across = (int32_t)sums->cols,
                                 .k = (int32_t)on->P->cols, .slot = slot_of(on, number)));
}

kiln_status ki_ranks_begin_gpu(const struct ki_ranks *ranks) {
    const kiln_ranks *on = &ranks->on;
    const int64_t n = on->P->rows, k = on->P->cols;
    struct step step = {.ranks = ranks, .size = group_size(on->P->device)};
    kiln_status status;
    TRY(ki_launch_elements(on->factor, n, "ranks", "ranks_factor", "-DFACTOR -DBS=128 -DVS=1 -DK=1",
                           KI_PACK(ranks_factor, on->P, .factor = on->factor, .row_start = &on->A->row_start,
                                   .values = on->weighted ? on->A : NULL, .n = n)));
    TRY(prepare(&step.update, &step, "ranks_begin", "BEGIN", 1, columns_of(on), n));
    TRY(take_space(&step));
    for (int64_t first = 0; first < k; first += step.update.K)
        TRY(ki_kernel_launch(on->P->device, step.update.kernel, step.update.groups, step.size,
                             KI_PACK(ranks_begin, on->P, .space = &step.space, .P = on->P, .C = on->C,
                                     .factor = on->factor, .n = n, .groups = (int32_t)step.groups,
                                     .k = (int32_t)k, .first = (int32_t)first)));
    TRY(leave_sums(&step, KI_RANKS_BEGIN));
done:
    return status;
}

/* ---- steps ---- */

static struct shared shared_rows(const struct ki_ranks *ranks) {
    const struct ki_windows *w = ranks->in.windows;
    if (w && w->long_rows) return (struct shared){&w->shares, &w->long_row, w->long_rows};
    return (struct shared){ranks->in.shares, NULL, ranks->on.A->cols};
}

/* Columns from `column` on by one kernel. */
static kiln_status launch_part(const struct step *step, const struct launch *launch, int64_t column) {
    const kiln_ranks *on = &step->ranks->on;
    const struct ki_columns *in = &step->ranks->in.in;
    const struct ki_windows *w = step->ranks->in.windows;
    const struct ki_link_shares *s = step->shared.shares;
    const bool odd = step->number % 2 != 0;
    const int64_t slots = on->S->rows - RANKS_ROWS;
    return (step->together ? ki_kernel_launch_together : ki_kernel_launch)(
        on->P->device, launch->kernel, launch->groups, step->size,
        KI_PACK(ranks_step, on->P, .space = &step->space, .S = on->S, .C = odd ? on->next : on->C,
                .next = odd ? on->C : on->next, .P = on->P, .factor = on->factor, .teleport = on->teleport,
                .dangling = on->dangling, .damping = on->damping, .n = on->P->rows, .all = on->C->rows,
                .offset = step->ranks->place.row, .groups = (int32_t)step->groups, .k = (int32_t)on->P->cols,
                .first = (int32_t)column, .teleport_cols = on->teleport ? (int32_t)on->teleport->cols : 0,
                .dangling_cols = on->dangling ? (int32_t)on->dangling->cols : 0,
                .start = w ? &w->start : in->start, .source = w ? &w->source : in->row,
                .weight = !on->weighted ? NULL
                          : w           ? &w->weight
                                        : in->value,
                .place = w ? &w->place : NULL, .item = s ? &s->item : NULL,
                .item_weight = s && on->weighted ? &s->weight : NULL, .part = s ? &step->part : NULL,
                .item_start = s ? &s->start : NULL, .row = step->shared.row, .rows = step->shared.rows,
                .blocks = s ? (int32_t)s->blocks : 0, .shares = s ? s->count : 0,
                .met = step->together ? &step->met : NULL, .slot = (int32_t)(step->number % slots),
                .slots = (int32_t)slots, .turns = (int32_t)step->turns));
}

static kiln_status run_apart(struct step *step) {
    const kiln_ranks *on = &step->ranks->on;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; c < on->P->cols; c += step->update.K) {
        if (step->shares.kernel) TRY(launch_part(step, &step->shares, c));
        TRY(launch_part(step, &step->update, c));
    }
    TRY(leave_sums(step, step->number));
done:
    return status;
}

/* The kernels of a step, as ranks.cl's defines: what gathers by shares, and what updates, by rows, windows or
 * behind shares; shares take a column at a time. Groups that may wait for each other do all of it in one. */
static kiln_status prepare_parts(struct step *step) {
    const struct ki_ranks *ranks = step->ranks;
    const kiln_ranks *on = &ranks->on;
    kiln_device *device = on->P->device;
    const struct ki_link_shares *s = step->shared.shares;
    const int64_t n = on->P->rows;
    const bool rows = ranks->in.layout == KILN_LAYOUT_CSR, windows = ranks->in.windows != NULL;
    const int K = s ? 1 : columns_of(on), VS = rows ? ki_rows_vector(device, on->A->nnz, n) : 1;
    const int64_t threads = s ? s->count * s->lanes : 0;
    kiln_status status;
    step->together = device->properties.together && on->P->cols <= K && !ranks->sums[0];
    const char *shares = s ? KI_DEFINES(" -DTEAM=%d -DA_THREAD=%d", s->lanes, KI_SHARE_A_THREAD) : "";
    const char *ordered = windows ? KI_DEFINES(" -DWINDOWS -DWINDOW=%d", KI_WINDOW) : "";
    if (s && !step->together)
        TRY(prepare(&step->shares, step, "ranks_step", KI_DEFINES("STEP -DSHARES%s", shares), 1, 1, threads));
    const char *update =
        KI_DEFINES("STEP%s%s%s%s%s%s", shares, rows ? " -DROWS" : "", ordered, s ? " -DCLOSE" : "",
                   s && step->together ? " -DSHARES" : "", step->together ? " -DTOGETHER" : "");
    TRY(prepare(&step->update, step, "ranks_step", update, VS, K,
                ki_max(n * VS, step->together ? threads : 0)));
done:
    return status;
}

/* For what shares leave to the update, and for the count of the groups that have met. */
static kiln_status take_part(struct step *step) {
    const struct shared *of = &step->shared;
    kiln_device *device = step->ranks->on.P->device;
    const int64_t open = of->shares ? 2 * of->shares->count : 0,
                  sums = of->shares ? of->rows * of->shares->blocks : 0;
    kiln_status status;
    TRY(ki_device_space(device, PART_SPACE, &step->met,
                        PART_PLACE + open * ki_type_bytes(ki_wide_type(device)) +
                            sums * ki_type_bytes(step->ranks->on.P->type)));
    step->part = step->met;
    step->part.offset += PART_PLACE;
    step->met.bytes = PART_PLACE;
done:
    return status;
}

static kiln_status run_together(struct step *step) {
    kiln_device *device = step->ranks->on.P->device;
    struct ki_kernel *clear;
    kiln_status status;
    TRY(ki_kernel_get(&clear, device, "ranks", "ranks_clear", step->ranks->on.P->type,
                      "-DCLEAR -DBS=32 -DVS=1 -DK=1"));
    TRY(ki_kernel_launch(device, clear, 1, 32, KI_PACK(ranks_clear, step->ranks->on.P, .met = &step->met)));
    TRY(launch_part(step, &step->update, 0));
done:
    return status;
}

kiln_status ki_ranks_steps_gpu(const struct ki_ranks *ranks, int64_t first, int64_t count) {
    struct step step = {
        .ranks = ranks, .size = group_size(ranks->on.P->device), .shared = shared_rows(ranks)};
    kiln_status status;
    if (count == 0) return KILN_OK;
    TRY(prepare_parts(&step));
    TRY(take_part(&step));
    TRY(take_space(&step));
    step.turns = step.together ? count : 1;
    for (step.number = first; step.number < first + count; step.number += step.turns)
        TRY((step.together ? run_together : run_apart)(&step));
done:
    return status;
}
