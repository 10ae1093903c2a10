/* Confidences other than 1 + alpha |r|, by other entries (confidence.h). */
#include "algorithms/factor/confidence.h"

#include <stdio.h>

#include "algorithms/factor/entries.h"

/* An entry whose confidence is 1 says yes, and no more than that: its sign has to stay. */
#define LEAST 1e-30

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

/* number: alpha. An entry of 0 is one that says no, with a confidence of 0. */
static kiln_status take_surplus(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                                int64_t entry, kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)row, (void)entry, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    for (int64_t e = 0; e < entries.nnz; e++) {
        const double r = entries.value[e], more = each->number * fabs(r) - 1;
        if (more < -8 * ki_epsilon(kiln_matrix_type(rows))) {
            ki_fail(KILN_ERR_DATA, "%s: an entry of %g has a confidence of %g, less than a cell without one",
                    each->call, r, each->number * fabs(r));
            TRY(ki_hint(
                "confidence 1 is what each cell without an entry has: raise kiln_als_options.alpha, or "
                "take the confidence linear, 1 + alpha |r|"));
        }
        entries.value[e] = copysign(fmax(more / each->number, LEAST), r);
    }
    TRY(ki_entries_matrix(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

kiln_status ki_confidence(const kiln_matrix **entries, kiln_matrix **own, const char *call,
                          const kiln_matrix *R, const kiln_als_options *o) {
    *entries = R;
    if (!o->implicit || o->confidence == KILN_CONFIDENCE_LINEAR) return KILN_OK;
    const bool logarithm = o->confidence == KILN_CONFIDENCE_LOG;
    struct ki_each each = {.run = logarithm ? take_logarithms : take_surplus,
                           .made = 1,
                           .number = logarithm ? o->epsilon : o->alpha};
    snprintf(each.call, sizeof each.call, "%s", call);
    const kiln_status status = ki_each_run(own, NULL, &each, R);
    if (status == KILN_OK) *entries = *own;
    return status;
}
