/* V Z = R with V = diag(W 1) - W, the Laplacian of the weights: the next layout where pairs have weights.
 *
 * V is singular, as moving all points alike costs nothing, but R lies in its range, and conjugate gradient
 * stays there. It starts from Z = Y and need not go to the end: each of its iterates lowers the quadratic
 * that bounds the stress from above, so that the stress of Z is at most that of Y however early it stops. */
#include "algorithms/mds/mds.h"

struct ki_laplacian {
    kiln_matrix *degree, *inverse;                        /* n x 1: W 1, and its reciprocals */
    kiln_matrix *residual, *scaled, *direction, *product; /* n x p */
};

enum { ITERATIONS = 30 };

kiln_status ki_laplacian_new(struct ki_mds *s) {
    kiln_status status;
    struct ki_arena own = {0}, *arena = &s->run.arena;
    struct ki_laplacian *l = s->laplacian = ki_arena_zeros(arena, 1, sizeof *l);
    const kiln_matrix *ones = ki_arena_fill(&own, ki_arena_rows(&own, s->Y, 1), 1);
    TRY(own.status);
    TRY(arena->status);
    l->degree = ki_run_rows(&s->run, s->Y, 1);
    l->inverse = ki_run_rows(&s->run, s->Y, 1);
    l->residual = ki_run_rows(&s->run, s->Y, s->p);
    l->scaled = ki_run_rows(&s->run, s->Y, s->p);
    l->direction = ki_run_rows(&s->run, s->Y, s->p);
    l->product = ki_run_rows(&s->run, s->Y, s->p);
    TRY(arena->status);
    TRY(kiln_multiply(l->degree, 1, KILN_PLAIN, s->weights, ones, 0, NULL));
    TRY(kiln_map(l->inverse, KILN_MAP_RECIPROCAL, l->degree));
done:
    return ki_arena_free(&own, status);
}

/* to = V P. */
static kiln_status apply(kiln_matrix *to, const kiln_matrix *P, const struct ki_mds *s) {
    kiln_status status;
    TRY(kiln_times(to, P, s->laplacian->degree));
    TRY(kiln_multiply(to, -1, KILN_PLAIN, s->weights, P, 1, to));
done:
    return status;
}

/* W = a X + b Y, the same coefficients for all columns. */
static kiln_status add(kiln_matrix *W, double a, const kiln_matrix *X, double b, const kiln_matrix *Y,
                       int64_t p) {
    double all_a[64], all_b[64];
    for (int64_t c = 0; c < p; c++) all_a[c] = a, all_b[c] = b;
    return kiln_combine(W, all_a, X, all_b, Y);
}

static kiln_status dot(double *sum, const kiln_matrix *X, const kiln_matrix *Y, int64_t p) {
    double columns[64];
    kiln_status status = kiln_dot(columns, X, Y);
    *sum = 0;
    for (int64_t c = 0; c < p && status == KILN_OK; c++) *sum += columns[c];
    return status;
}

kiln_status ki_laplacian_solve(kiln_matrix *Z, struct ki_mds *s) {
    kiln_status status;
    struct ki_laplacian *l = s->laplacian;
    const int64_t p = s->p;
    const double enough = 1e-2 * ki_epsilon(s->type);
    double rho, first, curvature, next;
    TRY(add(Z, 1, s->Y, 0, NULL, p));
    TRY(apply(l->product, Z, s));
    TRY(add(l->residual, 1, s->R, -1, l->product, p));
    TRY(kiln_times(l->scaled, l->residual, l->inverse));
    TRY(add(l->direction, 1, l->scaled, 0, NULL, p));
    TRY(dot(&rho, l->residual, l->scaled, p));
    first = rho;
    for (int i = 0; i < ITERATIONS && rho > 1e-6 * first && rho > enough * ki_mds_squares(s); i++) {
        TRY(apply(l->product, l->direction, s));
        TRY(dot(&curvature, l->direction, l->product, p));
        if (!(curvature > 0)) break;
        TRY(add(Z, 1, Z, rho / curvature, l->direction, p));
        TRY(add(l->residual, 1, l->residual, -rho / curvature, l->product, p));
        TRY(kiln_times(l->scaled, l->residual, l->inverse));
        TRY(dot(&next, l->residual, l->scaled, p));
        TRY(add(l->direction, 1, l->scaled, next / rho, l->direction, p));
        rho = next;
        s->steps++;
    }
done:
    return status;
}
