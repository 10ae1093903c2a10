/* This file says what certificate.h has to know of the rows of a generalised linear model. Losses that are
 * convex in eta, and whose curvature comes with the gradient (kiln_loss_gradient), are those of
 *
 *   Gaussian, identity; binomial, logit; Poisson, log; gamma, log; Tweedie with 1 < p < 2, log;
 *   negative binomial, log,
 *
 * and all but the first have |loss'''| <= loss''. With the figures' Pearson statistic P = sum_i s_i (y_i -
 * mu_i)^2 / V(mu_i) and h the largest curvature of a row (beside its weight),
 *
 *   sum_i s_i loss_i'^2  =  P for gamma,  <= h P for Poisson,  h P / (2 - p) for Tweedie,
 *                           P / alpha for negative binomial, and 2 h times what the losses are above their
 *                           least values for the first two;
 *
 * that is half the deviance. Curvature is bounded at the point, and within rounding of it by twice as much.
 *
 * Without a penalty the information H = X^T diag(h) X, which counts the parameters, bounds the objective:
 * 1/2 g^T H^-1 g for least squares. For binomial with logit and Poisson with log, whose h is the loss's own,
 * with lambda^2 = g^T H^-1 g and |x_i . v| <= rho ||v||_H,
 *
 *   objective - optimum <= -lambda log(1 - lambda rho) / rho   where lambda rho < 1,
 *
 * as along the way to the optimum, d, H falls by no more than exp(-max_i |x_i . d|) (Bach, Electron. J.
 * Stat. 4, 2010). A row's leverage h_i x_i^T H^-1 x_i is at most 1, so that rho^2 <= 1 / min_i h_i. */
#include "algorithms/newton/glm.h"

#include "ops/linear/families.h"

/* sqrt(sum_i s_i a_i^2); a NULL: 0. */
static kiln_status weighted_norm(double *norm, const kiln_matrix *a, const struct ki_glm *glm) {
    kiln_status status = KILN_OK;
    struct ki_arena arena = {0};
    *norm = 0;
    if (!a) return KILN_OK;
    if (!glm->loss.weights) return kiln_norm(norm, a, KILN_NORM_2);
    kiln_matrix *const square = ki_arena_rows(&arena, a, 1);
    TRY(arena.status);
    TRY(kiln_times(square, a, a));
    TRY(kiln_dot(norm, square, glm->loss.weights));
    *norm = sqrt(*norm);
done:
    return ki_arena_free(&arena, status);
}

/* The largest curvature of a row beside its weight. */
static kiln_status largest_curvature(double *largest, const struct ki_glm *glm) {
    kiln_status status;
    const kiln_matrix *s = glm->loss.weights, *C = glm->newton.C;
    struct ki_arena arena = {0};
    if (!s) return kiln_norm(largest, C, KILN_NORM_MAX);
    kiln_matrix *const each = ki_arena_rows(&arena, s, 1);
    TRY(arena.status);
    TRY(kiln_map(each, KILN_MAP_RECIPROCAL, s)); /* 0 where s is */
    TRY(kiln_times(each, each, C));
    TRY(kiln_norm(largest, each, KILN_NORM_MAX));
done:
    return ki_arena_free(&arena, status);
}

static bool known(const kiln_loss *loss) {
    const kiln_link link = ki_link_of(loss);
    switch (loss->family) {
    case KILN_GAUSSIAN: return link == KILN_LINK_IDENTITY;
    case KILN_BINOMIAL: return link == KILN_LINK_LOGIT;
    case KILN_TWEEDIE: return link == KILN_LINK_LOG && loss->parameter > 1 && loss->parameter < 2;
    case KILN_POISSON:
    case KILN_GAMMA:
    case KILN_NEGATIVE_BINOMIAL: return link == KILN_LINK_LOG;
    default: return false;
    }
}

/* gamma: the Pearson statistic's rows s loss'^2, over the curvature. */
static kiln_status gamma_bend(double *bend, const struct ki_glm *glm, kiln_matrix *each,
                              const kiln_matrix *D) {
    kiln_status status;
    const kiln_matrix *s = glm->loss.weights;
    struct ki_arena arena = {0};
    kiln_matrix *const squares = ki_arena_rows(&arena, D, 1), *const second = ki_arena_vector(
                                                                  &arena, D, 3, (double[]){0, 1, 0});
    double counted;
    TRY(arena.status);
    TRY(kiln_map(each, KILN_MAP_RECIPROCAL, glm->newton.C)); /* 0 where C is */
    TRY(kiln_times(each, each, glm->newton.C));
    TRY(kiln_norm(&counted, each, KILN_NORM_1));
    if (round(counted) != glm->rows) goto done;
    TRY(kiln_map(each, KILN_MAP_RECIPROCAL, glm->newton.C));
    if (s) TRY(kiln_times(each, each, s));
    TRY(kiln_multiply(squares, 1, KILN_PLAIN, D, second, 0, NULL));
    TRY(kiln_dot(bend, each, squares));
done:
    return ki_arena_free(&arena, status);
}

/* The largest 1 + alpha mu, which the Pearson statistic lacks where y is 0. */
static kiln_status negative_binomial_bend(double *bend, const struct ki_glm *glm, kiln_matrix *Eta,
                                          double pearson) {
    double most;
    kiln_status status;
    TRY(kiln_loss_mean(Eta, &glm->loss, Eta));
    TRY(kiln_norm(&most, Eta, KILN_NORM_MAX));
    *bend = pearson * (1 + glm->loss.parameter * most);
done:
    return status;
}

/* loss'^2 / loss'' is Pearson's (y - mu)^2 / V(mu) for Poisson and binomial, at most that over 2 - p for
 * Tweedie, times mu / y for gamma, and (1 + alpha mu) / (1 + alpha y) for negative binomial. */
kiln_status ki_glm_bend(double *bend, const struct ki_glm *glm, kiln_matrix *Eta, const kiln_matrix *D,
                        double pearson) {
    static const double SUMS = 1.01; /* for the rows' own rounding */
    kiln_status status = KILN_OK;
    *bend = 0;
    if (glm->newton.l2 > 0 || !(glm->newton.l1 > 0) || !known(&glm->loss)) return KILN_OK;
    switch (glm->loss.family) {
    case KILN_GAUSSIAN: break;
    case KILN_GAMMA: TRY(gamma_bend(bend, glm, Eta, D)); break;
    case KILN_NEGATIVE_BINOMIAL: TRY(negative_binomial_bend(bend, glm, Eta, pearson)); break;
    case KILN_TWEEDIE: *bend = pearson / (2 - glm->loss.parameter); break;
    default: *bend = pearson;
    }
    *bend *= SUMS;
done:
    return status;
}

/* at->slope, terms and lean; y the norm of y, total the sum of the curvatures. */
static void tell_rows(struct ki_certificate *at, const struct ki_glm *glm, double pearson, double y,
                      double total) {
    const double p = glm->loss.parameter, h = at->curvature, level = sqrt(glm->weight);
    at->terms = at->excess + total;
    at->lean = y + level;
    switch (glm->loss.family) {
    case KILN_GAUSSIAN:
        at->quadratic = true;
        at->target += y;
        at->slope = sqrt(2 * at->excess);
        break;
    case KILN_BINOMIAL: at->slope = sqrt(2 * h * at->excess); break;
    case KILN_POISSON: at->slope = sqrt(h * pearson); break;
    case KILN_TWEEDIE:
        at->slope = sqrt(h * pearson / (2 - p));
        at->terms += total * (1 / ((2 - p) * (2 - p)) + 1 / ((p - 1) * (p - 1)));
        break;
    case KILN_NEGATIVE_BINOMIAL:
        at->slope = sqrt(pearson / p);
        at->lean = (y + level / p) * (2 + fabs(log(p)));
        at->terms += (y + level / p) * level * (2 + fabs(log(p)));
        break;
    default: at->slope = sqrt(pearson);
    }
}

/* rho: INFINITY where a row has no curvature. */
static kiln_status find_rho(double *rho, const struct ki_glm *glm) {
    kiln_status status;
    const kiln_matrix *C = glm->newton.C;
    struct ki_arena arena = {0};
    kiln_matrix *const each = ki_arena_rows(&arena, C, 1);
    double counted;
    TRY(arena.status);
    TRY(kiln_map(each, KILN_MAP_RECIPROCAL, C)); /* 0 where C is */
    TRY(kiln_norm(rho, each, KILN_NORM_MAX));
    TRY(kiln_times(each, each, C));
    TRY(kiln_norm(&counted, each, KILN_NORM_1));
    *rho = round(counted) == glm->rows ? sqrt(*rho) : (double)INFINITY;
done:
    return ki_arena_free(&arena, status);
}

/* The bound by H, its entries counted as 5 % too large, for what rounding of eta makes of curvatures. */
static kiln_status certify_by_form(struct ki_glm *glm, struct ki_certificate *at) {
    kiln_status status = KILN_OK;
    const struct ki_glm_form *form = &glm->form;
    struct ki_arena arena = {0};
    double rho = 0;
    if (!form->known ||
        !(at->quadratic || glm->loss.family == KILN_BINOMIAL || glm->loss.family == KILN_POISSON))
        return KILN_OK;
    TRY(ki_newton_describe(&arena, at, &glm->newton));
    if (ki_certificate_flats(at) > 0) goto done; /* the form lacks columns */
    const double off =
        4 * ki_units(kiln_matrix_rows(glm->X), kiln_matrix_type(glm->X)) * at->slope *
        (sqrt(form->inverse * form->spread) + (form->weight > 0 ? sqrt(glm->weight / form->weight) : 0));
    const double lambda = sqrt(1.05 * form->square) + off;
    if (!at->quadratic) TRY(find_rho(&rho, glm));
    const double gap = at->quadratic        ? lambda * lambda / 2
                       : lambda * rho < 0.5 ? -lambda * log1p(-lambda * rho) / rho
                                            : (double)INFINITY;
    ki_report_certify(&glm->newton.run.report, gap + ki_certificate_rounding(at), "curvature");
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_glm_certify(struct ki_glm *glm, const struct ki_glm_rows *rows) {
    kiln_status status = KILN_OK;
    struct ki_certificate at = {.excess = rows->deviance / 2, .bend = rows->bend};
    double y, total;
    const bool penalised = glm->newton.l2 > 0 || glm->newton.l1 > 0;
    if (!known(&glm->loss) || !(penalised || glm->form.known)) return KILN_OK;
    TRY(weighted_norm(&y, glm->loss.y, glm));
    TRY(weighted_norm(&at.target, glm->loss.offset, glm));
    TRY(largest_curvature(&at.curvature, glm));
    if (glm->loss.family == KILN_BINOMIAL) at.curvature = 0.25;
    TRY(kiln_norm(&total, glm->newton.C, KILN_NORM_1));
    tell_rows(&at, glm, rows->pearson, y, total);
    if (!at.quadratic && glm->loss.family != KILN_BINOMIAL) at.curvature *= 2;
    TRY(penalised ? ki_newton_certify(&glm->newton, &at) : certify_by_form(glm, &at));
done:
    return status;
}
