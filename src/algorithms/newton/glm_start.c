/* This file says where the fit of a generalised linear model begins.
 *
 * With an intercept the start is the model without columns: W = 0 and the best constant. That is in every
 * family's range, and from a point in range Newton's shortened steps stay there. The constant is found by
 * Fisher scoring in one variable, through the same operation as the fit, with an X of no columns. Without an
 * intercept, links that take only part of all eta have no such point for free: there the first step of
 * iteratively reweighted least squares, a regression of the linked responses, is tried, and then a regression
 * of one constant. */
#include "algorithms/newton/glm.h"

#include "ops/linear/families.h"

const char ki_glm_call[] = "kiln_glm";

bool ki_glm_any_eta(const kiln_loss *loss) {
    const struct ki_link *link = ki_link_find(ki_link_of(loss));
    const kiln_range range = ki_family_find(loss->family)->range;
    return link->any && link->least >= range.least && link->most <= range.most;
}

/* ---- the responses ---- */

static kiln_status host_copy(double **values, struct ki_arena *arena, const kiln_matrix *A) {
    *values = ki_arena_doubles(arena, kiln_matrix_nnz(A));
    return *values ? ki_vector_get(*values, A) : arena->status;
}

kiln_status ki_glm_check_target(const kiln_loss *loss) {
    kiln_status status;
    const kiln_range range = kiln_family_range(loss->family, loss->parameter);
    char wanted[KI_RANGE_WORDS];
    struct ki_arena arena = {0};
    double *y = NULL;
    if (isinf(range.least) && isinf(range.most)) return KILN_OK;
    TRY(host_copy(&y, &arena, loss->y));
    for (int64_t i = 0; i < kiln_matrix_rows(loss->y); i++) {
        if (ki_range_holds(&range, y[i])) continue;
        status =
            ki_fail(KILN_ERR_DATA, "%s: row %lld of y is %g, but the family wants %s (rows count from 0)",
                    ki_glm_call, (long long)i, y[i], ki_range_words(wanted, &range));
        if (range.hint) ki_hint("%s", range.hint);
        break;
    }
done:
    return ki_arena_free(&arena, status);
}

/* ---- the link ---- */

/* eta at a mean; 0 for a link without a closed form. */
static double eta_at(const kiln_loss *loss, double mu) {
    const struct ki_link *link = ki_link_find(ki_link_of(loss));
    return link->eta ? link->eta(mu, loss->link_power) : 0;
}

/* A mean well inside the family's and the link's range, the observed one if that is. */
static double inner_mean(const kiln_loss *loss, double mean) {
    const struct ki_link *link = ki_link_find(ki_link_of(loss));
    const kiln_range range = ki_family_find(loss->family)->range;
    const bool share = range.most == 1 || link->most == 1;
    if (share) return mean > 0 && mean < 1 ? mean : 0.5;
    if (isfinite(eta_at(loss, mean)) && mean > range.least) return mean;
    return 1;
}

/* ---- the model without columns ---- */

struct null_model {
    const kiln_loss *loss;
    kiln_matrix *X, *W, *G, *b, *gb, *C; /* X m x 0 */
};

struct null_point {
    double b, value, gradient, curvature;
};

static kiln_status null_new(struct null_model *null, struct ki_arena *arena, const struct ki_glm *glm) {
    null->loss = &glm->loss;
    null->X = ki_arena_rows(arena, glm->X, 0);
    null->C = ki_arena_rows(arena, glm->X, 1);
    null->W = ki_arena_model(arena, glm->X, 0, 1);
    null->G = ki_arena_model(arena, glm->X, 0, 1);
    null->b = ki_arena_model(arena, glm->X, 1, 1);
    null->gb = ki_arena_model(arena, glm->X, 1, 1);
    return arena->status;
}

/* The point at intercept b. */
static kiln_status null_at(struct null_point *point, const struct null_model *null, double b) {
    kiln_status status;
    const float narrow = (float)b;
    const bool single = kiln_matrix_type(null->b) == KILN_F32;
    point->b = single ? narrow : b;
    TRY(kiln_matrix_set(null->b, single ? (const void *)&narrow : &b));
    TRY(kiln_loss_gradient(&point->value, null->G, null->gb, null->C, null->loss, null->X, null->W, null->b));
    TRY(ki_vector_get(&point->gradient, null->gb));
    TRY(kiln_norm(&point->curvature, null->C, KILN_NORM_1));
done:
    return status;
}

/* The first of some intercepts that is in range for every row's offset: one that centres them, or makes the
 * least of all eta, or the largest, the link of the mean. */
static kiln_status null_start(struct null_point *point, const struct null_model *null,
                              const struct ki_glm *glm) {
    kiln_status status = KILN_OK;
    const double eta = eta_at(null->loss, inner_mean(null->loss, glm->mean));
    struct ki_arena arena = {0};
    double around[3] = {0}, *offset = NULL;
    if (null->loss->offset) {
        const int64_t rows = kiln_matrix_rows(null->X);
        TRY(host_copy(&offset, &arena, null->loss->offset));
        around[1] = around[2] = offset[0];
        for (int64_t i = 0; i < rows; i++) {
            around[0] += offset[i] / (double)rows;
            around[1] = fmin(around[1], offset[i]);
            around[2] = fmax(around[2], offset[i]);
        }
    }
    for (int i = 0; i < 3; i++) {
        TRY(null_at(point, null, eta - around[i]));
        if (isfinite(point->value)) goto done;
    }
    if (null->loss->offset && !ki_glm_any_eta(null->loss)) {
        status =
            ki_fail(KILN_ERR_DATA, "%s: with these offsets no intercept gives every row a mean in its range",
                    ki_glm_call);
        ki_hint("take a link that accepts any number, such as log or logit");
        goto done;
    }
    status = ki_fail(KILN_ERR_DATA, "%s: the objective overflows %s at every constant mean", ki_glm_call,
                     kiln_matrix_type(null->X) == KILN_F32 ? "f32" : "f64");
    ki_hint("y, the weights or the offsets are too large: rescale them");
done:
    return ki_arena_free(&arena, status);
}

/* Returns whether the start is the best constant already: without offsets that has the mean of y, in every
 * family whose score is linear and link that can give it. */
static bool starts_at_best(const struct ki_glm *glm) {
    const kiln_loss *loss = &glm->loss;
    const struct ki_link *link = ki_link_find(ki_link_of(loss));
    if (!ki_family_find(loss->family)->shown.linear_score || loss->offset || !link->eta) return false;
    return glm->mean > link->least && inner_mean(loss, glm->mean) == glm->mean;
}

/* Between which the best constant lies: its gradient is negative at low, and not at high. */
struct null_bracket {
    double low, high;
};

/* A Fisher step's end, t of it; the bracket's middle where it leads out of that, or is not half as long as
 * the move before it: an inverse Gaussian's curve is flat far out, and steps come back from there one by
 * one. */
static double null_next(const struct null_bracket *of, const struct null_point *here, double t,
                        double moved) {
    const double step = t * here->gradient / here->curvature, next = here->b - step,
                 width = of->high - of->low;
    if (!isfinite(width) || (next > of->low && next < of->high && fabs(step) <= 0.5 * moved)) return next;
    return of->low + 0.5 * width;
}

/* Returns how far the point is from the best constant, by Fisher's step, in units of its size. */
static double null_off(const struct null_point *at) {
    return fabs(at->gradient) / at->curvature / fmax(fabs(at->b), 1);
}

/* A gradient of about rounding says little far out, where it is small by itself, and Fisher's step is not:
 * one more leads to rounding where all rows have the same best constant. */
static bool null_near(const struct ki_glm *glm, const struct null_point *at) {
    return fabs(at->gradient) <= 1e-13 * glm->weight * fabs(glm->mean) && null_off(at) <= 1e-6;
}

kiln_status ki_glm_null(struct ki_glm *glm) {
    kiln_status status;
    enum { STEPS = 200 };
    struct ki_arena arena = {0};
    struct null_model null = {0};
    struct null_point here, there;
    struct null_bracket bracket = {-INFINITY, INFINITY};
    TRY(null_new(&null, &arena, glm));
    TRY(null_start(&here, &null, glm));
    const bool best = starts_at_best(glm),
               end = ki_glm_at_end(glm); /* the best is at infinity, without curvature */
    const double rounding = ki_epsilon(kiln_matrix_type(glm->X));
    double t = 1, moved = INFINITY;
    for (int i = 0; i < STEPS && !best && here.curvature > 0 && t > 1e-10 && null_off(&here) > rounding;
         i++) {
        *(here.gradient < 0 ? &bracket.low : &bracket.high) = here.b;
        TRY(null_at(&there, &null, null_next(&bracket, &here, t, moved)));
        const bool between = isfinite(bracket.high - bracket.low);
        if (there.b == bracket.low || there.b == bracket.high) break;
        const bool flatter = fabs(there.gradient) < fabs(here.gradient), near = null_near(glm, &here),
                   better = isfinite(there.value) && isfinite(there.gradient) &&
                            (there.curvature > 0 || end) &&
                            (flatter || (!near && (between || there.value < here.value)));
        t = better ? 1 : 0.25 * t;
        if (better) moved = fabs(there.b - here.b);
        if (better) here = there;
        if (near) break;
    }
    glm->null = here.b;
    glm->curvature = here.curvature;
done:
    return ki_arena_free(&arena, status);
}

/* Returns whether a factor this large or small leaves sums on either side of it in the type's range. */
static bool moderate(kiln_type type, double factor) {
    const double most = type == KILN_F32 ? 1e10 : 1e100;
    return fabs(factor) < most && fabs(factor) > 1 / most;
}

/* (mu - y) mu' / V is a multiple of mean - y where all rows have the mean for mu. Which one, a row with
 * another y tells. */
kiln_status ki_glm_tell_derivative(struct ki_glm *glm) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct null_model null = {0};
    struct null_point point;
    const kiln_type type = kiln_matrix_type(glm->X);
    double other = glm->mean != 0 ? glm->mean / 2 : -1;
    if (glm->options->no_intercept || !starts_at_best(glm)) return KILN_OK;
    if (type == KILN_F32) other = (float)other;
    struct ki_glm one = {.X = ki_arena_model(&arena, glm->X, 1, 0), .loss = glm->loss};
    one.loss.y = ki_arena_vector(&arena, glm->X, 1, &other);
    one.loss.weights = NULL;
    TRY(arena.status);
    TRY(null_new(&null, &arena, &one));
    TRY(null_at(&point, &null, glm->null));
    const double steep = point.gradient / (glm->mean - other);
    if (!moderate(type, steep)) goto done;
    glm->newton.outcomes = glm->loss.y;
    glm->newton.mean = glm->mean;
    glm->newton.steep = steep;
done:
    return ki_arena_free(&arena, status);
}

/* ---- without an intercept ---- */

/* z_i = the link of (y_i + mean) / 2, less the offset; or of the mean alone. */
static kiln_status linked(kiln_matrix *z, const struct ki_glm *glm, bool of_rows) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_loss *loss = &glm->loss;
    const int64_t rows = kiln_matrix_rows(glm->X);
    const double mean = inner_mean(loss, glm->mean);
    double *y = NULL, *offset = NULL;
    TRY(host_copy(&y, &arena, loss->y));
    if (loss->offset) TRY(host_copy(&offset, &arena, loss->offset));
    for (int64_t i = 0; i < rows; i++) {
        const double eta = eta_at(loss, of_rows ? inner_mean(loss, (y[i] + mean) / 2) : mean);
        y[i] = eta - (offset ? offset[i] : 0);
    }
    TRY(ki_vector_set(z, y));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_glm_start(struct ki_glm *glm, bool *found) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t cols = kiln_matrix_cols(glm->X);
    kiln_matrix *z = ki_arena_rows(&arena, glm->X, 1), *W = ki_arena_model(&arena, glm->X, cols, 1),
                *G = ki_arena_model(&arena, glm->X, cols, 1);
    *found = false;
    TRY(arena.status);
    for (int of_rows = 1; of_rows >= 0 && !*found; of_rows--) {
        const kiln_linreg_options options = {.no_intercept = 1, .weights = glm->loss.weights};
        double value;
        TRY(linked(z, glm, of_rows));
        TRY(kiln_linreg(W, NULL, glm->X, z, &options, NULL));
        TRY(kiln_loss_gradient(&value, G, NULL, NULL, &glm->loss, glm->X, W, NULL));
        *found = isfinite(value);
    }
    if (*found) TRY(ki_newton_set_start(&glm->newton, W, NULL));
done:
    return ki_arena_free(&arena, status);
}
