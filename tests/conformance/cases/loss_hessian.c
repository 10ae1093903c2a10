/* The Hessian product of a loss from given curvatures: the pattern with an intercept for k = 1, the row map
 * of softmax for more columns. */
#include "losses.h"

static const unsigned variants[] = {WITH_SHIFT | WITH_SUMS | WITH_Z | WITH_WEIGHTS,
                                    0,
                                    WITH_SHIFT | WITH_SUMS,
                                    WITH_SUMS | WITH_Z_ALIAS,
                                    WITH_Z_ALIAS | WITH_WEIGHTS,
                                    WITH_Z_NAN | WITH_SHIFT,
                                    WITH_SUMS | WITH_WEIGHTS,
                                    WITH_SUMS | WITH_WEIGHTS | WITH_SHIFT | WITH_CERTAIN};
enum { VARIANTS = sizeof variants / sizeof *variants };

static void add(struct problem_list *list, struct problem problem, int64_t variant) {
    problem.kind = KILN_LOSS_LOGISTIC;
    problem.flags |= variants[variant % VARIANTS];
    problem.beta = problem.flags & WITH_Z_NAN ? 0 : 0.3;
    problem_add(list, problem);
}

static void list(struct problem_list *list) {
    static const int64_t columns[] = {1, 2, 3, 8, 10, 100};
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i += list->thin ? 17 : 1) add(list, shapes.problems[i], i);
    shapes_free(&shapes);
    for (int c = 0; c < (int)(sizeof columns / sizeof *columns); c += list->thin ? 2 : 1)
        for (int64_t t = 0; t < 2 * VARIANTS; t++) {
            struct problem p = {.format = t % 2 ? KILN_CSR : KILN_DENSE,
                                .pattern = t % 2 ? PATTERN_UNIFORM : PATTERN_DENSE,
                                .rows = 161,
                                .cols = 33,
                                .per_row = 5,
                                .k = columns[c]};
            add(list, p, t / 2);
        }
}

/* Rows of probabilities for softmax, else curvatures of any size. */
static kiln_status make_curvature(struct work *work) {
    const struct problem *p = work->problem;
    const bool certain = loss_is_softmax(p) && p->flags & WITH_CERTAIN;
    host_new(&work->v, work->type, p->rows, p->k);
    for (int64_t e = 0; certain && e < p->rows * p->k; e++)
        host_set(&work->v.host, e, e % p->k ? 1e-13 * random_uniform(98, (uint64_t)e) : 1);
    for (int64_t i = 0; !certain && i < p->rows; i++) {
        double sum = 0;
        for (int64_t c = 0; c < p->k; c++) sum += random_uniform(98, (uint64_t)(i * p->k + c));
        for (int64_t c = 0; c < p->k; c++)
            host_set(&work->v.host, i * p->k + c,
                     random_uniform(98, (uint64_t)(i * p->k + c)) / (loss_is_softmax(p) ? sum : 0.5));
    }
    return operand_upload(work, &work->v);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    CHECK_OK(make_loss_operands(work));
    CHECK_OK(make_curvature(work));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, 1, p->k));
    if (p->flags & WITH_Z) CHECK_OK(make_random(work, &work->z, p->cols, p->k));
    if (p->flags & WITH_Z_NAN) CHECK_OK(make_filled(work, &work->z, p->cols, p->k, (double)NAN));
    if (!(p->flags & WITH_Z_ALIAS)) return make_output(work, p->cols, p->k);
    CHECK_OK(make_random(work, &work->w, p->cols, p->k));
    make_alias(work, &work->z);
    return KILN_OK;
}

static kiln_status run(struct work *work) {
    const struct loss_pair pair = loss_of(work);
    return kiln_loss_hessian(work->w.matrix, work->sums.matrix, &pair.loss, work->v.matrix, work->X.matrix,
                             work->y.matrix, work->shift.matrix, work->problem->beta, work->z.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct loss_pair pair = loss_of(work);
    reference_loss_hessian(&expected[RESULT_W], &expected[RESULT_SUMS], &pair.host, &work->v.host,
                           &work->X.host, &work->y.host, work->shift.matrix ? &work->shift.host : NULL,
                           work->problem->beta, work->z.matrix ? &work->z.host : NULL);
    if (!work->sums.matrix) expected_free(&expected[RESULT_SUMS]);
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->y) +
           operand_bytes(&work->z) + operand_bytes(&work->w) + operand_bytes(&work->weights);
}

const struct operation operation_loss_hessian = {
    .name = "loss_hessian",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .benchmark = {.k = 1, .flags = WITH_SUMS | WITH_SHIFT, .kind = KILN_LOSS_LOGISTIC},
    .atomics = true};
