/* The objective of a factor model again: plain loops over entries, or of an implicit model over all cells, sums in long double. Those
 * of an implicit model over cells without an entry are a^T (B^T B) a, so that no cell is visited twice. */
#include "algorithms/verify/verify.h"

#include "algorithms/factor/als.h"

/* What a factor model says of itself. */
struct claims {
    double mean, l2, alpha;
    bool biases, counted, implicit, means_fixed; /* means_fixed: the penalty leaves the biases out */
};

struct model {
    struct ki_copy R;
    double *a, *b; /* m x r, n x r */
    int64_t r;
    double mean;
    const struct claims *claims;
};

static long double predict(const struct model *m, int64_t u, int64_t i) {
    const double *a = m->a + u * m->r, *b = m->b + i * m->r;
    const int64_t last = m->r - 1;
    long double sum = m->mean;
    for (int64_t k = 0; k < last; k++) sum += (long double)a[k] * b[k];
    return sum + (m->claims->biases ? (long double)a[last] + b[last] : (long double)a[last] * b[last]);
}

/* sum over all i of (a_u . b_i)^2 for each u, added up. */
static kiln_status all_cells(long double *sum, const struct model *m) {
    const int64_t r = m->r;
    long double *gram = ki_calloc((size_t)(r * r) * sizeof *gram);
    if (!gram) return ki_fail_nomem((size_t)(r * r) * sizeof *gram, "a model to verify");
    for (int64_t i = 0; i < m->R.cols; i++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t l = 0; l < r; l++) gram[k * r + l] += (long double)m->b[i * r + k] * m->b[i * r + l];
    for (int64_t u = 0; u < m->R.rows; u++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t l = 0; l < r; l++) *sum += m->a[u * r + k] * gram[k * r + l] * m->a[u * r + l];
    ki_free(gram);
    return KILN_OK;
}

static long double square(const struct model *m, const double *a) {
    long double sum = 0;
    for (int64_t k = 0; k < m->r - m->claims->means_fixed; k++) sum += (long double)a[k] * a[k];
    return sum;
}

/* l2_u of each row, or column, which has `count` entries. */
static long double weight(const struct model *m, int64_t count) {
    return m->claims->counted ? (long double)m->claims->l2 * (long double)count : (long double)m->claims->l2;
}

static kiln_status add_up(long double *objective, long double *squares, const struct model *m) {
    const struct ki_copy *R = &m->R;
    int64_t *count = ki_calloc((size_t)R->cols * sizeof *count);
    if (!count) return ki_fail_nomem((size_t)R->cols * sizeof *count, "a model to verify");
    for (int64_t u = 0; u < R->rows; u++) {
        const int64_t size = ki_row_size(R, u);
        for (int64_t e = 0; e < size; e++) {
            const int64_t i = ki_row_column(R, u, e);
            const long double r = ki_row_values(R, u)[e], d = predict(m, u, i);
            count[i]++;
            *squares += (r - d) * (r - d);
            if (m->claims->implicit) { /* instead of what the cell would add without an entry */
                const long double c = 1 + m->claims->alpha * fabsl(r), p = r > 0;
                *objective += (c * (p - d) * (p - d) - d * d) / 2;
            }
        }
        *objective += weight(m, size) * square(m, m->a + u * m->r) / 2;
    }
    for (int64_t i = 0; i < R->cols; i++) *objective += weight(m, count[i]) * square(m, m->b + i * m->r) / 2;
    ki_free(count);
    return KILN_OK;
}

static kiln_status verify(kiln_als_verification *result, const char *call, const kiln_matrix *R,
                          const kiln_matrix *A, const kiln_matrix *B, const struct claims *claims) {
    struct model m = {.mean = claims->mean, .claims = claims};
    long double objective = 0, squares = 0, cells = 0;
    kiln_status status;
    if (!result || !R || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_als_verification, result));
    if (kiln_matrix_format(R) != KILN_CSR || kiln_matrix_format(A) != KILN_DENSE ||
        kiln_matrix_format(B) != KILN_DENSE || kiln_matrix_rows(A) != kiln_matrix_rows(R) ||
        kiln_matrix_rows(B) != kiln_matrix_cols(R) || kiln_matrix_cols(A) != kiln_matrix_cols(B))
        TRY(ki_fail(KILN_ERR_ARGUMENT,
                    "%s: R must be sparse, and A and B the factors of its rows and columns", call));
    m.r = kiln_matrix_cols(A);
    TRY(ki_copy_take(&m.R, R));
    TRY(ki_copy_vector(&m.a, A));
    TRY(ki_copy_vector(&m.b, B));
    TRY(add_up(&objective, &squares, &m));
    if (claims->implicit) TRY(all_cells(&cells, &m));
    const kiln_als_verification found = {
        .objective = (double)(objective + (claims->implicit ? cells : squares) / 2),
        .rmse = claims->implicit ? NAN : (double)sqrtl(squares / (long double)kiln_matrix_nnz(R))};
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
