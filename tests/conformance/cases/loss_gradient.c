/* Value, gradient and curvature of every loss, in one pass over X: at every awkward shape with the logistic
 * loss and softmax, and at a few with every loss, family and link. */
#include "losses.h"

static const unsigned variants[] = {WITH_WEIGHTS | WITH_OFFSET | WITH_SHIFT | WITH_SUMS | WITH_CURVATURE,
                                    WITH_CURVATURE,
                                    WITH_SHIFT | WITH_SUMS,
                                    WITH_WEIGHTS | WITH_CURVATURE,
                                    WITH_OFFSET,
                                    0,
                                    WITH_WEIGHTS | WITH_SUMS | WITH_SHIFT,
                                    WITH_WEIGHTS | WITH_SUMS | WITH_SHIFT | WITH_CURVATURE | WITH_CERTAIN};
enum { VARIANTS = sizeof variants / sizeof *variants };

static void add(struct problem_list *list, struct problem problem, kiln_loss_kind kind, int64_t variant) {
    problem.kind = (int)kind;
    problem.flags |= variants[variant % VARIANTS];
    problem_add(list, problem);
}

static void list(struct problem_list *list) {
    static const int64_t columns[] = {1, 2, 3, 8, 10, 100};
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    /* Kernels are built for a shape whatever stands in its middle: mmchain's cases try the shapes that are
     * left out. */
    for (int64_t i = 0; i < shapes.count; i += list->thin ? 17 : 1)
        add(list, shapes.problems[i], KILN_LOSS_LOGISTIC, i);
    shapes_free(&shapes);
    for (int format = KILN_DENSE; format <= KILN_CSR; format++) {
        struct problem p = {.format = (kiln_format)format,
                            .pattern = format == KILN_DENSE ? PATTERN_DENSE : PATTERN_UNIFORM,
                            .rows = 161,
                            .cols = 33,
                            .per_row = 5,
                            .k = 1};
        for (int64_t t = 0; t < VARIANTS; t++)
            for (int kind = KILN_LOSS_SQUARED; kind <= KILN_LOSS_SQUARED_EPSILON; kind++)
                if (kind == KILN_LOSS_LOGISTIC ||
                    (kind != KILN_LOSS_SOFTMAX && !(variants[t] & WITH_CERTAIN)))
                    add(list, p, (kiln_loss_kind)kind, t);
        p.flags = variants[0];
        if (format == KILN_CSR && !list->thin) {
            p.pattern = PATTERN_CODES;
            loss_each_model(list, p, list->thin);
            p.pattern = PATTERN_UNIFORM;
        }
        if (!list->thin || format == KILN_DENSE) loss_each_model(list, p, list->thin);
        for (int c = 1; c < (int)(sizeof columns / sizeof *columns); c += list->thin ? 2 : 1)
            for (int64_t t = 0; t < VARIANTS; t++) {
                p.flags = 0;
                p.k = columns[c];
                add(list, p, KILN_LOSS_SOFTMAX, t);
            }
    }
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_coefficients(work));
    CHECK_OK(make_loss_operands(work));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, 1, p->k));
    if (p->flags & WITH_CURVATURE) CHECK_OK(make_result(work, RESULT_CURVATURE, p->rows, p->k));
    return make_output(work, p->cols, p->k);
}

static kiln_status run(struct work *work) {
    const struct loss_pair pair = loss_of(work);
    return kiln_loss_gradient(work->scalars, work->w.matrix, work->sums.matrix, work->curvature.matrix,
                              &pair.loss, work->X.matrix, work->y.matrix, work->shift.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct loss_pair pair = loss_of(work);
    reference_loss_gradient(&expected[RESULT_SCALARS], &expected[RESULT_W], &expected[RESULT_SUMS],
                            &expected[RESULT_CURVATURE], &pair.host, &work->X.host, &work->y.host,
                            work->shift.matrix ? &work->shift.host : NULL);
    if (!work->sums.matrix) expected_free(&expected[RESULT_SUMS]);
    if (!work->curvature.matrix) expected_free(&expected[RESULT_CURVATURE]);
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w) +
           operand_bytes(&work->target) + operand_bytes(&work->weights) + operand_bytes(&work->offset) +
           operand_bytes(&work->curvature);
}

const struct operation operation_loss_gradient = {
    .name = "loss_gradient",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .benchmark = {.k = 1, .flags = WITH_SUMS | WITH_SHIFT | WITH_CURVATURE, .kind = KILN_LOSS_LOGISTIC},
    .atomics = true};
