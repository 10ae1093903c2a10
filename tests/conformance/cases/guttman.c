/* A step of SMACOF: R, U, the sums and the points' stress, of a matrix of dissimilarities or of points, with
 * weights and without.
 * Flags: V weights, SUMS U, CURVATURE the points' stress, TRANSPOSED points in place of dissimilarities. The
 * first two points lie at the same place. */
#include <math.h>

#include "cases.h"
#include "refusals.h"

enum { SUMS = 4 };

static void list(struct problem_list *list) {
    static const int64_t sizes[][2] = {{1, 2},   {2, 1},   {3, 2},   {5, 3},   {31, 2},
                                       {64, 2},  {65, 1},  {66, 5},  {97, 2},  {130, 3},
                                       {200, 2}, {257, 2}, {515, 2}, {516, 2}, {1100, 3}};
    static const unsigned variants[] = {0,
                                        WITH_SUMS | WITH_CURVATURE,
                                        WITH_V,
                                        WITH_TRANSPOSED,
                                        WITH_V | WITH_SUMS,
                                        WITH_TRANSPOSED | WITH_SUMS,
                                        WITH_V | WITH_TRANSPOSED | WITH_CURVATURE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
            const int64_t n = sizes[i][0];
            if (list->thin && (sizes[i][1] != 2 || (i + v) % 3))
                continue; /* where each is a kernel to build */
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = n,
                                               .cols = variants[v] & WITH_TRANSPOSED ? 19 : n,
                                               .k = sizes[i][1],
                                               .flags = variants[v]});
        }
}

/* Numbers in [0, 1), every seventh 0. */
static kiln_status make_positive(struct work *work, struct operand *A, int64_t rows, int64_t cols,
                                 uint64_t stream) {
    host_new(A, work->type, rows, cols);
    for (int64_t e = 0; e < rows * cols; e++)
        host_set(&A->host, e, e % 7 == 3 ? 0 : random_uniform(stream, (uint64_t)e));
    return operand_upload(work, A);
}

static kiln_status make_layout(struct work *work) {
    const int64_t n = work->problem->rows, p = work->problem->k;
    host_new(&work->y, work->type, n, p);
    for (int64_t e = 0; e < n * p; e++)
        host_set(&work->y.host, e, random_uniform(93, (uint64_t)(e < 2 * p ? e % p : e)));
    return operand_upload(work, &work->y);
}

static void free_sums(void *own) {
    kiln_matrix_free(own);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    kiln_device_info info = {0};
    kiln_matrix *sums = NULL;
    CHECK_OK(make_layout(work));
    CHECK_OK(make_positive(work, &work->X, p->rows, p->cols, 91));
    if (p->flags & WITH_V) CHECK_OK(make_positive(work, &work->v, p->rows, p->rows, 92));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, p->rows, p->k));
    if (p->flags & WITH_CURVATURE) CHECK_OK(make_result(work, RESULT_CURVATURE, p->rows, 1));
    CHECK_OK(kiln_device_get_info(work->device, &info));
    CHECK_OK(kiln_matrix_dense(&sums, work->device, info.has_f64 ? KILN_F64 : KILN_F32, 1, SUMS, NULL));
    work->own = sums;
    work->free_own = free_sums;
    return make_output(work, p->rows, p->k);
}

static kiln_status run(struct work *work) {
    const bool points = work->problem->flags & WITH_TRANSPOSED;
    const kiln_guttman step = {.R = work->w.matrix,
                               .U = work->sums.matrix,
                               .sums = work->own,
                               .points = work->curvature.matrix,
                               .Y = work->y.matrix,
                               .D = points ? NULL : work->X.matrix,
                               .X = points ? work->X.matrix : NULL,
                               .weights = work->v.matrix};
    CHECK_OK(kiln_guttman_step(&step));
    if (kiln_matrix_type(work->own) == KILN_F64) return kiln_matrix_get(work->scalars, work->own);
    float sums[SUMS];
    CHECK_OK(kiln_matrix_get(sums, work->own));
    for (int s = 0; s < SUMS; s++) work->scalars[s] = (double)sums[s];
    return KILN_OK;
}

static long double delta_of(const struct work *work, int64_t i, int64_t j) {
    const struct host_matrix *X = &work->X.host;
    long double square = 0;
    if (!(work->problem->flags & WITH_TRANSPOSED)) return (long double)host_get(X, i * X->cols + j);
    for (int64_t c = 0; c < X->cols; c++) {
        const long double apart =
            (long double)host_get(X, i * X->cols + c) - (long double)host_get(X, j * X->cols + c);
        square += apart * apart;
    }
    return sqrtl(square);
}

static void add(struct expected *to, int64_t at, long double value, long double gauge) {
    if (!to->value) return;
    to->value[at] += value;
    to->gauge[at] += fabsl(gauge);
}

/* Adds what pair i < j gives. The gauges of stress have the rounding of delta and d, of which it is the
 * difference. */
static void add_pair(struct expected *e, const struct work *work, int64_t i, int64_t j) {
    const int64_t n = work->problem->rows, p = work->problem->k;
    const long double delta = delta_of(work, i, j);
    const long double w = work->v.matrix ? (long double)host_get(&work->v.host, i * n + j) : 1;
    long double apart[8], square = 0;
    for (int64_t c = 0; c < p; c++) {
        apart[c] =
            (long double)host_get(&work->y.host, i * p + c) - (long double)host_get(&work->y.host, j * p + c);
        square += apart[c] * apart[c];
    }
    const long double d = sqrtl(square), rest = delta - d, stress = w * rest * rest;
    const long double gauge = stress + 8 * w * fabsl(rest) * (delta + d);
    for (int64_t c = 0; c < p; c++) {
        const long double along = d > 0    ? apart[c] / d
                                  : c == 0 ? 1
                                           : 0,
                          pull = w * delta * along, push = w * along;
        add(&e[RESULT_W], i * p + c, pull, pull);
        add(&e[RESULT_W], j * p + c, -pull, pull);
        add(&e[RESULT_SUMS], i * p + c, push, push);
        add(&e[RESULT_SUMS], j * p + c, -push, push);
    }
    add(&e[RESULT_CURVATURE], i, stress, gauge);
    add(&e[RESULT_CURVATURE], j, stress, gauge);
    add(&e[RESULT_SCALARS], 0, stress, gauge);
    add(&e[RESULT_SCALARS], 1, w * square, w * square);
    if (!(work->problem->flags & WITH_SUMS)) return;
    add(&e[RESULT_SCALARS], 2, w * d, w * d);
    add(&e[RESULT_SCALARS], 3, w * delta * d, w * delta * d);
}

static void expect(struct expected *expected, const struct work *work) {
    const int64_t n = work->problem->rows, p = work->problem->k;
    const double terms = (double)n + 40 + (work->problem->flags & WITH_TRANSPOSED ? 19 : 0);
    expected[RESULT_W] = expected_new(work->type, n * p);
    if (work->sums.matrix) expected[RESULT_SUMS] = expected_new(work->type, n * p);
    if (work->curvature.matrix) expected[RESULT_CURVATURE] = expected_new(work->type, n);
    expected[RESULT_SCALARS] = expected_new(work->type, SUMS);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) add_pair(expected, work, i, j);
    for (int r = 0; r < RESULTS; r++)
        if (expected[r].value) expected[r].gate = gate_for_terms(terms);
}

static double pairs(const struct work *work) {
    return (double)work->problem->rows * (double)(work->problem->rows - 1) / 2;
}

static double flops(const struct work *work) {
    return pairs(work) * (20 * (double)work->problem->k +
                          (work->problem->flags & WITH_TRANSPOSED ? 3 * (double)work->problem->cols : 0));
}

static double bytes(const struct work *work) {
    const double element = work->type == KILN_F32 ? 4 : 8;
    const bool points = work->problem->flags & WITH_TRANSPOSED;
    return (points ? operand_bytes(&work->X) : element * pairs(work)) +
           (work->v.matrix ? element * pairs(work) : 0) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    kiln_device_info info = {0};
    kiln_matrix *sums = NULL;
    (void)kiln_device_get_info(s->device, &info);
    if (kiln_matrix_dense(&sums, s->device, info.has_f64 ? KILN_F64 : KILN_F32, 1, SUMS, NULL) != KILN_OK) {
        check_report(context, false, "no memory");
        return;
    }
    const kiln_guttman good = {.R = s->w, .sums = sums, .Y = s->y, .D = s->square};
    kiln_guttman step = good;
#define WITH(field, value) (step = good, step.field = (value), &step)
    REFUSED(kiln_guttman_step(NULL));
    REFUSED(kiln_guttman_step(WITH(R, NULL)));
    REFUSED(kiln_guttman_step(WITH(R, s->p)));
    REFUSED(kiln_guttman_step(WITH(R, (kiln_matrix *)s->y)));
    REFUSED(kiln_guttman_step(WITH(Y, NULL)));
    REFUSED(kiln_guttman_step(WITH(Y, s->y_type)));
    REFUSED(kiln_guttman_step(WITH(Y, s->y_device)));
    REFUSED(kiln_guttman_step(WITH(D, NULL)));
    REFUSED(kiln_guttman_step(WITH(D, s->X)));
    REFUSED(kiln_guttman_step(WITH(X, s->y))); /* both */
    REFUSED(kiln_guttman_step(WITH(weights, s->X)));
    REFUSED(kiln_guttman_step(WITH(U, s->w)));
    REFUSED(kiln_guttman_step(WITH(U, s->p)));
    REFUSED(kiln_guttman_step(WITH(points, s->w)));
    REFUSED(kiln_guttman_step(WITH(sums, NULL)));
    REFUSED(kiln_guttman_step(WITH(sums, s->w)));
#undef WITH
    kiln_matrix_free(sums);
}

const struct operation operation_guttman = {.name = "guttman",
                                            .list = list,
                                            .prepare = prepare,
                                            .run = run,
                                            .expect = expect,
                                            .flops = flops,
                                            .bytes = bytes,
                                            .refuse = refuse,
                                            .benchmark = {.k = 2}};
