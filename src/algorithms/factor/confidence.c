/* Confidences that grow with the logarithm of entries, by other entries (confidence.h). */
#include "algorithms/factor/confidence.h"

#include <stdio.h>

#include "algorithms/factor/entries.h"

static kiln_status take_logarithms(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                                   int64_t entry, kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)row, (void)entry, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    for (int64_t e = 0; e < entries.nnz; e++)
        entries.value[e] = copysign(log1p(fabs(entries.value[e]) / each->number), entries.value[e]);
    TRY(ki_entries_matrix(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

kiln_status ki_confidence(const kiln_matrix **entries, kiln_matrix **own, const char *call,
                          const kiln_matrix *R, const kiln_als_options *o) {
    *entries = R;
    if (!o->implicit || o->confidence != KILN_CONFIDENCE_LOG) return KILN_OK;
    struct ki_each each = {.run = take_logarithms, .made = 1, .number = o->epsilon};
    snprintf(each.call, sizeof each.call, "%s", call);
    const kiln_status status = ki_each_run(own, NULL, &each, R);
    if (status == KILN_OK) *entries = *own;
    return status;
}
