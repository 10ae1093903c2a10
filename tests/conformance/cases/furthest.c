/* The largest distance by label: every bit, whatever the order; a third of the centres has no rows. X:
 * distances, y: labels; kind: how many centres. SPECIAL: each distance is larger than the one before, so that
 * all of them become a maximum in turn. */
#include "ops/points/furthest.h"
#include "cases.h"

static void list(struct problem_list *list) {
    static const struct {
        int64_t rows;
        int centres;
    } shapes[] = {{0, 3}, {1, 1}, {700, 1}, {301, 40}, {150001, 7}, {150001, 70001}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned flags = 0; flags <= WITH_SPECIAL; flags += WITH_SPECIAL)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i].rows,
                                               .cols = 1,
                                               .k = 1,
                                               .kind = shapes[i].centres,
                                               .flags = flags});
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    host_new(&work->X, work->type, p->rows, 1);
    host_new(&work->y, work->type, p->rows, 1);
    for (int64_t i = 0; i < p->rows; i++) {
        const double u = random_uniform(94, (uint64_t)i);
        const int64_t label = (int64_t)(random_uniform(95, (uint64_t)i) * p->kind);
        host_set(&work->X.host, i, p->flags & WITH_SPECIAL ? 1e-9 * (double)i : u < 0.1 ? 0 : 1e30 * u * u);
        host_set(&work->y.host, i, (double)(label - (label % 3 == 1)));
    }
    CHECK_OK(operand_upload(work, &work->X));
    CHECK_OK(operand_upload(work, &work->y));
    return make_output(work, p->kind, 1);
}

static kiln_status run(struct work *work) {
    return ki_furthest(work->w.matrix, work->X.matrix, work->y.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, work->problem->kind);
    for (int64_t i = 0; i < work->problem->rows; i++) {
        long double *most = &out->value[(int64_t)host_get(&work->y.host, i)];
        *most = fmaxl(*most, host_get(&work->X.host, i));
    }
}

static double flops(const struct work *work) {
    return (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

const struct operation operation_furthest = {.name = "furthest",
                                             .list = list,
                                             .prepare = prepare,
                                             .run = run,
                                             .expect = expect,
                                             .flops = flops,
                                             .bytes = bytes,
                                             .benchmark = {.k = 1, .kind = 100}};
