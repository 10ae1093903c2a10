/* Y = alpha * op(A) B + beta * Z. In struct work A is X, B is y, Y is w and Z is z. */
#include "shapes.h"

static const unsigned variants[] = {0, WITH_Z, WITH_Z_ALIAS, WITH_Z_NAN};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct problem vary(struct problem problem, int64_t t, unsigned transposed) {
    problem.flags |= variants[t % VARIANTS] | transposed;
    problem.alpha = t % 3 == 0 ? 1 : -1.5;
    problem.beta = problem.flags & WITH_Z_NAN ? 0 : t % 2 ? 1 : 0.3;
    return problem;
}

static void list(struct problem_list *list) {
    struct problem_list shapes = {.entries_max = list->entries_max};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i++) {
        problem_add(list, vary(shapes.problems[i], i, 0));
        problem_add(list, vary(shapes.problems[i], i + 1, WITH_TRANSPOSED));
    }
    /* A NaN in X reaches its own row of the product, or its own column, and no other. */
    for (int64_t i = 0; i < shapes.count; i += 4) {
        struct problem p = shapes.problems[i];
        p.flags |= p.flags & WITH_ONES ? 0 : WITH_X_NAN;
        problem_add(list, vary(p, 0, 0));
        problem_add(list, vary(p, 0, WITH_TRANSPOSED));
    }
    shapes_free(&shapes);
}

static kiln_transpose op_of(const struct problem *p) {
    return p->flags & WITH_TRANSPOSED ? KILN_TRANSPOSED : KILN_PLAIN;
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    int64_t inner = op_of(p) == KILN_PLAIN ? p->cols : p->rows, outer = p->rows + p->cols - inner;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->y, inner, p->k));
    if (p->flags & WITH_Z) CHECK_OK(make_random(work, &work->z, outer, p->k));
    if (p->flags & WITH_Z_NAN) CHECK_OK(make_filled(work, &work->z, outer, p->k, (double)NAN));
    if (!(p->flags & WITH_Z_ALIAS)) return make_output(work, outer, p->k);
    CHECK_OK(make_random(work, &work->w, outer, p->k));
    make_alias(work, &work->z);
    return KILN_OK;
}

static kiln_status run(struct work *work) {
    const struct problem *p = work->problem;
    return kiln_multiply(work->w.matrix, p->alpha, op_of(p), work->X.matrix, work->y.matrix, p->beta,
                         work->z.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    const struct problem *p = work->problem;
    reference_multiply(expected, p->alpha, op_of(p), &work->X.host, &work->y.host, p->beta,
                       work->z.matrix ? &work->z.host : NULL);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->z) +
           operand_bytes(&work->w);
}

const struct operation operation_multiply = {.name = "multiply",
                                             .list = list,
                                             .prepare = prepare,
                                             .run = run,
                                             .expect = expect,
                                             .flops = flops,
                                             .bytes = bytes,
                                             .benchmark = {.k = 1, .alpha = 1},
                                             .atomics = true};
