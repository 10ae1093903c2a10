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
KI_ARGUMENTS(ranks_rows);
KI_ARGUMENTS(ranks_windows);
KI_ARGUMENTS(ranks_shares);
KI_ARGUMENTS(ranks_join);
KI_ARGUMENTS(ranks_settle);

enum { COLUMNS_OF_LAUNCH = 8, SLOT_BEGIN = -1, PART_SPACE = 1 };

/* A kernel of ranks.cl and how many groups of it are worth running, for K columns at a time. */
struct launch {
    struct ki_kernel *kernel;
    int64_t groups;
    int K;
};

struct step {
    const struct ki_ranks *ranks;
    int64_t number, size; /* threads of a group */
    int64_t groups;       /* of all kernels whose sums are in `space` */
    struct ki_buffer space;
    struct ki_buffer part;             /* of shares */
    struct launch whole, shares, join; /* kernel NULL: not needed */
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
    char defines[128];
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

/* The arguments that all kernels of a step have, but for the row starts. `before`: groups of other launches. */
#define OF_STEP(step, on, column, others)                                                                    \
    .space = &(step)->space, .S = (on)->S, .C = (step)->number % 2 ? (on)->next : (on)->C,                   \
    .next = (step)->number % 2 ? (on)->C : (on)->next, .P = (on)->P, .factor = (on)->factor,                 \
    .teleport = (on)->teleport, .dangling = (on)->dangling, .damping = (on)->damping, .n = (on)->P->rows,    \
    .groups = (int32_t)(step)->groups, .before = (int32_t)(others), .k = (int32_t)(on)->P->cols,             \
    .first = (int32_t)(column), .teleport_cols = (on)->teleport ? (int32_t)(on)->teleport->cols : 0,         \
    .dangling_cols = (on)->dangling ? (int32_t)(on)->dangling->cols : 0

static kiln_status run_rows(const struct step *step) {
    const kiln_ranks *on = &step->ranks->on;
    const struct ki_columns *in = &step->ranks->in.in;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; c < on->P->cols; c += step->whole.K)
        TRY(ki_kernel_launch(on->P->device, step->whole.kernel, step->whole.groups, step->size,
                             KI_PACK(ranks_rows, on->P, OF_STEP(step, on, c, 0), .start = in->start,
                                     .source = in->row, .weight = on->weighted ? in->value : NULL)));
done:
    return status;
}

static kiln_status run_windows(const struct step *step) {
    const kiln_ranks *on = &step->ranks->on;
    const struct ki_windows *w = step->ranks->in.windows;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; c < on->P->cols; c += step->whole.K)
        TRY(ki_kernel_launch(on->P->device, step->whole.kernel, step->whole.groups, step->size,
                             KI_PACK(ranks_windows, on->P, OF_STEP(step, on, c, 0), .start = &w->start,
                                     .source = &w->source, .weight = on->weighted ? &w->weight : NULL,
                                     .place = &w->place)));
done:
    return status;
}

/* Rows in equal shares: all of them, or of the hybrid layout the long ones. */
struct shared {
    const struct ki_shares *shares;
    const struct ki_buffer *start, *source, *weight, *row;
    int64_t rows, links;
};

static struct shared shared_rows(const struct ki_ranks *ranks) {
    const struct ki_windows *w = ranks->in.windows;
    const kiln_matrix *A = ranks->on.A;
    const struct ki_columns *in = &ranks->in.in;
    const bool weighted = ranks->on.weighted;
    if (w && !w->long_rows) return (struct shared){.shares = NULL};
    return w ? (struct shared){&w->shares,      &w->long_start,
                               &w->long_source, weighted ? &w->long_weight : NULL,
                               &w->long_row,    w->long_rows,
                               w->long_links}
             : (struct shared){ranks->in.shares, in->start, in->row, weighted ? in->value : NULL, NULL,
                               A->rows,          A->nnz};
}

static kiln_status run_shares(const struct step *step, const struct shared *of) {
    const kiln_ranks *on = &step->ranks->on;
    const struct ki_shares *shares = of->shares;
    const int64_t before = step->whole.kernel ? step->whole.groups : 0;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; c < on->P->cols; c++) {
        TRY(ki_kernel_launch(on->P->device, step->shares.kernel, step->shares.groups, step->size,
                             KI_PACK(ranks_shares, on->P, OF_STEP(step, on, c, before), .start = of->start,
                                     .source = of->source, .weight = of->weight, .part = &step->part,
                                     .first_row = &shares->first, .row = of->row, .rows = of->rows,
                                     .links = of->links, .shares = shares->count)));
        TRY(ki_kernel_launch(on->P->device, step->join.kernel, step->join.groups, step->size,
                             KI_PACK(ranks_join, on->P, OF_STEP(step, on, c, before + step->shares.groups),
                                     .start = of->start, .part = &step->part, .first_row = &shares->first,
                                     .row = of->row, .shares = shares->count, .each = shares->each)));
    }
done:
    return status;
}

static kiln_status prepare_shares(struct step *step, const struct shared *of) {
    const kiln_ranks *on = &step->ranks->on;
    const int VS = on->P->device->properties.is_gpu ? 32 : 4;
    char what[48];
    kiln_status status;
    snprintf(what, sizeof what, "SHARES -DA_THREAD=%d", KI_SHARE_A_THREAD);
    TRY(prepare(&step->shares, step, "ranks_shares", what, VS, 1, of->shares->count * step->size));
    TRY(prepare(&step->join, step, "ranks_join", what, VS, 1, of->shares->count * VS));
    TRY(ki_device_space(on->P->device, PART_SPACE, &step->part,
                        2 * of->shares->count * ki_type_bytes(on->P->type)));
done:
    return status;
}

kiln_status ki_ranks_step_gpu(const struct ki_ranks *ranks, int64_t number) {
    const kiln_ranks *on = &ranks->on;
    kiln_device *device = on->P->device;
    const int64_t n = on->P->rows;
    const bool csr = ranks->in.layout == KILN_LAYOUT_CSR;
    const int VS = ki_rows_vector(device, on->A->nnz, n);
    const struct shared shared = csr ? (struct shared){.shares = NULL} : shared_rows(ranks);
    struct step step = {.ranks = ranks, .number = number, .size = group_size(device)};
    kiln_status status = KILN_OK;
    if (csr) TRY(prepare(&step.whole, &step, "ranks_rows", "ROWS", VS, columns_of(on), n * VS));
    if (ranks->in.windows)
        TRY(prepare(&step.whole, &step, "ranks_windows", "WINDOWS -DWINDOW=1024", 1, columns_of(on), n));
    if (shared.shares) TRY(prepare_shares(&step, &shared));
    TRY(take_space(&step));
    if (csr) TRY(run_rows(&step));
    if (ranks->in.windows) TRY(run_windows(&step));
    if (shared.shares) TRY(run_shares(&step, &shared));
    TRY(settle(&step, number % (on->S->rows - RANKS_ROWS)));
done:
    return status;
}
