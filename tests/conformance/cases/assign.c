/* The nearest of k centres, and what each centre's rows add up to: widths and numbers of centres around those
 * of tiles and panels; two centres that are equal; SHIFT: centres so close together that f32 cannot tell
 * which is nearest; OFFSET: rows and centres so far from zero that the type cannot. y is C. Results: W
 * labels, SUMS sums, CURVATURE distances, SCALARS totals. */
#include <stdlib.h>

#include "refusals.h"

enum { LEFT_OUT = 500 }; /* k from which on totals do not fit among the scalars */

static void add(struct problem_list *list, int64_t rows, int64_t cols, int64_t k, enum pattern pattern) {
    static const unsigned variants[] = {WITH_WEIGHTS | WITH_SUMS, WITH_SUMS | WITH_SHIFT, WITH_SHIFT, 0},
                          bounded[] = {WITH_SUMS | WITH_BOUNDS,
                                       WITH_SUMS | WITH_SHIFT | WITH_WEIGHTS | WITH_BOUNDS,
                                       WITH_SUMS | WITH_OFFSET | WITH_BOUNDS};
    struct problem p = {.format = pattern == PATTERN_DENSE ? KILN_DENSE : KILN_CSR,
                        .pattern = pattern,
                        .rows = rows,
                        .cols = cols,
                        .per_row = 5,
                        .k = k};
    for (int i = 0; i < (list->thin ? 2 : 4); i++) {
        p.flags = variants[(list->count + i) % 4];
        problem_add(list, p);
    }
    p.flags = WITH_OFFSET | (k <= LEFT_OUT ? WITH_SUMS : 0);
    if (!list->thin || cols < 9 || pattern != PATTERN_DENSE) problem_add(list, p);
    for (int i = 0; pattern == PATTERN_DENSE && cols > 16 && k <= LEFT_OUT && i < 3; i++) {
        p.flags = bounded[i];
        problem_add(list, p);
    }
}

static void list(struct problem_list *list) {
    static const int64_t shapes[][3] = {
        {0, 3, 2},      {5, 0, 3},      {1, 1, 1},       {3, 6, 7},      {257, 1, 5},     {401, 2, 33},
        {401, 4, 64},   {1003, 8, 31},  {97, 17, 70},    {700, 33, 12},  {65, 129, 9},    {300, 5, 400},
        {391, 48, 257}, {300, 131, 64}, {3001, 32, 100}, {2050, 64, 40}, {301, 100, 130}, {130, 128, 300},
        {190, 7, 9},    {4099, 3, 300}, {1500, 4, 490},  {2003, 128, 1}, {55, 9, 22}};
    /* The last's sums want all of 48 KB in f64; those of 490 centres leave a GPU room for half the rows. */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        add(list, shapes[i][0], shapes[i][1], shapes[i][2], PATTERN_DENSE);
    add(list, 20001, 3, 2, PATTERN_DENSE);
    add(list, 900, 700, 200, PATTERN_DENSE);
    add(list, 301, 40, 6, PATTERN_UNIFORM);
    add(list, 301, 40, 1, PATTERN_UNIFORM);
    add(list, 301, 40, 70, PATTERN_EMPTY_ROWS);
    add(list, 211, 90, 100, PATTERN_UNSORTED);
    add(list, 7, 5, 3, PATTERN_NO_ENTRIES);
}

/* Every tenth row counts for nothing. */
static kiln_status make_weights(struct work *work) {
    host_new(&work->weights, work->type, work->problem->rows, 1);
    for (int64_t i = 0; i < work->problem->rows; i++)
        host_set(&work->weights.host, i, i % 10 == 7 ? 0 : 0.1 + random_uniform(97, (uint64_t)i));
    return operand_upload(work, &work->weights);
}

/* Returns what all numbers are away from zero: a time stamp among them leaves f64 nothing of a product's
 * difference from another. */
static double offset_of(const struct work *work) {
    return !(work->problem->flags & WITH_OFFSET) ? 0 : work->type == KILN_F32 ? 3000 : 1e8;
}

static kiln_status make_rows(struct work *work) {
    struct operand *X = &work->X;
    CHECK_OK(make_X(work));
    if (offset_of(work) == 0) return KILN_OK;
    CHECK_OK(work_fetch(work));
    for (int64_t e = 0; e < X->host.nnz; e++) host_set(&X->host, e, host_get(&X->host, e) + offset_of(work));
    kiln_matrix_free(X->matrix);
    X->matrix = NULL;
    return operand_upload(work, X);
}

static kiln_status make_centres(struct work *work) {
    const struct problem *p = work->problem;
    host_new(&work->y, work->type, p->k, p->cols);
    for (int64_t e = 0; e < p->k * p->cols; e++) {
        const double far = offset_of(work), apart = far + 2 * random_uniform(98, (uint64_t)e) - 1;
        const double common = 2 * random_uniform(99, (uint64_t)(e % (p->cols + (p->cols == 0)))) - 1;
        host_set(&work->y.host, e, p->flags & WITH_SHIFT ? common + 1e-5 * apart : apart);
    }
    for (int64_t j = 0; p->k > 2 && j < p->cols; j++)
        host_set(&work->y.host, (p->k - 1) * p->cols + j, host_get(&work->y.host, p->cols + j));
    return operand_upload(work, &work->y);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_rows(work));
    CHECK_OK(make_centres(work));
    if (p->flags & WITH_WEIGHTS) CHECK_OK(make_weights(work));
    if (p->flags & WITH_SUMS) CHECK_OK(make_result(work, RESULT_SUMS, p->k, p->cols));
    if (p->flags & WITH_SUMS || p->k > LEFT_OUT) CHECK_OK(make_result(work, RESULT_CURVATURE, p->rows, 1));
    return make_output(work, p->rows, 1);
}

/* The centres, `by` further on of the first `among`. */
static kiln_status reorder(kiln_matrix **to, const struct work *work, int64_t by, int64_t among) {
    const int64_t k = work->problem->k;
    int64_t *row = malloc((size_t)k * sizeof *row);
    kiln_status status = row ? KILN_OK : KILN_ERR_NOMEM;
    for (int64_t c = 0; row && c < k; c++) row[c] = c < among ? (c + by) % among : c;
    if (status == KILN_OK)
        status = kiln_matrix_dense(to, work->device, work->type, k, work->problem->cols, NULL);
    if (status == KILN_OK) status = kiln_rows(*to, work->y.matrix, row);
    free(row);
    return status;
}

/* Sums and totals by bounds, where there are some; labels and distances without. */
static kiln_status run_bounded(struct work *work, kiln_bounds *bounds) {
    const kiln_assignment plain = {.labels = work->w.matrix, .distances = work->curvature.matrix},
                          to = {.size = sizeof to,
                                .sums = work->sums.matrix,
                                .totals = work->scalars,
                                .bounds = bounds};
    kiln_matrix *others = NULL, *two = NULL;
    kiln_status status = reorder(&others, work, 1, work->problem->k);
    if (status == KILN_OK) status = reorder(&two, work, 1, work->problem->k < 2 ? work->problem->k : 2);
    /* Two passes over the same centres, after which bounds are taken; these are then told of others, first of
     * all, then of two, whose rows leave and come back. The last sums are compared. */
    kiln_matrix *const centres[] = {work->y.matrix, work->y.matrix, others, work->y.matrix, two,
                                    work->y.matrix};
    for (int pass = 0; status == KILN_OK && pass < 6; pass++) {
        if (pass == 3) kiln_bounds_refresh(bounds);
        status = kiln_assign(&to, work->X.matrix, centres[pass], work->weights.matrix);
    }
    if (status == KILN_OK) status = kiln_assign(&plain, work->X.matrix, work->y.matrix, NULL);
    kiln_matrix_free(others);
    kiln_matrix_free(two);
    return status;
}

static kiln_status run(struct work *work) {
    kiln_bounds *bounds = NULL;
    if (work->problem->flags & WITH_BOUNDS) {
        kiln_status status = kiln_bounds_new(&bounds, work->X.matrix, work->problem->k);
        if (bounds) status = run_bounded(work, bounds);
        kiln_bounds_free(bounds);
        if (bounds || status != KILN_OK) return status;
    }
    const kiln_assignment to = {.size = sizeof to,
                                .labels = work->w.matrix,
                                .distances = work->curvature.matrix,
                                .sums = work->sums.matrix,
                                .totals = work->problem->k > LEFT_OUT ? NULL : work->scalars};
    const kiln_assignment alone = {.size = sizeof alone, .sums = to.sums, .totals = to.totals};
    const kiln_status status = kiln_assign(&to, work->X.matrix, work->y.matrix, work->weights.matrix);
    if (status != KILN_OK || !to.sums || work->weights.matrix) return status;
    return kiln_assign(&alone, work->X.matrix, work->y.matrix,
                       NULL); /* sums that nothing else is wanted with */
}

/* Row i of X, every entry. */
static void unpack(long double *x, const struct host_matrix *X, int64_t i) {
    for (int64_t j = 0; j < X->cols; j++) x[j] = X->row_start ? 0 : host_get(X, i * X->cols + j);
    for (int64_t e = X->row_start ? X->row_start[i] : 0; X->row_start && e < X->row_start[i + 1]; e++)
        x[X->col[e]] += X->values ? host_get(X, e) : 1;
}

static int64_t nearest(long double *least, long double *size, const long double *x,
                       const struct host_matrix *C) {
    int64_t found = 0;
    for (int64_t c = 0; c < C->rows; c++) {
        long double distance = 0, norms = 0;
        for (int64_t j = 0; j < C->cols; j++) {
            const long double centre = host_get(C, c * C->cols + j);
            distance += (x[j] - centre) * (x[j] - centre);
            norms += x[j] * x[j] + centre * centre;
        }
        if (c > 0 && !(distance < *least)) continue;
        *least = distance;
        *size = norms;
        found = c;
    }
    return found;
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const struct host_matrix *X = &work->X.host, *C = &work->y.host;
    const int64_t n = X->cols, k = C->rows;
    struct expected *labels = &expected[RESULT_W], *sums = &expected[RESULT_SUMS],
                    *distances = &expected[RESULT_CURVATURE], *totals = &expected[RESULT_SCALARS];
    long double *x = calloc((size_t)n + 1, sizeof *x);
    *labels = expected_new(work->type, X->rows);
    if (work->sums.matrix) *sums = expected_new(work->type, k * n);
    if (work->curvature.matrix) *distances = expected_new(work->type, X->rows);
    if (k <= LEFT_OUT) *totals = expected_new(work->type, 2 * k);
    for (int64_t i = 0; i < X->rows; i++) {
        long double least = 0, norms = 0;
        const long double s = work->weights.matrix ? host_get(&work->weights.host, i) : 1;
        unpack(x, X, i);
        const int64_t label = nearest(&least, &norms, x, C);
        /* Only sums that bounds correct follow the centres by products. */
        if (!(work->problem->flags & WITH_BOUNDS)) norms = X->row_start ? fminl(norms, 64 * least) : least;
        labels->value[i] = label;
        if (distances->count) distances->value[i] = least, distances->gauge[i] = norms;
        for (int64_t j = 0; sums->count && j < n; j++) {
            sums->value[label * n + j] += s * x[j];
            sums->gauge[label * n + j] += fabsl(s * x[j]);
        }
        if (!totals->count) continue;
        totals->value[2 * label] += s;
        totals->gauge[2 * label] += s;
        totals->value[2 * label + 1] += s * least;
        totals->gauge[2 * label + 1] += s * norms;
    }
    distances->gate = totals->gate = gate_for_terms((double)n + 8);
    sums->gate = gate_for_terms(work->type == KILN_F32 ? 8 : (double)X->rows);
    if (work->type == KILN_F64) totals->gate = gate_for_terms((double)(X->rows + n));
    free(x);
}

static double flops(const struct work *work) {
    return 2 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    const kiln_assignment none = {0}, labels = {.labels = s->v}, later = {.labels = s->v, .first = 2},
                          negative = {.first = -1}, short_labels = {.labels = s->d},
                          short_sums = {.sums = s->w}, alias = {.labels = s->v, .distances = s->v},
                          alias_C = {.sums = s->square};
    kiln_bounds *bounds = NULL;
    REFUSED(kiln_assign(NULL, s->X, s->square, NULL));
    REFUSED(kiln_assign(&none, NULL, s->square, NULL));
    REFUSED(kiln_assign(&none, s->X, NULL, NULL));
    REFUSED(kiln_assign(&none, s->X, s->y, NULL));
    REFUSED(kiln_assign(&none, s->y, s->y_type, NULL));
    REFUSED_AS("dense", kiln_assign(&none, s->X, s->S, NULL));
    REFUSED(kiln_assign(&none, s->X, s->square, s->d));
    REFUSED(kiln_assign(&short_labels, s->X, s->square, NULL));
    REFUSED(kiln_assign(&short_sums, s->X, s->square, NULL));
    REFUSED_AS("another result", kiln_assign(&alias, s->X, s->square, NULL));
    REFUSED_AS("operand", kiln_assign(&alias_C, s->X, s->square, NULL));
    REFUSED_AS("operand", kiln_assign(&labels, s->X, s->square, s->v));
    REFUSED_AS("distances", kiln_assign(&later, s->X, s->square, NULL));
    REFUSED_AS("number -1", kiln_assign(&negative, s->X, s->square, NULL));
    REFUSED(kiln_bounds_new(NULL, s->X, 2));
    REFUSED(kiln_bounds_new(&bounds, NULL, 2));
    REFUSED_AS("0 centres", kiln_bounds_new(&bounds, s->X, 0));
    REFUSED(kiln_bounds_sums(NULL, bounds));
}

const struct operation operation_assign = {.name = "assign",
                                           .list = list,
                                           .prepare = prepare,
                                           .run = run,
                                           .expect = expect,
                                           .flops = flops,
                                           .bytes = bytes,
                                           .refuse = refuse,
                                           .benchmark = {.k = 64, .flags = WITH_SUMS}};
