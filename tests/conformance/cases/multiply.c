/* Y = alpha * op(A) B + beta * Z. In struct work A is X, B is y, Y is w and Z is z. */
#include "shapes.h"
#include "refusals.h"

static const unsigned variants[] = {0, WITH_Z, WITH_Z_ALIAS, WITH_Z_NAN};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct problem vary(struct problem problem, unsigned flags, int64_t t) {
    problem.flags |= flags;
    problem.alpha = t % 3 == 0 ? 1 : -1.5;
    problem.beta = flags & WITH_Z_NAN ? 0 : t % 2 ? 1 : 0.3;
    return problem;
}

/* Each shape, plain and transposed, some with a NaN in X, which must reach its own row of the product, or its
 * own column, and no other. */
static void list_shapes(struct problem_list *list) {
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i++) {
        struct problem p = shapes.problems[i];
        unsigned flags = i % 4 < 2 ? WITH_Z : WITH_Z_ALIAS;
        /* If kernels build slowly, a shape is tried one way; mmchain has tried both halves. */
        if (!list->thin || i % 2 == 0) problem_add(list, vary(p, flags, i));
        if (!list->thin || i % 2 == 1) problem_add(list, vary(p, flags | WITH_TRANSPOSED, i + 1));
        if (i % 4 || p.flags & WITH_ONES) continue;
        problem_add(list, vary(p, WITH_Z | WITH_X_NAN, i));
        if (!list->thin) problem_add(list, vary(p, WITH_Z | WITH_X_NAN | WITH_TRANSPOSED, i));
    }
    shapes_free(&shapes);
}

static void list(struct problem_list *list) {
    list_shapes(list);
    static const int64_t columns[] = {1, 3, 8, 64};
    for (int64_t t = 0; t < 4 * VARIANTS; t++)
        for (int64_t form = 0; form < 4; form++) {
            bool csr = form % 2;
            struct problem p = {.format = csr ? KILN_CSR : KILN_DENSE,
                                .pattern = csr ? PATTERN_UNIFORM : PATTERN_DENSE,
                                .rows = 61,
                                .cols = 33,
                                .per_row = 5,
                                .k = columns[t / VARIANTS]};
            problem_add(list, vary(p, variants[t % VARIANTS] | (form / 2 ? WITH_TRANSPOSED : 0), t));
        }
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

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_multiply(NULL, 1, KILN_PLAIN, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, NULL, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, NULL, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, (kiln_transpose)7, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_PLAIN, s->X, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->q, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_TRANSPOSED, s->X, s->q, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_TRANSPOSED, s->S, s->y, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->y, 1, s->z));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->X, s->y_type, 0, NULL));
    REFUSED(kiln_multiply(s->p, 1, KILN_PLAIN, s->S, s->y_device, 0, NULL));
    REFUSED(kiln_multiply(s->w, 1, KILN_PLAIN, s->square, s->w, 0, NULL));
    REFUSED(kiln_multiply(s->none, 1, KILN_PLAIN, s->square, s->none, 0, NULL));
    REFUSED(kiln_multiply(s->wide, 1, KILN_PLAIN, s->square, s->wide, 0, NULL));
}

const struct operation operation_multiply = {.name = "multiply",
                                             .list = list,
                                             .prepare = prepare,
                                             .run = run,
                                             .refuse = refuse,
                                             .expect = expect,
                                             .flops = flops,
                                             .bytes = bytes,
                                             .benchmark = {.k = 1, .alpha = 1},
                                             .atomics = true};
