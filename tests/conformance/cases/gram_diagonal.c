/* d_j = sum_i v_i * x_ij^2. */
#include "shapes.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    struct problem_list shapes = {.entries_max = list->entries_max, .thin = list->thin};
    shapes_add(&shapes);
    for (int64_t i = 0; i < shapes.count; i++) {
        struct problem p = shapes.problems[i];
        if (p.k > 1 || (list->thin && i % 3)) continue;
        if (p.cols % 5 == 3) problem_add(list, p);
        p.flags |= WITH_V;
        if (i % 5 == 0 && !(p.flags & WITH_ONES)) p.flags |= WITH_X_NAN;
        problem_add(list, p);
    }
    shapes_free(&shapes);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    if (p->flags & WITH_V) CHECK_OK(make_random(work, &work->v, p->rows, 1));
    return make_output(work, p->cols, 1);
}

static kiln_status run(struct work *work) {
    return kiln_gram_diagonal(work->w.matrix, work->X.matrix, work->v.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_gram_diagonal(expected, &work->X.host, work->v.matrix ? &work->v.host : NULL);
}

static double flops(const struct work *work) {
    return 3 * (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_gram_diagonal(NULL, s->X, s->v));
    REFUSED(kiln_gram_diagonal(s->d, NULL, s->v));
    REFUSED(kiln_gram_diagonal(s->w, s->X, s->v));
    REFUSED(kiln_gram_diagonal(s->v, s->X, NULL));
    REFUSED(kiln_gram_diagonal(s->d, s->S, s->q));
    REFUSED(kiln_gram_diagonal(s->d, s->square, s->d));
}

const struct operation operation_gram_diagonal = {.name = "gram_diagonal",
                                                  .list = list,
                                                  .prepare = prepare,
                                                  .run = run,
                                                  .refuse = refuse,
                                                  .expect = expect,
                                                  .flops = flops,
                                                  .bytes = bytes,
                                                  .benchmark = {.k = 1, .flags = WITH_V},
                                                  .atomics = true};
