/* The norms of kiln_norm, huge and tiny values among them, left in a row of a matrix on the device, whose
 * other rows stay. */
#include "elementwise.h"
#include "refusals.h"

extern const struct operation operation_norm;

static void list(struct problem_list *list) {
    operation_norm.list(list);
}

static kiln_status prepare(struct work *work) {
    return operation_norm.prepare(work);
}

static kiln_status into(kiln_matrix *R, int64_t row, const struct work *work) {
    return kiln_norm_into(R, row, work->X.matrix, (kiln_norm_kind)work->problem->kind);
}

static kiln_status run(struct work *work) {
    return elementwise_into(work, into);
}

static void expect(struct expected *expected, const struct work *work) {
    operation_norm.expect(expected, work);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_matrix *R = s->scalars;
    REFUSED(kiln_norm_into(NULL, 0, s->y, KILN_NORM_2));
    REFUSED(kiln_norm_into(R, 0, NULL, KILN_NORM_2));
    REFUSED(kiln_norm_into(R, -1, s->y, KILN_NORM_2));
    REFUSED(kiln_norm_into(R, 1, s->y, KILN_NORM_2));
    REFUSED(kiln_norm_into(s->y, 0, s->y, KILN_NORM_2));
    REFUSED(kiln_norm_into(R, 0, s->S, KILN_NORM_2));
    REFUSED(kiln_norm_into(s->d, 0, s->y, KILN_NORM_2));
    REFUSED(kiln_norm_into(R, 0, s->y, (kiln_norm_kind)0));
    REFUSED(kiln_norm_into(R, 0, s->y, (kiln_norm_kind)4));
}

const struct operation operation_norm_into = {.name = "norm_into",
                                              .list = list,
                                              .prepare = prepare,
                                              .run = run,
                                              .refuse = refuse,
                                              .expect = expect,
                                              .flops = flops,
                                              .bytes = elementwise_bytes,
                                              .benchmark = {.kind = KILN_NORM_2}};
