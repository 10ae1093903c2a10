/* M = U^T U of one or of a few hundred rows, in place, and solutions by U. The upper triangle, by rows, so
 * that every inner loop walks along memory. */
#include "algorithms/cholesky.h"

#include "algorithms/algorithm.h"
#include "ops/linear/gram.h"

enum { PANEL = 4 };

/* Costs relative to an entry's part in a pass, measured on a CPU: an element of the Gram matrix for each
 * row, dense or unpacked; for each pair of sparse entries. */
static const double DENSE_ELEMENT = 0.075, SPARSE_PAIR = 0.43, UNPACKED_ELEMENT = 0.025;

/* The same on a GPU, measured on an H200: in passes, an element of the Gram matrix for each row, of tiles
 * that hang over by 48 columns; and of 64 columns in a pass each where there is no such walk. The host's
 * part in seconds, beside bytes a second. */
static const double F32_ELEMENT = 0.11, F64_ELEMENT = 0.16, OVERHANG = 48, GPU_COLUMN = 0.2, GPU_BYTES = 4e12,
                    HOST_WAY = 1e-4, HOST_STEP = 4e-10;

static double gpu_price(const kiln_matrix *X) {
    const double n = (double)kiln_matrix_cols(X);
    if (!ki_gram_in_one_walk(X)) return GPU_COLUMN * n;
    if (ki_gram_streams(X)) return 1;
    const double element = kiln_matrix_type(X) == KILN_F32 ? F32_ELEMENT : F64_ELEMENT;
    return element * (0.5 * n + OVERHANG);
}

double ki_gpu_factor_price(const kiln_matrix *X, double size) {
    const double pass = (double)ki_bytes_of(X) / GPU_BYTES;
    return (HOST_WAY + HOST_STEP * size * size * size / 6) / fmax(pass, 1e-9);
}

double ki_gram_price(const kiln_matrix *X) {
    kiln_device_info info = {0};
    if (kiln_device_get_info(kiln_matrix_device(X), &info) == KILN_OK && info.is_gpu) return gpu_price(X);
    const double rows = fmax((double)kiln_matrix_rows(X), 1), n = (double)kiln_matrix_cols(X);
    const double mean = fmax((double)kiln_matrix_nnz(X), 1) / rows;
    if (kiln_matrix_format(X) == KILN_DENSE) return DENSE_ELEMENT * n;
    return fmin(SPARSE_PAIR * mean, UNPACKED_ELEMENT * n * n / mean);
}

/* Returns how much of column k's diagonal element, over its scale, rounding of M alone may leave; c gets the
 * coefficients that make it of the columns before. Of |c_i| |c_j| max(b_i, b_j), b the blur, the sum is at
 * most that of |c_i| times that of 2 |c_j| b_j. */
static double rounding_of(const struct ki_factorisation *of, int64_t k) {
    const int64_t size = of->size;
    const double *blurred = of->blurred;
    double *c = of->room, length = 1, far = blurred ? 2 * blurred[k] : 1;
    for (int64_t i = k; i-- > 0;) {
        double sum = of->U[i * size + k];
        for (int64_t j = i + 1; j < k; j++) sum -= of->U[i * size + j] * c[j];
        c[i] = sum / of->U[i * size + i];
        const double part = fabs(c[i]) * sqrt(of->scale[i] / of->scale[k]);
        length += part;
        far += blurred ? 2 * part * blurred[i] : part;
    }
    return of->rounding * length * far;
}

/* Returns whether what is left of column k is nothing. */
static bool is_left_out(const struct ki_factorisation *of, int64_t k, double left) {
    const double doubted = of->blurred ? fmax(1e-2, 16 * of->rounding * of->blurred[k]) : 1e-2;
    return left <= of->part * of->scale[k] ||
           (of->room && left <= doubted * of->scale[k] && left <= rounding_of(of, k) * of->scale[k]);
}

/* Row `first` and those after it, up to PANEL of them, each less what those before it in the panel take
 * off. False: not positive. */
static bool finish_panel(struct ki_factorisation *of, int64_t first, int64_t end) {
    const int64_t size = of->size;
    for (int64_t k = first; k < end; k++) {
        double *row = of->U + k * size;
        for (int64_t p = first; p < k; p++)
            for (int64_t j = k; j < size; j++) row[j] -= of->U[p * size + k] * of->U[p * size + j];
        if (is_left_out(of, k, row[k])) {
            row[k] = of->scale[k];
            of->replaced = true;
            if (of->left_out) of->left_out[k] = true;
            for (int64_t j = k + 1; j < size; j++) row[j] = 0;
        }
        if (!(row[k] > 0) || !isfinite(row[k])) return false;
        const double inverse = 1 / sqrt(row[k]);
        for (int64_t j = k; j < size; j++) row[j] *= inverse;
    }
    return true;
}

/* Row by row of U; each is taken off the rows below it, PANEL rows in one walk, as loading and storing M
 * is what costs. What is left of a diagonal element below that part of its scale is taken for rounding. */
bool ki_factorise(struct ki_factorisation *of, double until) {
    const int64_t size = of->size;
    while (of->next < size && !of->failed) {
        const int64_t first = of->next, end = ki_min(first + PANEL, size);
        of->failed = !finish_panel(of, first, end);
        if (of->failed) break;
        of->next = end;
        if (end == size) break;
        const double *a = of->U + first * size, *b = a + size, *c = b + size, *d = c + size;
        for (int64_t i = end; i < size; i++) {
            double *to = of->U + i * size;
            const double ai = a[i], bi = b[i], ci = c[i], di = d[i];
            for (int64_t j = i; j < size; j++) to[j] -= ai * a[j] + bi * b[j] + ci * c[j] + di * d[j];
        }
        if (isfinite(until) && ki_clock() > until) return false;
    }
    return true;
}

/* U as doubles or, narrow, as floats in the same places of an array of these. */
static inline double at(const void *U, bool narrow, int64_t i) {
    return narrow ? (double)((const float *)U)[i] : ((const double *)U)[i];
}

/* r = U^-T r, and then U^-1 of that. Returns the square of the first's length. `narrow` is a constant
 * wherever this is inlined. */
static inline double substitute(const void *U, bool narrow, double *restrict r, int64_t size) {
    double square = 0;
    for (int64_t i = 0; i < size; i++) {
        const int64_t row = i * size;
        const double value = r[i] /= at(U, narrow, row + i);
        square += value * value;
        for (int64_t j = i + 1; j < size; j++) r[j] -= at(U, narrow, row + j) * value;
    }
    for (int64_t i = size; i-- > 0;) {
        const int64_t row = i * size;
        double sum[4] = {0}; /* each addition would wait for the one before */
        int64_t j = i + 1;
        for (; j + 4 <= size; j += 4)
            for (int s = 0; s < 4; s++) sum[s] += at(U, narrow, row + j + s) * r[j + s];
        for (; j < size; j++) sum[0] += at(U, narrow, row + j) * r[j];
        r[i] = (r[i] - (sum[0] + sum[1]) - (sum[2] + sum[3])) / at(U, narrow, row + i);
    }
    return square;
}

double ki_substitute(const double *U, double *r, int64_t size) {
    return substitute(U, false, r, size);
}

double ki_substitute_narrow(const float *U, double *r, int64_t size) {
    return substitute(U, true, r, size);
}

/* to -= u from, of k numbers each. */
static inline void take_off(double *restrict to, double u, const double *restrict from, int64_t k) {
    for (int64_t c = 0; c < k; c++) to[c] -= u * from[c];
}

void ki_substitute_columns(const double *U, double *r, int64_t size, int64_t k) {
    for (int64_t i = 0; i < size; i++) {
        const double *u = U + i * size, *own = r + i * k;
        for (int64_t c = 0; c < k; c++) r[i * k + c] /= u[i];
        for (int64_t j = i + 1; j < size; j++) take_off(r + j * k, u[j], own, k);
    }
    for (int64_t i = size; i-- > 0;) {
        const double *u = U + i * size;
        double *own = r + i * k;
        for (int64_t j = i + 1; j < size; j++) take_off(own, u[j], r + j * k, k);
        for (int64_t c = 0; c < k; c++) own[c] /= u[i];
    }
}

void ki_narrow(double *U, int64_t count) {
    enum { PIECE = 64 };
    char *to = (char *)U;
    for (int64_t i = 0; i < count; i += PIECE) {
        float piece[PIECE];
        const int64_t length = ki_min(PIECE, count - i);
        for (int64_t j = 0; j < length; j++) piece[j] = (float)U[i + j];
        memcpy(to + i * (int64_t)sizeof(float), piece, (size_t)length * sizeof(float));
    }
}
