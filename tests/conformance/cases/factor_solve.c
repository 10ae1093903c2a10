/* Rows of factors against elimination in long double, row by row: explicit, with biases, counted, implicit;
 * both solvers. */
#include <stdlib.h>
#include <string.h>

#include "refusals.h"

/* The kind of a problem: solver, and what the model is. */
enum { SOLVER_CHOLESKY = 1, BIASES = 2, COUNTED = 4, IMPLICIT = 8, PROPORTIONAL = 16 };

static void list(struct problem_list *list) {
    static const int kinds[] = {0, BIASES, COUNTED, IMPLICIT, BIASES | COUNTED, IMPLICIT | PROPORTIONAL};
    static const enum pattern patterns[] = {PATTERN_UNIFORM, PATTERN_EMPTY_ROWS, PATTERN_DENSE_ROW,
                                            PATTERN_POWER_LAW, PATTERN_NO_ENTRIES};
    static const int64_t widths[] = {2, 1, 5, 17};
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
        for (size_t w = 0; w < (list->thin && p > 0 ? 1 : 4); w++)
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
                for (int solver = 0; solver <= SOLVER_CHOLESKY && (widths[w] > 1 || !(kinds[i] & BIASES));
                     solver++)
                    problem_add(list, (struct problem){.format = KILN_CSR,
                                                       .pattern = patterns[p],
                                                       .rows = 61,
                                                       .cols = 301,
                                                       .per_row = 20,
                                                       .k = widths[w],
                                                       .kind = kinds[i] | solver});
}

/* y is B, z the Gram matrix, w what is solved for: it begins with numbers, not NaN. */
static kiln_status prepare(struct work *work) {
    const struct problem *p = work->problem;
    CHECK_OK(make_X(work));
    CHECK_OK(make_random(work, &work->y, p->cols, p->k));
    CHECK_OK(make_filled(work, &work->z, p->k, p->k, 0));
    CHECK_OK(make_filled(work, &work->w, p->rows, p->k, 0.25));
    if (!(p->kind & IMPLICIT)) return KILN_OK;
    CHECK_OK(kiln_gram(work->z.matrix, NULL, work->y.matrix, NULL, NULL));
    return kiln_matrix_get(work->z.host.values, work->z.matrix);
}

static kiln_factor_rows rows_of(const struct work *work) {
    const int kind = work->problem->kind;
    return (kiln_factor_rows){.size = sizeof(kiln_factor_rows),
                              .R = work->X.matrix,
                              .B = work->y.matrix,
                              .gram = kind & IMPLICIT ? work->z.matrix : NULL,
                              .mean = 0.125,
                              .l2 = 3,
                              .alpha = 2,
                              .biases = (kind & BIASES) != 0,
                              .counted = (kind & COUNTED) != 0,
                              .solver = kind & SOLVER_CHOLESKY ? KILN_FACTOR_CHOLESKY : KILN_FACTOR_CG,
                              .steps = 60,
                              .proportional = (kind & PROPORTIONAL) != 0};
}

/* From the same start each time; so many steps bring conjugate gradient to the minimum. */
static kiln_status run(struct work *work) {
    const kiln_factor_rows rows = rows_of(work);
    CHECK_OK(kiln_fill(work->w.matrix, 0.25));
    CHECK_OK(kiln_factor_solve(work->w.matrix, &rows));
    CHECK_OK(kiln_factor_loss(&work->scalars[0], &rows, work->w.matrix, KILN_FACTOR_FIT));
    return kiln_factor_loss(&work->scalars[1], &rows, work->w.matrix, KILN_FACTOR_PENALTY);
}

/* H a = g by elimination; H is positive definite. */
static void eliminate(long double *H, long double *a, int64_t k) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++) {
            const long double f = H[j * k + i] / H[i * k + i];
            for (int64_t c = i; c < k; c++) H[j * k + c] -= f * H[i * k + c];
            a[j] -= f * a[i];
        }
    for (int64_t i = k - 1; i >= 0; i--) {
        for (int64_t c = i + 1; c < k; c++) a[i] -= H[i * k + c] * a[c];
        a[i] /= H[i * k + i];
    }
}

/* Column j's features for a row, and what the model wants there. */
static long double feature(const struct work *work, int64_t j, int64_t c) {
    const int64_t k = work->problem->k;
    return work->problem->kind & BIASES && c == k - 1 ? 1 : host_get(&work->y.host, j * k + c);
}

static long double wanted(const struct work *work, int64_t e) {
    const int64_t k = work->problem->k;
    const long double r = host_get(&work->X.host, e);
    if (work->problem->kind & IMPLICIT) return r > 0;
    return r - 0.125L -
           (work->problem->kind & BIASES ? host_get(&work->y.host, work->X.host.col[e] * k + k - 1) : 0);
}

static long double penalty_of(const struct work *work, int64_t u) {
    const int64_t *start = work->X.host.row_start;
    return work->problem->kind & COUNTED ? 3.0L * (long double)(start[u + 1] - start[u]) : 3.0L;
}

/* Row u's minimiser, and its loss there. */
static void solve_row(long double *a, long double *fit, const struct work *work, int64_t u) {
    const int64_t k = work->problem->k, n = work->problem->cols, *start = work->X.host.row_start;
    const bool implicit = work->problem->kind & IMPLICIT;
    const long double alone = work->problem->kind & PROPORTIONAL ? 0 : 1;
    long double *H = calloc((size_t)(k * k), sizeof *H), *weight = calloc((size_t)n, sizeof *weight),
                *want = calloc((size_t)n, sizeof *want);
    memset(a, 0, (size_t)k * sizeof *a);
    for (int64_t j = 0; j < n; j++) weight[j] = implicit;
    for (int64_t e = start[u]; e < start[u + 1]; e++) {
        const int32_t j = work->X.host.col[e];
        weight[j] = implicit ? alone + 2 * fabsl(host_get(&work->X.host, e)) : 1;
        want[j] = wanted(work, e);
    }
    for (int64_t i = 0; i < k; i++) H[i * k + i] = penalty_of(work, u);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < k && weight[j] > 0; i++) {
            a[i] += weight[j] * want[j] * feature(work, j, i);
            for (int64_t c = 0; c < k; c++)
                H[i * k + c] += weight[j] * feature(work, j, i) * feature(work, j, c);
        }
    if (start[u] == start[u + 1])
        memset(a, 0, (size_t)k * sizeof *a);
    else
        eliminate(H, a, k);
    *fit = 0;
    for (int64_t j = 0; j < n; j++) {
        long double d = want[j];
        for (int64_t i = 0; i < k; i++) d -= a[i] * feature(work, j, i);
        *fit += weight[j] * d * d / 2;
    }
    free(H);
    free(weight);
    free(want);
}

static void expect(struct expected expected[RESULTS], const struct work *work) {
    struct expected *out = &expected[RESULT_W], *scalars = &expected[RESULT_SCALARS];
    const int64_t k = work->problem->k, rows = work->problem->rows;
    *out = expected_new(work->type, rows * k);
    *scalars = expected_new(work->type, 2);
    for (int64_t u = 0; u < rows; u++) {
        long double fit, penalty = 0;
        solve_row(out->value + u * k, &fit, work, u);
        for (int64_t i = 0; i < k; i++) {
            penalty += out->value[u * k + i] * out->value[u * k + i];
            out->gauge[u * k + i] = 10 + fabsl(out->value[u * k + i]);
        }
        scalars->value[0] += fit;
        scalars->value[1] += penalty_of(work, u) * penalty / 2;
    }
    for (int i = 0; i < 2; i++) scalars->gauge[i] = 10 * (scalars->value[i] + 1);
    out->gate = scalars->gate = gate_for_terms((double)k + 20);
}

static double flops(const struct work *work) {
    return 4 * 60 * (double)work->X.host.nnz * (double)work->problem->k;
}

static double bytes(const struct work *work) {
    return operand_bytes(&work->X) + operand_bytes(&work->y) + operand_bytes(&work->w);
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    double loss = 0;
    kiln_factor_rows rows = {.R = s->S, .B = s->y};
    REFUSED_AS("NULL", kiln_factor_solve(s->p, NULL));
    REFUSED(kiln_factor_solve(NULL, &rows));
    REFUSED(kiln_factor_solve(s->w, &rows));
    REFUSED_AS("NULL", kiln_factor_loss(NULL, &rows, s->q, KILN_FACTOR_FIT));
    REFUSED_AS("parts", kiln_factor_loss(&loss, &rows, s->q, 0));
    rows.R = s->X;
    REFUSED_AS("sparse", kiln_factor_solve(s->p, &rows));
    rows = (kiln_factor_rows){.R = s->S, .B = s->y_type};
    REFUSED(kiln_factor_solve(s->p, &rows));
    rows = (kiln_factor_rows){.R = s->S, .B = s->y, .l2 = -1};
    REFUSED_AS("l2", kiln_factor_solve(s->p, &rows));
    rows = (kiln_factor_rows){.R = s->S, .B = s->y, .solver = (kiln_factor_solver)7};
    REFUSED_AS("solver 7", kiln_factor_solve(s->p, &rows));
    rows = (kiln_factor_rows){.R = s->S, .B = s->y, .gram = s->square};
    REFUSED(kiln_factor_solve(s->p, &rows));
}

const struct operation operation_factor_solve = {.name = "factor_solve",
                                                 .list = list,
                                                 .prepare = prepare,
                                                 .run = run,
                                                 .expect = expect,
                                                 .flops = flops,
                                                 .bytes = bytes,
                                                 .refuse = refuse,
                                                 .benchmark = {.k = 64, .kind = 0}};
