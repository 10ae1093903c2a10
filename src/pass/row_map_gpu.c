/* Row maps of a pass on a GPU: their arguments, what becomes of the records, and the composition X y, map,
 * X^T for more classes than one launch holds. */
#include <stdio.h>

#include "core/arguments.h"
#include "core/size.h"
#include "dialect/chain_arguments.h"
#include "pass/combine.h"
#include "pass/launch.h"
#include "pass/row_map.cl"

enum { GROUP = 128 };

KI_ARGUMENTS(row_map);
KI_ARGUMENTS(mmchain_map);
KI_ARGUMENTS(mmchain_records);

void ki_map_defines(char *text, const struct ki_chain *chain) {
    const kiln_loss *loss = &chain->loss;
    const bool glm = loss->kind == KILN_LOSS_GLM;
    *text = '\0';
    if (!ki_chain_maps(chain)) return;
    if (chain->map == KI_ROW_LOSS)
        snprintf(text, KI_MAP_DEFINES, " -DMAP=%d -DLOSS=%d -DFAMILY=%d -DLINK=%d%s", (int)chain->map,
                 (int)loss->kind, glm ? (int)loss->family : 0, glm ? (int)loss->link : 0,
                 chain->expected ? " -DEXPECTED=1" : "");
    else
        snprintf(text, KI_MAP_DEFINES, " -DMAP=%d", (int)chain->map);
}

int ki_map_args(struct ki_arg *args, const struct ki_chain *chain, const struct ki_work *work) {
    const kiln_loss *loss = &chain->loss;
    if (!ki_chain_maps(chain)) return 0;
    row_map_pack(args, chain->X,
                 &(struct row_map_arguments){.shift = chain->shift,
                                             .target = loss->y,
                                             .weights = loss->weights,
                                             .offset = loss->offset,
                                             .curvature = chain->curvature,
                                             .parameter = loss->parameter,
                                             .power = loss->link_power,
                                             .records = &work->buffer,
                                             .records_at = work->records_at});
    return row_map_count;
}

static const char RECORDS[] = "-DRECORDS";

void ki_map_programs(struct ki_programs *programs, const struct ki_chain *chain) {
    ki_programs_add(programs, "row_map", "mmchain_records", chain->X->type, RECORDS);
}

kiln_status ki_map_records(const struct ki_chain *chain, const struct ki_work *work, int64_t groups,
                           int columns, int first) {
    const kiln_matrix *X = chain->X;
    const int record = ki_chain_record(chain, columns);
    return ki_kernel_run(X->device, "row_map", "mmchain_records", X->type, RECORDS, record, GROUP,
                         KI_PACK(mmchain_records, X, .sums = chain->sums, .products = chain->products,
                                 .records = &work->buffer, .records_at = work->records_at,
                                 .groups = (int32_t)groups, .size = record, .head = record - columns,
                                 .k = chain->k, .first = first));
}

kiln_status ki_map_value(const struct ki_chain *chain, const struct ki_work *work) {
    if (!chain->value) return KILN_OK;
    return ki_download_wide(chain->value, chain->X->device, &work->buffer, work->records_at, 1);
}

/* eta's rows, X y, become what multiplies X^T. */
static kiln_status map_rows(const struct ki_chain *chain, kiln_matrix *eta) {
    enum { VS = 32 };
    const kiln_matrix *X = chain->X;
    const kiln_loss *loss = &chain->loss;
    struct ki_plan plan = {.BS = GROUP, .K = 0};
    struct ki_kernel *kernel;
    struct ki_work work;
    kiln_status status;
    const char *defines = KI_DEFINES("-DROWS -DGROUP=%d -DVS=%d -DCURVATURE=%d%s", GROUP, VS,
                                     chain->map == KI_ROW_SOFTMAX, ki_index_define(chain, 0));
    TRY(ki_kernel_get(&kernel, X->device, "row_map", "mmchain_map", X->type, defines));
    TRY(ki_kernel_resident(X->device, &plan.groups, kernel, GROUP));
    plan.groups = ki_min(plan.groups, ki_ceil_div(X->rows * VS, GROUP));
    TRY(ki_plan_work(&work, &plan, chain, 0));
    TRY(ki_kernel_launch(X->device, kernel, plan.groups, GROUP,
                         KI_PACK(mmchain_map, X, .eta = eta, .v = chain->v, .rows = X->rows, .k = chain->k,
                                 .shift = chain->shift, .target = loss->y, .weights = loss->weights,
                                 .curvature = chain->curvature, .records = &work.buffer,
                                 .records_at = work.records_at)));
    TRY(ki_map_records(chain, &work, plan.groups, 0, 0));
    TRY(ki_map_value(chain, &work));
done:
    return status;
}

/* sums = 1^T eta, taken for a column. */
static kiln_status add_columns(const struct ki_chain *chain, const kiln_matrix *eta) {
    const kiln_matrix *X = chain->X;
    kiln_matrix *ones = NULL, column;
    kiln_status status;
    if (!chain->sums) return KILN_OK;
    column = *chain->sums;
    column.rows = chain->k;
    column.cols = 1;
    column.view = true;
    TRY(ki_matrix_new_held(&ones, X->device, X->type, X->rows, 1));
    TRY(ki_set_all(ones, 1));
    TRY(ki_chain_gpu(&(struct ki_chain){
        .kind = KI_CHAIN_TRANSPOSED, .out = &column, .alpha = 1, .X = eta, .y = ones, .k = 1}));
done:
    kiln_matrix_free(ones);
    return status;
}

kiln_status ki_chain_gpu_composed(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    kiln_matrix *eta = NULL;
    kiln_status status;
    TRY(ki_matrix_new_held(&eta, X->device, X->type, X->rows, chain->k));
    TRY(ki_chain_gpu(&(struct ki_chain){
        .kind = KI_CHAIN_PLAIN, .out = eta, .alpha = 1, .X = X, .y = chain->y, .k = chain->k}));
    TRY(map_rows(chain, eta));
    TRY(add_columns(chain, eta));
    TRY(ki_chain_gpu(&(struct ki_chain){.kind = KI_CHAIN_TRANSPOSED,
                                        .out = chain->out,
                                        .alpha = chain->alpha,
                                        .beta = chain->beta,
                                        .X = X,
                                        .y = eta,
                                        .z = chain->z,
                                        .k = chain->k}));
done:
    kiln_matrix_free(eta);
    return status;
}
