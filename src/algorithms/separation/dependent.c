/* Columns that depend on others but for the rounding of their numbers.
 *
 * A column that is a sum of others, rounded, tells rows apart by its last digits: a direction in which every
 * row may gain a little, and a plane that separates any classes. No number says so that was meant to.
 *
 * Gram and Schmidt: r is what is left of column j across those that are kept, a their coefficients in it. It
 * depends on them if each r_i is no more than what rounding of the row's own numbers makes of
 * z_j - sum_t a_t z_t, and of a. Row by row, as one row of 1e10 would hide all others in a norm. */
#include "algorithms/run/arena.h"
#include "algorithms/separation/separation.h"

/* OF_SHARES: what rounding of the shares adds, in units of a row's own. SUMS: rounding of sums in double. */
static const double OF_SHARES = 4, SUMS = 1e-13;

struct kept {
    int64_t m, count;
    double *q, *r; /* count x m, orthonormal; count x count, below the diagonal: row t has the shares of t */
    int64_t *column;         /* which they are */
    double *part, *a, *left; /* count: the shares of a column, its coefficients; m: what is left */
};

static double dot(const double *x, const double *y, int64_t m) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) sum += x[i] * y[i];
    return sum;
}

/* left, part and a of column z. */
static void split(struct kept *kept, const double *z, int64_t size) {
    memcpy(kept->left, z, (size_t)kept->m * sizeof *z);
    memset(kept->part, 0, (size_t)size * sizeof *kept->part);
    for (int again = 0; again < 2; again++)
        for (int64_t t = 0; t < kept->count; t++) {
            const double *q = kept->q + t * kept->m, share = dot(q, kept->left, kept->m);
            for (int64_t i = 0; i < kept->m; i++) kept->left[i] -= share * q[i];
            kept->part[t] += share;
        }
    for (int64_t t = kept->count; t-- > 0;) {
        double rest = kept->part[t];
        for (int64_t u = t + 1; u < kept->count; u++) rest -= kept->r[u * size + t] * kept->a[u];
        kept->a[t] = rest / kept->r[t * size + t];
    }
}

static bool depends(const struct kept *kept, const double *blur, int64_t j) {
    const int64_t m = kept->m;
    double length = 1;
    for (int64_t t = 0; t < kept->count; t++) length += fabs(kept->a[t]);
    for (int64_t i = 0; i < m; i++) {
        double off = blur[j * m + i];
        for (int64_t t = 0; t < kept->count; t++) off += fabs(kept->a[t]) * blur[kept->column[t] * m + i];
        if (!(fabs(kept->left[i]) <= OF_SHARES * off + SUMS * length)) return false;
    }
    return true;
}

static void keep(struct kept *kept, int64_t j, int64_t size) {
    double *q = kept->q + kept->count * kept->m, *r = kept->r + kept->count * size;
    const double length = sqrt(dot(kept->left, kept->left, kept->m));
    for (int64_t i = 0; i < kept->m; i++) q[i] = kept->left[i] / length;
    memcpy(r, kept->part, (size_t)kept->count * sizeof *r);
    r[kept->count] = length;
    kept->column[kept->count++] = j;
}

kiln_status ki_separation_dependent(double *N, int64_t *count, const double *Z, const double *blur, int64_t p,
                                    int64_t m) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct kept kept = {.m = m,
                        .q = ki_arena_doubles(&arena, p * m),
                        .r = ki_arena_reals(&arena, p * p),
                        .column = ki_arena_integers(&arena, p),
                        .part = ki_arena_doubles(&arena, p),
                        .a = ki_arena_doubles(&arena, p),
                        .left = ki_arena_doubles(&arena, m)};
    TRY(arena.status);
    *count = 0;
    for (int64_t j = 0; j < p; j++) {
        split(&kept, Z + j * m, p);
        if (!depends(&kept, blur, j)) {
            keep(&kept, j, p);
            continue;
        }
        double *n = N + (*count)++ * p;
        memset(n, 0, (size_t)p * sizeof *n);
        n[j] = 1;
        for (int64_t t = 0; t < kept.count; t++) n[kept.column[t]] = -kept.a[t];
        const double length = sqrt(dot(n, n, p));
        for (int64_t t = 0; t < p; t++) n[t] /= length;
    }
done:
    return ki_arena_free(&arena, status);
}
