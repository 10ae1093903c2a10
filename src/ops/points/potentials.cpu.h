/* CPU body of ki_potentials: a row meets all candidates while it is in the cache. Parts of the rows add up by
 * themselves, and the parts do not depend on the number of threads. */

#include "dialect/simd_math.h"
#include "ops/points/distance.h"
#include "ops/points/potentials.h"

enum { FN(POTENTIAL_PARTS) = 64 };

struct FN(potentials) {
    const struct ki_potentials *of;
    int64_t k, n;
    int parts;
    double *sums, *norms, *products; /* parts x k; k; parts x k */
};

/* products = x.c for each candidate; ||x||^2. */
static double FN(potential_products)(const struct FN(potentials) * all, double *products, int64_t row) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    const real *x = VALUES(X), *centres = VALUES(all->of->C);
    double square = 0;
    for (int64_t c = 0; c < all->k; c++) products[c] = 0;
    for (int64_t e = start[row]; e < start[row + 1]; e++) {
        square += (double)x[e] * (double)x[e];
        for (int64_t c = 0; c < all->k; c++)
            products[c] += (double)x[e] * (double)centres[c * all->n + col[e]];
    }
    return square;
}

static void FN(potentials_part)(void *arg, int part) {
    const struct FN(potentials) *all = arg;
    const struct ki_potentials *of = all->of;
    const kiln_matrix *X = of->X;
    const bool sparse = X->format != KILN_DENSE;
    const int64_t n = all->n, end = ki_part_begin(X->rows, part + 1, all->parts);
    double *sums = all->sums + part * all->k, *products = all->products + part * all->k;
    for (int64_t row = ki_part_begin(X->rows, part, all->parts); row < end; row++) {
        const double s = of->weights ? (double)VALUES(of->weights)[row] : 1, D = (double)VALUES(of->D)[row];
        if (s == 0 || D == 0) continue;
        const double square = sparse ? FN(potential_products)(all, products, row) : 0;
        for (int64_t c = 0; c < all->k; c++) {
            const double apart =
                sparse ? fmax(square - 2 * products[c] + all->norms[c], 0)
                       : (double)FN(assign_distance)(VALUES(X) + row * n, VALUES(of->C) + c * n, n);
            sums[c] += s * (apart < D ? apart : D);
        }
    }
}

kiln_status FN(potentials)(const struct ki_potentials *of) {
    struct FN(potentials) all = {.of = of, .k = of->C->rows, .n = of->X->cols};
    all.parts = (int)ki_max(ki_min(of->X->rows / 64, FN(POTENTIAL_PARTS)), 1);
    const size_t bytes = (size_t)((2 * all.parts + 1) * all.k) * sizeof(double);
    if (!(all.sums = ki_calloc(bytes))) return ki_fail_nomem(bytes, "candidates for a centre");
    all.products = all.sums + all.parts * all.k;
    all.norms = all.products + all.parts * all.k;
    for (int64_t e = 0; e < all.k * all.n; e++)
        all.norms[e / all.n] += (double)VALUES(of->C)[e] * (double)VALUES(of->C)[e];
    ki_parallel(of->X->device->threads, all.parts, FN(potentials_part), &all);
    for (int64_t c = 0; c < all.k; c++) of->potential[c] = 0;
    for (int64_t i = 0; i < all.parts * all.k; i++) of->potential[i % all.k] += all.sums[i];
    ki_free(all.sums);
    return KILN_OK;
}
