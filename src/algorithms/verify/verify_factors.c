/* The objective of a factor model again: plain loops over entries, or of an implicit model over all cells,
 * sums in long double. Those of an implicit model over cells without an entry are a^T (B^T B) a, so that
 * no cell is visited twice.
 *
 * Training knows a prediction no nearer than c u times the sizes of its terms, r's among them, as it takes
 * the mean off first; a sum over cells no nearer than c u sum |a|^T (|B|^T |B|) |a|; and loses some units
 * of what it adds up (ki_units). */
#include "algorithms/verify/verify.h"

#include "algorithms/certificate/certificate.h"
#include "algorithms/factor/als.h"

enum { FORMULA = 8 }; /* operations of an entry's loss */

/* Holds what a factor model says of itself. */
struct claims {
    double mean, l2, alpha, epsilon;
    int confidence;
    bool biases, counted, implicit, means_fixed; /* means_fixed: the penalty leaves the biases out */
};

struct model {
    struct ki_copy R;
    double *a, *b; /* m x r, n x r */
    int64_t r, entries;
    kiln_type type;
    double mean;
    const struct claims *claims;
};

/* The prediction, and the sizes of its terms. */
static struct ki_verify_value predict(const struct model *m, int64_t u, int64_t i) {
    const double *a = m->a + u * m->r, *b = m->b + i * m->r;
    const int64_t last = m->r - 1;
    const bool biases = m->claims->biases;
    struct ki_verify_value sum = {m->mean, fabs(m->mean)};
    for (int64_t k = 0; k < m->r - biases; k++) {
        sum.value += (long double)a[k] * b[k];
        sum.size += fabsl((long double)a[k] * b[k]);
    }
    if (!biases) return sum;
    return (struct ki_verify_value){sum.value + a[last] + b[last], sum.size + fabs(a[last]) + fabs(b[last])};
}

/* sum over all i of (a_u . b_i)^2 for each u, added up, and the sizes of its terms. */
static kiln_status all_cells(struct ki_verify_value *sum, const struct model *m) {
    const int64_t r = m->r;
    long double *gram = ki_calloc((size_t)(r * r) * 2 * sizeof *gram), *sizes = gram ? gram + r * r : NULL;
    if (!gram) return ki_fail_nomem((size_t)(r * r) * 2 * sizeof *gram, "a model to verify");
    for (int64_t i = 0; i < m->R.cols; i++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t l = 0; l < r; l++) {
                const long double product = (long double)m->b[i * r + k] * m->b[i * r + l];
                gram[k * r + l] += product;
                sizes[k * r + l] += fabsl(product);
            }
    for (int64_t u = 0; u < m->R.rows; u++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t l = 0; l < r; l++) {
                const long double product = (long double)m->a[u * r + k] * m->a[u * r + l];
                sum->value += product * gram[k * r + l];
                sum->size += fabsl(product) * sizes[k * r + l];
            }
    ki_free(gram);
    return KILN_OK;
}

struct sums {
    long double objective, squares, blur; /* blur: what rounding may have made of the objective */
};

static long double square(const struct model *m, const double *a) {
    long double sum = 0;
    for (int64_t k = 0; k < m->r - m->claims->means_fixed; k++) sum += (long double)a[k] * a[k];
    return sum;
}

/* l2_u of each row, or column, which has `count` entries. */
static long double weight(const struct model *m, int64_t count) {
    return m->claims->counted ? (long double)m->claims->l2 * (long double)count : (long double)m->claims->l2;
}

/* Adds what rounding may make of the entry's loss, whose prediction may be off by `off` and whose terms
 * are `size`. */
static void add_blur(struct sums *sums, const struct model *m, long double slope, long double curvature,
                     long double off, long double size) {
    const long double tiny = m->type == KILN_F32 ? FLT_MIN : DBL_MIN;
    sums->blur += fabsl(slope) * off + curvature * off * off / 2 +
                  (ki_units(FORMULA, m->type) + ki_units(m->entries, KILN_F64)) * size + tiny;
}

static long double confidence(const struct claims *claims, long double size) {
    switch (claims->confidence) {
    case KILN_CONFIDENCE_PROPORTIONAL: return claims->alpha * size;
    case KILN_CONFIDENCE_LOG: return 1 + claims->alpha * log1pl(size / claims->epsilon);
    default: return 1 + claims->alpha * size;
    }
}

static kiln_status add_up(struct sums *sums, const struct model *m) {
    const struct ki_copy *R = &m->R;
    long double penalty = 0;
    int64_t *count = ki_calloc((size_t)R->cols * sizeof *count);
    if (!count) return ki_fail_nomem((size_t)R->cols * sizeof *count, "a model to verify");
    for (int64_t u = 0; u < R->rows; u++) {
        const int64_t size = ki_row_size(R, u);
        for (int64_t e = 0; e < size; e++) {
            const int64_t i = ki_row_column(R, u, e);
            const long double r = ki_row_values(R, u)[e];
            const struct ki_verify_value at = predict(m, u, i);
            const long double d = at.value, c = confidence(m->claims, fabsl(r)), p = r > 0;
            const long double off =
                ki_units(m->r + 2, m->type) * (at.size + (m->claims->implicit ? 0 : fabsl(r)));
            count[i]++;
            sums->squares += (r - d) * (r - d);
            if (m->claims->implicit) { /* instead of what the cell would add without an entry */
                sums->objective += (c * (p - d) * (p - d) - d * d) / 2;
                add_blur(sums, m, fabsl(c * (p - d)) + fabsl(d), c, off, (c * (p - d) * (p - d) + d * d) / 2);
            } else {
                add_blur(sums, m, r - d, 1, off, (r - d) * (r - d) / 2);
            }
        }
        penalty += weight(m, size) * square(m, m->a + u * m->r) / 2;
    }
    for (int64_t i = 0; i < R->cols; i++) penalty += weight(m, count[i]) * square(m, m->b + i * m->r) / 2;
    if (!m->claims->implicit) sums->objective += sums->squares / 2;
    sums->objective += penalty;
    sums->blur += (ki_units(FORMULA + m->r, m->type) + ki_units(R->rows + R->cols, m->type)) * penalty;
    ki_free(count);
    return KILN_OK;
}

static kiln_status verify(kiln_als_verification *result, const char *call, const kiln_matrix *R,
                          const kiln_matrix *A, const kiln_matrix *B, const struct claims *claims) {
    struct model m = {.mean = claims->mean, .claims = claims};
    struct sums sums = {0};
    struct ki_verify_value cells = {0};
    kiln_status status;
    if (!result || !R || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_als_verification, result));
    if (kiln_matrix_format(R) != KILN_CSR || kiln_matrix_format(A) != KILN_DENSE ||
        kiln_matrix_format(B) != KILN_DENSE || kiln_matrix_rows(A) != kiln_matrix_rows(R) ||
        kiln_matrix_rows(B) != kiln_matrix_cols(R) || kiln_matrix_cols(A) != kiln_matrix_cols(B))
        TRY(ki_fail(KILN_ERR_ARGUMENT,
                    "%s: R must be sparse, and A and B the factors of its rows and columns", call));
    m.r = kiln_matrix_cols(A);
    m.type = kiln_matrix_type(A);
    m.entries = kiln_matrix_nnz(R);
    TRY(ki_copy_take(&m.R, R, false));
    TRY(ki_copy_vector(&m.a, A));
    TRY(ki_copy_vector(&m.b, B));
    TRY(add_up(&sums, &m));
    if (claims->implicit) TRY(all_cells(&cells, &m));
    const double units = ki_units(m.r, m.type) + ki_units(m.R.rows + m.R.cols, m.type);
    const kiln_als_verification found = {
        .objective = (double)(sums.objective + cells.value / 2),
        .rmse = claims->implicit ? NAN : (double)sqrtl(sums.squares / (long double)m.entries),
        .objective_rounding = (double)(sums.blur + units * cells.size)};
    TRY(ki_copy_check(&m.R));
    KI_GIVE(kiln_als_verification, result, &found);
done:
    ki_copy_free(&m.R);
    ki_free(m.a);
    ki_free(m.b);
    return status;
}

kiln_status kiln_verify_als(kiln_als_verification *result, const kiln_matrix *R, const kiln_matrix *A,
                            const kiln_matrix *B, double mean, const kiln_als_options *options) {
    kiln_als_options o;
    kiln_status status = KI_TAKE(kiln_als_options, &o, options);
    if (status != KILN_OK) return status;
    ki_als_fill(&o, A ? kiln_matrix_type(A) : KILN_F64);
    if ((status = ki_factor_known("kiln_verify_als", &o, &ki_algorithm_als)) != KILN_OK) return status;
    return verify(result, "kiln_verify_als", R, A, B,
                  &(struct claims){.mean = mean,
                                   .l2 = o.l2,
                                   .alpha = o.alpha,
                                   .epsilon = o.epsilon,
                                   .confidence = o.confidence,
                                   .biases = o.biases != 0,
                                   .counted = o.counted != 0,
                                   .implicit = o.implicit != 0});
}

kiln_status kiln_verify_sfa(kiln_als_verification *result, const kiln_matrix *R, const kiln_matrix *A,
                            const kiln_matrix *B, double mean, const kiln_sfa_options *options) {
    kiln_sfa_options o;
    kiln_status status = KI_TAKE(kiln_sfa_options, &o, options);
    if (status != KILN_OK) return status;
    ki_sfa_fill(&o, A ? kiln_matrix_type(A) : KILN_F64);
    if ((status = ki_factor_known("kiln_verify_sfa", &o, &ki_algorithm_sfa)) != KILN_OK) return status;
    return verify(result, "kiln_verify_sfa", R, A, B,
                  &(struct claims){.mean = mean, .l2 = o.l2, .biases = true, .means_fixed = true});
}
