/* The objective of a topic model again: plain loops with sums in long double, and functions of its own. The
 * means of a Gamma-Poisson model over all cells are products of column sums, so that no cell is visited that
 * has no entry. */
#include "algorithms/verify/verify.h"

#include "algorithms/topics/gap.h"
#include "algorithms/topics/lda.h"

/* A model and its counts. */
struct topics {
    struct ki_copy X;
    double *a, *b; /* m x k, n x k */
    int64_t k;
};

static kiln_status take(struct topics *t, const char *call, const kiln_matrix *X, const kiln_matrix *A,
                        const kiln_matrix *B) {
    kiln_status status;
    if (!X || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (kiln_matrix_format(X) != KILN_CSR || kiln_matrix_format(A) != KILN_DENSE ||
        kiln_matrix_format(B) != KILN_DENSE || kiln_matrix_rows(A) != kiln_matrix_rows(X) ||
        kiln_matrix_rows(B) != kiln_matrix_cols(X) || kiln_matrix_cols(A) != kiln_matrix_cols(B))
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: X must be sparse, and A and B the factors of its rows and columns", call);
    t->k = kiln_matrix_cols(A);
    TRY(ki_copy_take(&t->X, X, false));
    TRY(ki_copy_vector(&t->a, A));
    TRY(ki_copy_vector(&t->b, B));
done:
    return status;
}

static void let_go(struct topics *t) {
    ki_copy_free(&t->X);
    ki_free(t->a);
    ki_free(t->b);
}

/* ------------------------------------------------------------------------------------------- gap */

static long double column_sum(const double *A, int64_t rows, int64_t k, int64_t c) {
    long double sum = 0;
    for (int64_t i = 0; i < rows; i++) sum += A[i * k + c];
    return sum;
}

/* Returns what an entry x, of document d and word w, adds to a sum. */
typedef long double entry_part(const void *with, int64_t d, int64_t w, long double x);

/* A sum, and that of its terms' absolute values, which its rounding is of. */
struct tally {
    long double sum, size;
};

static void add(struct tally *tally, long double term) {
    tally->sum += term;
    tally->size += fabsl(term);
}

/* A term that is a difference of numbers of such a size, or where a function of such a one passes through
 * 0. */
static void add_rough(struct tally *tally, long double term, long double size) {
    tally->sum += term;
    tally->size += fmaxl(fabsl(term), size);
}

static void add_entries(struct tally *tally, const struct topics *t, entry_part *part, const void *with) {
    for (int64_t d = 0; d < t->X.rows; d++)
        for (int64_t e = 0; e < ki_row_size(&t->X, d); e++)
            add(tally, part(with, d, ki_row_column(&t->X, d, e), ki_row_values(&t->X, d)[e]));
}

static kiln_topics_verification told(const struct tally *tally, const kiln_matrix *A) {
    return (kiln_topics_verification){
        .objective = (double)tally->sum,
        .rounding = (double)(8 * ki_epsilon(kiln_matrix_type(A)) * tally->size),
    };
}

struct means {
    const struct topics *t;
    long double least;
};

/* By recurrence to where the asymptotic series has long double's digits: x >= 40, seven terms. */
static long double log_gamma(long double x) {
    static const long double terms[] = {1 / 12.0L,   -1 / 360.0L,      1 / 1260.0L, -1 / 1680.0L,
                                        1 / 1188.0L, -691 / 360360.0L, 1 / 156.0L};
    long double product = 0, series = 0;
    while (x < 40) product += logl(x++);
    for (int i = 6; i >= 0; i--) series = series / (x * x) + terms[i];
    return (x - 0.5L) * logl(x) - x + 0.918938533204672741780329736405617640L + series / x - product;
}

/* x log(x / l) - x, whose parts may cancel. */
static long double divergence(const void *with, int64_t d, int64_t w, long double x) {
    const struct means *of = with;
    const double *a = of->t->a + d * of->t->k, *b = of->t->b + w * of->t->k;
    long double mean = 0;
    for (int64_t c = 0; c < of->t->k; c++) mean += (long double)a[c] * b[c];
    return x > 0 ? x * logl(x / fmaxl(mean, of->least)) - x : 0;
}

/* x log l - log x!, for what entries alone say of the likelihood. */
static long double likelihood(const void *with, int64_t d, int64_t w, long double x) {
    return -divergence(with, d, w, x) + (x > 0 ? x * logl(x) - x - log_gamma(x + 1) : 0);
}

static struct tally gap_likelihood(const struct topics *t, long double least) {
    struct tally all = {0, 0};
    add_entries(&all, t, likelihood, &(struct means){t, least});
    for (int64_t c = 0; c < t->k; c++)
        add(&all, -column_sum(t->a, t->X.rows, t->k, c) * column_sum(t->b, t->X.cols, t->k, c));
    return all;
}

static struct tally gap_objective(const struct topics *t, const kiln_gap_options *o, long double least) {
    struct tally all = {0, 0};
    add_entries(&all, t, divergence, &(struct means){t, least});
    for (int64_t c = 0; c < t->k; c++) {
        const long double weight = column_sum(t->a, t->X.rows, t->k, c);
        add(&all, weight * column_sum(t->b, t->X.cols, t->k, c));
        add(&all, o->rate * weight);
    }
    for (int64_t i = 0; o->shape > 1 && i < t->X.rows * t->k; i++) add(&all, (1 - o->shape) * logl(t->a[i]));
    return all;
}

kiln_status kiln_verify_gap(kiln_topics_verification *result, const kiln_matrix *X, const kiln_matrix *A,
                            const kiln_matrix *B, const kiln_gap_options *options) {
    static const char call[] = "kiln_verify_gap";
    struct topics t = {.k = 0};
    kiln_gap_options o;
    kiln_status status;
    if (!result) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_topics_verification, result));
    TRY(KI_TAKE(kiln_gap_options, &o, options));
    TRY(take(&t, call, X, A, B));
    ki_gap_fill(&o, kiln_matrix_type(A));
    const long double least = kiln_matrix_type(A) == KILN_F32 ? 1e-30L : 1e-290L; /* the quotient's floor */
    const struct tally objective = gap_objective(&t, &o, least);
    const struct tally of_entries = gap_likelihood(&t, least);
    kiln_topics_verification found = told(&objective, A);
    found.figure = (double)of_entries.sum;
    found.figure_rounding = told(&of_entries, A).rounding;
    TRY(ki_copy_check(&t.X));
    KI_GIVE(kiln_topics_verification, result, &found);
done:
    let_go(&t);
    return status;
}

/* ------------------------------------------------------------------------------------------- lda */

static long double digamma(long double x) {
    static const long double terms[] = {1 / 12.0L,  -1 / 120.0L,     1 / 252.0L, -1 / 240.0L,
                                        1 / 132.0L, -691 / 32760.0L, 1 / 12.0L};
    long double sum = 0, series = 0;
    while (x < 40) sum += 1 / x++;
    for (int i = 6; i >= 0; i--) series = series / (x * x) + terms[i];
    return logl(x) - 0.5L / x - series / (x * x) - sum;
}

/* Dirichlet distributions of `count` numbers each, `stride` apart; the next distribution begins `step`
 * behind. */
struct dirichlets {
    const double *parameters;
    int64_t distributions, count, step, stride;
};

/* logs = E log of each number; adds E log prior - E log q. Without `prior` it is `same` for all. */
static void expect(struct tally *bound, long double *logs, const struct dirichlets *of, const double *prior,
                   double same) {
    for (int64_t i = 0; i < of->distributions; i++) {
        long double total = 0, prior_total = 0;
        for (int64_t c = 0; c < of->count; c++) total += of->parameters[i * of->step + c * of->stride];
        const long double of_total = digamma(total);
        add_rough(bound, -log_gamma(total), 1);
        for (int64_t c = 0; c < of->count; c++) {
            const int64_t at = i * of->step + c * of->stride;
            const long double g = of->parameters[at], p = prior ? prior[c] : same;
            logs[at] = digamma(g) - of_total;
            add_rough(bound, (p - g) * logs[at], fabsl(p - g) * fabsl(of_total));
            add_rough(bound, log_gamma(g), 1);
            if (prior) add(bound, -log_gamma(p));
            prior_total += p;
        }
        add(bound, log_gamma(prior_total));
        if (!prior) add(bound, -(long double)of->count * log_gamma(same));
    }
}

struct exponents {
    int64_t k;
    const long double *theta, *phi;
};

/* x log(sum_c exp(theta_dc + phi_wc)), the larger exponents taken off first. */
static long double words(const void *with, int64_t d, int64_t w, long double x) {
    const struct exponents *of = with;
    const long double *of_document = of->theta + d * of->k, *of_word = of->phi + w * of->k;
    long double most = -INFINITY, shares = 0;
    for (int64_t c = 0; c < of->k; c++) most = fmaxl(most, of_document[c] + of_word[c]);
    for (int64_t c = 0; c < of->k; c++) shares += expl(of_document[c] + of_word[c] - most);
    return x * (most + logl(shares));
}

kiln_status kiln_verify_lda(kiln_topics_verification *result, const kiln_matrix *X, const kiln_matrix *A,
                            const kiln_matrix *B, const kiln_matrix *alphas,
                            const kiln_lda_options *options) {
    static const char call[] = "kiln_verify_lda";
    struct topics t = {.k = 0};
    long double *theta = NULL, *phi = NULL;
    double *alpha = NULL;
    kiln_lda_options o;
    kiln_status status;
    if (!result) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_CHECK_RESULT(kiln_topics_verification, result));
    TRY(KI_TAKE(kiln_lda_options, &o, options));
    TRY(take(&t, call, X, A, B));
    ki_lda_fill(&o, t.k, kiln_matrix_type(A));
    if (alphas && (kiln_matrix_format(alphas) != KILN_DENSE || kiln_matrix_rows(alphas) != 1 ||
                   kiln_matrix_cols(alphas) != t.k))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: alphas must be 1 x %lld", call, (long long)t.k));
    if (alphas) TRY(ki_copy_vector(&alpha, alphas));
    theta = ki_alloc((size_t)(t.X.rows * t.k + 1) * sizeof *theta);
    phi = ki_alloc((size_t)(t.X.cols * t.k + 1) * sizeof *phi);
    if (!theta || !phi) TRY(ki_fail_nomem((size_t)(t.X.rows * t.k) * sizeof *theta, "a model to verify"));
    const struct dirichlets documents = {t.a, t.X.rows, t.k, t.k, 1}, topics = {t.b, t.k, t.X.cols, 1, t.k};
    struct tally bound = {0, 0};
    expect(&bound, theta, &documents, alpha, o.alpha);
    expect(&bound, phi, &topics, NULL, o.eta);
    add_entries(&bound, &t, words, &(struct exponents){t.k, theta, phi});
    kiln_topics_verification found = told(&bound, A);
    long double count = 0;
    for (int64_t d = 0; d < t.X.rows; d++)
        for (int64_t e = 0; e < ki_row_size(&t.X, d); e++) count += ki_row_values(&t.X, d)[e];
    found.figure = (double)expl(-bound.sum / count);
    found.figure_rounding = (double)(found.figure * (long double)found.rounding / count);
    TRY(ki_copy_check(&t.X));
    KI_GIVE(kiln_topics_verification, result, &found);
done:
    let_go(&t);
    ki_free(theta);
    ki_free(phi);
    ki_free(alpha);
    return status;
}
