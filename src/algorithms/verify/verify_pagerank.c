/* One iteration of PageRank again, in plain loops that push along the links with sums in long double: how
 * far ranks are from the fixed point that they claim to be. */
#include "algorithms/verify/verify.h"

struct ranking {
    struct ki_copy A;
    double *ranks, *teleport, *dangling; /* the last two may be NULL */
    int64_t n, k, teleport_cols, dangling_cols;
    long double *next; /* n: a column after one more iteration */
    long double *weight;
    double damping;
    bool weighted;
};

static kiln_status load(struct ranking *r, const kiln_matrix *A, const kiln_matrix *ranks,
                        const kiln_pagerank_options *options) {
    kiln_status status;
    const kiln_matrix *t = options->personalize, *g = options->dangling_to;
    if (!g && options->dangling != KILN_DANGLING_UNIFORM) g = t;
    r->n = kiln_matrix_rows(A);
    r->k = kiln_matrix_cols(ranks);
    r->damping = options->damping != 0 ? options->damping : 0.85;
    r->weighted = !options->unweighted;
    TRY(ki_copy_take(&r->A, A, false));
    TRY(ki_copy_vector(&r->ranks, ranks));
    if (t) TRY(ki_copy_vector(&r->teleport, t));
    if (g) TRY(ki_copy_vector(&r->dangling, g));
    r->teleport_cols = t ? kiln_matrix_cols(t) : 0;
    r->dangling_cols = g ? kiln_matrix_cols(g) : 0;
    r->next = ki_calloc((size_t)r->n * sizeof *r->next);
    r->weight = ki_calloc((size_t)r->n * sizeof *r->weight);
    if (!r->next || !r->weight) TRY(ki_fail_nomem((size_t)r->n * 32, "a ranking to verify"));
done:
    return status;
}

/* v's share at a vertex, of a column that is scaled to add up to 1; NULL: of all vertices alike. */
static long double share(const double *v, int64_t cols, int64_t vertex, int64_t c, long double total,
                         int64_t n) {
    return v ? (long double)v[vertex * cols + (cols == 1 ? 0 : c)] / total : 1 / (long double)n;
}

static long double total_of(const double *v, int64_t cols, int64_t c, int64_t n) {
    long double sum = 0;
    for (int64_t i = 0; v && i < n; i++) sum += v[i * cols + (cols == 1 ? 0 : c)];
    return sum;
}

/* r->next = column c after one more iteration; returns what lies on vertices without links. */
static long double push(struct ranking *r, int64_t c) {
    const long double t = total_of(r->teleport, r->teleport_cols, c, r->n),
                      g = total_of(r->dangling, r->dangling_cols, c, r->n);
    long double mass = 0;
    for (int64_t v = 0; v < r->n; v++) r->next[v] = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double *x = ki_row_values(&r->A, i);
        const long double rank = r->ranks[i * r->k + c];
        if (r->weight[i] == 0) mass += rank;
        for (int64_t e = 0; e < ki_row_size(&r->A, i) && r->weight[i] != 0; e++)
            r->next[ki_row_column(&r->A, i, e)] +=
                r->damping * (r->weighted ? (long double)x[e] : 1) * rank / r->weight[i];
    }
    for (int64_t v = 0; v < r->n; v++)
        r->next[v] += (1 - (long double)r->damping) * share(r->teleport, r->teleport_cols, v, c, t, r->n) +
                      r->damping * mass * share(r->dangling, r->dangling_cols, v, c, g, r->n);
    return mass;
}

static kiln_pagerank_verification judge(struct ranking *r) {
    kiln_pagerank_verification made = {.sum = 1};
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t e = 0; e < ki_row_size(&r->A, i); e++)
            r->weight[i] += r->weighted ? (long double)ki_row_values(&r->A, i)[e] : 1;
    for (int64_t c = 0; c < r->k; c++) {
        long double change = 0, sum = 0;
        made.dangling = fmax(made.dangling, (double)push(r, c));
        for (int64_t v = 0; v < r->n; v++) {
            change += fabsl(r->next[v] - r->ranks[v * r->k + c]);
            sum += r->ranks[v * r->k + c];
        }
        if (!(change <= made.residual)) made.residual = (double)change;
        if (!(fabsl(sum - 1) <= fabs(made.sum - 1))) made.sum = (double)sum;
    }
    return made;
}

kiln_status kiln_verify_pagerank(kiln_pagerank_verification *result, const kiln_matrix *A,
                                 const kiln_matrix *ranks, const kiln_pagerank_options *options) {
    static const char call[] = "kiln_verify_pagerank";
    kiln_pagerank_options own;
    struct ranking r = {.n = 0};
    kiln_status status;
    if (!result || !A || !ranks) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_pagerank_options, &own, options));
    TRY(KI_CHECK_RESULT(kiln_pagerank_verification, result));
    const int64_t n = kiln_matrix_rows(A), k = kiln_matrix_cols(ranks);
    const kiln_matrix *given[] = {own.personalize, own.dangling_to};
    if (n != kiln_matrix_cols(A)) return ki_fail(KILN_ERR_ARGUMENT, "%s: A must be square", call);
    TRY(ki_check_matrix(call, "ranks", ranks, A, n, k));
    for (int i = 0; i < 2; i++)
        if (given[i])
            TRY(ki_check_matrix(call, i ? "dangling_to" : "personalize", given[i], A, n,
                                kiln_matrix_cols(given[i]) == 1 ? 1 : k));
    TRY(load(&r, A, ranks, &own));
    const kiln_pagerank_verification made = judge(&r);
    TRY(ki_copy_check(&r.A));
    KI_GIVE(kiln_pagerank_verification, result, &made);
done:
    ki_copy_free(&r.A);
    ki_free(r.ranks);
    ki_free(r.teleport);
    ki_free(r.dangling);
    ki_free(r.next);
    ki_free(r.weight);
    return status;
}
