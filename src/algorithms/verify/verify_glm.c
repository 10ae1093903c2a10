/* Finds again what a linear model's file has besides its objective, by the textbook and in long double:
 * linear predictors, deviances, Akaike's criterion as R counts it, and standard errors from the information
 * matrix.
 *
 * Training knows eta_i no nearer than d_i, as verify.c has it, and a mean that is a power or an
 * exponential no nearer than some units, which are as good as as many units of mu / mu' in eta. A row's
 * deviance has its only minimum where its slope changes its sign, so that within eta_i +- d_i it is between
 * its values at the ends, or 0 where their slopes differ in sign, and Pearson's part where y is between their
 * means; and its formula loses some units of the terms whose
 * difference it is. Sums of these are the bounds of what a training may say. The criterion of the other
 * families follows the deviance; those with a dispersion have it as a monotone function of the deviance. */
#define _GNU_SOURCE
#include "algorithms/verify/verify_glm.h"
#include "algorithms/verify/verify_point.h"

#include "algorithms/certificate/certificate.h"
#include "ops/linear/families.h"

enum { COLUMNS_MOST = 4096, FORMULA = 8 }; /* FORMULA: operations of a row's figure */

static const long double pi = 3.14159265358979323846264338327950288L;

/* Sets *blur to what training may be off by. */
static long double predictor(const struct ki_verify_model *m, int64_t i, int64_t c, double *blur) {
    const long double b = m->b ? m->b[c] : 0, offset = m->offset ? m->offset[i] : 0;
    long double eta = b + offset, size = fabsl(b) + fabsl(offset);
    for (int64_t e = 0; e < ki_row_size(&m->X, i); e++) {
        const long double term =
            (long double)ki_row_values(&m->X, i)[e] * m->W[ki_row_column(&m->X, i, e) * m->k + c];
        eta += term;
        size += fabsl(term);
    }
    *blur = (double)(ki_units(ki_row_size(&m->X, i) + 2, m->type) * size);
    return eta;
}

/* ------------------------------------------------------------------------------------------- deviance */

/* A sum over rows, and the least and the most that a training may have for it. */
struct sum {
    long double value, low, high;
};

/* Adds s times a row's figure, which is `here` and at the ends of what eta may be `one` and `other`; best:
 * it may be 0. */
static void add(struct sum *sum, const struct ki_verify_model *m, double s, long double here, long double one,
                long double other, bool best, long double size) {
    const long double tiny = m->type == KILN_F32 ? FLT_MIN : DBL_MIN;
    const long double off = ki_units(FORMULA, m->type) * size + ki_units(m->X.rows, KILN_F64) * fabsl(here);
    const bool known = isfinite((double)one) && isfinite((double)other);
    sum->value += s * here;
    sum->low += known && !best ? s * fmaxl(fminl(here, fminl(one, other)) - off, 0) : 0;
    sum->high += known ? s * (fmaxl(here, fmaxl(one, other)) + off) + (s + 1) * tiny : (long double)INFINITY;
}

struct total {
    struct sum deviance, pearson;
};

struct row {
    struct ki_response at;
    struct ki_verify_slope slope;
    long double value, deviance, pearson; /* NaN where eta is out of range */
};

static struct row row_at(const struct ki_verify_model *m, double y, long double eta,
                         struct ki_verify_value best) {
    struct row row = {.at = ki_verify_response(m->loss, eta)};
    row.value = ki_verify_loss(&row.slope, m->loss, y, &eta, 1).value;
    const bool there = isfinite((double)row.value);
    row.deviance = there ? ki_verify_deviance(m->loss, y, &row.at, best) : (long double)NAN;
    const long double off = y - row.at.mu, variance = ki_verify_variance(m->loss, &row.at);
    row.pearson = !there ? (long double)NAN : off == 0 ? 0 : off * off / variance;
    return row;
}

/* Returns what the mean's own rounding is in eta. The formulas for y far from mu take its logarithm. */
static long double mean_blur(const struct ki_verify_model *m, double y, const struct ki_response *at) {
    const kiln_family family = m->loss->family;
    if (family == KILN_GAUSSIAN && ki_link_of(m->loss) == KILN_LINK_IDENTITY) return 0;
    if (family == KILN_BINOMIAL) return 0; /* deviances come from eta */
    const bool near = fabsl(y - at->mu) < 0.5L * at->mu && family != KILN_TWEEDIE;
    const long double logs =
        near || family == KILN_GAUSSIAN ? 0 : fabsl(at->log_mu) + (y > 0 ? fabsl(logl(y)) : 0);
    return ki_units(FORMULA, m->type) * (1 + logs) * fabsl(at->mu / at->slope);
}

/* Sums at these linear predictors, each shifted, which may be off by blur. */
static struct total add_up(const struct ki_verify_model *m, const double *eta, const double *blur,
                           double shift) {
    struct total total = {.deviance = {0}};
    for (int64_t i = 0; i < m->X.rows; i++) {
        const double s = ki_verify_weight_of(m, i), y = m->y[i];
        if (!(s > 0)) continue;
        const long double at = (long double)eta[i] + shift;
        const struct ki_verify_value least_loss = ki_verify_best(m->loss, y);
        const struct row row = row_at(m, y, at, least_loss);
        const long double off =
            mean_blur(m, y, &row.at) + (blur ? blur[i] : ki_units(2, m->type) * (fabs(eta[i]) + fabs(shift)));
        const struct row one = row_at(m, y, at - off, least_loss), other = row_at(m, y, at + off, least_loss);
        const bool best = (one.at.mu - y) * (other.at.mu - y) <= 0,
                   least = one.slope.value * other.slope.value <= 0;
        add(&total.deviance, m, s, row.deviance, one.deviance, other.deviance, least,
            row.deviance + ki_verify_deviance_size(m->loss, y, &row.at, least_loss));
        add(&total.pearson, m, s, row.pearson, one.pearson, other.pearson, best, row.pearson);
    }
    return total;
}

/* k log k - k - log Gamma(k), without the digits that these lose to each other where k is large. */
static long double stirling(long double k) {
    int sign;
    if (k < 64) return k * logl(k) - k - lgammal_r(k, &sign);
    const long double r = 1 / (k * k);
    return (logl(k) - logl(2 * pi)) / 2 - (1.0L / 12 - r * (1.0L / 360 - r * (1.0L / 1260 - r / 1680))) / k;
}

/* Returns what of Akaike's criterion depends on the deviance, of families with a dispersion, which is put at
 * deviance / weight. */
static long double of_deviance(const struct ki_verify_model *m, long double deviance) {
    if (m->loss->family == KILN_GAUSSIAN) return m->counted * (logl(2 * pi * deviance / m->counted) + 1);
    if (m->loss->family == KILN_GAMMA) return m->weight * (1 - 2 * stirling(m->weight / deviance));
    return m->weight * (logl(2 * pi * deviance / m->weight) + 1);
}

static struct sum akaike(const struct ki_verify_model *m, const struct sum *deviance, const double *eta) {
    const kiln_family family = m->loss->family;
    const bool spread = !ki_family_find(family)->shown.fixed_dispersion;
    const long double share = family == KILN_GAMMA ? 2 : 3;
    long double size = 0;
    struct sum sum = {.value = 2 * (m->parameters + spread)};
    if (!ki_family_find(family)->akaike) return (struct sum){NAN, NAN, NAN};
    for (int64_t i = 0; i < m->X.rows; i++) {
        const double s = ki_verify_weight_of(m, i);
        if (!(s > 0)) continue;
        const struct ki_response at = ki_verify_response(m->loss, eta[i]);
        struct ki_verify_value own = {0};
        if (!spread)
            own = ki_verify_minus_twice(m->loss, m->y[i], s, &at);
        else
            own.value = family == KILN_GAUSSIAN ? -logl(s) : share * s * logl(m->y[i]);
        sum.value += own.value;
        size += spread ? fabsl(own.value) : own.size;
    }
    const long double low = spread ? of_deviance(m, deviance->low) : deviance->low,
                      high = spread ? of_deviance(m, deviance->high) : deviance->high,
                      here = spread ? of_deviance(m, deviance->value) : deviance->value;
    if (spread) sum.value += here;
    size = (ki_units(FORMULA, m->type) + ki_units(m->X.rows, KILN_F64)) * (size + fabsl(spread ? here : 0)) +
           ki_units(4, KILN_F64) * fabsl(sum.value); /* of small weights all that counts is parameters */
    sum.low = deviance->low > 0 || !spread ? sum.value + (low - here) - size : (long double)-INFINITY;
    sum.high = sum.value + (high - here) + size;
    return sum;
}

/* Returns whether all targets are at an end of the family's range, which the best mean goes to: it leaves no
 * deviance. */
static bool at_end(const struct ki_verify_model *m, long double mean) {
    const kiln_range range = ki_family_find(m->loss->family)->range;
    return mean <= range.least || mean >= range.most;
}

/* The loss at these linear predictors, each shifted, with its slope and expected curvature along the
 * shift. */
struct along {
    long double value, slope, curvature;
};

static struct along along(const struct ki_verify_model *m, const double *eta, double shift) {
    struct along sum = {0};
    for (int64_t i = 0; i < m->X.rows; i++) {
        const double s = ki_verify_weight_of(m, i);
        if (!(s > 0)) continue;
        struct ki_verify_slope slope;
        const long double at = (long double)eta[i] + shift;
        sum.value += s * ki_verify_loss(&slope, m->loss, m->y[i], &at, 1).value;
        sum.slope += s * slope.value;
        sum.curvature += s * slope.expected;
    }
    return sum;
}

/* The deviance of the best intercept beside the offset, by Fisher scoring with halving. */
static struct sum null_deviance(const struct ki_verify_model *m, double *eta) {
    long double mean = 0, offset = 0;
    for (int64_t i = 0; i < m->X.rows; i++) {
        eta[i] = m->offset ? m->offset[i] : 0;
        mean += ki_verify_weight_of(m, i) * m->y[i] / m->weight;
        offset += ki_verify_weight_of(m, i) * eta[i] / m->weight;
    }
    if (at_end(m, mean)) return (struct sum){0, 0, 0};
    double at = ki_verify_link(m->loss, (double)mean) - (double)offset;
    struct ki_verify_bracket bracket = KI_VERIFY_OPEN;
    struct along here = along(m, eta, at);
    for (int iteration = 0; iteration < 200 && isfinite((double)here.value); iteration++) {
        if (!(fabsl(here.slope) > 1e-15L * here.curvature * fmaxl(fabsl(at), 1e-3L))) break;
        long double step = ki_verify_step(&bracket, at, here.slope, here.curvature);
        struct along there = {.value = NAN};
        for (int halved = 0; halved < 40 && (double)(at - step) != at; halved++, step /= 2) {
            there = along(m, eta, (double)(at - step));
            if (there.curvature > 0 && (bracket.closed || there.value <= here.value)) break;
        }
        if (!(there.curvature > 0) || !(bracket.closed || there.value <= here.value)) break;
        at = (double)(at - step);
        here = there;
    }
    if (!isfinite((double)here.value)) return (struct sum){NAN, NAN, NAN};
    struct sum sum = add_up(m, eta, NULL, at).deviance;
    if (here.curvature > 0) sum.low -= 4 * here.slope * here.slope / here.curvature; /* steps that are left */
    return sum;
}

/* The parameters that a fit counts: with l2 all of them, with l1 what is not 0. */
static void count(struct ki_verify_model *m) {
    const kiln_verify_options *o = m->options;
    if (o->l2 > 0) m->parameters = (double)m->columns;
    if (!(o->l1 > 0)) return;
    m->parameters = m->b != NULL;
    for (int64_t j = 0; j < m->X.cols; j++) m->parameters += m->W[j] != 0;
}

/* ---------------------------------------------------------------------------------------------- whole */

static kiln_status load(struct ki_verify_model *m, const kiln_matrix *X, const kiln_matrix *W,
                        const kiln_matrix *b, const kiln_matrix *errors) {
    kiln_status status;
    const kiln_loss *loss = m->loss;
    m->k = kiln_matrix_cols(W);
    m->type = kiln_matrix_type(X);
    TRY(ki_copy_take(&m->X, X, false));
    TRY(ki_copy_vector(&m->W, W));
    if (b) TRY(ki_copy_vector(&m->b, b));
    if (loss->y) TRY(ki_copy_vector(&m->y, loss->y));
    if (loss->weights) TRY(ki_copy_vector(&m->s, loss->weights));
    if (loss->offset) TRY(ki_copy_vector(&m->offset, loss->offset));
    if (errors) TRY(ki_copy_vector(&m->errors, errors));
    for (int64_t i = 0; i < m->X.rows; i++) {
        m->weight += ki_verify_weight_of(m, i);
        m->counted += ki_verify_weight_of(m, i) > 0;
    }
done:
    return status;
}

static void unload(struct ki_verify_model *m) {
    double *const all[] = {m->W, m->b, m->y, m->s, m->offset, m->errors};
    for (int i = 0; i < 6; i++) ki_free(all[i]);
    ki_free(m->A);
    ki_copy_free(&m->X);
}

static void tell(double *value, double *low, double *high, struct sum sum) {
    *value = (double)sum.value;
    *low = (double)sum.low;
    *high = (double)sum.high;
}

static kiln_status judge(kiln_glm_verification *made, struct ki_verify_model *m) {
    kiln_status status = KILN_OK;
    const bool glm = m->loss->kind == KILN_LOSS_GLM;
    const size_t rows = (size_t)ki_max(m->X.rows, 1);
    double *eta = ki_calloc(2 * rows * sizeof *eta), *blur = eta ? eta + rows : NULL;
    m->columns = m->X.cols + (m->b != NULL);
    const size_t cells = (size_t)(m->columns + 3) * (size_t)m->columns;
    m->parameters = NAN;
    if (m->columns <= COLUMNS_MOST) m->A = ki_calloc(cells * sizeof *m->A);
    if (!eta || (m->columns <= COLUMNS_MOST && !m->A))
        TRY(ki_fail_nomem(cells * sizeof *m->A, "the information"));
    for (int64_t i = 0; i < m->X.rows && glm; i++) eta[i] = (double)predictor(m, i, 0, &blur[i]);
    if (m->A) {
        m->scale = m->A + m->columns * m->columns;
        m->mean = m->scale + m->columns;
        m->row = m->mean + m->columns;
        ki_verify_information(m, glm ? eta : NULL);
    }
    count(m);
    made->parameters = m->parameters;
    made->errors = made->deviance = made->null_deviance = made->dispersion = made->aic = NAN;
    if (!glm) goto done;
    const struct total total = add_up(m, eta, blur, 0);
    const double degrees = m->counted - m->parameters;
    const bool fixed = ki_family_find(m->loss->family)->shown.fixed_dispersion;
    made->dispersion = fixed ? 1 : degrees > 0 ? (double)total.pearson.value / degrees : (double)NAN;
    made->dispersion_low = fixed ? 1 : (double)total.pearson.low / degrees;
    made->dispersion_high = fixed ? 1 : (double)total.pearson.high / degrees;
    tell(&made->deviance, &made->deviance_low, &made->deviance_high, total.deviance);
    tell(&made->aic, &made->aic_low, &made->aic_high, akaike(m, &total.deviance, eta));
    if (m->errors && m->A) made->errors = ki_verify_errors(m, made->dispersion);
    made->errors_rounding = 1000 * (double)m->columns * DBL_EPSILON / m->least;
    tell(&made->null_deviance, &made->null_deviance_low, &made->null_deviance_high, null_deviance(m, eta));
done:
    ki_free(eta);
    return status;
}

static kiln_status check(const char *call, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                         const kiln_loss *loss) {
    kiln_status status = KILN_OK;
    const int64_t rows = X ? kiln_matrix_rows(X) : 0;
    if (!X || !W) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_check_matrix(call, "W", W, X, kiln_matrix_cols(X), kiln_matrix_cols(W)));
    if (b) TRY(ki_check_matrix(call, "b", b, X, 1, kiln_matrix_cols(W)));
    if (loss->weights) TRY(ki_check_matrix(call, "weights", loss->weights, X, rows, 1));
    if (loss->offset) TRY(ki_check_matrix(call, "offset", loss->offset, X, rows, 1));
done:
    return status;
}

static kiln_status check_predictors(const char *call, const char *name, const kiln_matrix *Eta,
                                    const kiln_matrix *X, const kiln_matrix *W) {
    if (kiln_matrix_format(Eta) == KILN_DENSE && kiln_matrix_type(Eta) == KILN_F64 &&
        kiln_matrix_rows(Eta) == kiln_matrix_rows(X) && kiln_matrix_cols(Eta) == kiln_matrix_cols(W))
        return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is not dense, f64, with X's rows and W's columns", call, name);
}

kiln_status kiln_verify_predictors(kiln_matrix *Eta, kiln_matrix *rounding, const kiln_matrix *X,
                                   const kiln_matrix *W, const kiln_matrix *b, const kiln_matrix *offset) {
    static const char call[] = "kiln_verify_predictors";
    const kiln_loss loss = {.size = sizeof loss, .offset = offset};
    struct ki_verify_model m = {.loss = &loss};
    double *values = NULL;
    kiln_status status;
    TRY(check(call, X, W, b, &loss));
    if (!Eta) return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta is NULL", call);
    TRY(check_predictors(call, "Eta", Eta, X, W));
    if (rounding) TRY(check_predictors(call, "rounding", rounding, X, W));
    TRY(load(&m, X, W, b, NULL));
    const int64_t count = kiln_matrix_nnz(Eta);
    values = ki_alloc((size_t)ki_max(2 * count, 1) * sizeof *values);
    if (!values) TRY(ki_fail_nomem((size_t)(2 * count) * sizeof *values, "linear predictors"));
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)predictor(&m, i / m.k, i % m.k, &values[count + i]);
    TRY(kiln_matrix_set(Eta, values));
    if (rounding) TRY(kiln_matrix_set(rounding, values + count));
done:
    ki_free(values);
    unload(&m);
    return status;
}

kiln_status kiln_verify_glm(kiln_glm_verification *result, const kiln_loss *loss, const kiln_matrix *X,
                            const kiln_matrix *W, const kiln_matrix *b, const kiln_matrix *standard_errors,
                            const kiln_verify_options *options) {
    static const char call[] = "kiln_verify_glm";
    kiln_glm_verification made = {0};
    kiln_verify_options wanted;
    kiln_loss own;
    struct ki_verify_model m = {.loss = &own, .options = &wanted};
    kiln_status status;
    if (!result || !loss) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_loss, &own, loss));
    TRY(KI_TAKE(kiln_verify_options, &wanted, options));
    TRY(KI_CHECK_RESULT(kiln_glm_verification, result));
    TRY(check(call, X, W, b, &own));
    if (own.kind == KILN_LOSS_GLM) TRY(ki_family_check(call, &own));
    if (own.kind == KILN_LOSS_GLM && !own.y) return ki_fail(KILN_ERR_ARGUMENT, "%s: y is NULL", call);
    if (own.y && own.kind == KILN_LOSS_GLM) TRY(ki_check_matrix(call, "y", own.y, X, kiln_matrix_rows(X), 1));
    if (standard_errors)
        TRY(ki_check_matrix(call, "standard_errors", standard_errors, X, kiln_matrix_cols(X) + (b != NULL),
                            1));
    TRY(load(&m, X, W, b, standard_errors));
    TRY(judge(&made, &m));
    TRY(ki_copy_check(&m.X));
    KI_GIVE(kiln_glm_verification, result, &made);
done:
    unload(&m);
    return status;
}
