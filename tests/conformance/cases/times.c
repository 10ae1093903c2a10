/* W_ij = X_ij * Y_ij. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const unsigned variants[] = {0,
                                        WITH_X_COLUMN,
                                        WITH_Y_COLUMN,
                                        WITH_X_COLUMN | WITH_Y_COLUMN,
                                        WITH_X_ALIAS,
                                        WITH_Y_ALIAS,
                                        WITH_X_ALIAS | WITH_Y_ALIAS,
                                        WITH_Y_ALIAS | WITH_X_COLUMN,
                                        WITH_Y_NAN};
    elementwise_list(list, variants, sizeof variants / sizeof *variants);
}

static kiln_status run(struct work *work) {
    return kiln_times(work->w.matrix, work->X.matrix, work->y.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_times(expected, work->problem->k, &work->X.host, &work->y.host);
}

static double flops(const struct work *work) {
    return (double)work->w.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_times(NULL, s->y, s->z));
    REFUSED(kiln_times(s->w, NULL, s->z));
    REFUSED(kiln_times(s->w, s->y, NULL));
    REFUSED(kiln_times(s->w, s->square, s->z));
    REFUSED(kiln_times(s->w, s->y, s->y_device));
}

const struct operation operation_times = {.name = "times",
                                          .list = list,
                                          .prepare = elementwise_prepare,
                                          .run = run,
                                          .refuse = refuse,
                                          .expect = expect,
                                          .flops = flops,
                                          .bytes = elementwise_bytes};
