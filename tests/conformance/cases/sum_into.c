/* The sums of the columns of X, as products with ones, left in a row of a matrix on the device, whose other
 * rows stay. */
#include "elementwise.h"
#include "refusals.h"

extern const struct operation operation_dot;

static void list(struct problem_list *list) {
    operation_dot.list(list);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_random(work, &work->X, p->rows, p->cols));
    return make_filled(work, &work->y, p->rows, 1, 1);
}

static kiln_status into(kiln_matrix *R, int64_t row, const struct work *work) {
    return kiln_sum_into(R, row, work->X.matrix);
}

static kiln_status run(struct work *work) {
    return elementwise_into(work, into);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_dot(&expected[RESULT_SCALARS], &work->X.host, &work->y.host);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_matrix *R = s->scalars;
    REFUSED(kiln_sum_into(NULL, 0, s->y));
    REFUSED(kiln_sum_into(R, 0, NULL));
    REFUSED(kiln_sum_into(R, -1, s->y));
    REFUSED(kiln_sum_into(R, 1, s->y));
    REFUSED(kiln_sum_into(s->y, 0, s->y));
    REFUSED(kiln_sum_into(R, 0, s->S));
    REFUSED(kiln_sum_into(s->d, 0, s->y));
}

const struct operation operation_sum_into = {.name = "sum_into",
                                             .list = list,
                                             .prepare = prepare,
                                             .run = run,
                                             .refuse = refuse,
                                             .expect = expect,
                                             .flops = flops,
                                             .bytes = elementwise_bytes};
