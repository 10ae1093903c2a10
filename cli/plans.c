/* Tables of plans. */
#include "plans.h"

#include <stdlib.h>
#include <string.h>

const struct planned *planned_named(const char *name) {
    static const struct planned all[] = {{"mmchain", false, kiln_mmchain_plans},
                                         {"sddmm", true, kiln_sddmm_plans}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

int plans_work(const struct run *run, const struct planned *planned, kiln_work *work) {
    const struct settings *settings = run->settings;
    if (settings->rows <= 0 || settings->columns <= 0 || (planned->sparse && settings->nnz <= 0))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "for example --rows 500000 --columns 1024 --nnz 5000000",
                         "%s %s needs --rows%s", run->verb->name, planned->name,
                         planned->sparse ? ", --columns and --nnz" : " and --columns");
    if ((double)settings->nnz > (double)settings->rows * (double)settings->columns)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--nnz counts the entries of X that are stored",
                         "--nnz %lld: X has only %.0f places", (long long)settings->nnz,
                         (double)settings->rows * (double)settings->columns);
    if (settings->skew && !settings->nnz)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--nnz makes X sparse",
                         "--skew: the columns of a dense X are all alike");
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

int plans_list(struct run *run, const struct planned *planned, struct plan_list *list,
               const kiln_work *work) {
    if (planned->plans(&list->plans, &list->count, run->device, work) != KILN_OK)
        return fail_library(WORKING);
    qsort(list->plans, (size_t)list->count, sizeof *list->plans, by_prediction);
    for (int64_t i = 0; i < list->count; i++)
        if (list->plans[i].chosen) list->chosen = &list->plans[i];
    return 0;
}

void plans_print_work(FILE *file, const struct run *run, const struct planned *planned,
                      const kiln_work *work) {
    const char *type = type_name(work->type);
    fprintf(file, "%-8s %s %s x %s, ", planned->name,
            planned->sparse ? "P = (A B^T) at the entries of S, S" : "w = X^T (v .* (X y)), X",
            text_count(work->rows), text_count(work->cols));
    if (work->format == KILN_CSR)
        fprintf(file, "%s entries, sparse %s", text_count(work->nnz), type);
    else
        fprintf(file, "dense %s", type);
    if (work->k > 1 || planned->sparse)
        fprintf(file, ", %s of %s", text_plural(work->k, "column"), planned->sparse ? "A and B" : "y");
    fprintf(file, "\ndevice   %s: %s\n\n", run->device_info.name, run->device_info.description);
}

void plans_json_work(json_t *object, const struct planned *planned, const kiln_work *work) {
    json_put_text(object, "operation", planned->name);
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
    json_put_count(object, "team", plan->team);
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
