/* A pass over X cut into 1, 2, 3 and 7 slices of rows (pass/roles.h) leaves what the pass over the whole
 * does, for each kind and map. All numbers are small integers, so that sums are exact and results equal, but
 * for those of losses. */
#include <stdlib.h>

#include "cases.h"
#include "pass/roles.h"

enum { ROWS = 211, COLS = 37, K = 3, OPERANDS = KI_RULES_MOST };

static const struct variant {
    const char *name;
    struct ki_chain chain; /* kind, map, k, loss */
    double tolerance;      /* in units of rounding, of the largest number */
} variants[] = {
    {"mmchain", {.kind = KI_CHAIN_FUSED, .k = K}, 0},
    {"mmchain of a column", {.kind = KI_CHAIN_FUSED, .k = 1}, 0},
    {"multiply", {.kind = KI_CHAIN_PLAIN, .k = K}, 0},
    {"multiply by X^T", {.kind = KI_CHAIN_TRANSPOSED, .k = K}, 0},
    {"gram_diagonal", {.kind = KI_CHAIN_SQUARES, .k = 1}, 0},
    {"logistic loss",
     {.kind = KI_CHAIN_FUSED, .map = KI_ROW_LOSS, .k = 1, .loss = {.kind = KILN_LOSS_LOGISTIC}},
     64},
    {"softmax loss",
     {.kind = KI_CHAIN_FUSED, .map = KI_ROW_SOFTMAX_LOSS, .k = K, .loss = {.kind = KILN_LOSS_SOFTMAX}},
     64},
    {"softmax curvature",
     {.kind = KI_CHAIN_FUSED, .map = KI_ROW_SOFTMAX, .k = K, .loss = {.kind = KILN_LOSS_SOFTMAX}},
     64},
};

/* An operand of small integers from `least` on. */
static kiln_matrix *operand(struct check_context *context, kiln_type type, int64_t rows, int64_t cols,
                            int stream, int least, int numbers) {
    struct operand A = {0};
    struct work work = {.device = context->device, .type = type};
    host_new(&A, type, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++)
        host_set(&A.host, i, least + (int)(random_uniform((uint64_t)stream, (uint64_t)i) * numbers));
    kiln_matrix *made = operand_upload(&work, &A) == KILN_OK ? A.matrix : NULL;
    A.matrix = NULL;
    operand_free(&A);
    return made;
}

/* Every operand that the chain's kind and map know. */
static void make_operands(struct check_context *context, struct ki_chain *chain, double *value) {
    const kiln_type type = context->type;
    const bool plain = chain->kind == KI_CHAIN_PLAIN, fused = chain->kind == KI_CHAIN_FUSED;
    const bool scales = chain->map == KI_ROW_SCALE, losses = !scales && chain->map != KI_ROW_SOFTMAX;
    const int64_t out = plain ? ROWS : COLS, k = chain->k;
    chain->alpha = 2;
    chain->out = operand(context, type, out, k, 1, 0, 1);
    chain->y = operand(context, type, fused || plain ? COLS : ROWS, k, 2, -2, 5);
    if (chain->kind != KI_CHAIN_SQUARES) chain->z = operand(context, type, out, k, 3, -2, 5);
    chain->beta = chain->z ? 3 : 0;
    if (!fused) return;
    if (scales || !losses) chain->v = operand(context, type, ROWS, scales ? 1 : k, 4, 0, 3);
    chain->shift = operand(context, type, 1, k, 5, -2, 5);
    chain->sums = operand(context, type, 1, k, 6, 0, 1);
    if (scales) chain->products = operand(context, ki_wide_type(context->device), 1, k, 7, 0, 1);
    if (scales) return;
    chain->loss.weights = operand(context, type, ROWS, 1, 8, 0, 3);
    if (!losses) return;
    chain->loss.y = operand(context, type, ROWS, 1, 9, 0, chain->map == KI_ROW_LOSS ? 2 : K);
    if (chain->map == KI_ROW_LOSS) chain->loss.offset = operand(context, type, ROWS, 1, 10, -1, 3);
    chain->curvature = operand(context, type, ROWS, k, 11, 0, 1);
    chain->value = value;
}

static void free_operands(const struct ki_chain *chain) {
    struct ki_operand operands[OPERANDS];
    ki_operands_list(operands, &ki_chain_rules, chain);
    for (int i = 0; i < OPERANDS; i++) kiln_matrix_free((kiln_matrix *)(uintptr_t)operands[i].matrix);
}

/* Rows [first, first + rows) of X as a matrix of their own. */
static kiln_matrix *rows_of(struct check_context *context, const struct host_matrix *X, int64_t first,
                            int64_t rows) {
    const size_t element = X->type == KILN_F32 ? 4 : 8;
    kiln_matrix *made = NULL;
    if (!X->row_start) {
        kiln_matrix_dense(&made, context->device, X->type, rows, X->cols,
                          (const char *)X->values + (size_t)(first * X->cols) * element);
        return made;
    }
    int64_t start[ROWS + 1];
    const int64_t begin = X->row_start[first];
    for (int64_t r = 0; r <= rows; r++) start[r] = X->row_start[first + r] - begin;
    kiln_matrix_csr(&made, context->device, X->type, rows, X->cols, start, X->col + begin,
                    (const char *)X->values + (size_t)begin * element);
    return made;
}

static kiln_status run_slice(const void *slice) {
    return ki_chain_run(slice);
}

static void go_on(void *of) {
    struct ki_chain *slice = of;
    slice->z = slice->out;
    slice->beta = 1;
}

/* The chain in so many slices; all results into `results`, one after the other. */
static kiln_status run_sliced(struct check_context *context, const struct host_matrix *host,
                              const struct ki_chain *whole, int slices, kiln_matrix *X) {
    struct ki_sums sums;
    struct ki_chain chain = *whole;
    chain.X = X;
    const struct ki_single single = {.rules = &ki_chain_rules,
                                     .kind = (int)chain.kind,
                                     .whole = &chain,
                                     .sums = chain.value != NULL,
                                     .run = run_slice,
                                     .go_on = go_on};
    kiln_status status = ki_sums_begin(&sums, &single);
    for (int i = 0; i < slices && status == KILN_OK; i++) {
        const int64_t first = ROWS * i / slices, end = ROWS * (i + 1) / slices;
        kiln_matrix *part = rows_of(context, host, first, end - first);
        status = part ? ki_sums_add(&sums, part, first) : KILN_ERR_NOMEM;
        kiln_matrix_free(part);
    }
    if (status == KILN_OK) ki_sums_give(&sums);
    ki_sums_end(&sums);
    return status;
}

static double number(const void *values, kiln_type type, int64_t i) {
    return type == KILN_F64 ? ((const double *)values)[i] : ((const float *)values)[i];
}

/* The largest difference of two results, in units of rounding of their largest number. */
static double differs(const struct ki_operand *one, const struct ki_operand *other) {
    const kiln_matrix *A = one->matrix, *B = other->matrix;
    double most = 0, largest = 0;
    if (!A || !one->written) return 0;
    void *a = calloc((size_t)A->nnz, 8), *b = calloc((size_t)A->nnz, 8);
    if (kiln_matrix_get(a, A) != KILN_OK || kiln_matrix_get(b, B) != KILN_OK) most = INFINITY;
    for (int64_t i = 0; i < A->nnz; i++) {
        const double x = number(a, A->type, i), y = number(b, A->type, i);
        largest = fmax(largest, fabs(x));
        most = x - y == 0 ? most : fmax(most, fabs(x - y)) + (isnan(x - y) ? INFINITY : 0);
    }
    free(a);
    free(b);
    return most == 0 ? 0 : most / (largest * (A->type == KILN_F32 ? 0x1p-23 : 0x1p-52));
}

static void compare(struct check_context *context, const struct variant *variant,
                    const struct host_matrix *host, int slices) {
    struct ki_chain whole = variant->chain, sliced = variant->chain;
    struct ki_operand expected[OPERANDS], got[OPERANDS];
    double values[2] = {0}, worst = 0;
    kiln_matrix *X = rows_of(context, host, 0, ROWS);
    make_operands(context, &whole, &values[0]);
    make_operands(context, &sliced, &values[1]);
    whole.X = X;
    kiln_status status = ki_chain_run(&whole);
    if (status == KILN_OK) status = run_sliced(context, host, &sliced, slices, X);
    ki_operands_list(expected, &ki_chain_rules, &whole);
    ki_operands_list(got, &ki_chain_rules, &sliced);
    for (int i = 0; i < OPERANDS; i++) worst = fmax(worst, differs(&expected[i], &got[i]));
    check_report(context, status == KILN_OK && worst <= variant->tolerance,
                 "slices: %s, %s, %d slices: off by %.3g units: %s", variant->name,
                 host->row_start ? "sparse" : "dense", slices, worst,
                 status == KILN_OK ? "" : kiln_last_error()->message);
    check_report(context, fabs(values[0] - values[1]) <= 1e-6 * fabs(values[0]),
                 "slices: %s, %d slices: the value is %.9g, but of the whole %.9g", variant->name, slices,
                 values[1], values[0]);
    free_operands(&whole);
    free_operands(&sliced);
    kiln_matrix_free(X);
}

static void run(struct check_context *context) {
    static const int slices[] = {1, 2, 3, 7};
    static const struct problem problems[] = {
        {.format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = ROWS, .cols = COLS, .k = 1},
        {.format = KILN_CSR, .pattern = PATTERN_UNIFORM, .rows = ROWS, .cols = COLS, .per_row = 5, .k = 1}};
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        struct work work = {.problem = &problems[p], .device = context->device, .type = context->type};
        const kiln_status status = make_X(&work);
        check_report(context, status == KILN_OK, "slices: X: %s", kiln_last_error()->message);
        for (int64_t i = 0; status == KILN_OK && i < work.X.host.nnz; i++)
            host_set(&work.X.host, i, (int)(random_uniform(12, (uint64_t)i) * 5) - 2);
        for (size_t v = 0; status == KILN_OK && v < sizeof variants / sizeof *variants; v++)
            for (size_t s = 0; s < sizeof slices / sizeof *slices; s++)
                compare(context, &variants[v], &work.X.host, slices[s]);
        work_free(&work);
    }
}

const struct check check_slices = {.name = "slices",
                                   .run = run,
                                   .only_cpu =
                                       "elsewhere rows begin where a buffer may; streaming tests have those"};
