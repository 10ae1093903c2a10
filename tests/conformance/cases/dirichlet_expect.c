/* Dirichlet expectations by digamma and log gamma of long double: rows and columns, with an update and
 * without. alpha is the size of the parameters. */
#include <stdlib.h>

#include "refusals.h"

enum { ROWS = 1, UPDATE = 2, SHIFT = 4 };

static void list(struct problem_list *list) {
    static const int64_t widths[] = {1, 5, 16, 67, 300};
    static const int kinds[] = {ROWS | UPDATE, ROWS, SHIFT, SHIFT | UPDATE, UPDATE};
    static const double sizes[] = {0.02, 3, 1e4};
    for (size_t w = 0; w < (list->thin ? 2 : 5); w++)
        for (size_t i = 0; i < 5; i++)
            for (size_t s = 0; s < 3; s++)
                problem_add(list, (struct problem){.format = KILN_DENSE,
                                                   .pattern = PATTERN_DENSE,
                                                   .rows = 70,
                                                   .cols = widths[w],
                                                   .k = widths[w],
                                                   .kind = kinds[i],
                                                   .alpha = sizes[s]});
}

/* Holds what the call needs beside y, v and z. */
struct own {
    kiln_matrix *scale, *G;
};

static void free_own(void *of) {
    struct own *own = of;
    kiln_matrix_free(own->scale);
    kiln_matrix_free(own->G);
    free(own);
}

/* w is T; y, which is positive, Y; X what G begins with; v the prior, z the shift; sums end as G, curvature
 * as logs. */
static kiln_status make_positive(struct work *work, struct operand *A, int64_t rows, int64_t cols,
                                 double size, uint64_t stream) {
    host_new(A, work->type, rows, cols);
    for (int64_t e = 0; e < rows * cols; e++) {
        const double value = size * (0.05 + random_uniform(stream, (uint64_t)e));
        if (work->type == KILN_F32)
            ((float *)A->host.values)[e] = (float)value;
        else
            ((double *)A->host.values)[e] = value;
    }
    return operand_upload(work, A);
}

static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    struct own *own = calloc(1, sizeof *own);
    if (!own) return KILN_ERR_NOMEM;
    work->own = own;
    work->free_own = free_own;
    CHECK_OK(make_positive(work, &work->X, p->rows, p->k, p->alpha, 51));
    CHECK_OK(make_positive(work, &work->y, p->rows, p->k, p->alpha, 52));
    CHECK_OK(make_positive(work, &work->v, 1, p->k, 0.3, 53));
    CHECK_OK(make_positive(work, &work->z, 1, p->k, 4, 54));
    CHECK_OK(make_positive(work, &work->target, p->rows, p->k, 1, 55)); /* what T begins with */
    CHECK_OK(make_output(work, p->rows, p->k));
    CHECK_OK(make_result(work, RESULT_SUMS, p->rows, p->k));
    CHECK_OK(make_result(work, RESULT_CURVATURE, p->rows, p->k));
    return kiln_matrix_dense(&own->scale, work->device, work->type, p->rows, 1, NULL);
}

static kiln_status run(struct work *work) {
    const struct own *own = work->own;
    const int kind = work->problem->kind;
    double ones[MOST_COLUMNS];
    for (int64_t c = 0; c < work->problem->k; c++) ones[c] = 1;
    CHECK_OK(kiln_combine(work->sums.matrix, ones, work->X.matrix, NULL, NULL));
    CHECK_OK(kiln_combine(work->w.matrix, ones, work->target.matrix, NULL, NULL));
    const kiln_dirichlet d = {.G = work->sums.matrix,
                              .T = work->w.matrix,
                              .Y = kind & UPDATE ? work->y.matrix : NULL,
                              .prior = work->v.matrix,
                              .shift = kind & SHIFT ? work->z.matrix : NULL,
                              .rows = (kind & ROWS) != 0,
                              .scale = own->scale,
                              .logs = work->curvature.matrix};
    return kiln_dirichlet_expect(&d, &work->scalars[0], &work->scalars[1]);
}

static long double digamma(long double x) {
    long double sum = 0;
    for (; x < 40; x++) sum -= 1 / x;
    const long double z = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) -
           z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L - z * (1 / 240.0L - z / 132.0L))));
}

static long double updated(const struct work *work, int64_t i, int64_t c) {
    const int64_t e = i * work->problem->k + c;
    if (!(work->problem->kind & UPDATE)) return host_get(&work->X.host, e);
    return host_get(&work->v.host, c) + host_get(&work->target.host, e) * host_get(&work->y.host, e);
}

/* The errors: an ulp of G moves digamma by as much of G digamma', which is 1 + 1/G at most; E is rounded
 * before exp. */
static void expect_row(struct expected expected[RESULTS], const struct work *work, int64_t i) {
    const int64_t k = work->problem->k;
    const int kind = work->problem->kind;
    struct expected *T = &expected[RESULT_W], *G = &expected[RESULT_SUMS],
                    *logs = &expected[RESULT_CURVATURE];
    struct expected *scalars = &expected[RESULT_SCALARS];
    long double total = 0, largest = -INFINITY, gauge[MOST_COLUMNS];
    for (int64_t c = 0; c < k; c++) total += updated(work, i, c);
    const long double less = kind & ROWS ? digamma(total) : 0;
    for (int64_t c = 0; c < k; c++) {
        const int64_t e = i * k + c;
        const long double g = updated(work, i, c), shift = kind & SHIFT ? host_get(&work->z.host, c) : 0;
        const long double l = digamma(g) - shift, exact = l - less;
        const long double terms = fabsl((host_get(&work->v.host, c) - g) * exact) + fabsl(lgammal(g));
        gauge[c] = 4 + 4 / g + fabsl(l) + fabsl(shift);
        G->value[e] = g;
        G->gauge[e] = 2 * g;
        logs->value[e] = exact;
        logs->gauge[e] = gauge[c] + 4 + fabsl(less) + 1 / total;
        scalars->value[0] += (host_get(&work->v.host, c) - g) * exact + lgammal(g);
        scalars->gauge[0] += terms + (fabsl(host_get(&work->v.host, c)) + g) * logs->gauge[e] * 2 + 4;
        scalars->value[1] += kind & UPDATE ? fabsl(g - host_get(&work->X.host, e)) : 0;
        scalars->gauge[1] += kind & UPDATE ? 2 * g + host_get(&work->X.host, e) : 0;
        largest = fmaxl(largest, l);
    }
    if (kind & ROWS) scalars->value[0] -= lgammal(total);
    if (kind & ROWS) scalars->gauge[0] += fabsl(lgammal(total)) + total * 2 + 4;
    for (int64_t c = 0; c < k; c++) {
        const int64_t e = i * k + c;
        const long double exact = logs->value[e] + less;
        T->value[e] = expl(exact - largest);
        T->gauge[e] = T->value[e] * (gauge[c] + 8 + fabsl(largest)) + 1e-30L;
    }
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    const int64_t count = work->problem->rows * work->problem->k;
    for (int i = 0; i < RESULTS; i++) expected[i] = expected_new(work->type, i == RESULT_SCALARS ? 2 : count);
    for (int64_t i = 0; i < work->problem->rows; i++) expect_row(expected, work, i);
    for (int i = 0; i < RESULTS; i++) expected[i].gate = 8;
}

static double flops(const struct work *work) {
    return 100 * (double)work->w.host.nnz;
}

static double bytes(const struct work *work) {
    return 5 * operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    double bound;
    kiln_dirichlet d = {.G = s->p, .T = s->q, .prior = NULL};
    REFUSED_AS("NULL", kiln_dirichlet_expect(NULL, &bound, NULL));
    REFUSED_AS("prior", kiln_dirichlet_expect(&d, &bound, NULL));
    d.G = NULL;
    REFUSED_AS("G is NULL", kiln_dirichlet_expect(&d, &bound, NULL));
    d = (kiln_dirichlet){.G = s->S, .T = s->q};
    REFUSED_AS("dense", kiln_dirichlet_expect(&d, &bound, NULL));
    d = (kiln_dirichlet){.G = s->p, .T = s->w};
    REFUSED(kiln_dirichlet_expect(&d, &bound, NULL));
    d = (kiln_dirichlet){.G = s->p, .T = s->q, .prior = s->v};
    REFUSED(kiln_dirichlet_expect(&d, &bound, NULL));
}

const struct operation operation_dirichlet_expect = {
    .name = "dirichlet_expect",
    .list = list,
    .prepare = prepare,
    .run = run,
    .expect = expect,
    .flops = flops,
    .bytes = bytes,
    .refuse = refuse,
    .benchmark = {.k = 20, .kind = ROWS | UPDATE, .alpha = 3}};
