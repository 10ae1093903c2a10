/* The launches of a stage: rows that suit the plan's vectors, longer rows by their lists, and the segments of
 * long ones. */
#include "pass/csr/stage.h"

#include <stdio.h>
#include <string.h>

#include "core/arguments.h"
#include "core/limits.h"
#include "pass/csr/csr.cl"

KI_ARGUMENTS(mmchain_csr);
KI_ARGUMENTS(mmchain_csr_long);

enum { LONG_GROUP = 256, LONG_GROUP_CPU = 64 };
enum { ROW_LAUNCHES = 1 + KI_ROW_LISTS };

static bool maps(const struct ki_stage *stage) {
    return stage->kind == KI_CHAIN_FUSED && ki_chain_maps(stage->chain);
}

static void defines_of(char *text, size_t bytes, const struct ki_stage *stage, int VS, int BS, bool map,
                       const char *more) {
    char map_defines[KI_MAP_DEFINES] = "";
    const struct ki_plan *plan = &stage->plan;
    const struct ki_csr *A = &stage->A;
    const bool near = !A->coded && stage->chip_y >= stage->chain->X->cols && !*more;
    const bool squared = A->transposed && stage->chain->kind == KI_CHAIN_SQUARES;
    if (map) ki_map_defines(map_defines, stage->chain);
    snprintf(text, bytes,
             "-DCSR -DKIND=%d -DDOTS=%d -DSUMS=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=1 -DK=%d%s%s%s%s%s%s%s%s",
             (int)stage->kind, (int)stage->dots_of, (int)stage->sums_of, VS, BS, plan->Q, plan->W, plan->K,
             A->coded ? " -DCODED" : "", near ? " -DALL_NEAR" : "", A->bands ? " -DBANDS" : "",
             A->transposed ? " -DSTART32" : "", squared ? " -DSQUARED" : "", more,
             ki_index_define(stage->chain, A->rows * stage->out.k), map_defines);
}

/* Finds what the kernel for rows of VS threads is built with. Where a pack has none for so many entries a
 * thread, but one for the most, that one is taken, unless there is so much work that registers which stay
 * empty could cost more than compiling does. */
static void rows_defines(char text[KI_DEFINES_MOST], const struct ki_stage *stage, int VS) {
    enum { FEW = 100000000 };
    const kiln_matrix *X = stage->chain->X;
    struct ki_stage most = *stage;
    char general[KI_DEFINES_MOST];
    defines_of(text, KI_DEFINES_MOST, stage, VS, stage->plan.BS, maps(stage), "");
    if (!ki_kernels_packed(X->device) || X->nnz > FEW / stage->plan.K ||
        ki_kernel_packed(X->device, "csr", X->type, text))
        return;
    most.plan.Q = ki_csr_turns(X->device, stage->plan.K);
    defines_of(general, sizeof general, &most, VS, stage->plan.BS, maps(stage), "");
    if (ki_kernel_packed(X->device, "csr", X->type, general)) memcpy(text, general, sizeof general);
}

/* The values of ARGUMENTS_csr. */
#define STAGE_VALUES(stage)                                                                                  \
    .out = (stage)->out.values, .row_start = (stage)->A.start, .col = (stage)->A.col,                        \
    .X = (stage)->A.values, .same = (stage)->A.same, .v = (stage)->chain->v, .y = (stage)->y.values,         \
    .z = (stage)->z, .alpha = (stage)->alpha, .beta = (stage)->beta, .k = (stage)->out.k,                    \
    .first = (stage)->out.first, .v_cols = (stage)->chain->v ? (int32_t)(stage)->chain->v->cols : 0,         \
    .y_k = (stage)->y.k, .y_first = (stage)->y.first, .y_hot = &(stage)->y_hot, .w_hot = &(stage)->w_hot,    \
    .dots = &(stage)->dots, .factors = &(stage)->factors

/* Records of a launch begin behind those of `groups` groups. */
static struct ki_work records_from(const struct ki_work *work, const struct ki_stage *stage, int64_t groups) {
    struct ki_work moved = *work;
    moved.records_at += groups * ki_chain_record(stage->chain, stage->plan.K);
    return moved;
}

/* ---- rows that a vector takes ---- */

struct rows_launch {
    struct ki_kernel *kernel;
    const struct ki_buffer *list;
    int64_t rows, groups;
    int list_at, longest;
};

static int64_t local_bytes(const struct ki_stage *stage) {
    return ki_max(
        (stage->plan.shared_w + stage->chip_y) * stage->plan.K * ki_type_bytes(stage->chain->X->type), 8);
}

static kiln_status build_rows(struct rows_launch *launch, const struct ki_stage *stage, int VS) {
    kiln_device *device = stage->chain->X->device;
    char defines[KI_DEFINES_MOST];
    kiln_status status;
    if (launch->rows == 0) return KILN_OK;
    rows_defines(defines, stage, VS);
    TRY(ki_kernel_get(&launch->kernel, device, "csr", "mmchain_csr", stage->chain->X->type, defines));
    TRY(ki_kernel_resident_with(device, &launch->groups, launch->kernel, stage->plan.BS, local_bytes(stage)));
    launch->groups = ki_min(launch->groups, ki_ceil_div(launch->rows, stage->plan.BS / VS));
done:
    return status;
}

static kiln_status launch_rows(const struct rows_launch *launch, const struct ki_stage *stage,
                               const struct ki_work *work) {
    struct ki_arg args[mmchain_csr_count + KI_MAP_ARGS + 1];
    int n = mmchain_csr_count;
    if (launch->rows == 0) return KILN_OK;
    mmchain_csr_pack(
        args, stage->chain->X,
        &(struct mmchain_csr_arguments){STAGE_VALUES(stage), .rows = launch->rows, .list = launch->list,
                                        .list_at = launch->list_at, .longest = launch->longest,
                                        .chip_w = stage->plan.shared_w, .chip_y = stage->chip_y});
    if (maps(stage)) n += ki_map_args(args + n, stage->chain, work);
    args[n++] = ki_arg_local(local_bytes(stage));
    return ki_kernel_launch(stage->chain->X->device, launch->kernel, launch->groups, stage->plan.BS, args, n);
}

/* Launch 0 takes rows of up to `longest` entries, the others take the lists. */
static kiln_status build_all_rows(struct rows_launch launches[ROW_LAUNCHES], const struct ki_stage *stage) {
    const struct ki_rows *lists = stage->A.lists;
    const int widest = (int)ki_min(stage->chain->X->device->properties.is_gpu ? 32 : 8, stage->plan.BS);
    kiln_status status;
    launches[0] = (struct rows_launch){.rows = stage->A.rows, .longest = lists->longest};
    TRY(build_rows(&launches[0], stage, stage->plan.VS));
    for (int i = 1; i < ROW_LAUNCHES; i++) {
        const int at = i > 1 ? lists->ends[i - 2] : 0;
        launches[i] = (struct rows_launch){
            .rows = lists->ends[i - 1] - at, .list = &lists->list, .list_at = at, .longest = INT32_MAX};
        TRY(build_rows(&launches[i], stage,
                       (int)ki_min(lists->vectors[i - 1] * ki_csr_lanes(&stage->plan), widest)));
    }
done:
    return status;
}

void ki_stage_program(struct ki_programs *programs, const struct ki_stage *stage) {
    char defines[KI_DEFINES_MOST];
    rows_defines(defines, stage, stage->plan.VS);
    ki_programs_add(programs, "csr", "mmchain_csr", stage->chain->X->type, defines);
}

kiln_status ki_stage_groups(int64_t *groups, const struct ki_stage *stage) {
    struct rows_launch rows = {.rows = stage->A.rows};
    const kiln_status status = build_rows(&rows, stage, stage->plan.VS);
    *groups = ki_max(rows.groups, 1);
    return status;
}

/* ---- segments of long rows ---- */

static kiln_status launch_segments(const struct ki_stage *stage, int which, const struct ki_buffer *partials,
                                   const struct ki_work *work) {
    const struct ki_rows *lists = stage->A.lists;
    kiln_device *device = stage->chain->X->device;
    const int BS = device->properties.is_gpu ? LONG_GROUP : LONG_GROUP_CPU;
    const bool map = which == 2 && maps(stage);
    struct ki_kernel *kernel;
    struct ki_arg args[mmchain_csr_long_count + KI_MAP_ARGS];
    int n = mmchain_csr_long_count;
    char defines[384], more[48];
    kiln_status status;
    snprintf(more, sizeof more, " -DLONG=%d -DSEGMENT=%d", which, ki_limits.segment);
    defines_of(defines, sizeof defines, stage, BS, BS, map, more);
    TRY(ki_kernel_get(&kernel, device, "csr", "mmchain_csr_long", stage->chain->X->type, defines));
    mmchain_csr_long_pack(args, stage->chain->X,
                          &(struct mmchain_csr_long_arguments){STAGE_VALUES(stage), .partials = partials,
                                                               .segment_row = &lists->segment_row,
                                                               .segment_number = &lists->segment_number});
    if (map) n += ki_map_args(args + n, stage->chain, work);
    TRY(ki_kernel_launch(device, kernel, lists->segments, BS, args, n));
done:
    return status;
}

/* Their dot products first, then what becomes of the rows' sums. */
static kiln_status run_segments(const struct ki_stage *stage, const struct ki_work *work) {
    const kiln_matrix *X = stage->chain->X;
    const int64_t bytes = stage->A.lists->segments * stage->plan.K * ki_type_bytes(X->type);
    struct ki_buffer partials = {0};
    kiln_status status;
    if (stage->kind == KI_CHAIN_FUSED || stage->kind == KI_CHAIN_PLAIN) {
        TRY(ki_device_space(X->device, KI_SPACE_PARTIALS, &partials, bytes));
        TRY(launch_segments(stage, 1, &partials, work));
    }
    TRY(launch_segments(stage, 2, &partials, work));
done:
    return status;
}

kiln_status ki_stage_run(struct ki_stage *stage, struct ki_work *work) {
    const struct ki_rows *lists = stage->A.lists;
    const int most = ki_csr_turns(stage->chain->X->device, stage->plan.K);
    struct rows_launch launches[ROW_LAUNCHES] = {{0}};
    struct ki_work next;
    int64_t before = 0;
    kiln_status status;
    /* If lengths differ much, the mean says nothing of the rows that are waited for. */
    if (lists->ends[KI_ROW_LISTS - 1] > 0) stage->plan.Q = (int)ki_max(stage->plan.Q, ki_min(KI_TURNS, most));
    TRY(build_all_rows(launches, stage));
    struct ki_plan whole = stage->plan;
    whole.groups = lists->segments;
    for (int i = 0; i < ROW_LAUNCHES; i++) whole.groups += launches[i].groups;
    if (maps(stage)) TRY(ki_plan_work(work, &whole, stage->chain, 0));
    for (int i = 0; i < ROW_LAUNCHES; before += launches[i++].groups) {
        next = records_from(work, stage, before);
        TRY(launch_rows(&launches[i], stage, &next));
    }
    next = records_from(work, stage, before);
    if (lists->segments > 0) TRY(run_segments(stage, &next));
    if (maps(stage)) TRY(ki_map_records(stage->chain, work, whole.groups, stage->plan.K, stage->out.first));
done:
    return status;
}
