/* One iteration of hubs and authorities again, in plain loops with sums in long double: how far the ranking
 * is from the fixed point that it claims to be. */
#include "algorithms/verify/verify.h"

struct ranking {
    struct ki_copy A;
    double *hubs, *authorities;
    long double *h, *a; /* A authorities, and A^T of that */
    const kiln_hits_options *options;
};

static kiln_status load(struct ranking *r, const kiln_matrix *A, const kiln_matrix *hubs,
                        const kiln_matrix *authorities) {
    kiln_status status;
    TRY(ki_copy_take(&r->A, A, false));
    TRY(ki_copy_vector(&r->hubs, hubs));
    TRY(ki_copy_vector(&r->authorities, authorities));
    r->h = ki_calloc((size_t)r->A.rows * sizeof *r->h);
    r->a = ki_calloc((size_t)r->A.cols * sizeof *r->a);
    if (!r->h || !r->a) TRY(ki_fail_nomem((size_t)(r->A.rows + r->A.cols) * 16, "a ranking to verify"));
done:
    return status;
}

static long double norm_of(const long double *v, int64_t count, int norm) {
    long double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += norm == 2 ? v[i] * v[i] : fabsl(v[i]);
    return norm == 2 ? sqrtl(sum) : sum;
}

/* || v / norm - claimed ||_1 */
static double distance(const long double *v, long double norm, const double *claimed, int64_t count) {
    long double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += fabsl(v[i] / norm - claimed[i]);
    return (double)sum;
}

static void follow_links(struct ranking *r) {
    for (int64_t i = 0; i < r->A.rows; i++) {
        const double *x = ki_row_values(&r->A, i);
        const int64_t size = ki_row_size(&r->A, i);
        const bool ones = r->options->unweighted;
        for (int64_t e = 0; e < size; e++)
            r->h[i] += (ones ? 1 : (long double)x[e]) * r->authorities[ki_row_column(&r->A, i, e)];
        for (int64_t e = 0; e < size; e++)
            r->a[ki_row_column(&r->A, i, e)] += (ones ? 1 : (long double)x[e]) * r->h[i];
    }
}

kiln_status kiln_verify_hits(kiln_hits_verification *result, const kiln_matrix *A, const kiln_matrix *hubs,
                             const kiln_matrix *authorities, const kiln_hits_options *options) {
    static const char call[] = "kiln_verify_hits";
    kiln_hits_options own;
    struct ranking r = {.options = &own};
    kiln_status status;
    if (!result || !A || !hubs || !authorities)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_hits_options, &own, options));
    TRY(KI_CHECK_RESULT(kiln_hits_verification, result));
    const int norm = r.options->norm ? r.options->norm : 1;
    if (norm != 1 && norm != 2)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_hits_options.norm is %d, but must be 1 or 2", norm);
    TRY(ki_check_matrix(call, "hubs", hubs, A, kiln_matrix_rows(A), 1));
    TRY(ki_check_matrix(call, "authorities", authorities, A, kiln_matrix_cols(A), 1));
    TRY(load(&r, A, hubs, authorities));
    follow_links(&r);
    const long double hub_norm = norm_of(r.h, r.A.rows, norm), eigenvalue = norm_of(r.a, r.A.cols, norm);
    if (!(hub_norm > 0) || !(eigenvalue > 0))
        TRY(ki_fail(KILN_ERR_DATA, "%s: no link leads to an authority above 0", call));
    const kiln_hits_verification made = {.eigenvalue = (double)eigenvalue,
                                         .authorities = distance(r.a, eigenvalue, r.authorities, r.A.cols),
                                         .hubs = distance(r.h, hub_norm, r.hubs, r.A.rows)};
    TRY(ki_copy_check(&r.A));
    KI_GIVE(kiln_hits_verification, result, &made);
done:
    ki_copy_free(&r.A);
    ki_free(r.hubs);
    ki_free(r.authorities);
    ki_free(r.h);
    ki_free(r.a);
    return status;
}
