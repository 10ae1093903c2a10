/* Deviance, Pearson's statistic and the rest of the log-likelihood, for every family and link. */
#include "losses.h"

static void list(struct problem_list *list) {
    static const int64_t rows[] = {0, 1, 1001};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int flags = 0; flags <= WITH_WEIGHTS; flags += WITH_WEIGHTS)
            loss_each_model(list,
                            (struct problem){.format = KILN_DENSE,
                                             .pattern = PATTERN_DENSE,
                                             .rows = rows[i],
                                             .cols = 1,
                                             .k = 1,
                                             .flags = (unsigned)flags},
                            false);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    const double middle = loss_middle(p->family, p->link);
    CHECK_OK(make_loss_operands(work));
    CHECK_OK(make_between(work, &work->X, p->rows, 1, middle - 0.4, middle + 0.4));
    return make_output(work, p->rows, 3);
}

static kiln_status run(struct work *work) {
    const kiln_loss loss = loss_of(work).loss;
    return kiln_loss_deviance(work->w.matrix, &loss, work->X.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct host_loss loss = loss_of(work).host;
    reference_loss_deviance(&expected[RESULT_W], &loss, &work->X.host);
}

static double flops(const struct work *work) {
    return (double)work->w.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->target) + operand_bytes(&work->weights) +
           operand_bytes(&work->w);
}

const struct operation operation_loss_deviance = {
    .name = "loss_deviance",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .benchmark = {.k = 1, .kind = KILN_LOSS_GLM, .family = KILN_POISSON}};
