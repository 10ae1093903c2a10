/* A family's parameter by maximum likelihood: the root of the profile likelihood's derivative in t, the log
 * of the parameter, or of (p - 1) / (2 - p) for Tweedie's power p. At the best means for a parameter their
 * own derivatives are 0, so that only what the parameter does by itself is left, which with r = 1 / alpha,
 * nu = 1 - mu and psi the digamma function is
 *   negative binomial  -r s (psi(y + r) - psi(r) - log(1 + mu / r) + (mu - y) / (r + mu))
 *   beta               P s (psi(P) - mu psi(P mu) - nu psi(P nu) + mu log y + nu log(1 - y))
 *   Tweedie            (p - 1) (2 - p) d log f / dp (tweedie.h) at phi / s, phi the dispersion that is best
 *                      for p, by maximum likelihood as well: another root, in log phi, without a fit */
#include "algorithms/inference/tweedie.h"
#include "algorithms/run/run.h"
#include "ops/linear/families.h"
#include "ops/sampled/gamma.h"

static const char call[] = "kiln_glm_estimate";

enum { STEPS_OF_A_FIT = 100 }; /* kiln_glm's default: fewer are meant for the fit that comes after this */

/* psi(y + r) - psi(r), without a difference of large numbers for counts. */
static double digamma_step(double y, double r) {
    double sum = 0;
    if (!(y < 256 && y == floor(y))) return ki_digamma(y + r) - ki_digamma(r);
    for (int k = 0; k < (int)y; k++) sum += 1 / (r + k);
    return sum;
}

static double negative_binomial_slope(double alpha, double y, double mu) {
    const double r = 1 / alpha;
    return -r * (digamma_step(y, r) - log1p(mu / r) + (mu - y) / (r + mu));
}

/* With x psi(P x) = x psi(P x + 1) - 1 / P, which has its limit where a mean is 0 or 1 by rounding. */
static double beta_slope(double p, double y, double mu) {
    const double nu = 1 - mu;
    return 2 + p * (ki_digamma(p) - mu * ki_digamma(p * mu + 1) - nu * ki_digamma(p * nu + 1) + mu * log(y) +
                    nu * log1p(-y));
}

/* A row's derivative by t. Of Tweedie's there is none without the dispersion. */
typedef double row_slope(double parameter, double y, double mu);

static row_slope *slope_of(kiln_family family) {
    static row_slope *const slopes[KI_FAMILY_LAST + 1] = {
        [KILN_NEGATIVE_BINOMIAL] = negative_binomial_slope, [KILN_BETA] = beta_slope};
    return ki_family_find(family) ? slopes[family] : NULL;
}

struct estimate {
    const kiln_matrix *X, *y;
    kiln_glm_options options; /* parameter: the last one */
    kiln_matrix *w, *b, *Eta;
    double *targets, *means, *weights; /* of the rows */
    int64_t m;
    double dispersion; /* Tweedie's, the last one; 0: none yet */
};

static double parameter_at(const struct estimate *of, double t) {
    return of->options.family == KILN_TWEEDIE ? 1 + 1 / (1 + exp(-t)) : exp(t);
}

/* The derivative by log phi; *by_power gets that by the power. */
static double by_dispersion(double *by_power, struct estimate *of, double dispersion) {
    const struct ki_tweedie_rows rows = {of->m, of->targets, of->means, of->weights};
    const struct ki_tweedie sum =
        ki_tweedie_sum(kiln_matrix_device(of->X), &rows, dispersion, of->options.parameter, false);
    of->dispersion = dispersion;
    *by_power = sum.by_power;
    return sum.by_dispersion;
}

/* Pearson's estimate of the dispersion, a start. */
static double pearson(const struct estimate *of) {
    double sum = 0, rows = 0;
    for (int64_t i = 0; i < of->m; i++) {
        const double off = of->targets[i] - of->means[i];
        if (!(of->weights[i] > 0)) continue;
        sum += of->weights[i] * off * off / pow(of->means[i], of->options.parameter);
        rows++;
    }
    return sum / rows;
}

/* The dispersion of targets that differ from their means in the last digits alone, which says nothing. */
static double rounding(const struct estimate *of) {
    const double unit = 1e-13;
    double sum = 0, rows = 0;
    for (int64_t i = 0; i < of->m; i++) {
        if (!(of->weights[i] > 0)) continue;
        sum += of->weights[i] * pow(of->means[i], 2 - of->options.parameter);
        rows++;
    }
    return unit * unit * sum / rows;
}

/* The derivative by the power at the best dispersion for it, by secants in log phi from the last one. */
static kiln_status tweedie_slope(double *slope, struct estimate *of) {
    enum { STEPS = 60 };
    double t = log(of->dispersion > 0 ? of->dispersion : pearson(of)), step = 0.1, former = 0;
    int i = 0;
    for (; i < STEPS && isfinite(t) && fabs(step) > 1e-10; i++) {
        const double here = by_dispersion(slope, of, exp(t));
        if (i > 0) step *= here < former || here > former ? here / (former - here) : 0;
        step = copysign(fmin(fabs(step), 1), here); /* uphill */
        former = here;
        t += isfinite(here) ? step : here;
    }
    if (i < STEPS && isfinite(t) && exp(t) > rounding(of)) return KILN_OK;
    ki_fail(KILN_ERR_DATA, "%s: no dispersion is best for the power %g", call, of->options.parameter);
    return ki_hint("are the targets fitted exactly? Give the power");
}

/* The derivative with respect to t, at the best means for its parameter. */
static kiln_status slope_at(double *slope, struct estimate *of, double t) {
    kiln_status status;
    const double one = 1;
    double b = 0;
    kiln_report report = {.size = sizeof report};
    of->options.parameter = parameter_at(of, t);
    TRY(kiln_glm(of->w, of->b, of->X, of->y, &of->options, &report));
    const bool cancelled = report.stopped_by == KILN_STOP_CANCELLED, converged = report.converged;
    kiln_report_free(&report);
    if (cancelled) return ki_fail(KILN_ERR_CANCELLED, "%s: cancelled", call);
    if (!converged) {
        ki_fail(KILN_ERR_DATA, "%s: the fit for the parameter %g did not converge", call,
                of->options.parameter);
        return ki_hint("more kiln_glm_options.max_iterations, a penalty (kiln_glm_options.l2), or give the "
                       "parameter");
    }
    of->options.warm_start = 1;
    const kiln_loss loss = {.kind = KILN_LOSS_GLM,
                            .family = of->options.family,
                            .link = of->options.link,
                            .parameter = of->options.parameter,
                            .link_power = of->options.link_power};
    if (of->b) TRY(ki_vector_get(&b, of->b));
    TRY(kiln_fill(of->Eta, b));
    if (of->options.offset) TRY(kiln_combine(of->Eta, &one, of->Eta, &one, of->options.offset));
    TRY(kiln_multiply(of->Eta, 1, KILN_PLAIN, of->X, of->w, 1, of->Eta));
    TRY(kiln_loss_mean(of->Eta, &loss, of->Eta));
    TRY(ki_vector_get(of->means, of->Eta));
    *slope = 0;
    if (loss.family == KILN_TWEEDIE) {
        TRY(tweedie_slope(slope, of));
        *slope *= (loss.parameter - 1) * (2 - loss.parameter);
        goto done;
    }
    row_slope *const own = slope_of(loss.family);
    for (int64_t i = 0; i < of->m; i++)
        if (of->weights[i] > 0) *slope += of->weights[i] * own(loss.parameter, of->targets[i], of->means[i]);
done:
    return status;
}

struct bracket {
    double low, high, at_low, at_high; /* t, and the slopes there: positive, not positive */
};

/* From the start outwards: the likelihood rises below the best and falls above it. */
static kiln_status find_bracket(struct bracket *bracket, struct estimate *of, double start) {
    kiln_status status;
    const double most = log(of->options.family == KILN_TWEEDIE ? 99 : 1e7);
    double t = start, step = 0.5, slope;
    TRY(slope_at(&slope, of, t));
    const bool up = slope > 0;
    bracket->low = bracket->high = t;
    bracket->at_low = bracket->at_high = slope;
    while (fabs(t) < most) {
        t = fmax(-most, fmin(t + (up ? step : -step), most));
        step *= 2;
        TRY(slope_at(&slope, of, t));
        if (slope > 0) {
            bracket->low = t;
            bracket->at_low = slope;
        } else {
            bracket->high = t;
            bracket->at_high = slope;
        }
        if (up != (slope > 0)) goto done;
    }
    ki_fail(KILN_ERR_DATA, "%s: the likelihood rises as far as the parameter goes, to %g", call,
            of->options.parameter);
    status = ki_hint(of->options.family == KILN_BETA ? "are the targets fitted exactly?"
                     : of->options.family == KILN_TWEEDIE
                         ? up ? "without targets of 0 the gamma family, of power 2, or a power above it fits"
                              : "targets that are counts are those of the poisson family, of power 1"
                     : up ? "leave rows of huge targets out, or take another family"
                          : "the targets vary no more than the poisson family says");
done:
    return status;
}

/* The secant's point; an end that stays twice has half of its slope from then on, so that the other one
 * moves, too (the Illinois method: Dowell and Jarratt, BIT 11, 1971). */
static kiln_status find_root(double *root, struct estimate *of, struct bracket *bracket) {
    enum { STEPS = 100 };
    kiln_status status = KILN_OK;
    int side = 0, i = 0;
    double t = bracket->low, slope;
    for (; i < STEPS && bracket->high - bracket->low > 1e-10; i++) {
        const double former = t, rise = bracket->at_low, fall = bracket->at_high;
        t = bracket->low + (bracket->high - bracket->low) * rise / (rise - fall);
        if (i > 0 && fabs(t - former) < 1e-11) break;
        TRY(slope_at(&slope, of, t));
        if (slope == 0) break;
        if (slope > 0) {
            bracket->low = t;
            bracket->at_low = slope;
            if (side > 0) bracket->at_high /= 2;
            side = 1;
        } else {
            bracket->high = t;
            bracket->at_high = slope;
            if (side < 0) bracket->at_low /= 2;
            side = -1;
        }
    }
    if (i == STEPS) {
        ki_fail(KILN_ERR_DATA, "%s: after %d fits the parameter is between %g and %g only", call, STEPS,
                parameter_at(of, bracket->low), parameter_at(of, bracket->high));
        return ki_hint("give one between these");
    }
    *root = t;
done:
    return status;
}

kiln_status kiln_glm_estimate(double *parameter, const kiln_matrix *X, const kiln_matrix *y,
                              const kiln_glm_options *options) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct estimate of = {.X = X, .y = y};
    struct bracket bracket = {0};
    double t = 0;
    if (!parameter || !X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: parameter, X or y is NULL", call);
    TRY(KI_TAKE(kiln_glm_options, &of.options, options));
    const bool tweedie = of.options.family == KILN_TWEEDIE;
    if (!tweedie && !slope_of(of.options.family))
        return ki_fail(KILN_ERR_UNSUPPORTED,
                       "%s: the families tweedie, negative-binomial and beta have a parameter "
                       "that is estimated",
                       call);
    const double given = of.options.parameter;
    if (!(given >= 0) || isinf(given) || (tweedie && given != 0 && !(given > 1 && given < 2)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the start (kiln_glm_options.parameter) is %g", call,
                       of.options.parameter);
    of.m = kiln_matrix_rows(X);
    const double start = !(given > 0) ? 0 : tweedie ? log((given - 1) / (2 - given)) : log(given);
    of.options.control = ki_checkpoint_apart(&of.options.control); /* that is of a single fit */
    of.options.standard_errors = NULL;
    of.options.max_iterations = ki_max(of.options.max_iterations, STEPS_OF_A_FIT);
    of.options.warm_start = 0;
    of.w = ki_arena_model(&arena, X, kiln_matrix_cols(X), 1);
    if (!of.options.no_intercept) of.b = ki_arena_model(&arena, X, 1, 1);
    of.Eta = ki_arena_rows(&arena, X, 1);
    of.targets = ki_arena_doubles(&arena, of.m);
    of.means = ki_arena_doubles(&arena, of.m);
    of.weights = ki_arena_doubles(&arena, of.m);
    TRY(arena.status);
    TRY(ki_check_matrix(call, "y", y, X, of.m, 1));
    TRY(ki_vector_get(of.targets, y));
    for (int64_t i = 0; i < of.m; i++) of.weights[i] = 1;
    if (of.options.weights) {
        TRY(ki_check_matrix(call, "weights", of.options.weights, X, of.m, 1));
        TRY(ki_vector_get(of.weights, of.options.weights));
    }
    TRY(find_bracket(&bracket, &of, start));
    TRY(find_root(&t, &of, &bracket));
    *parameter = parameter_at(&of, t);
done:
    return ki_arena_free(&arena, status);
}
