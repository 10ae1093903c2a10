/* Building and launching the kernels of a pass over X. */
#include "pass/launch.h"

#include <stdio.h>

#include "core/arguments.h"
#include "core/limits.h"
#include "core/narrow/narrow.h"
#include "core/size.h"
#include "dialect/chain_arguments.h"
#include "pass/dense/team.h"

KI_ARGUMENTS(dense);
KI_ARGUMENTS(team);

int ki_power_of_two(int64_t at_least) {
    int p = 1;
    while (p < at_least && p < 1 << 20) p *= 2;
    return p;
}

/* Work space has as many columns as a launch takes, and a group's last turn may begin before the end and
 * reach beyond it. */
const char *ki_index_define(const struct ki_chain *chain, int64_t own) {
    const int64_t columns = ki_max(chain->k, ki_plan_columns(chain));
    const int64_t operands = ki_max(chain->X->nnz, ki_max(chain->X->rows, chain->X->cols) * columns);
    const int64_t reach = ki_max(operands, own);
    return reach > ki_limits.index32 - ki_limits.index32 / 1024 ? " -DINDEX64" : "";
}

int ki_plan_columns(const struct ki_chain *chain) {
    return chain->k > 4 ? 8 : ki_power_of_two(chain->k);
}

/* Returns whether the plan's groups wait for each other's sums. */
static bool exchanges(const struct ki_plan *plan) {
    return plan->C > 1 && plan->variant->words;
}

/* Returns what the plan's kernel is built with. */
static const char *plan_defines(char text[KI_DEFINES_MOST], const struct ki_plan *plan,
                                const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    char ring[96] = "", room[40] = "", most[40] = "", map[KI_MAP_DEFINES];
    if (plan->stages)
        snprintf(ring, sizeof ring, " -DC=%d -DSTAGES=%d -DLAG=%d -DSURE=%d", plan->C, plan->stages,
                 plan->lag, plan->sure);
    if (plan->local_bytes && X->device->properties.local_declared)
        snprintf(room, sizeof room, " -DRING_BYTES=%lld", (long long)plan->local_bytes);
    /* All groups of the launch have to run at once: a team whose last groups begin late runs alone at the
     * end. */
    const char *option = X->device->properties.registers_option;
    if (option && exchanges(plan))
        snprintf(most, sizeof most, " %s%lld", option, (long long)ki_team_registers_most(plan, chain));
    ki_map_defines(map, chain);
    return ki_defines(text, "-D%s -DKIND=%d -DVS=%d -DBS=%d -DQ=%d -DW=%d -DR=%d -DK=%d%s%s%s%s%s%s",
                      plan->variant->define, (int)chain->kind, plan->VS, plan->BS, plan->Q, plan->W, plan->R,
                      plan->K, ki_element_define(X), ring, room, most, ki_index_define(chain, 0), map);
}

void ki_plan_program(struct ki_programs *programs, const struct ki_plan *plan, const struct ki_chain *chain) {
    char defines[KI_DEFINES_MOST];
    ki_programs_add(programs, plan->variant->file, plan->variant->function, chain->X->type,
                    plan_defines(defines, plan, chain));
}

bool ki_plan_packed(const struct ki_plan *plan, const struct ki_chain *chain) {
    char defines[KI_DEFINES_MOST];
    return ki_kernel_packed(chain->X->device, plan->variant->file, chain->X->type,
                            plan_defines(defines, plan, chain));
}

kiln_status ki_plan_kernel(struct ki_kernel **kernel, struct ki_plan *plan, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    char defines[KI_DEFINES_MOST];
    kiln_status status = ki_kernel_get(kernel, X->device, plan->variant->file, plan->variant->function,
                                       X->type, plan_defines(defines, plan, chain));
    if (status == KILN_OK && plan->local_bytes && X->device->backend->resident_with)
        status = ki_kernel_resident_with(X->device, &plan->groups, *kernel, plan->BS, plan->local_bytes);
    else if (status == KILN_OK && (X->device->backend->resident || !X->device->properties.is_gpu))
        status = ki_kernel_resident(X->device, &plan->groups, *kernel, plan->BS);
    /* If nothing tells, the launch model's number stands. */
    plan->groups = ki_min(plan->groups, plan->steps * ki_max(plan->C, 1));
    plan->groups -= plan->groups % ki_max(plan->C, 1);
    return status;
}

static int64_t words_of(const struct ki_plan *plan) {
    return exchanges(plan) ? plan->variant->words(plan) : 0;
}

/* Returns where the words that teams exchange begin, a line of 128 bytes: behind the records. */
static int64_t exchange_at(const struct ki_plan *plan, const struct ki_chain *chain,
                           const struct ki_work *work) {
    const int64_t records =
        ki_chain_maps(chain) ? ki_max(plan->groups, 1) * ki_chain_record(chain, plan->K) : 0;
    return 16 *
           ki_ceil_div((work->records_at + records) * ki_type_bytes(ki_wide_type(chain->X->device)), 128);
}

kiln_status ki_plan_work(struct ki_work *work, const struct ki_plan *plan, const struct ki_chain *chain,
                         int64_t partials) {
    const int64_t wide = ki_type_bytes(ki_wide_type(chain->X->device));
    work->records_at = ki_ceil_div(partials, wide);
    return ki_device_scratch(chain->X->device, &work->buffer,
                             8 * (exchange_at(plan, chain, work) + words_of(plan)));
}

kiln_status ki_plan_launch(const struct ki_plan *plan, const struct ki_chain *chain, struct ki_kernel *kernel,
                           const struct ki_buffer *out, const struct ki_work *work, int first) {
    const kiln_matrix *X = chain->X;
    struct ki_arg args[dense_count + KI_MAP_ARGS + team_count + 1];
    int n = dense_count;
    dense_pack(args, X,
               &(struct dense_arguments){.out = out,
                                         .X = X,
                                         KI_CHAIN_VALUES(chain),
                                         .n = (int32_t)X->cols,
                                         .k = chain->k,
                                         .first = first,
                                         .v_cols = chain->v ? (int32_t)chain->v->cols : 0});
    n += ki_map_args(args + n, chain, work);
    if (exchanges(plan)) {
        const int64_t at = exchange_at(plan, chain, work);
        const kiln_status begun = ki_team_begin(chain, &work->buffer, at, words_of(plan));
        if (begun != KILN_OK) return begun;
        team_pack(args + n, X, &(struct team_arguments){.work_space = &work->buffer, .exchange_at = at});
        n += team_count;
    }
    if (plan->local_bytes && !X->device->properties.local_declared)
        args[n++] = ki_arg_local(plan->local_bytes);
    kiln_status status = (exchanges(plan) ? ki_kernel_launch_together : ki_kernel_launch)(
        X->device, kernel, plan->groups, plan->BS, args, n);
    if (status != KILN_OK || !ki_chain_maps(chain)) return status;
    return ki_map_records(chain, work, plan->groups, plan->K, first);
}

kiln_status ki_chain_run_plan(const struct ki_chain *chain, const struct ki_plan *plan) {
    return chain->X->format == KILN_DENSE ? ki_chain_gpu_dense(chain, plan) : ki_chain_gpu_csr(chain, plan);
}

kiln_status ki_chain_candidates(struct ki_candidate **list, int *count, int *chosen,
                                const struct ki_chain *chain) {
    return chain->X->format == KILN_DENSE ? ki_dense_candidates(list, count, chosen, chain)
                                          : ki_csr_candidates(list, count, chosen, chain);
}

void ki_chain_programs(struct ki_programs *programs, const struct ki_chain *chain, bool again) {
    if (chain->X->codes)
        ki_codes_programs(programs, chain);
    else if (chain->X->format == KILN_DENSE)
        ki_dense_programs(programs, chain);
    else
        ki_csr_programs(programs, chain, again);
    if (ki_chain_maps(chain)) ki_map_programs(programs, chain);
}

kiln_status ki_chain_gpu(const struct ki_chain *chain) {
    const bool softmax = chain->map == KI_ROW_SOFTMAX || chain->map == KI_ROW_SOFTMAX_LOSS;
    if (softmax && chain->k > ki_plan_columns(chain)) return ki_chain_gpu_composed(chain);
    if (chain->X->codes) return ki_chain_gpu_codes(chain);
    return ki_chain_run_plan(chain, NULL);
}
