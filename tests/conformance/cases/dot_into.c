/* The sums of kiln_dot, left in a row of a matrix on the device, whose other rows stay. */
#include "elementwise.h"
#include "refusals.h"

extern const struct operation operation_dot;

static void list(struct problem_list *list) {
    operation_dot.list(list);
}

static kiln_status prepare(struct work *work) {
    return operation_dot.prepare(work);
}

static kiln_status into(kiln_matrix *R, int64_t row, const struct work *work) {
    return kiln_dot_into(R, row, work->X.matrix, work->y.matrix);
}

static kiln_status run(struct work *work) {
    return elementwise_into(work, into);
}

static void expect(struct expected *expected, const struct work *work) {
    operation_dot.expect(expected, work);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_matrix *R = s->scalars;
    REFUSED(kiln_dot_into(NULL, 0, s->y, s->z));
    REFUSED(kiln_dot_into(R, 0, NULL, s->z));
    REFUSED(kiln_dot_into(R, -1, s->y, s->z));
    REFUSED(kiln_dot_into(R, 1, s->y, s->z));
    REFUSED(kiln_dot_into(s->y, 0, s->y, s->z));
    REFUSED(kiln_dot_into(R, 0, s->S, s->z));
    REFUSED(kiln_dot_into(s->d, 0, s->y, s->z));
    REFUSED(kiln_dot_into(R, 0, s->y, NULL));
    REFUSED(kiln_dot_into(R, 0, s->y, s->q));
    REFUSED(kiln_dot_into(R, 0, s->y, s->y_type));
    REFUSED(kiln_dot_into(R, 0, s->y, s->y_device));
}

const struct operation operation_dot_into = {.name = "dot_into",
                                             .list = list,
                                             .prepare = prepare,
                                             .run = run,
                                             .refuse = refuse,
                                             .expect = expect,
                                             .flops = flops,
                                             .bytes = elementwise_bytes};
