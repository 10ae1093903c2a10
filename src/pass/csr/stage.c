/* The launches of a stage: rows that suit the plan's vectors, longer rows by their lists, and the segments of long ones. */
#include "pass/csr/stage.h"

#include <stdio.h>

#include "core/limits.h"

enum { LONG_GROUP = 256, LONG_GROUP_CPU = 64, ARGS = 32 + KI_MAP_ARGS };
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
    const bool nothing = stage->dots_of == KI_PART_NONE && stage->sums_of == KI_PART_NONE;
    const bool factors_only = stage->sums_of == KI_PART_NONE && stage->kind != KI_CHAIN_PLAIN;
    if (map) ki_map_defines(map_defines, stage->chain);
    snprintf(text, bytes, "-DCSR -DKIND=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=1 -DK=%d%s%s%s%s%s%s%s%s%s%s",
             (int)stage->kind, VS, BS, plan->Q, plan->W, plan->K, A->coded ? " -DCODED" : "",
             nothing ? " -DTILED" : "", near ? " -DALL_NEAR" : "", A->bands ? " -DBANDS" : "",
             A->transposed ? " -DSTART32" : "", factors_only ? " -DFACTORS_ONLY" : "",
             squared ? " -DSQUARED" : "", more, ki_index_define(stage->chain, A->rows * stage->out.k),
             map_defines);
}

/* What the kernels for short and for long rows have in common. */
static int begin_args(struct ki_arg *args, const struct ki_stage *stage) {
    const struct ki_chain *chain = stage->chain;
    const kiln_type type = chain->X->type;
    int n = 0;
    args[n++] = ki_arg_buffer(stage->out.values);
    args[n++] = ki_arg_buffer(stage->A.start);
    args[n++] = ki_arg_buffer(stage->A.col);
    args[n++] = ki_arg_buffer(stage->A.values);
    args[n++] = ki_arg_real(type, stage->A.same);
    args[n++] = ki_arg_values(chain->v);
    args[n++] = ki_arg_buffer(stage->y.values);
    args[n++] = ki_arg_buffer(stage->z);
    args[n++] = ki_arg_real(type, stage->alpha);
    args[n++] = ki_arg_real(type, stage->beta);
    return n;
}

static int middle_args(struct ki_arg *args, int n, const struct ki_stage *stage) {
    const struct ki_chain *chain = stage->chain;
    args[n++] = ki_arg_i32(stage->out.k);
    args[n++] = ki_arg_i32(stage->out.first);
    args[n++] = ki_arg_i32(chain->v ? (int32_t)chain->v->cols : 0);
    args[n++] = ki_arg_buffer(&stage->y_hot);
    args[n++] = ki_arg_buffer(&stage->w_hot);
    args[n++] = ki_arg_buffer(&stage->dots);
    args[n++] = ki_arg_buffer(&stage->factors);
    args[n++] = ki_arg_i32(stage->sums_of == KI_PART_ALL);
    return n;
}

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
    char defines[384];
    kiln_status status;
    if (launch->rows == 0) return KILN_OK;
    defines_of(defines, sizeof defines, stage, VS, stage->plan.BS, maps(stage), "");
    TRY(ki_kernel_get(&launch->kernel, device, "csr", "mmchain_csr", stage->chain->X->type, defines));
    /* Where the API tells how many groups run at once, it is told of the local memory. */
    if (device->backend->resident_clusters)
        TRY(ki_kernel_resident_clusters(device, &launch->groups, launch->kernel, stage->plan.BS, 1,
                                        local_bytes(stage)));
    else
        TRY(ki_kernel_resident(device, &launch->groups, launch->kernel, stage->plan.BS));
    launch->groups = ki_min(launch->groups, ki_ceil_div(launch->rows, stage->plan.BS / VS));
done:
    return status;
}

static kiln_status launch_rows(const struct rows_launch *launch, const struct ki_stage *stage,
                               const struct ki_work *work) {
    struct ki_arg args[ARGS];
    if (launch->rows == 0) return KILN_OK;
    int n = begin_args(args, stage);
    args[n++] = ki_arg_i64(launch->rows);
    n = middle_args(args, n, stage);
    args[n++] = ki_arg_buffer(launch->list);
    args[n++] = ki_arg_i32(launch->list_at);
    args[n++] = ki_arg_i32(launch->longest);
    args[n++] = ki_arg_i32(stage->y.k);
    args[n++] = ki_arg_i32(stage->y.first);
    args[n++] = ki_arg_i32(stage->plan.shared_w);
    args[n++] = ki_arg_i32(stage->chip_y);
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
    struct ki_arg args[ARGS];
    char defines[384], more[48];
    kiln_status status;
    snprintf(more, sizeof more, " -DLONG=%d -DSEGMENT=%d", which, ki_limits.segment);
    defines_of(defines, sizeof defines, stage, BS, BS, map, more);
    TRY(ki_kernel_get(&kernel, device, "csr", "mmchain_csr_long", stage->chain->X->type, defines));
    int n = middle_args(args, begin_args(args, stage), stage);
    args[n++] = ki_arg_i32(stage->y.k);
    args[n++] = ki_arg_i32(stage->y.first);
    args[n++] = ki_arg_buffer(partials);
    args[n++] = ki_arg_buffer(&lists->segment_row);
    args[n++] = ki_arg_buffer(&lists->segment_number);
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
    /* Where lengths differ much the mean says nothing of the rows that are waited for. */
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
