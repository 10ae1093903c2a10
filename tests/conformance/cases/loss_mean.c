/* The mean response of every loss, family and link, also far out in the tails. */
#include "losses.h"

static void list(struct problem_list *list) {
    static const int64_t rows[] = {0, 1, 1001};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct problem p = {
            .format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = rows[i], .cols = 1, .k = 1};
        for (int kind = KILN_LOSS_SQUARED; kind <= KILN_LOSS_SQUARED_EPSILON; kind++) {
            p.kind = kind;
            if (kind != KILN_LOSS_SOFTMAX) problem_add(list, p);
        }
        p.flags = WITH_X_ALIAS;
        problem_add(list, p);
        p.flags = 0;
        p.kind = KILN_LOSS_GLM;
        p.family = KILN_GAMMA; /* the mean depends on the link alone */
        for (p.link = KILN_LINK_DEFAULT; p.link <= KILN_LINK_POWER; p.link++) problem_add(list, p);
        p.family = p.link = 0;
        for (p.k = 2; p.k <= MOST_COLUMNS; p.k = 2 * p.k + 1) problem_add(list, p);
        p.k = MOST_COLUMNS;
        problem_add(list, p);
    }
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    const bool model = p->kind == KILN_LOSS_GLM && !loss_is_softmax(p);
    const double middle = model ? loss_middle(p->family, p->link) : 0;
    const double spread = middle > 0 ? middle : model ? 9 : 90;
    struct operand *X = p->flags & WITH_X_ALIAS ? &work->w : &work->X;
    CHECK_OK(make_between(work, X, p->rows, p->k, middle - spread, middle + spread));
    if (!(p->flags & WITH_X_ALIAS)) return make_output(work, p->rows, p->k);
    make_alias(work, &work->X);
    return KILN_OK;
}

static kiln_status run(struct work *work) {
    const kiln_loss loss = loss_of(work).loss;
    return kiln_loss_mean(work->w.matrix, &loss, work->X.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct host_loss loss = loss_of(work).host;
    reference_loss_mean(&expected[RESULT_W], &loss, &work->X.host);
}

static double flops(const struct work *work) {
    return (double)work->w.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->w);
}

const struct operation operation_loss_mean = {.name = "loss_mean",
                                              .list = list,
                                              .prepare = prepare,
                                              .run = run,
                                              .expect = expect,
                                              .flops = flops,
                                              .bytes = bytes,
                                              .benchmark = {.kind = KILN_LOSS_LOGISTIC}};
