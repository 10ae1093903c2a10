/* The information matrix of a generalised linear model by plain loops in long double: how many columns are
 * independent, and standard errors.
 *
 * Columns of sqrt(h) [1 X] are taken in order, the intercept first, the others about their means. One that is
 * constant, or of which elimination leaves less than rounding, depends on those before it; one of which it
 * leaves little is not clear, and nothing is said of what counts columns. The sums behind an element of the
 * factor are off by some units, which grow as the least that was left of a column before shrinks. */
#include "algorithms/verify/verify_glm.h"

/* GONE: what is left of a dependent column's square. CLEAR: of an independent one's, at least; training in
 * f32 may take one for dependent that is 16 units from a combination with coefficients of some ten. */
static const long double GONE = 1e-16L, CLEAR[] = {[KILN_F32] = 1e-8L, [KILN_F64] = 1e-12L};

/* The curvature of row i, times its weight. */
static long double curvature_of(const struct ki_verify_model *m, const double *eta, int64_t i) {
    struct ki_verify_slope slope = {.expected = 1};
    const long double at = eta ? eta[i] : 0;
    if (m->loss->kind == KILN_LOSS_GLM) ki_verify_loss(&slope, m->loss, m->y[i], &at, 1);
    return slope.expected * ki_verify_weight_of(m, i);
}

/* *sum += term, where *lost is what the sum has too much of by rounding so far (Kahan, CACM 8, 1965). Of
 * 65,470 rows a plain sum is off by 1e-15, which is more than GONE. */
static inline void add(long double *sum, long double *lost, long double term) {
    const long double rest = term - *lost, total = *sum + rest;
    *lost = (total - *sum) - rest;
    *sum = total;
}

/* A += h [1 z] [1 z]^T of each row, below the diagonal and on it, z about the means. What the sums lose is
 * above the diagonal, and of the diagonal where the scales will be. */
static void inform(struct ki_verify_model *m, const double *eta) {
    long double *row = m->row;
    const int64_t first = m->b != NULL;
    long double sum = 0;
    for (int64_t i = 0; i < m->X.rows && first; i++) {
        const long double h = curvature_of(m, eta, i);
        sum += h;
        for (int64_t e = 0; e < ki_row_size(&m->X, i); e++)
            m->mean[first + ki_row_column(&m->X, i, e)] += h * ki_row_values(&m->X, i)[e];
    }
    for (int64_t j = first; j < m->columns; j++) m->mean[j] = sum > 0 ? m->mean[j] / sum : 0;
    for (int64_t i = 0; i < m->X.rows; i++) {
        const long double h = curvature_of(m, eta, i);
        for (int64_t j = 0; j < m->columns; j++) row[j] = j < first ? 1 : -m->mean[j];
        for (int64_t e = 0; e < ki_row_size(&m->X, i); e++)
            row[first + ki_row_column(&m->X, i, e)] += ki_row_values(&m->X, i)[e];
        for (int64_t j = 0; j < m->columns; j++)
            for (int64_t l = 0; l <= j && row[j] != 0; l++)
                add(m->A + j * m->columns + l, l < j ? m->A + l * m->columns + j : m->scale + j,
                    h * row[j] * row[l]);
    }
}

/* Sets the scales: 0 of columns that are constant but for rounding. */
static void scale_columns(struct ki_verify_model *m) {
    const long double flat = ki_flat(m->type), weight = m->A[0];
    for (int64_t j = 0; j < m->columns; j++) {
        const long double square = m->A[j * m->columns + j], spread = weight > 0 ? sqrtl(square / weight) : 0,
                          mean = fabsl(m->mean[j]);
        m->scale[j] = mean > 0 && spread <= flat / 2 * mean ? 0 : sqrtl(square);
        if (m->scale[j] > 0 && spread < 2 * flat * mean) m->unclear = true;
    }
}

/* A = L of scaled columns, with rows of zeros for those that depend on others; counts the others. */
static void factor(struct ki_verify_model *m) {
    const int64_t n = m->columns;
    scale_columns(m);
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
        if (left > GONE && left < fmaxl(CLEAR[m->type], (long double)n * LDBL_EPSILON / m->least))
            m->unclear = true;
        row[j] = left > GONE ? sqrtl(left) : 0;
        for (int64_t l = 0; l < j && row[j] == 0; l++) row[l] = 0;
        m->parameters += row[j] > 0;
        if (row[j] > 0) m->least = fmin(m->least, (double)left);
    }
    if (m->unclear) m->parameters = NAN;
}

/* Solves L z = v, of columns that are left; returns z.z. */
static long double inverse_square(const struct ki_verify_model *m, long double *z) {
    const int64_t n = m->columns;
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t e = 0; e < i; e++) z[i] -= m->A[i * n + e] * z[e];
        z[i] = m->A[i * n + i] > 0 ? z[i] / m->A[i * n + i] : 0;
        sum += z[i] * z[i];
    }
    return sum;
}

/* The intercept of columns that are not about their means takes these off. */
double ki_verify_errors(const struct ki_verify_model *m, double dispersion) {
    long double *v = m->row;
    const int64_t n = m->columns, first = m->b != NULL;
    double worst = 0;
    for (int64_t j = 0; j < n; j++) {
        const double given = m->errors[j < first ? n - 1 : j - first]; /* the intercept's comes last */
        if (m->A[j * n + j] == 0) {
            if (given >= 0) worst = INFINITY;
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            const long double of = i == j ? 1 : j < first ? -m->mean[i] : 0;
            v[i] = of != 0 && m->scale[i] > 0 ? of / m->scale[i] : 0;
        }
        const double found = sqrt(dispersion * (double)inverse_square(m, v));
        worst = given >= 0 ? fmax(worst, fabs(given - found) / found) : INFINITY;
    }
    return worst;
}

void ki_verify_information(struct ki_verify_model *m, const double *eta) {
    inform(m, eta);
    factor(m);
}
