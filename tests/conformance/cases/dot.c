/* result_j = sum_i X_ij * Y_ij, in double whatever the type; a Y of one column serves all of X's. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const int64_t shapes[][2] = {{0, 1},    {0, 3},     {1, 1},    {5, 64},     {257, 1}, {1000, 3},
                                        {311, 17}, {70001, 1}, {4099, 8}, {300001, 1}, {31, 2},  {2003, 65}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned t = 0; t < 2; t++)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i][0],
                                               .cols = shapes[i][1],
                                               .k = shapes[i][1],
                                               .flags = t ? WITH_Y_COLUMN : 0});
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_random(work, &work->X, p->rows, p->cols));
    return make_random(work, &work->y, p->rows, p->flags & WITH_Y_COLUMN ? 1 : p->cols);
}

static kiln_status run(struct work *work) {
    return kiln_dot(work->scalars, work->X.matrix, work->y.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_dot(&expected[RESULT_SCALARS], &work->X.host, &work->y.host);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_dot(NULL, s->y, s->z));
    REFUSED(kiln_dot(s->canary, NULL, s->z));
    REFUSED(kiln_dot(s->canary, s->y, NULL));
    REFUSED(kiln_dot(s->canary, s->y, s->q));
    REFUSED(kiln_dot(s->canary, s->y, s->v));
    REFUSED(kiln_dot(s->canary, s->d, s->y));
    REFUSED(kiln_dot(s->canary, s->y, s->y_type));
    REFUSED(kiln_dot(s->canary, s->y, s->y_device));
    REFUSED(kiln_dot(s->canary, s->S, s->X));
}

const struct operation operation_dot = {.name = "dot",
                                        .list = list,
                                        .prepare = prepare,
                                        .run = run,
                                        .refuse = refuse,
                                        .expect = expect,
                                        .flops = flops,
                                        .bytes = elementwise_bytes};
