/* R_ij = x_rows[i],j: none, some, all, again and again. k is how many. */
#include "refusals.h"

static int64_t row_of(const struct work *work, int64_t i) {
    return (int64_t)(random_uniform(96, (uint64_t)i) * (double)work->problem->rows);
}

static void add(struct problem_list *list, enum pattern pattern, int64_t rows, int64_t cols, int64_t k) {
    problem_add(list, (struct problem){.format = pattern == PATTERN_DENSE ? KILN_DENSE : KILN_CSR,
                                       .pattern = pattern,
                                       .rows = rows,
                                       .cols = cols,
                                       .per_row = 4,
                                       .k = k});
}

static void list(struct problem_list *list) {
    add(list, PATTERN_DENSE, 1, 1, 1);
    add(list, PATTERN_DENSE, 200, 33, 7);
    add(list, PATTERN_DENSE, 50, 200, 300);
    add(list, PATTERN_DENSE, 5, 0, 2);
    add(list, PATTERN_EMPTY_ROWS, 200, 33, 70);
    add(list, PATTERN_UNSORTED, 60, 150, 11);
}

static kiln_status prepare(struct work *work) {
    CHECK_OK(make_X(work));
    return make_output(work, work->problem->k, work->problem->cols);
}

static kiln_status run(struct work *work) {
    int64_t rows[MOST_COLUMNS];
    for (int64_t i = 0; i < work->problem->k; i++) rows[i] = row_of(work, i);
    return kiln_rows(work->w.matrix, work->X.matrix, rows);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct host_matrix *X = &work->X.host;
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, work->problem->k * X->cols);
    for (int64_t i = 0; i < work->problem->k; i++) {
        const int64_t row = row_of(work, i);
        for (int64_t j = 0; !X->row_start && j < X->cols; j++)
            out->value[i * X->cols + j] = host_get(X, row * X->cols + j);
        for (int64_t e = X->row_start ? X->row_start[row] : 0; X->row_start && e < X->row_start[row + 1]; e++)
            out->value[i * X->cols + X->col[e]] = X->values ? host_get(X, e) : 1;
    }
}

static double flops(const struct work *work) {
    (void)work;
    return 0;
}

static double bytes(const struct work *work) {
    return 2 * operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    static const int64_t good[REFUSAL_N] = {0}, beyond[REFUSAL_N] = {0, REFUSAL_M},
                         negative[REFUSAL_N] = {-1};
    REFUSED(kiln_rows(NULL, s->X, good));
    REFUSED(kiln_rows(s->square, NULL, good));
    REFUSED(kiln_rows(s->square, s->X, NULL));
    REFUSED(kiln_rows(s->w, s->X, good));
    REFUSED(kiln_rows(s->y_type, s->y, good));
    REFUSED_AS("dense", kiln_rows(s->S, s->X, good));
    REFUSED_AS("number 6", kiln_rows(s->square, s->X, beyond));
    REFUSED_AS("number -1", kiln_rows(s->square, s->X, negative));
    REFUSED_AS("must not be X", kiln_rows(s->square, s->square, good));
}

const struct operation operation_rows = {.name = "rows",
                                         .list = list,
                                         .prepare = prepare,
                                         .run = run,
                                         .expect = expect,
                                         .flops = flops,
                                         .bytes = bytes,
                                         .refuse = refuse,
                                         .benchmark = {.k = 1000}};
