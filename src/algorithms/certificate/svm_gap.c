/* The duality gap of a support vector machine needs a point of the dual. With t_i = -s_i d loss / d eta_i at
 * the result, the dual's objective is, for either loss, L the penalty's diagonal and Q the sum of the
 * losses,
 *
 *   D(t) = t . eta + Q - 1/2 sum_j (X^T t)_j^2 / L_j          (at t as it is)
 *
 * and an intercept asks for sum t = 0. That holds but for the tolerance; scaling the positive or the
 * negative t down by a hair makes it hold exactly, at D(t) = sum_i c_i t_i - e |t_i| - t_i^2 / (2 s_i) -
 * ..., c the +1, -1 of the classes, or the target of the regression and e its epsilon. One pass for eta and
 * one for X^T t.
 *
 * Without an intercept t stays as it is, and X^T t = L w - g with the gradient g that Newton's method has
 * left: the gap is 1/2 sum_j g_j^2 / L_j, and takes no pass. What rounding makes of either is bounded as in
 * certificate.c. */
#include "algorithms/certificate/svm_gap.h"

/* A problem's rows: t_i and what a row adds to the dual per unit of t. */
struct rows {
    const struct ki_svm_gap *gap;
    const struct ki_newton *newton;
    int64_t count;
    double *t, *target, *s; /* t: eta first; s NULL: ones */
    double dual, size;      /* of the dual but for the penalty's term, and of what it is the sum of */
};

/* t = -s d loss / d eta of a row, and what the row adds to the dual per unit of t. */
static double dual_variable(const struct ki_svm_gap *gap, double eta, double target, double s, double *gain) {
    if (!gap->regression) {
        *gain = target;
        return s * target * fmax(1 - target * eta, 0);
    }
    const double off = target - eta;
    *gain = off > 0 ? target - gap->epsilon : target + gap->epsilon;
    return s * copysign(fmax(fabs(off) - gap->epsilon, 0), off);
}

/* t, made to sum to zero, in place of eta; t = 0 where s = 0. */
static void make_dual(struct rows *r) {
    double positive = 0, negative = 0, gain;
    for (int64_t i = 0; i < r->count; i++) {
        const double value = dual_variable(r->gap, r->t[i], r->target[i], r->s ? r->s[i] : 1, &gain);
        *(value > 0 ? &positive : &negative) += value;
    }
    const double shrink_positive = positive > -negative ? -negative / positive : 1;
    const double shrink_negative = -negative > positive ? positive / -negative : 1;
    for (int64_t i = 0; i < r->count; i++) {
        const double weight = r->s ? r->s[i] : 1;
        const double value = dual_variable(r->gap, r->t[i], r->target[i], weight, &gain);
        r->t[i] = value * (value > 0 ? shrink_positive : shrink_negative);
        if (!(weight > 0)) continue;
        r->dual += r->t[i] * (gain - r->t[i] / (2 * weight));
        r->size += fabs(r->t[i] * gain) + r->t[i] * r->t[i] / (2 * weight);
    }
}

static kiln_status host_copy(double **values, struct ki_arena *arena, const kiln_matrix *A) {
    *values = ki_arena_doubles(arena, kiln_matrix_nnz(A));
    return *values ? ki_vector_get(*values, A) : arena->status;
}

/* sum_j z_j^2 / L_j, z the columns' X^T t or the gradient; NaN where an unpenalised column makes the dual
 * point infeasible. *blur: what the rounding of z may have made of it. */
static double penalty_term(double *blur, const struct ki_newton *newton, const struct ki_certificate *at,
                           const double *z) {
    double sum = 0;
    *blur = 0;
    for (int64_t j = 0; j < kiln_matrix_cols(newton->X); j++) {
        const double variance = newton->columns.variance[j];
        const double penalty = newton->l2 * (newton->standardize ? variance : 1);
        const bool follows = variance == 0 && !newton->no_intercept; /* a multiple of sum t, and so 0 */
        if (follows || newton->columns.square[j] == 0) continue;
        const double off = ki_certificate_blur(at, j);
        sum += penalty > 0 ? z[j] * z[j] / penalty : NAN;
        *blur += off * (2 * fabs(z[j]) + off) / penalty;
    }
    return sum;
}

/* X^T t; T m x 1 is of no use any more. */
static kiln_status scatter(double **z, struct ki_arena *arena, const struct ki_newton *newton, kiln_matrix *T,
                           double *t) {
    kiln_status status;
    kiln_matrix *const Z = ki_arena_model(arena, newton->X, kiln_matrix_cols(newton->X), 1);
    TRY(arena->status);
    TRY(ki_vector_set(T, t));
    TRY(kiln_multiply(Z, 1, KILN_TRANSPOSED, newton->X, T, 0, NULL));
    TRY(host_copy(z, arena, Z));
done:
    return status;
}

/* The dual at the engine's result by two passes. */
static kiln_status add_by_rows(struct ki_svm_gap *gap, struct ki_newton *newton, const kiln_matrix *target,
                               const struct ki_certificate *at) {
    kiln_status status;
    struct rows r = {.gap = gap, .newton = newton, .count = kiln_matrix_rows(newton->X)};
    struct ki_arena arena = {0};
    kiln_matrix *const T = ki_arena_rows(&arena, newton->X, 1);
    double *z = NULL, blur;
    TRY(arena.status);
    TRY(kiln_multiply(T, 1, KILN_PLAIN, newton->X, newton->W, 0, NULL));
    TRY(host_copy(&r.t, &arena, T));
    TRY(host_copy(&r.target, &arena, target));
    if (newton->weights) TRY(host_copy(&r.s, &arena, newton->weights));
    for (int64_t i = 0; i < r.count; i++) r.t[i] += at->b[0];
    make_dual(&r);
    TRY(scatter(&z, &arena, newton, T, r.t));
    gap->dual += r.dual - 0.5 * penalty_term(&blur, newton, at, z) - ki_certificate_flats(at);
    gap->rounding += 0.5 * blur + 4 * DBL_EPSILON * sqrt((double)r.count) * r.size;
    newton->run.report.passes += 2;
done:
    return ki_arena_free(&arena, status);
}

/* Without an intercept the dual lies below the objective by half the sum of g_j^2 / L_j, g the objective's
 * gradient. */
static kiln_status add_by_gradient(struct ki_svm_gap *gap, const struct ki_newton *newton, double objective,
                                   const struct ki_certificate *at) {
    kiln_status status;
    struct ki_arena arena = {0};
    double *g = NULL, blur;
    TRY(host_copy(&g, &arena, newton->gradient));
    gap->dual += objective - 0.5 * penalty_term(&blur, newton, at, g);
    gap->rounding += 0.5 * blur;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_svm_gap_add(struct ki_svm_gap *gap, struct ki_newton *newton, const kiln_matrix *target,
                           double objective) {
    kiln_status status;
    struct ki_arena arena = {0};
    double *w = NULL, b, y;
    TRY(host_copy(&w, &arena, newton->W));
    TRY(ki_vector_get(&b, newton->b));
    TRY(kiln_norm(&y, target, KILN_NORM_MAX));
    const double level = sqrt(newton->columns.weight);
    const struct ki_certificate at = {.X = newton->X,
                                      .k = 1,
                                      .l2 = newton->l2,
                                      .intercept = !newton->no_intercept,
                                      .standardize = newton->standardize,
                                      .weight = newton->columns.weight,
                                      .square = newton->columns.square,
                                      .mean = newton->columns.mean,
                                      .variance = newton->columns.variance,
                                      .flats = newton->columns.flats,
                                      .w = w,
                                      .b = &b,
                                      .slope = sqrt(2 * newton->loss),
                                      .curvature = 1,
                                      .terms = newton->loss,
                                      .target = (y + gap->epsilon) * level};
    const double rounding = ki_certificate_rounding(&at);
    gap->rounding += rounding;
    gap->primal += rounding;
    TRY(newton->no_intercept ? add_by_gradient(gap, newton, objective, &at)
                             : add_by_rows(gap, newton, target, &at));
done:
    return ki_arena_free(&arena, status);
}
