/* G = (X - 1 c)^T diag(v) (X - 1 c) and g = (X - 1 c)^T v: widths around those of tiles and panels, bands of
 * wide ones, sparse rows short and long, rows of weight 0. y is c. */
#include "refusals.h"

static void add(struct problem_list *list, int64_t rows, int64_t cols, enum pattern pattern,
                int64_t per_row) {
    static const unsigned variants[] = {WITH_V | WITH_SHIFT | WITH_SUMS, WITH_V | WITH_SUMS, WITH_SHIFT, 0};
    struct problem p = {.format = pattern == PATTERN_DENSE && per_row == 0 ? KILN_DENSE : KILN_CSR,
                        .pattern = pattern,
                        .rows = rows,
                        .cols = cols,
                        .per_row = per_row,
                        .k = 1};
    for (int i = 0; i < (list->thin ? 1 : 4); i++) {
        p.flags = variants[(list->count + i) % 4];
        problem_add(list, p);
    }
}

static void list(struct problem_list *list) {
    static const int64_t widths[] = {1, 2, 7, 8, 9, 16, 17, 28, 31, 54, 65, 129};
    for (int i = 0; i < (int)(sizeof widths / sizeof *widths); i++) {
        if (list->thin && widths[i] != 9 && widths[i] != 65)
            continue; /* where each width is a kernel to build */
        add(list, 211, widths[i], PATTERN_DENSE, 0);
        add(list, 211, widths[i], PATTERN_UNIFORM, 5);
        if (!list->thin) add(list, 97, widths[i], PATTERN_DENSE, 1);
    }
    add(list, 0, 5, PATTERN_DENSE, 0);
    add(list, 5, 0, PATTERN_DENSE, 0);
    add(list, 0, 5, PATTERN_NO_ENTRIES, 1);
    if (list->thin) return;
    add(list, 301, 33, PATTERN_UNSORTED, 4);
    add(list, 301, 70, PATTERN_DENSE_ROW, 2);
    add(list, 301, 9, PATTERN_CODES, 1);
    add(list, 5001, 70, PATTERN_CODES, 1);
    add(list, 301, 700, PATTERN_CODES, 1);
    add(list, 9001, 28, PATTERN_DENSE, 0);
    add(list, 5001, 70, PATTERN_HOT_COLUMN, 6);
    add(list, 37, 700, PATTERN_DENSE, 0);
}

/* v: every third row counts for nothing. */
static kiln_status make_weights(struct work *work) {
    host_new(&work->v, work->type, work->problem->rows, 1);
    for (int64_t i = 0; i < work->problem->rows; i++)
        host_set(&work->v.host, i, i % 3 == 1 ? 0 : random_uniform(97, (uint64_t)i) - 0.3);
    return operand_upload(work, &work->v);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    if (p->flags & WITH_V) CHECK_OK(make_weights(work));
    if (p->flags & WITH_SHIFT) CHECK_OK(make_random(work, &work->y, p->cols, 1));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, p->cols, 1));
    return make_output(work, p->cols, p->cols);
}

static kiln_status run(struct work *work) {
    return kiln_gram(work->w.matrix, work->sums.matrix, work->X.matrix, work->v.matrix, work->y.matrix);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    reference_gram(&expected[RESULT_W], &expected[RESULT_SUMS], &work->X.host,
                   work->v.matrix ? &work->v.host : NULL, work->y.matrix ? &work->y.host : NULL);
    if (!work->sums.matrix) expected_free(&expected[RESULT_SUMS]);
}

static double flops(const struct work *work) {
    const double m = (double)work->problem->rows, nnz = (double)work->X.host.nnz;
    return m > 0 ? nnz * nnz / m : 0;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->v) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_gram(NULL, s->d, s->X, s->v, NULL));
    REFUSED(kiln_gram(s->square, s->d, NULL, s->v, NULL));
    REFUSED(kiln_gram(s->w, s->d, s->X, s->v, NULL));
    REFUSED(kiln_gram(s->square, s->w, s->square, NULL, NULL));
    REFUSED(kiln_gram(s->square, NULL, s->square, NULL, NULL));
}

const struct operation operation_gram = {.name = "gram",
                                         .list = list,
                                         .prepare = prepare,
                                         .run = run,
                                         .refuse = refuse,
                                         .expect = expect,
                                         .flops = flops,
                                         .bytes = bytes,
                                         .benchmark = {.k = 1, .flags = WITH_V},
                                         .atomics = true};
