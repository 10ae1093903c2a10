/* The losses of several models in one pass, each without the rows of its fold: values, gradients and
 * intercepts' parts. Where X is not in one processor's memory the operation is not to be had, and one
 * kiln_loss_gradient a column, with weights of its own, is held against the same reference. fold and folds
 * are work->own. */
#include <stdlib.h>
#include <string.h>

#include "losses.h"
#include "ops/linear/fold_losses.h"

enum { FOLDS = 3, MODELS_MOST = 17 };

struct own {
    struct operand fold, values;
    int folds[MODELS_MOST];
};

static void list(struct problem_list *list) {
    static const int64_t models[] = {1, 2, 3, 5, 8, 9, MODELS_MOST};
    static const kiln_loss_kind kinds[] = {KILN_LOSS_LOGISTIC, KILN_LOSS_SQUARED, KILN_LOSS_SQUARED_HINGE};
    for (int i = 0; i < (int)(sizeof models / sizeof *models); i += list->thin ? 3 : 1)
        for (int format = KILN_DENSE; format <= KILN_CSR; format++)
            problem_add(list, (struct problem){.format = (kiln_format)format,
                                               .pattern = format == KILN_DENSE ? PATTERN_DENSE
                                                          : i % 2              ? PATTERN_CODES
                                                                               : PATTERN_UNIFORM,
                                               .rows = 1 + 300 * (i % 2) + 7 * i,
                                               .cols = 1 + 16 * i,
                                               .per_row = 5,
                                               .k = models[i],
                                               .kind = kinds[i % 3],
                                               .flags = i % 2 ? WITH_WEIGHTS | WITH_SHIFT : WITH_SHIFT});
}

static void free_own(void *of) {
    struct own *own = of;
    operand_free(&own->fold);
    operand_free(&own->values);
    free(own);
}

static kiln_loss loss_of_folds(const struct work *work) {
    return (kiln_loss){.kind = (kiln_loss_kind)work->problem->kind,
                       .y = work->target.matrix,
                       .weights = work->weights.matrix};
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    struct own *own = calloc(1, sizeof *own);
    if (!own) return KILN_ERR_NOMEM;
    work->own = own;
    work->free_own = free_own;
    CHECK_OK(make_X(work));
    CHECK_OK(make_coefficients(work));
    host_new(&work->target, work->type, p->rows, 1);
    host_new(&own->fold, work->type, p->rows, 1);
    for (int64_t i = 0; i < p->rows; i++) {
        const double positive = random_uniform(99, (uint64_t)i) < 0.4 ? 1 : 0;
        host_set(&work->target.host, i, p->kind == KILN_LOSS_SQUARED_HINGE ? 2 * positive - 1 : positive);
        host_set(&own->fold.host, i, (double)(i * 5 % FOLDS));
    }
    for (int64_t c = 0; c < p->k; c++) own->folds[c] = c == 3 ? -1 : (int)(c % FOLDS);
    CHECK_OK(operand_upload(work, &work->target));
    CHECK_OK(operand_upload(work, &own->fold));
    if (p->flags & WITH_WEIGHTS) CHECK_OK(make_between(work, &work->weights, p->rows, 1, 0, 3));
    if (p->flags & WITH_SHIFT) CHECK_OK(make_between(work, &work->shift, 1, p->k, -0.1, 0.1));
    CHECK_OK(make_result(work, RESULT_SUMS, 1, p->k));
    return make_output(work, p->cols, p->k);
}

/* Column c of a host matrix of k columns. */
static struct operand column_of(const struct work *work, const struct host_matrix *A, int64_t c) {
    struct operand column = {0};
    host_new(&column, work->type, A->rows, 1);
    for (int64_t i = 0; i < A->rows; i++) host_set(&column.host, i, host_get(A, i * A->cols + c));
    return column;
}

/* The weights that column c trains with. */
static struct operand weights_of(const struct work *work, int64_t c) {
    const struct own *own = work->own;
    struct operand weights = {0};
    host_new(&weights, work->type, work->problem->rows, 1);
    for (int64_t i = 0; i < work->problem->rows; i++)
        host_set(&weights.host, i,
                 host_get(&own->fold.host, i) == own->folds[c] ? 0
                 : work->weights.matrix                        ? host_get(&work->weights.host, i)
                                                               : 1);
    return weights;
}

static kiln_status run_together(struct work *work) {
    const struct own *own = work->own;
    const kiln_loss loss = loss_of_folds(work);
    kiln_matrix *values = NULL;
    kiln_status status = kiln_matrix_dense(&values, work->device, KILN_F64, 1, work->problem->k, NULL);
    if (!status)
        status = ki_fold_losses(&(struct ki_fold_losses){.values = values,
                                                         .G = work->w.matrix,
                                                         .gb = work->sums.matrix,
                                                         .loss = &loss,
                                                         .X = work->X.matrix,
                                                         .W = work->y.matrix,
                                                         .b = work->shift.matrix,
                                                         .fold = own->fold.matrix,
                                                         .folds = own->folds});
    if (!status) status = kiln_matrix_get(work->scalars, values);
    kiln_matrix_free(values);
    return status;
}

/* Column c by itself, into G and gb, which have one column. */
static kiln_status run_column(struct work *work, int64_t c, kiln_matrix *G, kiln_matrix *gb) {
    struct operand W = column_of(work, &work->y.host, c), s = weights_of(work, c), b = {0};
    kiln_loss loss = loss_of_folds(work);
    kiln_status status = operand_upload(work, &W);
    if (!status) status = operand_upload(work, &s);
    if (work->shift.matrix) b = column_of(work, &work->shift.host, c);
    if (!status && work->shift.matrix) status = operand_upload(work, &b);
    loss.weights = s.matrix;
    if (!status)
        status =
            kiln_loss_gradient(&work->scalars[c], G, gb, NULL, &loss, work->X.matrix, W.matrix, b.matrix);
    operand_free(&W);
    operand_free(&s);
    operand_free(&b);
    return status;
}

static kiln_status run_apart(struct work *work) {
    const int64_t n = work->problem->cols, k = work->problem->k, element = work->type == KILN_F32 ? 4 : 8;
    kiln_matrix *G = NULL, *gb = NULL;
    char *all = calloc((size_t)((n + 1) * (k + 1)), (size_t)element), *one = all + (n + 1) * k * element;
    if (!all) return KILN_ERR_NOMEM;
    kiln_status status = kiln_matrix_dense(&G, work->device, work->type, n, 1, NULL);
    if (!status) status = kiln_matrix_dense(&gb, work->device, work->type, 1, 1, NULL);
    for (int64_t c = 0; c < k && !status; c++) {
        status = run_column(work, c, G, gb);
        if (!status) status = kiln_matrix_get(one, G);
        for (int64_t j = 0; j < n && !status; j++)
            memcpy(all + (j * k + c) * element, one + j * element, (size_t)element);
        if (!status) status = kiln_matrix_get(all + (n * k + c) * element, gb);
    }
    if (!status) status = kiln_matrix_set(work->w.matrix, all);
    if (!status) status = kiln_matrix_set(work->sums.matrix, all + n * k * element);
    kiln_matrix_free(G);
    kiln_matrix_free(gb);
    free(all);
    return status;
}

static kiln_status run(struct work *work) {
    return ki_fold_losses_apply(work->X.matrix) ? run_together(work) : run_apart(work);
}

/* Column c of k of the whole = what is expected of it alone. */
static void take_column(struct expected *whole, struct expected *alone, int64_t k, int64_t c) {
    whole->unit = alone->unit;
    whole->gate = alone->gate;
    for (int64_t j = 0; j < alone->count; j++) {
        whole->value[j * k + c] = alone->value[j];
        whole->gauge[j * k + c] = alone->gauge[j];
    }
    expected_free(alone);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct problem *p = work->problem;
    expected[RESULT_W] = expected_new(work->type, p->cols * p->k);
    expected[RESULT_SUMS] = expected_new(work->type, p->k);
    expected[RESULT_SCALARS] = expected_new(work->type, p->k);
    for (int64_t c = 0; c < p->k; c++) {
        struct expected value, G, gb, C;
        struct operand W = column_of(work, &work->y.host, c), s = weights_of(work, c), b = {0};
        if (work->shift.matrix) b = column_of(work, &work->shift.host, c);
        const struct host_loss loss = {.kind = p->kind, .y = &work->target.host, .weights = &s.host};
        reference_loss_gradient(&value, &G, &gb, &C, &loss, &work->X.host, &W.host,
                                work->shift.matrix ? &b.host : NULL);
        take_column(&expected[RESULT_W], &G, p->k, c);
        take_column(&expected[RESULT_SUMS], &gb, p->k, c);
        take_column(&expected[RESULT_SCALARS], &value, p->k, c);
        expected_free(&C);
        operand_free(&W);
        operand_free(&s);
        operand_free(&b);
    }
}

static double flops(const struct work *work) {
    return 4 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w) +
           operand_bytes(&work->target) + operand_bytes(&work->weights);
}

const struct operation operation_fold_losses = {
    .name = "fold_losses",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .benchmark = {.k = 5, .flags = WITH_SHIFT, .kind = KILN_LOSS_LOGISTIC},
    .atomics = true};
