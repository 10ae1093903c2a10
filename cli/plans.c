/* Tables of plans. */
#include "plans.h"

#include <stdlib.h>

int plans_work(const struct run *run, kiln_work *work) {
    const struct settings *settings = run->settings;
    if (settings->rows <= 0 || settings->columns <= 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "for example --rows 500000 --columns 1024 --nnz 5000000",
                         "%s mmchain needs --rows and --columns", run->verb->name);
    *work = (kiln_work){.format = settings->nnz ? KILN_CSR : KILN_DENSE,
                        .type = settings->type ? type_of(settings->type) : KILN_F64,
                        .rows = settings->rows,
                        .cols = settings->columns,
                        .nnz = settings->nnz ? settings->nnz : 0,
                        .k = settings->k ? settings->k : 1,
                        .passes = 1};
    return 0;
}

static int by_prediction(const void *a, const void *b) {
    const kiln_plan *p = a, *q = b;
    if (p->seconds != q->seconds) return p->seconds < q->seconds ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

int plans_list(struct run *run, struct plan_list *list, const kiln_work *work) {
    if (kiln_mmchain_plans(&list->plans, &list->count, run->device, work) != KILN_OK)
        return fail_library(WORKING);
    qsort(list->plans, (size_t)list->count, sizeof *list->plans, by_prediction);
    for (int64_t i = 0; i < list->count; i++)
        if (list->plans[i].chosen) list->chosen = &list->plans[i];
    return 0;
}

void plans_print_work(const struct run *run, const kiln_work *work) {
    const char *type = type_name(work->type);
    printf("mmchain  w = X^T (v .* (X y)), X %s x %s, ", text_count(work->rows), text_count(work->cols));
    if (work->format == KILN_CSR)
        printf("%s entries, sparse %s", text_count(work->nnz), type);
    else
        printf("dense %s", type);
    if (work->k > 1) printf(", %s of y", text_plural(work->k, "column"));
    printf("\ndevice   %s: %s\n\n", run->device_info.name, run->device_info.description);
}

void plans_print_head(const char *extra) {
    printf("  %-14s %5s %5s %3s %3s %9s %4s %4s %2s %7s %7s %10s %10s %11s%s  %s\n", "VARIANT", "VS", "BS",
           "CL", "ST", "C", "TL", "ROWS", "K", "GROUPS", "OCCUP.", "BYTES", "ATOMICS", "PREDICTED", extra,
           "LIMIT");
}

void plans_print_row(const kiln_plan *plan, const char *extra) {
    printf("%c %-14s %5d %5d %3d %3d %9lld %4d %4d %2d %7lld %6.0f%% %10s %10.3g %8.4f ms%s  %s\n",
           plan->chosen ? '*' : ' ', plan->variant, plan->vector, plan->group, plan->cluster, plan->stages,
           (long long)plan->coarsening, plan->load, plan->rows, plan->columns, (long long)plan->groups,
           100 * plan->occupancy, text_bytes(plan->bytes), plan->atomics, 1e3 * plan->seconds, extra,
           plan->limit);
}

void plans_json_work(json_t *object, const kiln_work *work) {
    json_put_text(object, "operation", "mmchain");
    json_put_text(object, "type", type_name(work->type));
    json_put_text(object, "format", work->format == KILN_CSR ? "csr" : "dense");
    json_put_count(object, "rows", work->rows);
    json_put_count(object, "columns", work->cols);
    json_put_count(object, "nnz", work->format == KILN_CSR ? work->nnz : work->rows * work->cols);
    json_put_count(object, "k", work->k);
}

json_t *plans_json(const kiln_plan *plan) {
    json_t *object = json_object();
    json_put_flag(object, "chosen", plan->chosen);
    json_put_text(object, "variant", plan->variant);
    json_put_count(object, "VS", plan->vector);
    json_put_count(object, "BS", plan->group);
    json_put_count(object, "cluster", plan->cluster);
    json_put_count(object, "stages", plan->stages);
    json_put_count(object, "C", plan->coarsening);
    json_put_count(object, "TL", plan->load);
    json_put_count(object, "rows_a_step", plan->rows);
    json_put_count(object, "K", plan->columns);
    json_put_count(object, "shared_w", plan->shared);
    json_put_count(object, "groups", plan->groups);
    json_put_number(object, "occupancy", plan->occupancy);
    json_put_number(object, "bytes", plan->bytes);
    json_put_number(object, "atomics", plan->atomics);
    json_put_number(object, "predicted_seconds", plan->seconds);
    json_put_text(object, "limit", plan->limit);
    return object;
}
