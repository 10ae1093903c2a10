/* W_ij = f(X_ij) for every f, also at zeros, infinities, NaN and where the result leaves the type's range. */
#include "elementwise.h"
#include "refusals.h"

static void list(struct problem_list *list) {
    static const int64_t shapes[][2] = {{0, 1}, {1, 1}, {100, 7}, {70001, 1}};
    static const unsigned variants[] = {0, WITH_SPECIAL, WITH_X_ALIAS};
    for (int kind = KILN_MAP_ABS; kind <= KILN_MAP_LOG; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t t = 0; t < sizeof variants / sizeof *variants; t++)
                problem_add(list, (struct problem){.format = KILN_DENSE,
                                                   .pattern = PATTERN_DENSE,
                                                   .rows = shapes[i][0],
                                                   .cols = shapes[i][1],
                                                   .k = shapes[i][1],
                                                   .kind = kind,
                                                   .flags = variants[t]});
}

/* The values of X with every tenth or so replaced by one that formulas stumble over. */
static kiln_status make_special(struct work *work, struct operand *A) {
    static const double odd[] = {0.0,  -0.0,  INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-30,
                                 80.0, -80.0, 1e3,      -1e3,      1.0, 4.0,  2.0};
    enum { ODD = sizeof odd / sizeof *odd };
    host_new(A, work->type, work->problem->rows, work->problem->cols);
    for (int64_t e = 0; e < A->host.nnz; e++)
        host_set(&A->host, e, e % 11 == 0 ? odd[e / 11 % ODD] : 60 * random_uniform(0, (uint64_t)e) - 30);
    return operand_upload(work, A);
}

static kiln_status prepare(struct work *work) {
    if (!(work->problem->flags & WITH_SPECIAL)) return elementwise_prepare(work);
    CHECK_OK(make_special(work, &work->X));
    return make_output(work, work->problem->rows, work->problem->cols);
}

static kiln_status run(struct work *work) {
    return kiln_map(work->w.matrix, (kiln_map_kind)work->problem->kind, work->X.matrix);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_map(expected, (kiln_map_kind)work->problem->kind, &work->X.host);
}

static double flops(const struct work *work) {
    return (double)work->w.host.nnz;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_map(NULL, KILN_MAP_ABS, s->y));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, NULL));
    REFUSED(kiln_map(s->w, (kiln_map_kind)0, s->y));
    REFUSED(kiln_map(s->w, (kiln_map_kind)(KILN_MAP_LOG + 1), s->y));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->q));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->d));
    REFUSED(kiln_map(s->w, KILN_MAP_ABS, s->y_type));
}

const struct operation operation_map = {.name = "map",
                                        .list = list,
                                        .prepare = prepare,
                                        .run = run,
                                        .refuse = refuse,
                                        .expect = expect,
                                        .flops = flops,
                                        .bytes = elementwise_bytes,
                                        .benchmark = {.flags = WITH_NO_Y, .kind = KILN_MAP_ABS}};
