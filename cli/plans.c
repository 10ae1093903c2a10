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

void plans_put_work(struct result *result, const struct run *run, const struct planned *planned,
                    const kiln_work *work) {
    const char *type = type_name(work->type);
    const bool sparse = work->format == KILN_CSR;
    PUT(result, "operation", TEXT(planned->name), .head = "",
        .shown =
            result_words(result, "%-8s %s ", planned->name,
                         planned->sparse ? "P = (A B^T) at the entries of S, S" : "w = X^T (v .* (X y)), X"));
    PUT(result, "type", TEXT(type));
    PUT(result, "format", TEXT(sparse ? "csr" : "dense"));
    PUT(result, "rows", COUNT(work->rows), .before = "");
    PUT(result, "columns", COUNT(work->cols), .before = " x ");
    PUT(result, "nnz", COUNT(sparse ? work->nnz : work->rows * work->cols), .before = sparse ? ", " : NULL);
    PUT(result, NULL, TEXT(type), .before = sparse ? " entries, sparse " : ", dense ");
    PUT(result, "k", COUNT(work->k), .unit = "column", .before = work->k > 1 || planned->sparse ? ", " : NULL,
        .after = planned->sparse ? " of A and B" : " of y");
    plans_put_device(result, run);
}

void plans_put_device(struct result *result, const struct run *run) {
    PUT_LINE(result, "device   %s: %s", run->device_info.name, run->device_info.description);
    PUT_LINE(result, "%s", "");
}
