/* How a pass over a sparse X is laid out on a GPU, and its launches: the rows one by one, with the popular columns' sums on
 * chip, and the rows too long for that; the other columns tile by tile, before and after, or through the transpose
 * (derived/layout.h). */
#include <stdio.h>

#include "core/seams.h"
#include "core/size.h"
#include "ops/elementwise.h"
#include "pass/csr/csr.h"
#include "pass/csr/panels.h"
#include "pass/csr/strips.h"

enum { LONG_GROUP = 256, LONG_GROUP_CPU = 64 };

/* A sparse matrix as the kernels see it: X, or its transpose. */
struct csr {
    const struct ki_buffer *start, *col, *values; /* values: NULL if all are `same` */
    double same;
    int64_t rows;
    const struct ki_rows *lists;
    bool compact; /* start is of 32 bits */
    bool bands;   /* of X's rows, which are the columns here */
};

/* One multiplication of all rows. */
struct stage {
    const struct ki_chain *chain;
    enum ki_chain_kind kind;
    struct ki_plan plan;
    struct csr A;
    bool coded, tiled, factors_only, squared, rare_too, maps; /* tiled: nothing of X is left for the rows */
    int chip_y; /* rows of y in local memory, beside plan.shared_w of w; K elements each */
    const struct ki_buffer *out, *y, *z, *y_hot, *w_hot, *dots, *factors, *partials;
    int k, y_k, y_first, first; /* k: columns of out */
    double alpha, beta;
};

/* ---- launches ---- */

static void defines_of(char *text, size_t bytes, const struct stage *stage, int VS, int BS,
                       const char *more) {
    char map[KI_MAP_DEFINES] = "";
    const struct ki_plan *plan = &stage->plan;
    const bool near = !stage->coded && stage->chip_y >= stage->chain->X->cols;
    if (stage->maps) ki_map_defines(map, stage->chain);
    snprintf(text, bytes, "-DCSR -DKIND=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=1 -DK=%d%s%s%s%s%s%s%s%s%s%s",
             (int)stage->kind, VS, BS, plan->Q, plan->W, plan->K, stage->coded ? " -DCODED" : "",
             stage->tiled ? " -DTILED" : "", near ? " -DALL_NEAR" : "", stage->A.bands ? " -DBANDS" : "",
             stage->A.compact ? " -DSTART32" : "", stage->factors_only ? " -DFACTORS_ONLY" : "",
             stage->squared ? " -DSQUARED" : "", more,
             ki_index_define(stage->chain, stage->A.rows * stage->k), map);
}

/* What the kernels for short and for long rows have in common. */
static int begin_args(struct ki_arg *args, const struct stage *stage) {
    const struct ki_chain *chain = stage->chain;
    const kiln_type type = chain->X->type;
    int n = 0;
    args[n++] = ki_arg_buffer(stage->out);
    args[n++] = ki_arg_buffer(stage->A.start);
    args[n++] = ki_arg_buffer(stage->A.col);
    args[n++] = ki_arg_buffer(stage->A.values);
    args[n++] = ki_arg_real(type, stage->A.same);
    args[n++] = ki_arg_values(chain->v);
    args[n++] = ki_arg_buffer(stage->y);
    args[n++] = ki_arg_buffer(stage->z);
    args[n++] = ki_arg_real(type, stage->alpha);
    args[n++] = ki_arg_real(type, stage->beta);
    return n;
}

static int middle_args(struct ki_arg *args, int n, const struct stage *stage) {
    const struct ki_chain *chain = stage->chain;
    args[n++] = ki_arg_i32(stage->k);
    args[n++] = ki_arg_i32(stage->first);
    args[n++] = ki_arg_i32(chain->v ? (int32_t)chain->v->cols : 0);
    args[n++] = ki_arg_buffer(stage->y_hot);
    args[n++] = ki_arg_buffer(stage->w_hot);
    args[n++] = ki_arg_buffer(stage->dots);
    args[n++] = ki_arg_buffer(stage->factors);
    args[n++] = ki_arg_i32(stage->rare_too);
    return n;
}

enum { ARGS = 32 + KI_MAP_ARGS };

/* Records of a launch begin behind those of `groups` groups. */
static struct ki_work records_from(const struct ki_work *work, const struct stage *stage, int64_t groups) {
    struct ki_work moved = *work;
    moved.records_at += groups * ki_chain_record(stage->chain, stage->plan.K);
    return moved;
}

struct rows_launch {
    struct ki_kernel *kernel;
    const struct ki_buffer *list;
    int64_t rows, groups;
    int list_at, longest;
};

static int64_t local_bytes(const struct stage *stage) {
    return ki_max(
        (stage->plan.shared_w + stage->chip_y) * stage->plan.K * ki_type_bytes(stage->chain->X->type), 8);
}

static kiln_status build_rows(struct rows_launch *launch, const struct stage *stage, int VS) {
    kiln_device *device = stage->chain->X->device;
    char defines[384];
    kiln_status status;
    if (launch->rows == 0) return KILN_OK;
    defines_of(defines, sizeof defines, stage, VS, stage->plan.BS, "");
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

static kiln_status launch_rows(const struct rows_launch *launch, const struct stage *stage,
                               const struct ki_work *work) {
    struct ki_arg args[ARGS];
    if (launch->rows == 0) return KILN_OK;
    int n = begin_args(args, stage);
    args[n++] = ki_arg_i64(launch->rows);
    n = middle_args(args, n, stage);
    args[n++] = ki_arg_buffer(launch->list);
    args[n++] = ki_arg_i32(launch->list_at);
    args[n++] = ki_arg_i32(launch->longest);
    args[n++] = ki_arg_i32(stage->y_k);
    args[n++] = ki_arg_i32(stage->y_first);
    args[n++] = ki_arg_i32(stage->plan.shared_w);
    args[n++] = ki_arg_i32(stage->chip_y);
    if (stage->maps) n += ki_map_args(args + n, stage->chain, work);
    args[n++] = ki_arg_local(local_bytes(stage));
    return ki_kernel_launch(stage->chain->X->device, launch->kernel, launch->groups, stage->plan.BS, args, n);
}

static kiln_status launch_segments(const struct stage *stage, int which, const struct ki_work *work) {
    const struct ki_rows *lists = stage->A.lists;
    kiln_device *device = stage->chain->X->device;
    const int BS = device->properties.is_gpu ? LONG_GROUP : LONG_GROUP_CPU;
    struct ki_kernel *kernel;
    struct ki_arg args[ARGS];
    char defines[384], more[48];
    kiln_status status;
    struct stage plain = *stage;
    if (which == 1) plain.maps = false;
    plain.chip_y = 0;
    snprintf(more, sizeof more, " -DLONG=%d -DSEGMENT=%d", which, KI_SEGMENT);
    defines_of(defines, sizeof defines, &plain, BS, BS, more);
    TRY(ki_kernel_get(&kernel, device, "csr", "mmchain_csr_long", stage->chain->X->type, defines));
    int n = middle_args(args, begin_args(args, stage), stage);
    args[n++] = ki_arg_i32(stage->y_k);
    args[n++] = ki_arg_i32(stage->y_first);
    args[n++] = ki_arg_buffer(stage->partials);
    args[n++] = ki_arg_buffer(&lists->segment_row);
    args[n++] = ki_arg_buffer(&lists->segment_number);
    if (plain.maps) n += ki_map_args(args + n, stage->chain, work);
    TRY(ki_kernel_launch(device, kernel, lists->segments, BS, args, n));
done:
    return status;
}

/* All rows: those of up to `longest` entries, the longer ones by their lengths, and the pieces of the long ones. */
enum { ROW_LAUNCHES = 1 + KI_ROW_LISTS };
static kiln_status run_stage(struct stage *stage, struct ki_layout *layout, struct ki_work *work) {
    const kiln_matrix *X = stage->chain->X;
    const struct ki_rows *lists = stage->A.lists;
    const bool gathers = stage->kind == KI_CHAIN_FUSED || stage->kind == KI_CHAIN_PLAIN;
    const int widest = (int)ki_min(X->device->properties.is_gpu ? 32 : 8, stage->plan.BS);
    struct rows_launch launches[ROW_LAUNCHES] = {{.rows = stage->A.rows, .longest = lists->longest}};
    struct ki_work next;
    int64_t groups = lists->segments, before = 0;
    kiln_status status;
    /* Where lengths differ much the mean says nothing of the rows that are waited for. */
    if (lists->ends[KI_ROW_LISTS - 1] > 0)
        stage->plan.Q = (int)ki_max(stage->plan.Q, ki_min(KI_TURNS, ki_csr_turns(X->device, stage->plan.K)));
    for (int i = 0; i < ROW_LAUNCHES; i++) {
        int VS = stage->plan.VS;
        if (i > 0) {
            const int at = i > 1 ? lists->ends[i - 2] : 0;
            launches[i] = (struct rows_launch){
                .rows = lists->ends[i - 1] - at, .list = &lists->list, .list_at = at, .longest = INT32_MAX};
            VS = (int)ki_min(lists->vectors[i - 1] * ki_csr_lanes(&stage->plan), widest);
        }
        TRY(build_rows(&launches[i], stage, VS));
        groups += launches[i].groups;
    }
    struct ki_plan whole = stage->plan;
    whole.groups = groups;
    if (stage->maps) TRY(ki_plan_work(work, &whole, stage->chain, 0));
    for (int i = 0; i < ROW_LAUNCHES; before += launches[i++].groups) {
        next = records_from(work, stage, before);
        TRY(launch_rows(&launches[i], stage, &next));
    }
    if (lists->segments > 0) {
        const int64_t bytes = lists->segments * stage->plan.K * ki_type_bytes(X->type);
        if (gathers) TRY(ki_layout_work(X->device, &layout->partials, bytes));
        stage->partials = &layout->partials;
        if (gathers) TRY(launch_segments(stage, 1, work));
        next = records_from(work, stage, before);
        TRY(launch_segments(stage, 2, &next));
    }
    if (stage->maps) TRY(ki_map_records(stage->chain, work, whole.groups, stage->plan.K, stage->first));
done:
    return status;
}

/* ---- the chain ---- */

static const struct ki_buffer *values_of(const kiln_matrix *A) {
    return A ? &A->values : NULL;
}

static struct stage over_X(const struct ki_chain *chain, const struct ki_plan *plan, struct ki_layout *layout,
                           int first) {
    const kiln_matrix *X = chain->X;
    return (struct stage){.chain = chain,
                          .kind = chain->kind,
                          .plan = *plan,
                          .A = {&X->row_start, &X->col, layout->alike ? NULL : &X->values, layout->value,
                                X->rows, &layout->rows, false, false},
                          .coded = layout->coded > 0,
                          .rare_too = true,
                          .maps = ki_chain_maps(chain),
                          .out = values_of(chain->out),
                          .y = values_of(chain->y),
                          .z = values_of(chain->z),
                          .y_hot = &layout->y_hot,
                          .k = chain->k,
                          .y_k = chain->k,
                          .y_first = first,
                          .first = first,
                          .alpha = chain->alpha,
                          .beta = chain->beta};
}

/* The columns that are cut into these bands: their sums go to out, where they are whole and all that there are, or else to
 * band_sums, to be added in order; of so many columns of y at a time that the sums take no more memory than X. */
static kiln_status run_bands(struct stage stage, struct ki_layout *layout, const struct ki_bands *bands) {
    const struct ki_chain *chain = stage.chain;
    const kiln_matrix *X = chain->X;
    const struct ki_transpose *T = &layout->transpose;
    const int64_t rows = bands->columns * bands->count;
    const int64_t element = ki_type_bytes(X->type);
    const int first = stage.first, y_first = stage.y_first, end = (int)ki_min(stage.plan.K, chain->k - first);
    const bool alone = bands->columns == X->cols && bands->count == 1;
    struct ki_work none = {{0}, 0};
    kiln_status status = KILN_OK;
    if (rows == 0) return KILN_OK;
    while (!alone && stage.plan.K > 1 && rows * stage.plan.K > X->nnz * (element + 4) / element)
        stage.plan.K /= 2;
    stage.A = (struct csr){
        &bands->start,   &T->row,         layout->alike ? NULL : &T->value, layout->value, rows, &bands->rows,
        .compact = true, .bands = T->near};
    stage.plan.VS = ki_csr_vector(X->device, bands->entries, rows, &bands->rows, ki_csr_lanes(&stage.plan));
    if (alone) return run_stage(&stage, layout, &none);
    stage.z = NULL;
    stage.out = &layout->band_sums;
    stage.first = 0;
    for (int c = 0; c < end; c += stage.plan.K) {
        stage.k = (int)ki_min(stage.plan.K, end - c);
        stage.y_first = y_first + c;
        TRY(ki_layout_work(X->device, &layout->band_sums, rows * stage.k * element));
        TRY(run_stage(&stage, layout, &none));
        TRY(ki_bands_sum(layout, bands, chain, stage.k, first + c));
    }
done:
    return status;
}

/* out = X^T factors + beta z; the factors of TRANSPOSED are y itself. */
static kiln_status run_transposed(const struct stage *main, struct ki_layout *layout) {
    const struct ki_chain *chain = main->chain;
    struct stage stage = *main;
    kiln_status status;
    stage.kind = KI_CHAIN_PLAIN;
    stage.plan.Q = (int)ki_min(main->plan.Q, 4);
    stage.plan.shared_w = stage.chip_y = 0;
    stage.coded = stage.factors_only = stage.maps = false;
    stage.squared = chain->kind == KI_CHAIN_SQUARES;
    if (main->factors) {
        stage.y = main->factors;
        stage.y_k = stage.plan.K;
        stage.y_first = 0;
        stage.alpha = 1;
    }
    stage.factors = NULL;
    stage.z = values_of(chain->z);
    stage.beta = chain->beta;
    TRY(run_bands(stage, layout, &layout->transpose.cut));
    TRY(run_bands(stage, layout, &layout->transpose.whole));
done:
    return status;
}

/* The rows' part in tiles, before the rows themselves. Where tiles hold all of X, a thread does what is left of a row. */
static kiln_status begin_tiled(struct stage *stage, struct ki_layout *layout) {
    static const struct ki_rows none = {.longest = INT32_MAX};
    const struct ki_chain *chain = stage->chain;
    kiln_status status = KILN_OK;
    if (!layout->tiled) return KILN_OK;
    if (!layout->coded) {
        stage->tiled = true;
        stage->plan.VS = ki_csr_lanes(&stage->plan);
        stage->plan.Q = 1;
        stage->plan.shared_w = stage->chip_y = 0;
        stage->A.lists = &none;
    }
    if (chain->kind == KI_CHAIN_TRANSPOSED || chain->kind == KI_CHAIN_SQUARES) return KILN_OK;
    status = ki_tiles_dots(layout, chain, stage->plan.K, stage->first);
    stage->dots = &layout->dots;
    return status;
}

static kiln_status sum_tiles(const struct stage *stage, struct ki_layout *layout) {
    const struct ki_chain *chain = stage->chain;
    if (stage->factors)
        return ki_tiles_sums(layout, chain, stage->plan.K, stage->first, 1.0, stage->factors, stage->plan.K,
                             0);
    return ki_tiles_sums(layout, chain, stage->plan.K, stage->first, chain->alpha, &chain->y->values,
                         chain->k, stage->first);
}

static kiln_status scatter(struct stage *stage, struct ki_layout *layout, struct ki_work *work) {
    const struct ki_chain *chain = stage->chain;
    const kiln_matrix *X = chain->X;
    const int K = stage->plan.K;
    const bool y_is_factors = chain->kind == KI_CHAIN_TRANSPOSED;
    const bool none_here = layout->transposed || (layout->tiled && !layout->coded);
    kiln_status status;
    stage->rare_too = !layout->transposed && !layout->tiled;
    stage->factors_only = layout->transposed;
    if (none_here) stage->plan.shared_w = 0;
    if (!stage->rare_too && !y_is_factors) {
        TRY(ki_layout_work(X->device, &layout->factors, X->rows * K * ki_type_bytes(X->type)));
        stage->factors = &layout->factors;
    }
    if (layout->coded && (!none_here || chain->kind == KI_CHAIN_FUSED))
        TRY(ki_layout_pack(layout, X, chain->kind == KI_CHAIN_FUSED ? chain->y : NULL, !none_here, chain->k,
                           stage->first, K));
    stage->w_hot = &layout->w_hot;
    if (!none_here || !y_is_factors) TRY(run_stage(stage, layout, work));
    if (layout->transposed) TRY(run_transposed(stage, layout));
    if (layout->tiled) TRY(sum_tiles(stage, layout));
    if (layout->coded && !none_here) TRY(ki_layout_unpack(layout, X, chain->out, chain->k, stage->first, K));
done:
    return status;
}

static kiln_status begin_with_z(const struct ki_chain *chain) {
    return chain->z ? ki_combine_all(chain->out, chain->beta, chain->z, 0, NULL) : kiln_fill(chain->out, 0.0);
}

kiln_status ki_chain_gpu_csr(const struct ki_chain *chain, const struct ki_plan *forced) {
    const kiln_matrix *X = chain->X;
    struct ki_plan plan = forced ? *forced : ki_csr_plan(chain);
    struct ki_layout *layout = NULL;
    struct ki_work work = {{0}, 0};
    const bool scatters = chain->kind != KI_CHAIN_PLAIN;
    kiln_status status;
    TRY(ki_layout_get(&layout, X, scatters, chain->k > 1, plan.shared_w));
    if (scatters && !layout->transposed) TRY(begin_with_z(chain));
    if (layout->stripped && chain->k == 1) {
        TRY(ki_strips_pass(layout, chain));
        goto done;
    }
    if (!forced && layout->rows.vector) ki_csr_suit(&plan, chain, &layout->rows);
    if (layout->transposed) plan.shared_w = 0;
    int64_t chip_y = chain->kind <= KI_CHAIN_PLAIN ? ki_csr_chip_columns(&plan, chain) - plan.shared_w : 0;
    const int64_t known = layout->coded ? layout->coded : X->cols;
    /* Columns in no known order would not make use of the chip. */
    if (!layout->coded && X->cols > (scatters && !layout->transposed ? plan.shared_w : chip_y) &&
        layout->passes > 1) {
        plan.shared_w = 0;
        chip_y = 0;
    }
    plan.shared_w = (int)ki_min(plan.shared_w, known);
    chip_y = ki_min(chip_y, known);
    for (int first = 0; first < chain->k; first += plan.K) {
        struct stage stage = over_X(chain, &plan, layout, first);
        stage.chip_y = (int)chip_y;
        if (!scatters && layout->coded)
            TRY(ki_layout_pack(layout, X, chain->y, false, chain->k, first, plan.K));
        TRY(begin_tiled(&stage, layout));
        TRY(scatters ? scatter(&stage, layout, &work) : run_stage(&stage, layout, &work));
    }
    if (ki_chain_maps(chain)) TRY(ki_map_value(chain, &work));
done:
    /* A panel of rows that passes through the device takes what was derived from it along. */
    if (X->view && layout) {
        const kiln_status dropped = ki_matrix_plain(X);
        if (status == KILN_OK) status = dropped;
    }
    return status;
}

/* The built kernel tells how many groups run at once. */
static kiln_status count_groups(struct ki_candidate *candidate, const struct ki_chain *chain) {
    struct ki_layout none = {.rows = {.longest = INT32_MAX}};
    struct rows_launch rows = {.rows = chain->X->rows};
    const struct stage stage = over_X(chain, &candidate->plan, &none, 0);
    const kiln_status status = build_rows(&rows, &stage, candidate->plan.VS);
    candidate->plan.groups = ki_max(rows.groups, 1);
    return status;
}

kiln_status ki_csr_candidates(struct ki_candidate **list, int *count, int *chosen,
                              const struct ki_chain *chain) {
    struct ki_plan plans[KI_CSR_PLANS];
    const int n = ki_csr_plans(plans, chosen, chain);
    struct ki_candidate *made = ki_calloc((size_t)n * sizeof *made);
    kiln_status status = KILN_OK;
    if (!made) return ki_fail_nomem((size_t)n * sizeof *made, "the candidates");
    for (int i = 0; i < n; i++) {
        made[i].plan = plans[i];
        TRY(count_groups(&made[i], chain));
        ki_csr_predict(&made[i], chain);
    }
    *list = made;
    *count = n;
    return KILN_OK;
done:
    ki_free(made);
    return status;
}
