/* w = alpha * X^T (v .* (X y)) + beta * z: every row of table 1 of the fused-kernels paper, at every awkward
 * shape. */
#include "shapes.h"
#include "refusals.h"

static const unsigned variants[] = {WITH_V | WITH_Z,
                                    0,
                                    WITH_V,
                                    WITH_Z,
                                    WITH_V_BLOCK | WITH_Z,
                                    WITH_V | WITH_Z_ALIAS,
                                    WITH_V | WITH_Z_NAN,
                                    WITH_V_BLOCK | WITH_Z_ALIAS,
                                    WITH_Z_ALIAS,
                                    WITH_Z_NAN};
/* For the sweep over shapes, where other operands would mean other kernels to build for each shape. */
static const unsigned whole[] = {WITH_V | WITH_Z, WITH_V_BLOCK | WITH_Z, WITH_V | WITH_Z_ALIAS};
enum { VARIANTS = sizeof variants / sizeof *variants, WHOLE = sizeof whole / sizeof *whole };

static struct problem vary(struct problem problem, unsigned flags, int64_t t) {
    problem.flags |= flags;
    problem.alpha = t % 3 == 0 ? 1 : -0.75;
    problem.beta = flags & WITH_Z_NAN ? 0 : t % 2 ? 1 : 0.3;
    return problem;
}

static void list(struct problem_list *list) {
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i++)
        problem_add(list, vary(shapes.problems[i], whole[i % WHOLE], i));
    shapes_free(&shapes);
    /* Values that a row's own pass leaves to tiles must not come in as infinity times nothing. */
    for (int64_t t = 0; t < 6; t++) {
        const struct problem infinite = {.format = KILN_CSR,
                                         .pattern = t % 2 ? PATTERN_UNIFORM : PATTERN_ZIPF,
                                         .rows = 301,
                                         .cols = 1025,
                                         .per_row = 12,
                                         .k = t < 2   ? 1
                                              : t < 4 ? 3
                                                      : 8};
        problem_add(list, vary(infinite, WITH_V | WITH_Z | WITH_X_INF, t));
    }
    static const int64_t columns[] = {1, 3, 8, 64};
    for (int64_t t = 0; t < 4 * VARIANTS; t++) {
        struct problem p = {.format = KILN_DENSE,
                            .pattern = PATTERN_DENSE,
                            .rows = 61,
                            .cols = 33,
                            .per_row = 5,
                            .k = columns[t / VARIANTS]};
        problem_add(list, vary(p, variants[t % VARIANTS], t));
        p.format = KILN_CSR;
        p.pattern = PATTERN_UNIFORM;
        problem_add(list, vary(p, variants[t % VARIANTS], t));
    }
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    if (p->flags & WITH_V) CHECK_OK(make_random(work, &work->v, p->rows, 1));
    if (p->flags & WITH_V_BLOCK) CHECK_OK(make_random(work, &work->v, p->rows, p->k));
    if (p->flags & WITH_Z) CHECK_OK(make_random(work, &work->z, p->cols, p->k));
    if (p->flags & WITH_Z_NAN) CHECK_OK(make_filled(work, &work->z, p->cols, p->k, (double)NAN));
    if (!(p->flags & WITH_Z_ALIAS)) return make_output(work, p->cols, p->k);
    CHECK_OK(make_random(work, &work->w, p->cols, p->k));
    make_alias(work, &work->z);
    return KILN_OK;
}

static kiln_status run(struct work *work) {
    const struct problem *p = work->problem;
    return kiln_mmchain(work->w.matrix, p->alpha, work->X.matrix, work->v.matrix, work->y.matrix, p->beta,
                        work->z.matrix);
}

static const struct host_matrix *host(const struct operand *A) {
    return A->matrix ? &A->host : NULL;
}

static void expect(struct expected *expected, const struct work *work) {
    const struct problem *p = work->problem;
    reference_mmchain(expected, p->alpha, &work->X.host, host(&work->v), &work->y.host, p->beta,
                      host(&work->z));
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->y) +
           operand_bytes(&work->z) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_mmchain(NULL, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, NULL, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, NULL, 0, NULL));
    REFUSED(kiln_mmchain(s->d, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->p, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->q, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->y, s->z, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->S, s->X, s->z, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 1, s->q));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 0, s->q));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y_type, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y_device, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->y, 1, s->y_device));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->S, 0, NULL));
    REFUSED(kiln_mmchain(s->S, 1, s->X, s->v, s->y, 0, NULL));
    REFUSED(kiln_mmchain(s->w, 1, s->X, s->v, s->w, 0, NULL));
    REFUSED(kiln_mmchain(s->square, 1, s->square, NULL, s->square, 0, NULL));
    REFUSED(kiln_mmchain(s->none, 1, s->X, s->v, s->none, 0, NULL));
    REFUSED(kiln_mmchain(s->wide, 1, s->X, s->v, s->wide, 0, NULL));
}

const struct operation operation_mmchain = {.name = "mmchain",
                                            .list = list,
                                            .prepare = prepare,
                                            .run = run,
                                            .refuse = refuse,
                                            .expect = expect,
                                            .flops = flops,
                                            .bytes = bytes,
                                            .benchmark = {.k = 1, .flags = WITH_V, .alpha = 1},
                                            .atomics = true};
