/* What a linear model's file says besides its objective, by the textbook and in long double: linear
 * predictors, deviances, Akaike's criterion as R counts it, and standard errors from the information matrix.
 *
 * Columns of sqrt(h) [1 X] are taken in order, the intercept first. One of which elimination leaves less
 * than rounding depends on those before it; one of which it leaves little is not clear, and nothing is said
 * of what counts columns. */
#define _DEFAULT_SOURCE
#include "algorithms/verify/verify.h"

enum { COLUMNS_MOST = 4096 };

/* GONE: what is left of a dependent column's square. CLEAR: of an independent one's, at least. */
static const long double pi = 3.14159265358979323846264338327950288L, GONE = 1e-16L, CLEAR = 1e-12L;

struct model {
    const kiln_loss *loss;
    const kiln_verify_options *options;
    struct ki_copy X;
    int64_t k;
    double *W, *b, *y, *s, *offset, *errors; /* but for W and y NULL where they are not given */
    long double *A;                          /* columns x columns: the information, then its factor by rows */
    long double *scale;                      /* columns: the roots of its diagonal */
    int64_t columns;                         /* of [1 X] */
    double weight, counted, parameters,
        least; /* least: what elimination leaves of a column that is independent */
};

static double weight_of(const struct model *m, int64_t i) {
    return m->s ? m->s[i] : 1;
}

static long double predictor(const struct model *m, int64_t i, int64_t c) {
    long double eta = (m->b ? m->b[c] : 0) + (m->offset ? m->offset[i] : 0);
    for (int64_t e = 0; e < ki_row_size(&m->X, i); e++)
        eta += (long double)ki_row_values(&m->X, i)[e] * m->W[ki_row_column(&m->X, i, e) * m->k + c];
    return eta;
}

/* ------------------------------------------------------------------------------------------- deviance */

/* y log(y / mu), 0 where y is. */
static long double ratio_log(double y, long double mu) {
    return y == 0 ? 0 : y * logl(y / mu);
}

static long double unit_deviance(const kiln_loss *loss, double y, const struct ki_response *at) {
    const long double mu = at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return 2 * (ratio_log(y, mu) - (y - mu));
    case KILN_GAMMA: return 2 * ((y - mu) / mu - logl(y / mu));
    case KILN_INVERSE_GAUSSIAN: return (y - mu) * (y - mu) / (y * mu * mu);
    case KILN_BINOMIAL: return 2 * (ratio_log(y, mu) + ratio_log(1 - y, at->nu));
    case KILN_TWEEDIE:
        return 2 * (powl(y, 2 - p) / ((1 - p) * (2 - p)) - y * powl(mu, 1 - p) / (1 - p) +
                    powl(mu, 2 - p) / (2 - p));
    case KILN_NEGATIVE_BINOMIAL:
        return 2 * (ratio_log(y, mu) - (y + 1 / p) * (log1pl(p * y) - log1pl(p * mu)));
    default: return (y - mu) * (y - mu);
    }
}

/* Minus twice the row's log-likelihood; spread: the dispersion of gamma, the others' own is 1 or comes in
 * akaike(). */
static long double minus_twice(const struct model *m, int64_t i, const struct ki_response *at,
                               long double spread) {
    const long double mu = at->mu, p = m->loss->parameter, y = m->y[i], s = weight_of(m, i);
    int sign;
    switch (m->loss->family) {
    case KILN_POISSON: return 2 * s * (mu - (y == 0 ? 0 : y * logl(mu)) + lgammal_r(y + 1, &sign));
    case KILN_BINOMIAL: {
        const long double won = s * y, lost = s * (1 - y);
        return 2 * ((won == 0 ? 0 : -won * logl(mu)) - (lost == 0 ? 0 : lost * logl(at->nu)) -
                    lgammal_r(s + 1, &sign) + lgammal_r(won + 1, &sign) + lgammal_r(lost + 1, &sign));
    }
    case KILN_NEGATIVE_BINOMIAL:
        return -2 * s *
               (lgammal_r(y + 1 / p, &sign) - lgammal_r(1 / p, &sign) - lgammal_r(y + 1, &sign) +
                (y == 0 ? 0 : y * logl(p * mu)) - (y + 1 / p) * log1pl(p * mu));
    case KILN_GAMMA: {
        const long double shape = 1 / spread, size = mu * spread;
        return -2 * s * ((shape - 1) * logl(y) - y / size - shape * logl(size) - lgammal_r(shape, &sign));
    }
    case KILN_INVERSE_GAUSSIAN: return 3 * s * logl(y);
    default: return -logl(s);
    }
}

static double akaike(const struct model *m, long double deviance, const double *eta) {
    const kiln_family family = m->loss->family;
    const bool spread = family == KILN_GAUSSIAN || family == KILN_GAMMA || family == KILN_INVERSE_GAUSSIAN;
    long double sum = 2 * (m->parameters + spread);
    if (family == KILN_TWEEDIE) return NAN;
    if (family == KILN_GAUSSIAN) sum += m->counted * (logl(2 * pi * deviance / m->counted) + 1);
    if (family == KILN_INVERSE_GAUSSIAN) sum += m->weight * (logl(2 * pi * deviance / m->weight) + 1);
    for (int64_t i = 0; i < m->X.rows; i++) {
        const struct ki_response at = ki_verify_response(m->loss, eta[i]);
        if (weight_of(m, i) > 0) sum += minus_twice(m, i, &at, deviance / m->weight);
    }
    return (double)sum;
}

struct total {
    long double deviance, pearson, slope, curvature, value;
};

/* Sums at these linear predictors, each shifted. */
static struct total add_up(const struct model *m, const double *eta, double shift) {
    struct total total = {0};
    for (int64_t i = 0; i < m->X.rows; i++) {
        const double s = weight_of(m, i);
        const long double at_row = (long double)eta[i] + shift;
        const struct ki_response at = ki_verify_response(m->loss, at_row);
        long double slope, curvature;
        if (!(s > 0)) continue;
        total.value += s * ki_verify_loss(&slope, &curvature, m->loss, m->y[i], &at_row, 1);
        total.slope += s * slope;
        total.curvature += s * curvature;
        total.deviance += s * unit_deviance(m->loss, m->y[i], &at);
        total.pearson += s * (m->y[i] - at.mu) * (m->y[i] - at.mu) / at.variance;
    }
    return total;
}

/* The deviance of the best intercept beside the offset, by Fisher scoring with halving. */
static double null_deviance(const struct model *m, double *eta) {
    long double mean = 0, offset = 0;
    for (int64_t i = 0; i < m->X.rows; i++) {
        eta[i] = m->offset ? m->offset[i] : 0;
        mean += weight_of(m, i) * m->y[i] / m->weight;
        offset += weight_of(m, i) * eta[i] / m->weight;
    }
    double at = ki_verify_link(m->loss, (double)mean) - (double)offset;
    struct total here = add_up(m, eta, at);
    for (int iteration = 0; iteration < 200 && isfinite((double)here.value); iteration++) {
        long double step = here.slope / here.curvature;
        if (!(fabsl(step) > 1e-15L * fmaxl(fabsl(at), 1e-3L))) break;
        struct total there = add_up(m, eta, (double)(at - step));
        for (int halved = 0; halved < 40 && !(there.value <= here.value); halved++) {
            step /= 2;
            there = add_up(m, eta, (double)(at - step));
        }
        if (!(there.value <= here.value)) break;
        at -= (double)step;
        here = there;
    }
    return isfinite((double)here.value) ? (double)here.deviance : (double)NAN;
}

/* ----------------------------------------------------------------------------------------- information */

/* A += h [1 x] [1 x]^T of each row, below the diagonal and on it. */
static void inform(struct model *m, const double *eta, long double *row) {
    const int64_t first = m->b != NULL;
    for (int64_t i = 0; i < m->X.rows; i++) {
        long double slope, h = 1;
        const long double at = eta ? eta[i] : 0;
        if (m->loss->kind == KILN_LOSS_GLM) ki_verify_loss(&slope, &h, m->loss, m->y[i], &at, 1);
        h *= weight_of(m, i);
        for (int64_t j = 0; j < m->columns; j++) row[j] = j < first;
        for (int64_t e = 0; e < ki_row_size(&m->X, i); e++)
            row[first + ki_row_column(&m->X, i, e)] += ki_row_values(&m->X, i)[e];
        for (int64_t j = 0; j < m->columns; j++)
            for (int64_t l = 0; l <= j && row[j] != 0; l++) m->A[j * m->columns + l] += h * row[j] * row[l];
    }
}

/* A = L of scaled columns, with rows of zeros for those that depend on others; counts the others. */
static void factor(struct model *m) {
    const int64_t n = m->columns;
    for (int64_t j = 0; j < n; j++) m->scale[j] = sqrtl(m->A[j * n + j]);
    m->parameters = 0;
    m->least = 1;
    for (int64_t j = 0; j < n; j++) {
        long double *row = m->A + j * n, left = m->scale[j] > 0;
        for (int64_t l = 0; l < j; l++) {
            const long double *other = m->A + l * n;
            long double sum = m->scale[j] > 0 && m->scale[l] > 0 ? row[l] / (m->scale[j] * m->scale[l]) : 0;
            for (int64_t e = 0; e < l; e++) sum -= row[e] * other[e];
            row[l] = other[l] > 0 ? sum / other[l] : 0;
            left -= row[l] * row[l];
        }
        row[j] = left > GONE ? sqrtl(left) : 0;
        for (int64_t l = 0; l < j && row[j] == 0; l++) row[l] = 0;
        m->parameters += row[j] > 0;
        if (row[j] > 0) m->least = fmin(m->least, (double)left);
    }
    if (m->least < CLEAR) m->parameters = NAN;
}

/* The largest relative difference of a given standard error; those of dependent columns are negative or no
 * numbers. */
static double compare_errors(const struct model *m, double dispersion, long double *x) {
    const int64_t n = m->columns, first = m->b != NULL;
    double worst = 0;
    for (int64_t j = 0; j < n; j++) {
        const double given = m->errors[j < first ? n - 1 : j - first]; /* the intercept's comes last */
        long double sum = 0;
        if (m->A[j * n + j] == 0) {
            if (given >= 0) worst = INFINITY;
            continue;
        }
        for (int64_t i = j; i < n; i++) { /* column j of the factor's inverse */
            long double left = i == j;
            for (int64_t e = j; e < i; e++) left -= m->A[i * n + e] * x[e];
            x[i] = m->A[i * n + i] > 0 ? left / m->A[i * n + i] : 0;
            sum += x[i] * x[i];
        }
        const double found = sqrt(dispersion * (double)sum) / (double)m->scale[j];
        worst = given >= 0 ? fmax(worst, fabs(given - found) / found) : INFINITY;
    }
    return worst;
}

/* The parameters that a fit counts: with l2 all of them, with l1 what is not 0. */
static void count(struct model *m) {
    const kiln_verify_options *o = m->options;
    if (o->l2 > 0) m->parameters = (double)m->columns;
    if (!(o->l1 > 0)) return;
    m->parameters = m->b != NULL;
    for (int64_t j = 0; j < m->X.cols; j++) m->parameters += m->W[j] != 0;
}

/* ---------------------------------------------------------------------------------------------- whole */

static kiln_status load(struct model *m, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                        const kiln_matrix *errors) {
    kiln_status status;
    const kiln_loss *loss = m->loss;
    m->k = kiln_matrix_cols(W);
    TRY(ki_copy_take(&m->X, X));
    TRY(ki_copy_vector(&m->W, W));
    if (b) TRY(ki_copy_vector(&m->b, b));
    if (loss->y) TRY(ki_copy_vector(&m->y, loss->y));
    if (loss->weights) TRY(ki_copy_vector(&m->s, loss->weights));
    if (loss->offset) TRY(ki_copy_vector(&m->offset, loss->offset));
    if (errors) TRY(ki_copy_vector(&m->errors, errors));
    for (int64_t i = 0; i < m->X.rows; i++) {
        m->weight += weight_of(m, i);
        m->counted += weight_of(m, i) > 0;
    }
done:
    return status;
}

static void unload(struct model *m) {
    double *const all[] = {m->W, m->b, m->y, m->s, m->offset, m->errors};
    for (int i = 0; i < 6; i++) ki_free(all[i]);
    ki_free(m->A);
    ki_copy_free(&m->X);
}

static bool dispersion_is_one(kiln_family family) {
    return family == KILN_POISSON || family == KILN_BINOMIAL || family == KILN_NEGATIVE_BINOMIAL;
}

static kiln_status judge(kiln_glm_verification *made, struct model *m) {
    kiln_status status = KILN_OK;
    const bool glm = m->loss->kind == KILN_LOSS_GLM;
    double *eta = ki_calloc((size_t)ki_max(m->X.rows, 1) * sizeof *eta);
    m->columns = m->X.cols + (m->b != NULL);
    const size_t cells = (size_t)(m->columns + 2) * (size_t)m->columns;
    m->parameters = NAN;
    if (m->columns <= COLUMNS_MOST) m->A = ki_calloc(cells * sizeof *m->A);
    if (!eta || (m->columns <= COLUMNS_MOST && !m->A))
        TRY(ki_fail_nomem(cells * sizeof *m->A, "the information"));
    for (int64_t i = 0; i < m->X.rows && glm; i++) eta[i] = (double)predictor(m, i, 0);
    if (m->A) {
        m->scale = m->A + m->columns * m->columns;
        inform(m, glm ? eta : NULL, m->scale + m->columns);
        factor(m);
    }
    count(m);
    made->parameters = m->parameters;
    made->errors = made->deviance = made->null_deviance = made->dispersion = made->aic = NAN;
    if (!glm) goto done;
    const struct total total = add_up(m, eta, 0);
    const double degrees = m->counted - m->parameters;
    made->deviance = (double)total.deviance;
    made->dispersion = dispersion_is_one(m->loss->family) ? 1
                       : degrees > 0                      ? (double)total.pearson / degrees
                                                          : (double)NAN;
    made->aic = akaike(m, total.deviance, eta);
    if (m->errors && m->A) made->errors = compare_errors(m, made->dispersion, m->scale + m->columns);
    made->errors_rounding = 1000 * (double)m->columns * DBL_EPSILON / m->least;
    made->null_deviance = null_deviance(m, eta);
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

kiln_status kiln_verify_predictors(kiln_matrix *Eta, const kiln_matrix *X, const kiln_matrix *W,
                                   const kiln_matrix *b, const kiln_matrix *offset) {
    static const char call[] = "kiln_verify_predictors";
    const kiln_loss loss = {.size = sizeof loss, .offset = offset};
    struct model m = {.loss = &loss};
    double *values = NULL;
    kiln_status status;
    TRY(check(call, X, W, b, &loss));
    if (!Eta) return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta is NULL", call);
    if (kiln_matrix_format(Eta) != KILN_DENSE || kiln_matrix_type(Eta) != KILN_F64 ||
        kiln_matrix_rows(Eta) != kiln_matrix_rows(X) || kiln_matrix_cols(Eta) != kiln_matrix_cols(W))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta is not dense, f64, with X's rows and W's columns", call);
    TRY(load(&m, X, W, b, NULL));
    values = ki_alloc((size_t)ki_max(kiln_matrix_nnz(Eta), 1) * sizeof *values);
    if (!values) TRY(ki_fail_nomem((size_t)kiln_matrix_nnz(Eta) * sizeof *values, "linear predictors"));
    for (int64_t i = 0; i < m.X.rows * m.k; i++) values[i] = (double)predictor(&m, i / m.k, i % m.k);
    TRY(kiln_matrix_set(Eta, values));
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
    struct model m = {.loss = &own, .options = &wanted};
    kiln_status status;
    if (!result || !loss) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_loss, &own, loss));
    TRY(KI_TAKE(kiln_verify_options, &wanted, options));
    TRY(KI_CHECK_RESULT(kiln_glm_verification, result));
    TRY(check(call, X, W, b, &own));
    if (own.kind == KILN_LOSS_GLM && !own.y) return ki_fail(KILN_ERR_ARGUMENT, "%s: y is NULL", call);
    if (own.y && own.kind == KILN_LOSS_GLM) TRY(ki_check_matrix(call, "y", own.y, X, kiln_matrix_rows(X), 1));
    if (standard_errors)
        TRY(ki_check_matrix(call, "standard_errors", standard_errors, X, kiln_matrix_cols(X) + (b != NULL),
                            1));
    TRY(load(&m, X, W, b, standard_errors));
    TRY(judge(&made, &m));
    KI_GIVE(kiln_glm_verification, result, &made);
done:
    unload(&m);
    return status;
}
