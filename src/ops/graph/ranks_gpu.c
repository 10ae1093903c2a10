/* Launches of PageRank's steps in each layout of the links, see ranks.cl. Their groups' sums lie side by side in one work space. */
#include <stdio.h>

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
KI_ARGUMENTS(ranks_clear);

enum { COLUMNS_OF_LAUNCH = 8, SLOT_BEGIN = -1, PART_SPACE = 1, PART_PLACE = 512 };

/* A kernel of ranks.cl and how many groups of it are worth running, for K columns at a time. */
struct launch {
    struct ki_kernel *kernel;
    int64_t groups;
    int K;
};

/* Rows in equal shares: all of them, or of the hybrid layout the long ones. */
struct shared {
    const struct ki_shares *shares; /* NULL: none */
    const struct ki_buffer *start, *source, *weight, *row;
    int64_t rows, links;
};

struct step {
    const struct ki_ranks *ranks;
    int64_t number, size; /* threads of a group */
    int64_t groups;       /* of all kernels whose sums are in `space` */
    int64_t turns;        /* steps that one launch takes */
    struct shared shared;
    struct ki_buffer space;
    struct ki_buffer met, part;                  /* of groups that wait for each other, of shares */
    struct launch whole, shares, join, together; /* kernel NULL: not needed */
};

static int64_t group_size(const kiln_device *device) {
    return ki_min(device->properties.is_gpu ? 256 : 64, device->properties.group_max);
}

/* items: what the threads of a launch take, one each. */
static kiln_status prepare(struct launch *launch, struct step *step, const char *function, const char *what,
                           int VS, int K, int64_t items) {
    const kiln_ranks *on = &step->ranks->on;
    kiln_device *device = on->P->device;
    const int64_t reach = ki_max(on->P->nnz, on->A->nnz);
    char defines[256];
    kiln_status status;
    launch->K = K;
    snprintf(defines, sizeof defines, "-D%s -DBS=%d -DVS=%d -DK=%d%s%s", what, (int)step->size, VS, K,
             on->weighted ? " -DWEIGHTED" : "", reach > ki_limits.index32 / 2 ? " -DINDEX64" : "");
    TRY(ki_kernel_get(&launch->kernel, device, "ranks", function, on->P->type, defines));
    TRY(ki_kernel_resident(device, &launch->groups, launch->kernel, step->size));
    launch->groups = ki_max(1, ki_min(launch->groups, ki_ceil_div(items, step->size)));
    step->groups += launch->groups;
done:
    return status;
}

static int columns_of(const kiln_ranks *on) {
    const int64_t k = on->P->cols;
    return k > 4 ? COLUMNS_OF_LAUNCH : k > 2 ? 4 : (int)k;
}

static kiln_status take_space(struct step *step) {
    kiln_device *device = step->ranks->on.P->device;
    return ki_device_scratch(device, &step->space,
                             2 * step->ranks->on.P->cols * step->groups *
                                 ki_type_bytes(ki_wide_type(device)));
}

static kiln_status settle(const struct step *step, int64_t slot) {
    const kiln_ranks *on = &step->ranks->on;
    kiln_device *device = on->P->device;
    struct ki_kernel *kernel;
    char defines[64];
    snprintf(defines, sizeof defines, "-DSETTLE -DBS=%d -DVS=1 -DK=1", (int)step->size);
    const kiln_status status = ki_kernel_get(&kernel, device, "ranks", "ranks_settle", on->P->type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(device, kernel, 1, step->size,
                            KI_PACK(ranks_settle, on->P, .S = on->S, .space = &step->space,
                                    .groups = (int32_t)step->groups, .k = (int32_t)on->P->cols,
                                    .slot = (int32_t)slot));
}

kiln_status ki_ranks_begin_gpu(const struct ki_ranks *ranks) {
    const kiln_ranks *on = &ranks->on;
    const int64_t n = on->P->rows, k = on->P->cols;
    struct step step = {.ranks = ranks, .size = group_size(on->P->device)};
    kiln_status status;
    TRY(ki_launch_elements(on->factor, n, "ranks", "ranks_factor", "-DFACTOR -DBS=128 -DVS=1 -DK=1",
                           KI_PACK(ranks_factor, on->P, .factor = on->factor, .row_start = &on->A->row_start,
                                   .values = on->weighted ? on->A : NULL, .n = n)));
    TRY(prepare(&step.whole, &step, "ranks_begin", "BEGIN", 1, columns_of(on), n));
    TRY(take_space(&step));
    for (int64_t first = 0; first < k; first += step.whole.K)
        TRY(ki_kernel_launch(on->P->device, step.whole.kernel, step.whole.groups, step.size,
                             KI_PACK(ranks_begin, on->P, .space = &step.space, .P = on->P, .C = on->C,
                                     .factor = on->factor, .n = n, .groups = (int32_t)step.groups,
                                     .k = (int32_t)k, .first = (int32_t)first)));
    TRY(settle(&step, SLOT_BEGIN));
done:
    return status;
}

/* ---- steps ---- */

static struct shared shared_rows(const struct ki_ranks *ranks) {
    const struct ki_windows *w = ranks->in.windows;
    const kiln_matrix *A = ranks->on.A;
    const struct ki_columns *in = &ranks->in.in;
    const bool weighted = ranks->on.weighted;
    if (ranks->in.layout == KILN_LAYOUT_CSR || (w && !w->long_rows)) return (struct shared){.shares = NULL};
    return w ? (struct shared){&w->shares,      &w->long_start,
                               &w->long_source, weighted ? &w->long_weight : NULL,
                               &w->long_row,    w->long_rows,
                               w->long_links}
             : (struct shared){ranks->in.shares, in->start, in->row, weighted ? in->value : NULL, NULL,
                               A->rows,          A->nnz};
}

/* Columns from `column` on by one kernel, whose groups' sums stand behind those of `before` groups of other launches. */
static kiln_status launch_part(const struct step *step, const struct launch *launch, int64_t column,
                               int64_t before) {
    const kiln_ranks *on = &step->ranks->on;
    const struct ki_columns *in = &step->ranks->in.in;
    const struct ki_windows *w = step->ranks->in.windows;
    const struct shared *of = &step->shared;
    const bool odd = step->number % 2 != 0, together = launch == &step->together;
    const int64_t slots = on->S->rows - RANKS_ROWS;
    return (together ? ki_kernel_launch_together : ki_kernel_launch)(
        on->P->device, launch->kernel, launch->groups, step->size,
        KI_PACK(ranks_step, on->P, .space = &step->space, .S = on->S, .C = odd ? on->next : on->C,
                .next = odd ? on->C : on->next, .P = on->P, .factor = on->factor, .teleport = on->teleport,
                .dangling = on->dangling, .damping = on->damping, .n = on->P->rows,
                .groups = (int32_t)step->groups, .before = (int32_t)before, .k = (int32_t)on->P->cols,
                .first = (int32_t)column, .teleport_cols = on->teleport ? (int32_t)on->teleport->cols : 0,
                .dangling_cols = on->dangling ? (int32_t)on->dangling->cols : 0,
                .start = w ? &w->start : in->start, .source = w ? &w->source : in->row,
                .weight = !on->weighted ? NULL
                          : w           ? &w->weight
                                        : in->value,
                .place = w ? &w->place : NULL, .long_start = of->start, .long_source = of->source,
                .long_weight = of->weight, .part = of->shares ? &step->part : NULL,
                .first_row = of->shares ? &of->shares->first : NULL, .row = of->row, .rows = of->rows,
                .links = of->links, .shares = of->shares ? of->shares->count : 0,
                .met = together ? &step->met : NULL, .slot = (int32_t)(step->number % slots),
                .slots = (int32_t)slots, .turns = (int32_t)step->turns));
}

static kiln_status run_apart(struct step *step) {
    const kiln_ranks *on = &step->ranks->on;
    const int64_t k = on->P->cols, others = step->whole.kernel ? step->whole.groups : 0;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; step->whole.kernel && c < k; c += step->whole.K)
        TRY(launch_part(step, &step->whole, c, 0));
    for (int64_t c = 0; step->shares.kernel && c < k; c++) {
        TRY(launch_part(step, &step->shares, c, others));
        TRY(launch_part(step, &step->join, c, others + step->shares.groups));
    }
    TRY(settle(step, step->number % (on->S->rows - RANKS_ROWS)));
done:
    return status;
}

/* The parts of a step, as ranks.cl's defines: what is gathered by rows or windows, and by shares. */
static kiln_status prepare_parts(struct step *step) {
    const struct ki_ranks *ranks = step->ranks;
    const kiln_ranks *on = &ranks->on;
    kiln_device *device = on->P->device;
    const int64_t n = on->P->rows, count = step->shared.shares ? step->shared.shares->count : 0;
    const bool rows = ranks->in.layout == KILN_LAYOUT_CSR, windows = ranks->in.windows != NULL;
    const int K = columns_of(on), VS = device->properties.is_gpu ? 32 : 4;
    const int of_rows = rows ? ki_rows_vector(device, on->A->nnz, n) : VS;
    char what[160], whole[48], of_shares[48];
    kiln_status status = KILN_OK;
    snprintf(whole, sizeof whole, "%s",
             rows      ? "STEP -DROWS"
             : windows ? "STEP -DWINDOWS -DWINDOW=1024"
                       : "STEP");
    snprintf(of_shares, sizeof of_shares, " -DA_THREAD=%d", KI_SHARE_A_THREAD);
    TRY(ki_device_space(device, PART_SPACE, &step->met, PART_PLACE + 2 * count * ki_type_bytes(on->P->type)));
    step->part = step->met;
    step->part.offset += PART_PLACE;
    if (device->properties.together && (count ? on->P->cols == 1 : on->P->cols <= K)) {
        snprintf(what, sizeof what, "%s%s%s -DTOGETHER", whole, count ? " -DSHARES -DJOIN" : "",
                 count ? of_shares : "");
        return prepare(&step->together, step, "ranks_step", what, of_rows, K,
                       ki_max(rows      ? n * of_rows
                              : windows ? n
                                        : 0,
                              count * step->size));
    }
    if (rows || windows)
        TRY(prepare(&step->whole, step, "ranks_step", whole, rows ? of_rows : 1, K,
                    n * (rows ? of_rows : 1)));
    if (!count) return KILN_OK;
    snprintf(what, sizeof what, "STEP -DSHARES%s", of_shares);
    TRY(prepare(&step->shares, step, "ranks_step", what, VS, 1, count * step->size));
    snprintf(what, sizeof what, "STEP -DJOIN%s", of_shares);
    TRY(prepare(&step->join, step, "ranks_step", what, VS, 1, count * VS));
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
    TRY(launch_part(step, &step->together, 0, 0));
done:
    return status;
}

kiln_status ki_ranks_steps_gpu(const struct ki_ranks *ranks, int64_t first, int64_t count) {
    struct step step = {
        .ranks = ranks, .size = group_size(ranks->on.P->device), .shared = shared_rows(ranks)};
    kiln_status status;
    TRY(prepare_parts(&step));
    TRY(take_space(&step));
    step.turns = step.together.kernel ? count : 1;
    for (step.number = first; step.number < first + count; step.number += step.turns)
        TRY((step.together.kernel ? run_together : run_apart)(&step));
done:
    return status;
}
