/* Every element = value. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const double values[] = {0, -2.5, 0.1, 1e-300, INFINITY, NAN};
    static const int64_t shapes[][2] = {{0, 1}, {1, 1}, {100, 7}, {70001, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t t = 0; t < sizeof values / sizeof *values; t++)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i][0],
                                               .cols = shapes[i][1],
                                               .k = shapes[i][1],
                                               .alpha = values[t]});
}

static kiln_status prepare(struct work *work) {
    return make_output(work, work->problem->rows, work->problem->cols);
}

static kiln_status run(struct work *work) {
    return kiln_fill(work->w.matrix, work->problem->alpha);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_fill(expected, work->type, work->w.host.nnz, work->problem->alpha);
}

static double flops(const struct work *work) {
    (void)work;
    return 0;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_fill(NULL, 1));
    REFUSED(kiln_fill(s->S, 1));
}

const struct operation operation_fill = {.name = "fill",
                                         .list = list,
                                         .prepare = prepare,
                                         .run = run,
                                         .refuse = refuse,
                                         .expect = expect,
                                         .flops = flops,
                                         .bytes = elementwise_bytes,
                                         .benchmark = {.alpha = 1}};
