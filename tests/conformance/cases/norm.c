/* Norms of columns: sum |x|, sqrt(sum x^2), max |x|; huge and tiny values must neither overflow nor vanish,
 * and one NaN makes its column's norm NaN. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const int64_t shapes[][2] = {{0, 1},   {0, 3},    {1, 1},     {5, 64},
                                        {257, 1}, {311, 17}, {70001, 1}, {4099, 8}};
    for (int kind = KILN_NORM_1; kind <= KILN_NORM_MAX; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (unsigned t = 0; t < 2; t++)
                problem_add(list, (struct problem){.format = KILN_DENSE,
                                                   .pattern = PATTERN_DENSE,
                                                   .rows = shapes[i][0],
                                                   .cols = shapes[i][1],
                                                   .k = shapes[i][1],
                                                   .kind = kind,
                                                   .flags = t ? WITH_SPECIAL : 0});
}

/* Columns in turn: ordinary, huge, tiny, zero, with a NaN at the end, huge with tiny, infinite. */
static double special(const struct work *work, int64_t i, int64_t column) {
    double huge = work->type == KILN_F32 ? 1e30 : 1e200, tiny = work->type == KILN_F32 ? 1e-30 : 1e-200;
    double value = 2 * random_uniform(7, (uint64_t)(i * 64 + column)) - 1;
    switch (column % 7) {
    case 0: return value;
    case 1: return huge * value;
    case 2: return tiny * value;
    case 3: return 0;
    case 4: return i == work->problem->rows - 1 ? (double)NAN : value;
    case 5: return i % 2 ? huge * value : tiny;
    default: return i % 3 ? value : (double)INFINITY;
    }
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    if (!(p->flags & WITH_SPECIAL)) return make_random(work, &work->X, p->rows, p->cols);
    host_new(&work->X, work->type, p->rows, p->cols);
    /* A single column's role goes with the number of rows. */
    for (int64_t e = 0; e < p->rows * p->cols; e++)
        host_set(&work->X.host, e,
                 special(work, e / p->cols, e % p->cols + (p->cols == 1 ? p->rows % 7 : 0)));
    return operand_upload(work, &work->X);
}

static kiln_status run(struct work *work) {
    return kiln_norm(work->scalars, work->X.matrix, (kiln_norm_kind)work->problem->kind);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_norm(&expected[RESULT_SCALARS], &work->X.host, (kiln_norm_kind)work->problem->kind);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_norm(NULL, s->y, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, NULL, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, s->S, KILN_NORM_2));
    REFUSED(kiln_norm(s->canary, s->y, (kiln_norm_kind)0));
    REFUSED(kiln_norm(s->canary, s->y, (kiln_norm_kind)4));
}

const struct operation operation_norm = {.name = "norm",
                                         .list = list,
                                         .prepare = prepare,
                                         .run = run,
                                         .refuse = refuse,
                                         .expect = expect,
                                         .flops = flops,
                                         .bytes = elementwise_bytes,
                                         .benchmark = {.kind = KILN_NORM_2}};
