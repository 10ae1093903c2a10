/* result_i = the reduction of row i: lengths from none to long, few vectors and many. */
#include "refusals.h"

static void list(struct problem_list *list) {
    static const int64_t shapes[][2] = {{0, 5}, {5, 0}, {1, 1}, {257, 1}, {311, 17}, {7, 1000}, {1, 100003}};
    for (int kind = KILN_BATCH_SUM; kind <= KILN_BATCH_MAX; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i][0],
                                               .cols = shapes[i][1],
                                               .k = 1,
                                               .kind = kind});
}

static kiln_status prepare(struct work *work) {
    CHECK_OK(make_X(work));
    return make_output(work, work->problem->rows, 1);
}

static kiln_status run(struct work *work) {
    return kiln_batch_reduce(work->w.matrix, (kiln_batch_kind)work->problem->kind, work->X.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *out = &expected[RESULT_W];
    const int64_t n = work->problem->cols;
    const bool sum = work->problem->kind == KILN_BATCH_SUM;
    *out = expected_new(work->type, work->problem->rows);
    for (int64_t v = 0; v < out->count; v++) {
        long double a = sum ? 0 : -(long double)INFINITY, gauge = 0;
        for (int64_t i = 0; i < n; i++) {
            const long double x = host_get(&work->X.host, v * n + i);
            a = sum ? a + x : x > a ? x : a;
            gauge += fabsl(x);
        }
        out->value[v] = a;
        out->gauge[v] = sum ? gauge : fabsl(a);
    }
    out->gate = gate_for_terms(sum ? (double)n : 1);
}

static double flops(const struct work *work) {
    return (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_batch_reduce(NULL, KILN_BATCH_SUM, s->X));
    REFUSED(kiln_batch_reduce(s->d, KILN_BATCH_SUM, NULL));
    REFUSED_AS("dense", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->S));
    REFUSED(kiln_batch_reduce(s->w, KILN_BATCH_SUM, s->y));
    REFUSED(kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->y_type));
    REFUSED_AS("must not be X", kiln_batch_reduce(s->d, KILN_BATCH_SUM, s->d));
    REFUSED_AS("number 9", kiln_batch_reduce(s->d, (kiln_batch_kind)9, s->y));
}

const struct operation operation_batch_reduce = {.name = "batch_reduce",
                                                 .list = list,
                                                 .prepare = prepare,
                                                 .run = run,
                                                 .expect = expect,
                                                 .flops = flops,
                                                 .bytes = bytes,
                                                 .refuse = refuse,
                                                 .benchmark = {.k = 1, .kind = KILN_BATCH_SUM}};
