/* Standard errors of a generalised linear model at dispersion 1: the diagonal of (X^T diag(h) X)^-1, h the
 * curvature.
 *
 * Under an intercept kiln_gram takes the columns about their means weighted with h: what is left is the
 * Schur complement of the intercept, without the cancellation that would leave nothing of a column of years.
 * It is scaled to a unit diagonal and factored, A = U^T U; a pivot that is nothing but rounding belongs to a
 * column that depends on those before it. Such a column gets coefficient 0, its part in the predictions goes
 * to those before it: only then are the errors those of the others. */
#include "algorithms/cholesky.h"
#include "algorithms/newton/glm.h"

struct information {
    const struct ki_glm *glm;
    int64_t n;
    double *A;      /* n x n; then U, above and on the diagonal */
    double *mean;   /* of the columns, weighted with h; zeros without an intercept */
    double *scale;  /* square roots of A's diagonal; 0 for a column that is left out */
    double *width;  /* what the scale was before a column was found to depend on others */
    double *column; /* n */
    bool *left_out; /* columns whose pivot is nothing but rounding */
    double weight;  /* the sum of h */
    bool wanted;    /* standard errors: the user has asked for them, and waits */
    bool cancelled; /* he does not want to wait for their number alone */
};

static kiln_status information_new(struct information *of, struct ki_arena *arena) {
    of->A = ki_arena_room(arena, of->n, (size_t)of->n * sizeof(double));
    of->mean = ki_arena_reals(arena, of->n);
    of->scale = ki_arena_reals(arena, of->n);
    of->width = ki_arena_reals(arena, of->n);
    of->column = ki_arena_doubles(arena, of->n);
    of->left_out = ki_arena_zeros(arena, of->n, sizeof(bool));
    return arena->status;
}

static kiln_status information_measure_means(struct information *of) {
    kiln_status status;
    const struct ki_newton *newton = &of->glm->newton;
    struct ki_arena arena = {0};
    kiln_matrix *sum = ki_arena_model(&arena, newton->X, of->n, 1);
    TRY(arena.status);
    TRY(kiln_norm(&of->weight, newton->C, KILN_NORM_1));
    TRY(kiln_multiply(sum, 1, KILN_TRANSPOSED, of->glm->X, newton->C, 0, NULL));
    TRY(ki_vector_get(of->mean, sum));
    for (int64_t j = 0; j < of->n; j++) of->mean[j] /= of->weight;
done:
    return ki_arena_free(&arena, status);
}

static bool asked_to_stop(const struct information *of, const char *phase, int64_t done, int64_t total) {
    return ki_run_stage(&of->glm->newton.run, phase, done, total, (double)NAN) && !of->wanted;
}

/* How many slices of X's rows kiln_gram shall walk one after the other, so that the user can be asked about
 * twice a second: on a CPU, where rows of weight 0 cost nothing. */
static int64_t count_slices(const kiln_matrix *X) {
    const double half_a_second = 4e9, most = 256; /* bytes of passes */
    if (!ki_gram_skips(X)) return 1;
    return (int64_t)fmax(1, fmin(most, ki_gram_price(X) * (double)ki_bytes_of(X) / half_a_second));
}

/* The operands of kiln_gram, and its result's part of one slice. */
struct slices {
    int64_t rows, count;
    double *curvature, *some; /* of all rows; of those in the slice, else 0 */
    kiln_matrix *G, *g, *c;
};

static kiln_status slices_new(struct slices *slices, struct ki_arena *arena, const struct information *of) {
    kiln_status status;
    const kiln_matrix *X = of->glm->X;
    slices->rows = kiln_matrix_rows(X);
    slices->count = count_slices(X);
    slices->G = ki_arena_model(arena, X, of->n, of->n);
    slices->g = ki_arena_model(arena, X, of->n, 1);
    if (!of->glm->newton.no_intercept) slices->c = ki_arena_vector(arena, X, of->n, of->mean);
    if (slices->count > 1) {
        slices->curvature = ki_arena_doubles(arena, slices->rows);
        slices->some = ki_arena_doubles(arena, slices->rows);
    }
    TRY(arena->status);
    if (slices->curvature) TRY(ki_vector_get(slices->curvature, of->glm->newton.C));
done:
    return status;
}

static kiln_status walk_slice(const struct slices *slices, const struct information *of, int64_t slice) {
    kiln_status status;
    const kiln_matrix *X = of->glm->X, *C = of->glm->newton.C;
    const int64_t begin = slices->rows * slice / slices->count;
    const int64_t end = slices->rows * (slice + 1) / slices->count;
    struct ki_arena arena = {0};
    if (slices->count > 1) {
        memset(slices->some, 0, (size_t)slices->rows * sizeof(double));
        memcpy(slices->some + begin, slices->curvature + begin, (size_t)(end - begin) * sizeof(double));
        C = ki_arena_vector(&arena, X, slices->rows, slices->some);
    }
    TRY(arena.status);
    TRY(kiln_gram(slices->G, slices->g, X, C, slices->c));
done:
    return ki_arena_free(&arena, status);
}

/* A. What the mean, rounded, leaves of g = (X - 1 mean)^T h is taken off again. */
static kiln_status information_form(struct information *of) {
    kiln_status status;
    const int64_t n = of->n;
    struct ki_arena arena = {0};
    struct slices slices = {0};
    double *part = ki_arena_doubles(&arena, n * (n + 1));
    TRY(slices_new(&slices, &arena, of));
    memset(of->A, 0, (size_t)(n * n) * sizeof(double));
    memset(of->column, 0, (size_t)n * sizeof(double));
    for (int64_t slice = 0; slice < slices.count && !of->cancelled; slice++) {
        TRY(walk_slice(&slices, of, slice));
        TRY(ki_vector_get(part, slices.G));
        TRY(ki_vector_get(part + n * n, slices.g));
        for (int64_t i = 0; i < n * n; i++) of->A[i] += part[i];
        for (int64_t i = 0; i < n; i++) of->column[i] += part[n * n + i];
        if (slices.count > 1) of->cancelled = asked_to_stop(of, "slice", slice, slices.count);
    }
    for (int64_t i = 0; slices.c && i < n; i++)
        for (int64_t j = 0; j < n; j++) of->A[i * n + j] -= of->column[i] / of->weight * of->column[j];
done:
    return ki_arena_free(&arena, status);
}

/* A scaled to a unit diagonal; a column without spread, beside what it has of squares, is constant, or all
 * zero. */
static void information_scale(struct information *of, double least) {
    const int64_t n = of->n;
    double *A = of->A;
    for (int64_t i = 0; i < n; i++) {
        const double spread = A[i * n + i], whole = spread + of->weight * of->mean[i] * of->mean[i];
        of->scale[i] = of->width[i] = spread > least * whole ? sqrt(spread) : 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) {
            const double both = of->scale[i] * of->scale[j];
            A[i * n + j] = both > 0 ? A[i * n + j] / both : 0;
        }
}

/* A = U^T U of the scaled matrix, a row of zeros for a column that is left out. */
static void information_factor(struct information *of) {
    const int64_t n = of->n;
    const double least = (double)n * 16 * ki_epsilon(kiln_matrix_type(of->glm->X));
    double *ones = of->column;
    information_scale(of, least);
    for (int64_t i = 0; i < n; i++) ones[i] = 1;
    struct ki_factorisation factor = {
        .U = of->A, .size = n, .scale = ones, .part = least, .left_out = of->left_out};
    while (!ki_factorise(&factor, ki_clock() + KI_FACTOR_ROUND) && !of->cancelled)
        of->cancelled = asked_to_stop(of, "factor row", factor.next, n);
    for (int64_t i = 0; i < n; i++) {
        if (!of->left_out[i] && i < factor.next) continue;
        memset(of->A + i * n + i, 0, (size_t)(n - i) * sizeof *of->A);
        of->scale[i] = 0;
    }
}

/* ---- columns that depend on others ---- */

static bool information_depends(const struct information *of, int64_t i) {
    return of->width[i] > 0 && of->scale[i] == 0;
}

/* The i-th column is sum_j a_j x_j over those before it, about the means: U a = column i of U, scales aside.
 * Its coefficient goes to these, and what the means make of that to the intercept. */
static void information_hand_on(const struct information *of, int64_t i, double *w, double *b) {
    const int64_t n = of->n;
    const double *U = of->A, share = w[i];
    double *a = of->column;
    w[i] = 0;
    *b += share * of->mean[i];
    for (int64_t j = i - 1; j >= 0; j--) {
        double rest = U[j * n + i];
        a[j] = 0;
        if (of->scale[j] == 0) continue;
        for (int64_t k = j + 1; k < i; k++) rest -= U[j * n + k] * a[k];
        a[j] = rest / U[j * n + j];
        const double part = share * a[j] * of->width[i] / of->scale[j];
        w[j] += part;
        *b -= part * of->mean[j];
    }
}

/* X W + b. */
static kiln_status information_predict(kiln_matrix *Eta, const struct ki_glm *glm, const kiln_matrix *W,
                                       double b) {
    kiln_status status;
    TRY(kiln_combine(Eta, &b, glm->ones, NULL, NULL));
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, glm->X, W, 1, Eta));
done:
    return status;
}

/* Takes the coefficients w and b, but for a dependence that is not what rounding had it look like: where any
 * prediction would notice. */
static kiln_status information_take(struct ki_glm *glm, const double *w, double b) {
    kiln_status status;
    struct ki_newton *newton = &glm->newton;
    const kiln_matrix *X = glm->X;
    const double one = 1, minus_one = -1, digits = kiln_matrix_type(X) == KILN_F32 ? 1e-4 : 1e-10;
    double former, largest, change;
    struct ki_arena arena = {0};
    kiln_matrix *W = ki_arena_vector(&arena, X, kiln_matrix_rows(newton->W), w),
                *B = ki_arena_vector(&arena, X, 1, &b), *before = ki_arena_rows(&arena, X, 1),
                *after = ki_arena_rows(&arena, X, 1);
    TRY(arena.status);
    TRY(ki_vector_get(&former, newton->b));
    TRY(information_predict(before, glm, newton->W, former));
    TRY(information_predict(after, glm, W, b));
    newton->run.report.passes += 2;
    TRY(kiln_norm(&largest, before, KILN_NORM_MAX));
    TRY(kiln_combine(after, &one, after, &minus_one, before));
    TRY(kiln_norm(&change, after, KILN_NORM_MAX));
    if (!(change <= digits * largest)) goto done;
    TRY(kiln_combine(newton->W, &one, W, NULL, NULL));
    TRY(kiln_combine(newton->b, &one, B, NULL, NULL));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status information_drop_dependent(const struct information *of, struct ki_glm *glm) {
    kiln_status status;
    struct ki_arena arena = {0};
    int64_t i = 0;
    double b;
    while (i < of->n && !information_depends(of, i)) i++;
    if (i == of->n) return KILN_OK;
    double *w = ki_arena_doubles(&arena, of->n);
    TRY(arena.status);
    TRY(ki_vector_get(w, glm->newton.W));
    TRY(ki_vector_get(&b, glm->newton.b));
    for (; i < of->n; i++)
        if (information_depends(of, i)) information_hand_on(of, i, w, &b);
    TRY(information_take(glm, w, b));
done:
    return ki_arena_free(&arena, status);
}

/* ---- errors ---- */

/* x = U^-T x, where x is 0 before `first`: the square of its length. */
static double information_substitute(const struct information *of, double *x, int64_t first) {
    const int64_t n = of->n;
    double square = 0;
    for (int64_t i = first; i < n; i++) {
        const double *row = of->A + i * n;
        const double value = x[i] = row[i] > 0 ? x[i] / row[i] : 0;
        square += value * value;
        for (int64_t k = i + 1; k < n; k++) x[k] -= row[k] * value;
    }
    return square;
}

/* Columns of U^-T, one at a time: (A^-1)_jj is the sum of column j's squares, and with u = U^-T mean, mean^T
 * A^-1 mean that of u's. */
static void information_invert(double *errors, const struct information *of) {
    const int64_t n = of->n;
    double *column = of->column;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) column[i] = i == j ? 1 : 0;
        const double square = information_substitute(of, column, j);
        errors[j] = of->scale[j] > 0 ? sqrt(square) / of->scale[j] : (double)NAN;
    }
    if (of->glm->options->no_intercept) return;
    for (int64_t i = 0; i < n; i++) column[i] = of->scale[i] > 0 ? of->mean[i] / of->scale[i] : 0;
    errors[n] = sqrt(1 / of->weight + information_substitute(of, column, 0));
}

/* Whether C holds the loss's own curvature (dialect/losses.h). */
static bool takes_own_curvature(const kiln_loss *loss) {
    return ki_family_find(loss->family)->own_curvature && ki_link_of(loss) == KILN_LINK_LOG;
}

/* C, the expected curvature at the result, in place of the loss's own: they are the same if y is the mean. */
static kiln_status expect_curvature(struct ki_glm *glm) {
    kiln_status status;
    const kiln_matrix *X = glm->X;
    const double one = 1;
    double b, value;
    struct ki_arena arena = {0};
    kiln_matrix *M = ki_arena_rows(&arena, X, 1), *g = ki_arena_model(&arena, X, kiln_matrix_cols(X), 1);
    kiln_loss loss = glm->loss;
    TRY(arena.status);
    TRY(ki_vector_get(&b, glm->newton.b));
    TRY(kiln_combine(M, &b, glm->ones, &one, loss.offset));
    TRY(kiln_multiply(M, 1, KILN_PLAIN, X, glm->newton.W, 1, M));
    TRY(kiln_loss_mean(M, &loss, M));
    loss.y = M;
    TRY(kiln_loss_gradient(&value, g, NULL, glm->newton.C, &loss, X, glm->newton.W, glm->newton.b));
    glm->newton.run.report.passes += 2;
done:
    return ki_arena_free(&arena, status);
}

static int64_t count_independent(const struct information *of) {
    int64_t count = !of->glm->options->no_intercept;
    for (int64_t j = 0; j < of->n; j++) count += of->scale[j] > 0;
    return count;
}

/* g^T H^-1 g = gb^2 / sum h + v^T A^-1 v, v = g - gb mean with the full gradient's g and the means weighted
 * with h. The engine's g is of the columns about other means. */
static kiln_status information_measure_form(struct information *of, struct ki_glm *glm) {
    kiln_status status;
    const struct ki_newton *newton = &glm->newton;
    const int64_t n = of->n;
    const bool intercept = !newton->no_intercept;
    const bool sparse = kiln_matrix_format(glm->X) == KILN_CSR; /* whose sums are about zero first */
    double slope = 0, ratio = 1, *v = of->column;
    struct ki_glm_form form = {.weight = intercept ? of->weight : 0};
    for (int64_t j = 0; j < n; j++)
        if (!(of->scale[j] > 0)) return KILN_OK;
    for (int64_t j = 0; j < n; j++) {
        const double square = of->scale[j] * of->scale[j];
        if (sparse) ratio = fmax(ratio, 1 + form.weight * of->mean[j] * of->mean[j] / square);
        form.spread += newton->columns.square[j] / square;
    }
    double part = 4 * ratio * ki_units(kiln_matrix_rows(glm->X), kiln_matrix_type(glm->X));
    form.inverse = ki_inverse_square(of->A, n, &part, v);
    if (!isfinite(form.inverse)) return KILN_OK;
    TRY(ki_vector_get(v, newton->gradient));
    if (intercept) TRY(ki_vector_get(&slope, newton->slopes));
    for (int64_t j = 0; j < n; j++) {
        if (intercept) v[j] += slope * (newton->columns.mean[j] - of->mean[j]);
        v[j] /= of->scale[j];
    }
    form.square =
        (intercept ? slope * slope / of->weight : 0) + information_substitute(of, v, 0) / (1 - part);
    form.known = true;
    glm->form = form;
done:
    return status;
}

kiln_status ki_glm_information(struct ki_parameters *parameters, double *errors, struct ki_glm *glm) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(glm->X);
    struct ki_arena arena = {0};
    struct information of = {.glm = glm, .n = n, .wanted = errors};
    TRY(information_new(&of, &arena));
    if (takes_own_curvature(&glm->loss)) TRY(expect_curvature(glm));
    if (!glm->options->no_intercept) TRY(information_measure_means(&of));
    TRY(information_form(&of));
    glm->newton.run.report.passes += ki_gram_passes(n) + 1;
    information_factor(&of);
    *parameters = (struct ki_parameters){count_independent(&of), of.cancelled ? KI_UNCOUNTED : KI_COUNTED};
    if (!of.cancelled) TRY(information_measure_form(&of, glm));
    if (!errors) goto done;
    TRY(information_drop_dependent(&of, glm));
    information_invert(errors, &of);
done:
    return ki_arena_free(&arena, status);
}
