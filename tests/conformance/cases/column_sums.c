/* Sums over the columns of a dense X: of squares and of entries about c, and of products with y - d, each
 * row weighted. Where X is not dense in a GPU's memory there is no such walk, and the operations that take
 * its place (algorithms/moments.c) are held against the same reference, about zero. v is the rows' weights,
 * y the target, z is c; the three sums are columns of the result. */
#include <stdlib.h>

#include "ops/linear/scales.h"
#include "losses.h"
#include "refusals.h"

static const double ABOUT = 0.375; /* d */
enum { SUMS = 3, MANY = 50000 };
/* Whose squares, added 256 times in f32, are rounded to the same side too often: 64 units off, 9 after 32
 * times. */
static const double BIASED = 0.08673042;

static void list(struct problem_list *list) {
    static const int64_t widths[] = {1, 2, 3, 17, 64, 129, 1000};
    static const int64_t heights[] = {1, 37, 700, 4099};
    for (int i = 0; i < (int)(sizeof widths / sizeof *widths); i++)
        for (int h = 0; h < 4; h++) {
            if ((list->thin && (i + h) % 3) || (h == 3 && widths[i] > 200)) continue;
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = heights[h],
                                               .cols = widths[i],
                                               .k = 1,
                                               .flags = (i + h) % 2 ? WITH_V : 0});
        }
    if (!list->thin)
        problem_add(list,
                    (struct problem){
                        .format = KILN_DENSE, .pattern = PATTERN_DENSE, .rows = MANY, .cols = 3, .k = 1});
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    const bool many = p->rows == MANY;
    CHECK_OK(many ? make_between(work, &work->X, p->rows, p->cols, BIASED, BIASED) : make_X(work));
    CHECK_OK(make_random(work, &work->y, p->rows, 1));
    CHECK_OK(many ? make_between(work, &work->z, p->cols, 1, 0, 0) : make_random(work, &work->z, p->cols, 1));
    work->coefficients[0] = ki_column_sums_apply(work->X.matrix) ? 1 : 0; /* of c */
    if (p->flags & WITH_V) CHECK_OK(make_random(work, &work->v, p->rows, 1));
    return make_output(work, p->cols, SUMS);
}

/* The same by operations of several passes. */
static kiln_status run_apart(struct work *work, kiln_matrix *const sums[SUMS]) {
    const double one = 1, minus = -ABOUT;
    const kiln_matrix *X = work->X.matrix, *v = work->v.matrix;
    kiln_matrix *ones = NULL, *right = NULL;
    kiln_status status = kiln_matrix_dense(&ones, work->device, work->type, work->problem->rows, 1, NULL);
    if (!status) status = kiln_matrix_dense(&right, work->device, work->type, work->problem->rows, 1, NULL);
    if (!status) status = kiln_fill(ones, 1);
    if (!status) status = kiln_combine(right, &one, work->y.matrix, &minus, ones);
    if (!status && v) status = kiln_times(right, right, v);
    if (!status) status = kiln_gram_diagonal(sums[0], X, v);
    if (!status) status = kiln_multiply(sums[1], 1, KILN_TRANSPOSED, X, v ? v : ones, 0, NULL);
    if (!status) status = kiln_multiply(sums[2], 1, KILN_TRANSPOSED, X, right, 0, NULL);
    kiln_matrix_free(ones);
    kiln_matrix_free(right);
    return status;
}

/* The three into columns of w. */
static kiln_status gather(struct work *work, kiln_matrix *const sums[SUMS]) {
    const int64_t n = work->problem->cols, element = work->type == KILN_F32 ? 4 : 8;
    char *all = calloc((size_t)(n * (SUMS + 1)) + 1, (size_t)element), *one = all + n * SUMS * element;
    kiln_status status = all ? KILN_OK : KILN_ERR_NOMEM;
    for (int c = 0; c < SUMS && !status; c++) {
        status = kiln_matrix_get(one, sums[c]);
        for (int64_t j = 0; j < n && !status; j++)
            for (int64_t b = 0; b < element; b++) all[(j * SUMS + c) * element + b] = one[j * element + b];
    }
    if (!status) status = kiln_matrix_set(work->w.matrix, all);
    free(all);
    return status;
}

static kiln_status run(struct work *work) {
    kiln_matrix *sums[SUMS] = {NULL};
    kiln_status status = KILN_OK;
    for (int c = 0; c < SUMS && !status; c++)
        status = kiln_matrix_dense(&sums[c], work->device, work->type, work->problem->cols, 1, NULL);
    if (!status)
        status = work->coefficients[0] > 0 ? ki_column_sums(&(struct ki_column_sums){.square = sums[0],
                                                                                     .sum = sums[1],
                                                                                     .right = sums[2],
                                                                                     .X = work->X.matrix,
                                                                                     .v = work->v.matrix,
                                                                                     .y = work->y.matrix,
                                                                                     .d = ABOUT,
                                                                                     .c = work->z.matrix})
                                           : run_apart(work, sums);
    if (!status) status = gather(work, sums);
    for (int c = 0; c < SUMS; c++) kiln_matrix_free(sums[c]);
    return status;
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const int64_t m = work->problem->rows, n = work->problem->cols;
    struct expected *out = &expected[RESULT_W];
    *out = expected_new(work->type, n * SUMS);
    kiln_device_info info = {.size = sizeof info};
    const bool wide =
        work->coefficients[0] > 0 && kiln_device_get_info(work->device, &info) == KILN_OK && info.has_f64;
    const int64_t chain =
        wide && m > KI_COLUMN_SUMS_CHAIN ? KI_COLUMN_SUMS_CHAIN : m; /* then sums are in f64 */
    out->gate = gate_for_terms((double)chain + 4);
    for (int64_t i = 0; i < m; i++) {
        const long double v = work->v.matrix ? host_get(&work->v.host, i) : 1, y = host_get(&work->y.host, i);
        for (int64_t j = 0; j < n; j++) {
            const long double x = host_get(&work->X.host, i * n + j);
            const long double about = work->coefficients[0] * host_get(&work->z.host, j), off = x - about;
            const long double terms[SUMS] = {v * off * off, v * off, v * x * (y - ABOUT)},
                              size = fabsl(x) + fabsl(about),
                              sizes[SUMS] = {v * size * size, v * size, v * x * (fabsl(y) + ABOUT)};
            for (int c = 0; c < SUMS; c++) {
                out->value[j * SUMS + c] += terms[c];
                out->gauge[j * SUMS + c] += fabsl(sizes[c]);
            }
        }
    }
}

static double flops(const struct work *work) {
    return 7 * (double)work->X.host.nnz;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->v);
}

const struct operation operation_column_sums = {.name = "column_sums",
                                                .list = list,
                                                .prepare = prepare,
                                                .run = run,
                                                .expect = expect,
                                                .flops = flops,
                                                .bytes = bytes,
                                                .benchmark = {.k = 1}};
