/* Standard errors of a generalised linear model at dispersion 1: the diagonal of (X^T diag(h) X)^-1, h the curvature.
 *
 * Under an intercept kiln_gram takes the columns about their means weighted with h: what is left is the Schur complement of
 * the intercept, without the cancellation that would leave nothing of a column of years. It is scaled to a unit diagonal and
 * factored, A = L L^T; a pivot that is nothing but rounding belongs to a column that depends on those before it. Such a column
 * gets coefficient 0, its part in the predictions goes to those before it: only then are the errors those of the others. */
#include "algorithms/newton/glm.h"

struct information {
    const struct ki_glm *glm;
    int64_t n;
    double *A;      /* n x n, its lower triangle; then L, then the inverse of L */
    double *mean;   /* of the columns, weighted with h; zeros without an intercept */
    double *scale;  /* square roots of A's diagonal; 0 for a column that is left out */
    double *width;  /* what the scale was before a column was found to depend on others */
    double *column; /* n */
    double weight;  /* the sum of h */
};

static kiln_status information_new(struct information *of) {
    int64_t square;
    if (!ki_mul3(of->n, of->n, sizeof(double), &square))
        return ki_fail_nomem(SIZE_MAX, "the information matrix");
    of->A = ki_alloc((size_t)square);
    of->mean = ki_calloc((size_t)of->n * sizeof(double));
    of->scale = ki_calloc((size_t)of->n * sizeof(double));
    of->width = ki_calloc((size_t)of->n * sizeof(double));
    of->column = ki_alloc((size_t)of->n * sizeof(double));
    if (!of->A || !of->mean || !of->scale || !of->width || !of->column)
        return ki_fail_nomem((size_t)square, "the information matrix");
    return KILN_OK;
}

static void information_free(struct information *of) {
    ki_free(of->A);
    ki_free(of->mean);
    ki_free(of->scale);
    ki_free(of->width);
    ki_free(of->column);
}

static kiln_status measure_means(struct information *of) {
    kiln_status status;
    kiln_matrix *sum = NULL;
    const struct ki_newton *newton = &of->glm->newton;
    TRY(kiln_norm(&of->weight, newton->C, KILN_NORM_1));
    TRY(kiln_matrix_dense(&sum, kiln_matrix_device(newton->X), kiln_matrix_type(newton->X), of->n, 1, NULL));
    TRY(kiln_multiply(sum, 1, KILN_TRANSPOSED, of->glm->X, newton->C, 0, NULL));
    TRY(ki_vector_get(of->mean, sum));
    for (int64_t j = 0; j < of->n; j++) of->mean[j] /= of->weight;
done:
    kiln_matrix_free(sum);
    return status;
}

/* A. What the mean, rounded, leaves of g = (X - 1 mean)^T h is taken off again. */
static kiln_status form(struct information *of) {
    kiln_status status;
    const struct ki_newton *newton = &of->glm->newton;
    kiln_device *device = kiln_matrix_device(newton->X);
    const kiln_type type = kiln_matrix_type(newton->X);
    const int64_t n = of->n;
    kiln_matrix *G = NULL, *g = NULL, *c = NULL;
    TRY(kiln_matrix_dense(&G, device, type, n, n, NULL));
    TRY(kiln_matrix_dense(&g, device, type, n, 1, NULL));
    if (!newton->no_intercept) TRY(ki_vector_new(&c, device, type, n, of->mean));
    TRY(kiln_gram(G, g, newton->X, newton->C, c));
    TRY(ki_vector_get(of->A, G));
    TRY(ki_vector_get(of->column, g));
    for (int64_t i = 0; c && i < n; i++)
        for (int64_t j = 0; j < n; j++) of->A[i * n + j] -= of->column[i] / of->weight * of->column[j];
done:
    kiln_matrix_free(G);
    kiln_matrix_free(g);
    kiln_matrix_free(c);
    return status;
}

/* A = L L^T of the scaled matrix; what lies above the diagonal stays as it is. */
static void factor(struct information *of) {
    const int64_t n = of->n;
    const double least = (double)n * 16 * ki_epsilon(kiln_matrix_type(of->glm->X));
    double *A = of->A;
    for (int64_t i = 0; i < n; i++) {
        /* a column without spread, beside what it has of squares: constant, or all zero */
        const double whole = A[i * n + i] + of->weight * of->mean[i] * of->mean[i];
        of->scale[i] = of->width[i] = A[i * n + i] > least * whole ? sqrt(A[i * n + i]) : 0;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            const double scale = of->scale[i] * of->scale[j];
            double sum = scale > 0 ? A[i * n + j] / scale : 0;
            for (int64_t k = 0; k < j; k++) sum -= A[i * n + k] * A[j * n + k];
            if (j < i)
                A[i * n + j] = A[j * n + j] > 0 ? sum / A[j * n + j] : 0;
            else
                A[i * n + i] = sum > least ? sqrt(sum) : 0;
        }
        if (A[i * n + i] == 0) of->scale[i] = 0;
    }
}

/* ---- columns that depend on others ---- */

static bool depends(const struct information *of, int64_t i) {
    return of->width[i] > 0 && of->scale[i] == 0;
}

/* The i-th column is sum_j a_j x_j over those before it, about the means: L^T a = row i of L, scales aside. Its coefficient
 * goes to these, and what the means make of that to the intercept. */
static void hand_on(const struct information *of, int64_t i, double *w, double *b) {
    const int64_t n = of->n;
    const double *L = of->A, share = w[i];
    double *a = of->column;
    w[i] = 0;
    *b += share * of->mean[i];
    for (int64_t j = i - 1; j >= 0; j--) {
        double rest = L[i * n + j];
        a[j] = 0;
        if (of->scale[j] == 0) continue;
        for (int64_t k = j + 1; k < i; k++) rest -= L[k * n + j] * a[k];
        a[j] = rest / L[j * n + j];
        const double part = share * a[j] * of->width[i] / of->scale[j];
        w[j] += part;
        *b -= part * of->mean[j];
    }
}

/* X W + b. */
static kiln_status predict(kiln_matrix **Eta, const struct ki_glm *glm, const kiln_matrix *W, double b) {
    kiln_status status;
    const kiln_matrix *X = glm->X;
    kiln_matrix *made = NULL;
    TRY(kiln_matrix_dense(&made, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X), 1, NULL));
    TRY(kiln_combine(made, &b, glm->ones, NULL, NULL));
    TRY(kiln_multiply(made, 1, KILN_PLAIN, X, W, 1, made));
    *Eta = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

/* Takes the coefficients w and b, but for a dependence that is not what rounding had it look like: where any prediction
 * would notice. */
static kiln_status take(struct ki_glm *glm, const double *w, double b) {
    kiln_status status;
    struct ki_newton *newton = &glm->newton;
    kiln_device *device = kiln_matrix_device(glm->X);
    const kiln_type type = kiln_matrix_type(glm->X);
    const double one = 1, minus_one = -1, digits = type == KILN_F32 ? 1e-4 : 1e-10;
    double former, largest, change;
    kiln_matrix *W = NULL, *B = NULL, *before = NULL, *after = NULL;
    TRY(ki_vector_get(&former, newton->b));
    TRY(ki_vector_new(&W, device, type, kiln_matrix_rows(newton->W), w));
    TRY(ki_vector_new(&B, device, type, 1, &b));
    TRY(predict(&before, glm, newton->W, former));
    TRY(predict(&after, glm, W, b));
    newton->report.passes += 2;
    TRY(kiln_norm(&largest, before, KILN_NORM_MAX));
    TRY(kiln_combine(after, &one, after, &minus_one, before));
    TRY(kiln_norm(&change, after, KILN_NORM_MAX));
    if (!(change <= digits * largest)) goto done;
    TRY(kiln_combine(newton->W, &one, W, NULL, NULL));
    TRY(kiln_combine(newton->b, &one, B, NULL, NULL));
done:
    kiln_matrix_free(W);
    kiln_matrix_free(B);
    kiln_matrix_free(before);
    kiln_matrix_free(after);
    return status;
}

static kiln_status drop_dependent(const struct information *of, struct ki_glm *glm) {
    kiln_status status = KILN_OK;
    int64_t i = 0;
    double b;
    while (i < of->n && !depends(of, i)) i++;
    if (i == of->n) return KILN_OK;
    double *w = ki_alloc((size_t)of->n * sizeof *w);
    if (!w) return ki_fail_nomem((size_t)of->n * sizeof *w, "the coefficients");
    TRY(ki_vector_get(w, glm->newton.W));
    TRY(ki_vector_get(&b, glm->newton.b));
    for (; i < of->n; i++)
        if (depends(of, i)) hand_on(of, i, w, &b);
    TRY(take(glm, w, b));
done:
    ki_free(w);
    return status;
}

/* ---- errors ---- */

/* Columns of L^-1, one at a time, from below the diagonal: (A^-1)_jj is the sum of column j's squares, and with
 * u = L^-1 mean, mean^T A^-1 mean that of u's. */
static void invert(double *errors, struct information *of, double *column) {
    const int64_t n = of->n;
    const double *L = of->A;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = j; i < n; i++) {
            double rest = i == j ? 1 : 0;
            for (int64_t k = j; k < i; k++) rest -= L[i * n + k] * column[k];
            column[i] = L[i * n + i] > 0 ? rest / L[i * n + i] : 0;
            sum += column[i] * column[i];
        }
        errors[j] = of->scale[j] > 0 ? sqrt(sum) / of->scale[j] : (double)NAN;
    }
    double sum = 1 / of->weight;
    for (int64_t i = 0; i < n; i++) {
        double rest = of->scale[i] > 0 ? of->mean[i] / of->scale[i] : 0;
        for (int64_t k = 0; k < i; k++) rest -= L[i * n + k] * column[k];
        column[i] = L[i * n + i] > 0 ? rest / L[i * n + i] : 0;
        sum += column[i] * column[i];
    }
    if (!of->glm->options->no_intercept) errors[n] = sqrt(sum);
}

/* Whether C holds the loss's own curvature (dialect/losses.h). */
static bool takes_own_curvature(const kiln_loss *loss) {
    const bool family =
        loss->family == KILN_GAMMA || loss->family == KILN_TWEEDIE || loss->family == KILN_NEGATIVE_BINOMIAL;
    return family && (loss->link == KILN_LINK_LOG || loss->link == KILN_LINK_DEFAULT);
}

/* C, the expected curvature at the result, in place of the loss's own: they are the same if y is the mean. */
static kiln_status expect_curvature(struct ki_glm *glm) {
    kiln_status status;
    const kiln_matrix *X = glm->X;
    const double one = 1;
    double b, value;
    kiln_matrix *M = NULL, *g = NULL;
    kiln_loss loss = glm->loss;
    TRY(kiln_matrix_dense(&M, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X), 1, NULL));
    TRY(kiln_matrix_dense(&g, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_cols(X), 1, NULL));
    TRY(ki_vector_get(&b, glm->newton.b));
    TRY(kiln_combine(M, &b, glm->ones, &one, loss.offset));
    TRY(kiln_multiply(M, 1, KILN_PLAIN, X, glm->newton.W, 1, M));
    TRY(kiln_loss_mean(M, &loss, M));
    loss.y = M;
    TRY(kiln_loss_gradient(&value, g, NULL, glm->newton.C, &loss, X, glm->newton.W, glm->newton.b));
    glm->newton.report.passes += 2;
done:
    kiln_matrix_free(M);
    kiln_matrix_free(g);
    return status;
}

static int64_t count_independent(const struct information *of) {
    int64_t count = !of->glm->options->no_intercept;
    for (int64_t j = 0; j < of->n; j++) count += of->scale[j] > 0;
    return count;
}

kiln_status ki_glm_information(int64_t *parameters, double *errors, struct ki_glm *glm) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(glm->X);
    struct information of = {.glm = glm, .n = n};
    TRY(information_new(&of));
    if (takes_own_curvature(&glm->loss)) TRY(expect_curvature(glm));
    if (!glm->options->no_intercept) TRY(measure_means(&of));
    TRY(form(&of));
    glm->newton.report.passes += ki_gram_passes(n) + 1;
    factor(&of);
    *parameters = count_independent(&of);
    if (!errors) goto done;
    TRY(drop_dependent(&of, glm));
    invert(errors, &of, of.column);
done:
    information_free(&of);
    return status;
}
