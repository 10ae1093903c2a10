/* This file says what must hold between results whatever the reference says: w = X^T (v .* (X y)) is linear
 * in y, does not care about the order of rows, and is the sum of what two blocks of rows give, on which
 * several devices will rely. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { ROWS = 211, COLS = 130, K = 3 };

struct side {
    struct host_matrix X, v, y;
};

/* w of one side, as doubles, and its gauge: what rounding is measured against. */
static kiln_status chain(struct check_context *context, const struct side *side, double *w,
                         struct expected *expected) {
    struct work work = {.device = context->device, .type = context->type};
    work.X.host = side->X;
    work.v.host = side->v;
    work.y.host = side->y;
    host_new(&work.w, context->type, COLS, K);
    kiln_status status = operand_upload(&work, &work.X);
    if (status == KILN_OK) status = operand_upload(&work, &work.v);
    if (status == KILN_OK) status = operand_upload(&work, &work.y);
    if (status == KILN_OK) status = operand_upload(&work, &work.w);
    if (status == KILN_OK)
        status = kiln_mmchain(work.w.matrix, 1, work.X.matrix, work.v.matrix, work.y.matrix, 0, NULL);
    if (status == KILN_OK) status = kiln_matrix_get(work.w.host.values, work.w.matrix);
    for (int64_t e = 0; e < COLS * K; e++) w[e] = host_get(&work.w.host, e);
    reference_mmchain(expected, 1, &side->X, &side->v, &side->y, 0, NULL);
    kiln_matrix_free(work.X.matrix);
    kiln_matrix_free(work.v.matrix);
    kiln_matrix_free(work.y.matrix);
    operand_free(&work.w);
    return status;
}

/* w of the whole must be s times w of one side plus w of another, each within its own bound. */
static void adds_up(struct check_context *context, const char *what, const struct side *whole, double s,
                    const struct side *one, const struct side *other) {
    double w[COLS * K], w1[COLS * K] = {0}, w2[COLS * K] = {0};
    struct expected e, e1 = {0}, e2 = {0};
    kiln_status status = chain(context, whole, w, &e);
    if (status == KILN_OK) status = chain(context, one, w1, &e1);
    if (status == KILN_OK && other) status = chain(context, other, w2, &e2);
    check_report(context, status == KILN_OK, "%s: %s", what, kiln_last_error()->message);
    double worst = 0;
    for (int64_t i = 0; status == KILN_OK && i < COLS * K; i++) {
        double gauge = (double)(e.gauge[i] + fabs(s) * e1.gauge[i] + (other ? e2.gauge[i] : 0));
        double error = fabs(w[i] - s * w1[i] - w2[i]);
        /* One unit more than the bound of each: forming the sum, and the operands of a sum, rounds once. */
        if (error > 0) worst = fmax(worst, error / ((e.gate + 1) * e.unit * gauge));
    }
    if (status == KILN_OK) check_report(context, worst <= 1, "%s: off by %.3g of the bound", what, worst);
    expected_free(&e);
    expected_free(&e1);
    expected_free(&e2);
}

static size_t element_size(const struct host_matrix *A) {
    return A->type == KILN_F32 ? 4 : 8;
}

static void linearity(struct check_context *context, const struct side *side) {
    struct side one = *side, other = *side;
    struct operand y1 = {0}, y2 = {0};
    host_new(&y1, context->type, COLS, K);
    host_new(&y2, context->type, COLS, K);
    for (int64_t e = 0; e < COLS * K; e++) {
        host_set(&y1.host, e, 2 * random_uniform(11, (uint64_t)e) - 1);
        host_set(&y2.host, e, 2 * random_uniform(12, (uint64_t)e) - 1);
        host_set((struct host_matrix *)&side->y, e, -1.75 * host_get(&y1.host, e) + host_get(&y2.host, e));
    }
    one.y = y1.host;
    other.y = y2.host;
    adds_up(context, "linearity", side, -1.75, &one, &other);
    free(y1.host.values);
    free(y2.host.values);
}

/* The rows [first, last) of X and v, which the result shares with the original. row_start is its own. */
static struct side rows_of(const struct side *side, int64_t first, int64_t last) {
    struct side part = *side;
    int64_t start = side->X.row_start ? side->X.row_start[first] : first * COLS;
    int64_t end = side->X.row_start ? side->X.row_start[last] : last * COLS;
    part.X.rows = part.v.rows = last - first;
    part.X.nnz = end - start;
    part.v.nnz = last - first;
    part.X.values = (char *)side->X.values + (size_t)start * element_size(&side->X);
    part.v.values = (char *)side->v.values + (size_t)first * element_size(&side->v);
    if (!side->X.row_start) return part;
    part.X.col = side->X.col + start;
    part.X.row_start = malloc((size_t)(last - first + 1) * sizeof(int64_t));
    for (int64_t i = first; i <= last; i++) part.X.row_start[i - first] = side->X.row_start[i] - start;
    return part;
}

static void blocks(struct check_context *context, const struct side *side) {
    struct side top = rows_of(side, 0, 77), bottom = rows_of(side, 77, ROWS);
    adds_up(context, "two blocks of rows", side, 1, &top, &bottom);
    free(top.X.row_start);
    free(bottom.X.row_start);
}

/* Row i of the original becomes row ROWS-1-i. */
static void permutation(struct check_context *context, const struct side *side) {
    struct side turned = *side;
    struct operand v = {0}, X = {0};
    host_new(&v, context->type, ROWS, 1);
    host_new(&X, context->type, 1, side->X.nnz);
    int64_t *row_start = calloc(ROWS + 1, sizeof *row_start), end = 0;
    int32_t *col = calloc((size_t)side->X.nnz, sizeof *col);
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t from = ROWS - 1 - i;
        int64_t begin = side->X.row_start ? side->X.row_start[from] : from * COLS;
        int64_t stop = side->X.row_start ? side->X.row_start[from + 1] : (from + 1) * COLS;
        host_set(&v.host, i, host_get(&side->v, from));
        for (int64_t e = begin; e < stop; e++, end++) {
            host_set(&X.host, end, host_get(&side->X, e));
            if (side->X.col) col[end] = side->X.col[e];
        }
        row_start[i + 1] = end;
    }
    turned.v.values = v.host.values;
    turned.X.values = X.host.values;
    turned.X.col = col;
    if (side->X.row_start) turned.X.row_start = row_start;
    adds_up(context, "order of rows", side, 1, &turned, NULL);
    free(v.host.values);
    free(X.host.values);
    free(row_start);
    free(col);
}

static void run(struct check_context *context) {
    for (int sparse = 0; sparse < 2; sparse++) {
        struct problem p = {.format = sparse ? KILN_CSR : KILN_DENSE,
                            .pattern = sparse ? PATTERN_POWER_LAW : PATTERN_DENSE,
                            .rows = ROWS,
                            .cols = COLS,
                            .per_row = 12,
                            .k = K};
        struct work work = {.problem = &p, .device = context->device, .type = context->type};
        kiln_status status = make_X(&work);
        if (status == KILN_OK) status = make_random(&work, &work.v, ROWS, 1);
        if (status == KILN_OK) status = make_random(&work, &work.y, COLS, K);
        check_report(context, status == KILN_OK, "making operands: %s", kiln_last_error()->message);
        struct side side = {work.X.host, work.v.host, work.y.host};
        if (status == KILN_OK) {
            blocks(context, &side);
            permutation(context, &side);
            linearity(context, &side);
        }
        work_free(&work);
    }
}

const struct check check_properties = {.name = "properties", .run = run};
