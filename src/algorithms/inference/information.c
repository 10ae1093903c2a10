/* The information matrix of a linear model's coefficients, H = X~^T diag(h) X~ with h the rows' curvatures
 * and X~ = (X, 1), and what follows from its inverse.
 *
 * Under an intercept kiln_gram takes the columns about their means weighted with h: what is left is the
 * Schur complement of the intercept, without the cancellation that would leave nothing of a column of years.
 * It is scaled to a unit diagonal and factored, A = U^T U; a pivot that is nothing but rounding, of the sums
 * or of X's own numbers, belongs to a column that depends on those before it. Such a column gets
 * coefficient 0, its part in the predictions goes to those before it: only then are the errors those of the
 * others. */
#include "algorithms/inference/information.h"

#include "algorithms/cholesky.h"
#include "ops/linear/gram.h"

enum { PANEL = 8, TILE = 256 }; /* of invert_triangle */

/* Returns whether a copy in f64, of at most twice the bytes, leaves room for what goes on beside it. */
static bool has_place(const kiln_device_info *info, kiln_device *device, const kiln_matrix *A) {
    kiln_device_statistics now = {.size = sizeof now};
    if (kiln_device_get_statistics(device, &now) != KILN_OK) return false;
    return info->memory <= 0 || 3 * ki_bytes_of(A) <= info->memory - now.memory_used;
}

kiln_status ki_information_widen(const kiln_matrix **wide, struct ki_arena *arena, const kiln_matrix *A,
                                 const kiln_matrix *beside) {
    kiln_device_info info = {0};
    kiln_device *device = kiln_matrix_device(A);
    kiln_matrix *made = NULL;
    *wide = A;
    if (!A || kiln_matrix_type(A) == KILN_F64) return KILN_OK;
    const kiln_status status = kiln_device_get_info(device, &info);
    if (status != KILN_OK || !info.has_f64) return status;
    if (beside ? kiln_matrix_type(beside) == KILN_F32 : !has_place(&info, device, A)) return KILN_OK;
    *wide = NULL;
    ki_arena_take(arena, &made, kiln_matrix_copy(&made, device, KILN_F64, A));
    *wide = made;
    return arena->status;
}

static kiln_status information_new(struct ki_information *of, struct ki_arena *arena) {
    of->A = ki_arena_room(arena, of->n, (size_t)of->n * sizeof(double));
    of->mean = ki_arena_reals(arena, of->n);
    of->scale = ki_arena_reals(arena, of->n);
    of->width = ki_arena_reals(arena, of->n);
    of->column = ki_arena_doubles(arena, of->n);
    of->far = ki_arena_doubles(arena, of->n);
    of->panel = ki_arena_room(arena, of->n, PANEL * sizeof(double));
    of->left_out = ki_arena_zeros(arena, of->n, sizeof(bool));
    return arena->status;
}

static kiln_status information_measure_means(struct ki_information *of) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *sum = ki_arena_model(&arena, of->X, of->n, 1);
    TRY(arena.status);
    TRY(kiln_norm(&of->weight, of->C, KILN_NORM_1));
    TRY(kiln_multiply(sum, 1, KILN_TRANSPOSED, of->X, of->C, 0, NULL));
    TRY(ki_vector_get(of->mean, sum));
    for (int64_t j = 0; j < of->n; j++) of->mean[j] /= of->weight;
done:
    return ki_arena_free(&arena, status);
}

static bool asked_to_stop(const struct ki_information *of, const char *phase, int64_t done, int64_t total) {
    return of->run && ki_run_stage(of->run, phase, done, total, (double)NAN) && !of->wanted;
}

/* Returns how many slices of X's rows kiln_gram shall walk one after the other, so that the user can be asked
 * about twice a second: on a CPU, where rows of weight 0 cost nothing. */
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

static kiln_status slices_new(struct slices *slices, struct ki_arena *arena,
                              const struct ki_information *of) {
    kiln_status status;
    const kiln_matrix *X = of->X;
    slices->rows = kiln_matrix_rows(X);
    slices->count = count_slices(X);
    slices->G = ki_arena_model(arena, X, of->n, of->n);
    slices->g = ki_arena_model(arena, X, of->n, 1);
    if (!of->no_intercept) slices->c = ki_arena_vector(arena, X, of->n, of->mean);
    if (slices->count > 1) {
        slices->curvature = ki_arena_doubles(arena, slices->rows);
        slices->some = ki_arena_doubles(arena, slices->rows);
    }
    TRY(arena->status);
    if (slices->curvature) TRY(ki_vector_get(slices->curvature, of->C));
done:
    return status;
}

static kiln_status walk_slice(const struct slices *slices, const struct ki_information *of, int64_t slice) {
    kiln_status status;
    const kiln_matrix *X = of->X, *C = of->C;
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

/* A += G, and column += g, some rows of G at a time: there is no other copy of it. */
static kiln_status add_slice(struct ki_information *of, const struct slices *slices) {
    kiln_status status;
    const int64_t n = of->n;
    double *part = of->panel;
    for (int64_t first = 0; first < n; first += PANEL) {
        const int64_t count = ki_min(PANEL, n - first) * n;
        TRY(ki_vector_part(part, slices->G, first * n, count));
        for (int64_t i = 0; i < count; i++) of->A[first * n + i] += part[i];
    }
    TRY(ki_vector_get(part, slices->g));
    for (int64_t i = 0; i < n; i++) of->column[i] += part[i];
done:
    return status;
}

/* A. What the mean, rounded, leaves of g = (X - 1 mean)^T h is taken off again. */
static kiln_status information_form(struct ki_information *of) {
    kiln_status status;
    const int64_t n = of->n;
    struct ki_arena arena = {0};
    struct slices slices = {0};
    TRY(slices_new(&slices, &arena, of));
    memset(of->A, 0, (size_t)(n * n) * sizeof(double));
    memset(of->column, 0, (size_t)n * sizeof(double));
    for (int64_t slice = 0; slice < slices.count && !of->cancelled; slice++) {
        TRY(walk_slice(&slices, of, slice));
        TRY(add_slice(of, &slices));
        if (slices.count > 1) of->cancelled = asked_to_stop(of, "slice", slice, slices.count);
    }
    for (int64_t i = 0; slices.c && i < n; i++)
        for (int64_t j = 0; j < n; j++) of->A[i * n + j] -= of->column[i] / of->weight * of->column[j];
done:
    return ki_arena_free(&arena, status);
}

/* The type that X's numbers have the digits of. */
static kiln_type data_of(const struct ki_information *of) {
    return of->data ? of->data : kiln_matrix_type(of->X);
}

/* A scaled to a unit diagonal; a column without spread, beside what it has of squares, is constant, or all
 * zero. Of a sparse X the sums are about zero first, and leave as much as they have digits. */
static void information_scale(struct ki_information *of, double rounding) {
    const int64_t n = of->n;
    const double flat = ki_flat(data_of(of)) * ki_flat(data_of(of)),
                 least = kiln_matrix_format(of->X) == KILN_CSR ? fmax(rounding, flat) : flat;
    double *A = of->A;
    for (int64_t i = 0; i < n; i++) {
        const double spread = A[i * n + i], whole = spread + of->weight * of->mean[i] * of->mean[i];
        of->scale[i] = of->width[i] = spread > least * whole ? sqrt(spread) : 0;
        of->far[i] = of->scale[i] > 0 ? whole / spread : 1;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) {
            const double both = of->scale[i] * of->scale[j];
            A[i * n + j] = both > 0 ? A[i * n + j] / both : 0;
        }
}

/* A = U^T U of the scaled matrix, a row of zeros for a column that is left out: nothing is left of it but
 * rounding of the sums or, where X has more digits than its data, of these, which is that of the columns as
 * they are. */
static void information_factor(struct ki_information *of) {
    const int64_t n = of->n;
    const double least = (double)n * 16 * ki_epsilon(kiln_matrix_type(of->X));
    const bool copied = data_of(of) != kiln_matrix_type(of->X);
    const double unit = copied ? 2 * ki_epsilon(data_of(of)) : 0;
    double *scale = of->column;
    information_scale(of, least);
    for (int64_t i = 0; i < n; i++) scale[i] = copied ? of->far[i] : 1;
    struct ki_factorisation factor = {.U = of->A,
                                      .size = n,
                                      .scale = scale,
                                      .part = copied ? 0 : least,
                                      .rounding = fmax(unit * unit, least),
                                      .room = copied ? of->panel : NULL,
                                      .left_out = of->left_out};
    while (!ki_factorise(&factor, ki_clock() + KI_FACTOR_ROUND) && !of->cancelled)
        of->cancelled = asked_to_stop(of, "factor row", factor.next, n);
    for (int64_t i = 0; i < n; i++) {
        if (!of->left_out[i] && i < factor.next) continue;
        memset(of->A + i * n + i, 0, (size_t)(n - i) * sizeof *of->A);
        of->scale[i] = 0;
    }
}

/* ---- columns that depend on others ---- */

static bool information_depends(const struct ki_information *of, int64_t i) {
    return of->width[i] > 0 && of->scale[i] == 0;
}

/* The i-th column is sum_j a_j x_j over those before it, about the means: U a = column i of U, scales aside.
 * Its coefficient goes to these, and what the means make of that to the intercept. */
static void information_hand_on(const struct ki_information *of, int64_t i, double *w, double *b) {
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
static kiln_status information_predict(kiln_matrix *Eta, const struct ki_information *of,
                                       const kiln_matrix *W, double b) {
    kiln_status status;
    TRY(kiln_fill(Eta, b));
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, of->X, W, 1, Eta));
done:
    return status;
}

/* Takes the coefficients w and b, but for a dependence that is not what rounding had it look like: where any
 * prediction would notice. */
static kiln_status information_take(const struct ki_information *of, kiln_matrix *W, kiln_matrix *b,
                                    const double *values, double intercept, bool *refused) {
    kiln_status status;
    const kiln_matrix *X = of->X;
    const double one = 1, minus_one = -1, digits = data_of(of) == KILN_F32 ? 1e-4 : 1e-10;
    double former = 0, largest, change;
    struct ki_arena arena = {0};
    kiln_matrix *made = ki_arena_vector(&arena, X, of->n, values),
                *constant = ki_arena_vector(&arena, X, 1, &intercept), *before = ki_arena_rows(&arena, X, 1),
                *after = ki_arena_rows(&arena, X, 1);
    TRY(arena.status);
    if (b) TRY(ki_vector_get(&former, b));
    TRY(information_predict(before, of, W, former));
    TRY(information_predict(after, of, made, intercept));
    if (of->run) of->run->report.passes += 2;
    TRY(kiln_norm(&largest, before, KILN_NORM_MAX));
    TRY(kiln_combine(after, &one, after, &minus_one, before));
    TRY(kiln_norm(&change, after, KILN_NORM_MAX));
    *refused = !(change <= digits * largest);
    if (*refused) goto done;
    TRY(kiln_combine(W, &one, made, NULL, NULL));
    if (b) TRY(kiln_combine(b, &one, constant, NULL, NULL));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_information_drop(const struct ki_information *of, kiln_matrix *W, kiln_matrix *b,
                                bool *refused) {
    kiln_status status;
    struct ki_arena arena = {0};
    int64_t i = 0;
    double intercept = 0;
    *refused = false;
    while (i < of->n && !information_depends(of, i)) i++;
    if (i == of->n) return KILN_OK;
    double *w = ki_arena_doubles(&arena, of->n);
    TRY(arena.status);
    TRY(ki_vector_get(w, W));
    if (b) TRY(ki_vector_get(&intercept, b));
    for (; i < of->n; i++)
        if (information_depends(of, i)) information_hand_on(of, i, w, &intercept);
    TRY(information_take(of, W, b, w, intercept, refused));
done:
    return ki_arena_free(&arena, status);
}

/* ---- the inverse ---- */

/* x = U^-T x, where x is 0 before `first`: the square of its length. */
double ki_information_substitute(const struct ki_information *of, double *x, int64_t first) {
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

int64_t ki_information_count(const struct ki_information *of) {
    int64_t count = !of->no_intercept;
    for (int64_t j = 0; j < of->n; j++) count += of->scale[j] > 0;
    return count;
}

/* Row i of U^-1 = (e_i - sum_{k > i} u_ik row k of it) / u_ii, from the last row up, in place: PANEL rows
 * together, and TILE columns of them, which stay in the first cache while rows k go by once. former: the
 * panel's rows of U. */
/* Rows [first, end) less what rows from `end` on add, in columns [begin, stop). */
static void take_off(double *U, int64_t n, const double *former, int64_t first, int64_t end, int64_t begin,
                     int64_t stop) {
    for (int64_t k = end; k < stop; k++) {
        const double *below = U + k * n;
        for (int64_t i = first; i < end; i++) {
            const double part = former[(i - first) * n + k];
            double *row = U + i * n;
            for (int64_t j = ki_max(k, begin); j < stop; j++) row[j] -= part * below[j];
        }
    }
}

/* Finds what the panel's own rows add, and the pivots. */
static void finish_panel(double *U, int64_t n, const double *former, int64_t first, int64_t end) {
    for (int64_t i = end; i-- > first;) {
        const double *was = former + (i - first) * n, pivot = was[i];
        double *row = U + i * n;
        if (!(pivot > 0)) { /* a column that is left out */
            memset(row + i, 0, (size_t)(n - i) * sizeof *row);
            continue;
        }
        row[i] = 1;
        for (int64_t k = i + 1; k < end; k++)
            for (int64_t j = k; j < n; j++) row[j] -= was[k] * U[k * n + j];
        for (int64_t j = i; j < n; j++) row[j] /= pivot;
    }
}

static void invert_triangle(double *U, int64_t n, double *former) {
    for (int64_t end = n; end > 0;) {
        const int64_t first = ki_max(0, end - PANEL);
        for (int64_t i = first; i < end; i++) {
            memcpy(former + (i - first) * n, U + i * n, (size_t)n * sizeof *U);
            memset(U + i * n + i, 0, (size_t)(n - i) * sizeof *U);
        }
        for (int64_t begin = end / TILE * TILE; begin < n; begin += TILE)
            take_off(U, n, former, first, end, begin, ki_min(begin + TILE, n));
        finish_panel(U, n, former, first, end);
        end = first;
    }
}

void ki_information_invert(struct ki_information *of) {
    const int64_t n = of->n;
    for (int64_t i = 0; i < n; i++) memset(of->A + i * n, 0, (size_t)i * sizeof *of->A);
    invert_triangle(of->A, n, of->panel);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) of->A[i * n + j] *= of->scale[i] > 0 ? 1 / of->scale[i] : 0;
}

void ki_information_errors(double *errors, const struct ki_information *of) {
    const int64_t n = of->n;
    double square = 0;
    memset(of->column, 0, (size_t)n * sizeof *of->column);
    for (int64_t i = 0; i < n; i++) {
        const double *row = of->A + i * n;
        double own = 0;
        for (int64_t j = i; j < n; j++) own += row[j] * row[j];
        errors[i] = of->scale[i] > 0 ? sqrt(own) : (double)NAN;
        for (int64_t j = i; j < n; j++) of->column[j] += of->mean[i] * row[j];
    }
    if (of->no_intercept) return;
    for (int64_t j = 0; j < n; j++) square += of->column[j] * of->column[j];
    errors[n] = sqrt(1 / of->weight + square);
}

kiln_status ki_information_measure(struct ki_information *of, struct ki_arena *arena) {
    kiln_status status;
    of->n = kiln_matrix_cols(of->X);
    TRY(information_new(of, arena));
    if (!of->no_intercept) TRY(information_measure_means(of));
    TRY(information_form(of));
    if (of->run) of->run->report.passes += ki_gram_passes(of->n) + 1;
    information_factor(of);
done:
    return status;
}
