/* CPU body of kiln_dirichlet_expect: a row at a time, whose digammas and exponentials are vectors; what the
 * bound adds up is computed in double. Parts are cut by the shape alone. */
#include "dialect/simd_math.h"

struct FN(dirichlet) {
    const struct ki_dirichlet *d;
};

ALWAYS_INLINE void FN(store_some)(real *to, FN(vreal) v, int64_t count) {
    if (count >= LANES)
        FN(store)(to, v);
    else
        memcpy(to, &v, (size_t)count * sizeof(real));
}

/* G from Y, and its change. */
static double FN(dirichlet_update)(const kiln_dirichlet *of, int64_t row) {
    const int64_t k = of->G->cols;
    const real *prior = VALUES(of->prior), *t = VALUES(of->T) + row * k, *y = VALUES(of->Y) + row * k;
    real *g = VALUES(of->G) + row * k;
    double change = 0;
    for (int64_t c = 0; c < k; c++) {
        const real next = prior[c] + t[c] * y[c], step = next - g[c];
        change += (double)(step < 0 ? -step : step);
        g[c] = next;
    }
    return change;
}

/* T = digamma(G) - shift; returns the largest. */
static real FN(dirichlet_logs)(const kiln_dirichlet *of, int64_t row) {
    const int64_t k = of->G->cols;
    const real *shift = of->shift ? VALUES(of->shift) : NULL, *g = VALUES(of->G) + row * k;
    real *t = VALUES(of->T) + row * k, largest = -(real)INFINITY;
    for (int64_t c = 0; c < k; c += LANES) {
        FN(vreal) l = FN(vdigamma)(FN(load_some)(g + c, k - c));
        if (shift) l -= FN(load_some)(shift + c, k - c);
        FN(store_some)(t + c, l, k - c);
    }
    for (int64_t c = 0; c < k; c++) largest = t[c] > largest ? t[c] : largest;
    return largest;
}

static double FN(dirichlet_bound)(const kiln_dirichlet *of, int64_t row, double less) {
    const int64_t k = of->G->cols;
    const real *shift = of->shift ? VALUES(of->shift) : NULL, *prior = VALUES(of->prior);
    const real *g = VALUES(of->G) + row * k;
    double bound = 0;
    for (int64_t c = 0; c < k; c++) {
        const double e = digamma((double)g[c]) - (shift ? (double)shift[c] : 0) - less;
        bound += ((double)prior[c] - (double)g[c]) * e + log_gamma_positive((double)g[c]);
    }
    return bound;
}

static void FN(dirichlet_row)(const struct ki_dirichlet *d, int64_t row, double *sums) {
    const kiln_dirichlet *of = d->of;
    const int64_t k = of->G->cols;
    const real *g = VALUES(of->G) + row * k;
    real *t = VALUES(of->T) + row * k;
    double total = 0, less = 0;
    if (of->Y) sums[1] += FN(dirichlet_update)(of, row);
    const real largest = FN(dirichlet_logs)(of, row);
    for (int64_t c = 0; of->rows && c < k; c++) total += (double)g[c];
    if (of->rows) less = digamma(total);
    if (d->bound) sums[0] += FN(dirichlet_bound)(of, row, less) - (of->rows ? log_gamma_positive(total) : 0);
    for (int64_t c = 0; of->logs && c < k; c++) VALUES(of->logs)[row * k + c] = t[c] - (real)less;
    if (of->scale) VALUES(of->scale)[row] = (real)((double)largest - less);
    for (int64_t c = 0; c < k; c += LANES)
        FN(store_some)(t + c, FN(vexp)(FN(load_some)(t + c, k - c) - largest), k - c);
}

static void FN(dirichlet_part)(void *of, int part) {
    const struct ki_dirichlet *d = ((const struct FN(dirichlet) *)of)->d;
    const int64_t rows = d->of->G->rows, end = ki_part_begin(rows, part + 1, KI_DIRICHLET_PARTS);
    double sums[KI_DIRICHLET_SUMS] = {0};
    for (int64_t row = ki_part_begin(rows, part, KI_DIRICHLET_PARTS); row < end; row++)
        FN(dirichlet_row)(d, row, sums);
    memcpy(d->sums[part], sums, sizeof sums);
}

void FN(dirichlet)(const struct ki_dirichlet *d) {
    struct FN(dirichlet) work = {d};
    ki_parallel(d->of->G->nnz > 4096 ? d->of->G->device->threads : 1, KI_DIRICHLET_PARTS, FN(dirichlet_part),
                &work);
}
