/* W_ij = a_j * X_ij + b_j * Y_ij, with one-column operands spread over k columns, without Y, in place, and
 * with coefficients of zero, which keep the NaN in their operand out of the result. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const unsigned variants[] = {0,
                                        WITH_X_COLUMN,
                                        WITH_Y_COLUMN,
                                        WITH_X_COLUMN | WITH_Y_COLUMN,
                                        WITH_NO_Y,
                                        WITH_NO_Y | WITH_X_COLUMN,
                                        WITH_NO_Y | WITH_X_ALIAS,
                                        WITH_X_ALIAS,
                                        WITH_Y_ALIAS,
                                        WITH_X_ALIAS | WITH_Y_ALIAS,
                                        WITH_X_ALIAS | WITH_Y_COLUMN,
                                        WITH_Y_ALIAS | WITH_X_COLUMN,
                                        WITH_X_NAN,
                                        WITH_Y_NAN,
                                        WITH_X_NAN | WITH_Y_NAN};
    elementwise_list(list, variants, sizeof variants / sizeof *variants);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    for (int64_t c = 0; c < p->k; c++) {
        work->coefficients[c] = p->flags & WITH_X_NAN ? 0 : 1.3 - 0.125 * (double)c;
        work->coefficients[MOST_COLUMNS + c] = p->flags & WITH_Y_NAN ? 0 : 0.25 * (double)(c % 3) - 0.7;
    }
    return elementwise_prepare(work);
}

static kiln_status run(struct work *work) {
    return kiln_combine(work->w.matrix, work->coefficients, work->X.matrix, work->coefficients + MOST_COLUMNS,
                        work->y.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_combine(expected, work->problem->k, work->coefficients, &work->X.host,
                      work->coefficients + MOST_COLUMNS, work->y.matrix ? &work->y.host : NULL);
}

static double flops(const struct work *work) {
    return (work->y.matrix ? 3 : 1) * (double)work->w.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    static const double ones[MOST_COLUMNS] = {1, 1};
    REFUSED(kiln_combine(NULL, ones, s->y, ones, s->z));
    REFUSED(kiln_combine(s->w, NULL, s->y, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, NULL, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, s->y, NULL, s->z));
    REFUSED(kiln_combine(s->w, ones, s->q, ones, s->z));
    REFUSED(kiln_combine(s->w, ones, s->y, ones, s->v));
    REFUSED(kiln_combine(s->w, ones, s->y_type, NULL, NULL));
    REFUSED(kiln_combine(s->w, ones, s->y, ones, s->y_device));
    REFUSED(kiln_combine(s->S, ones, s->X, ones, s->X));
}

const struct operation operation_combine = {.name = "combine",
                                            .list = list,
                                            .prepare = prepare,
                                            .run = run,
                                            .refuse = refuse,
                                            .expect = expect,
                                            .flops = flops,
                                            .bytes = elementwise_bytes};
