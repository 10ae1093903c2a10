/* Eigenvectors of a symmetric tridiagonal matrix: it is cut in the middle, at a number e beside the diagonal,
 *
 *   T = (T_1 0; 0 T_2) + r u u^T = Q (D + r z z^T) Q^T,   r = 2 |e|,   z = Q^T u,   |z| = 1,
 *
 * where the halves' eigenvalues D and vectors are known, and u has two numbers, +-sqrt(1/2), at the cut. What
 * z hardly has, or two equal numbers in D share, stays as it is. The others' eigenvalues are the roots x of
 *
 *   1/r + sum_i z_i^2 / (d_i - x) = 0,   one above each d_i,
 *
 * and are known as distances from the nearest d_i, to the last digit. They are the eigenvalues of
 * D + r z' z'^T for a z' near z, to which the vectors z'_i / (d_i - x) belong: so these are orthogonal,
 * however close the roots are. Halves of up to LEAF rows go by implicit QL steps.
 *
 * Source: Cuppen, Numer. Math. 36 (1981); Gu and Eisenstat, SIAM J. Matrix Anal. Appl. 16 (1995); roots: Li,
 * LAPACK Working Note 89 (1993); QL: Dubrulle, Martin and Wilkinson, Numer. Math. 12 (1968). */
#include "algorithms/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "algorithms/run/run.h"

enum {
    LEAF = 32,
    TURNS = 60, /* QL steps for an eigenvalue; two or three are usual */
    ROOT = 100, /* steps to a root; five are usual */
    DEEP = 64,  /* rows of a product that go together, */
    STRIP = 128 /* and columns: a cache holds them */
};

struct division {
    double *d;       /* the diagonal, which becomes the eigenvalues */
    const double *e; /* beside it */
    double *Z;       /* k x k: row i of a part's block on the diagonal is the eigenvector of d[i] */
    double *G;       /* k x k: rows of Z that a cut's vectors are made of; then those that stay */
    double *U;       /* k x k: row j has d_i - x of the root j, and then the vector */
    int64_t k;
    /* k each; of a part, from its first row on */
    double *z, *near, *value; /* z and d of what does not stay; eigenvalues, in the order of G's rows */
    double *kept;             /* the new z */
    int64_t *order, *side;    /* of d, ascending; which halves' columns a row of Z has: 1, 2, 3 */
    int64_t *row;             /* of Z, for each row of G */
    int64_t *place;           /* of G's rows among them, before they were sorted by halves */
    double **to;              /* of each root's vector; NULL: it is not wanted */
    struct ki_run *run;
};

/* Room for the eigenvectors of the last `count` eigenvalues. */
struct wanted_rows {
    double *to;
    int64_t stride, count;
};

static double *row_of(double *A, int64_t k, int64_t first, int64_t i) {
    return A + (first + i) * k + first;
}

/* ------------------------------------------------------------------------------------------ QL steps */

static void rotate(double *a, double *b, double c, double s, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* One QL step with Wilkinson's shift on rows [first, last], which are coupled throughout. */
static void step(double *d, double *e, double *Z, int64_t first, int64_t last, int64_t count) {
    const double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double g = d[last] - d[first] + e[first] / (half + copysign(hypot(half, 1), half));
    double s = 1, c = 1, p = 0;
    for (int64_t i = last - 1; i >= first; i--) {
        const double f = s * e[i], b = c * e[i], r = hypot(f, g); /* whose squares may leave the range */
        e[i + 1] = r;
        if (r == 0) { /* the matrix falls apart here */
            d[i + 1] -= p;
            e[last] = 0;
            return;
        }
        s = f / r, c = g / r;
        g = d[i + 1] - p;
        const double q = (d[i] - g) * s + 2 * c * b;
        p = s * q;
        d[i + 1] = g + p;
        g = c * q - b;
        rotate(Z + i * count, Z + (i + 1) * count, c, s, count);
    }
    d[first] -= p;
    e[first] = g;
    e[last] = 0;
}

static int64_t coupled_to(const double *d, const double *e, int64_t first, int64_t k) {
    int64_t last = first;
    while (last + 1 < k && fabs(e[last]) > DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1]))) last++;
    return last;
}

static void take_leaf(struct division *of, int64_t first, int64_t size, struct wanted_rows rows) {
    double Z[LEAF * LEAF] = {0}, e[LEAF] = {0}, *const d = of->d + first;
    for (int64_t i = 0; i + 1 < size; i++) e[i] = of->e[first + i];
    for (int64_t i = 0; i < size; i++) Z[i * (size + 1)] = 1;
    for (int64_t i = 0; i < size; i++)
        for (int turn = 0; turn < TURNS; turn++) {
            const int64_t last = coupled_to(d, e, i, size);
            if (last == i) break;
            step(d, e, Z, i, last, size);
        }
    for (int64_t i = 0; i < size; i++) {
        int64_t least = i;
        for (int64_t j = i + 1; j < size; j++)
            if (d[j] < d[least]) least = j;
        const double kept = d[i];
        d[i] = d[least];
        d[least] = kept;
        if (least != i) rotate(Z + i * size, Z + least * size, 0, 1, size);
    }
    for (int64_t i = 0; i < rows.count; i++)
        memcpy(rows.to + i * rows.stride, Z + (size - rows.count + i) * size, (size_t)size * sizeof *Z);
}

/* ------------------------------------------------------------------------------------------- roots */

struct secular {
    const double *d, *z; /* ascending; no two equal, none 0 */
    double r;
    int64_t count;
    const double *off; /* d_i less the d that x counts from */
};

/* *sum += sum of z_i^2 / (off_i - x) over [begin, end), *slope that of its derivative. */
static void add_terms(double *sum, double *slope, const struct secular *of, double x, int64_t begin,
                      int64_t end) {
    double sums[4] = {0}, slopes[4] = {0};
    int64_t i = begin;
    for (; i + 4 <= end; i += 4)
        for (int l = 0; l < 4; l++) {
            const double z = of->z[i + l], t = z / (of->off[i + l] - x);
            sums[l] += z * t;
            slopes[l] += t * t;
        }
    for (; i < end; i++) {
        const double z = of->z[i], t = z / (of->off[i] - x);
        sums[0] += z * t;
        slopes[0] += t * t;
    }
    *sum += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    *slope += (slopes[0] + slopes[1]) + (slopes[2] + slopes[3]);
}

/* A step to where c + a / (A - x) + b / (B - x) vanishes, which has the function's value and the slopes of
 * what lies on either side; of the last root, c + b / (B - x). */
static double step_to_root(double f, double below, double above, double A, double B, bool last) {
    if (last) {
        const double c = f - (below + above) * B;
        return c > 0 ? B * f / c : NAN;
    }
    const double c = f - below * A - above * B, b = c * (A + B) + below * A * A + above * B * B;
    const double root = sqrt(fmax(b * b - 4 * c * A * B * f, 0));
    return b <= 0 ? (b - root) / (2 * c) : 2 * A * B * f / (b + root);
}

/* Between `low` and `high`, of the same sign or one of them 0. */
static double between(double low, double high) {
    const double small = fmin(fabs(low), fabs(high)), large = fmax(fabs(low), fabs(high));
    if (small > large / 4) return (low + high) / 2;
    return copysign(small > 0 ? sqrt(small) * sqrt(large) : large / 64, low + high);
}

/* off[i] becomes d_i - x of the j-th root x, to the last digit. Returns the root. */
static double find_root(double *off, const struct secular *with, int64_t j) {
    struct secular of = *with;
    const bool last = j + 1 == of.count;
    const double gap = last ? 2 * of.r : of.d[j + 1] - of.d[j];
    double low = 0, high = gap, x = gap / 2;
    int64_t from = j;
    of.off = off;
    for (int64_t i = 0; i < of.count; i++) off[i] = of.d[i] - of.d[j];
    for (int turn = 0; turn < ROOT; turn++) {
        double psi = 0, phi = 0, below = 0, above = 0;
        add_terms(&psi, &below, &of, x, 0, j + 1);
        add_terms(&phi, &above, &of, x, j + 1, of.count);
        const double f = 1 / of.r + psi + phi;
        if (turn == 0 && f < 0 && !last) { /* the root is nearer to what lies above */
            from = j + 1;
            for (int64_t i = 0; i < of.count; i++) off[i] = of.d[i] - of.d[from];
            low = -gap, high = 0, x = -gap / 2;
        }
        if (fabs(f) <= DBL_EPSILON * (1 / of.r + phi - psi)) break;
        if (f < 0)
            low = x;
        else
            high = x;
        const double next = x + step_to_root(f, below, above, off[j] - x, off[last ? j : j + 1] - x, last);
        const double before = x;
        x = next > low && next < high ? next : between(low, high);
        if (x == before || !(x > low && x < high)) break;
    }
    for (int64_t i = 0; i < of.count; i++) off[i] -= x;
    return of.d[from] + x;
}

/* ------------------------------------------------------------------------------------------- a cut */

/* z, and the order of d; Z's rows get zeros beside their halves. Returns r. */
static double prepare(struct division *of, int64_t first, int64_t size, int64_t half) {
    const double e = of->e[first + half - 1], root = sqrt(0.5), *const d = of->d + first;
    int64_t a = 0, b = half;
    for (int64_t i = 0; i < size; i++) {
        double *const own = row_of(of->Z, of->k, first, i);
        memset(i < half ? own + half : own, 0, (size_t)(i < half ? size - half : half) * sizeof *own);
        of->z[first + i] = own[i < half ? half - 1 : half] * (i >= half && e < 0 ? -root : root);
        of->side[first + i] = i < half ? 1 : 2;
        of->order[first + i] = a < half && (b == size || d[a] <= d[b]) ? a++ : b++;
    }
    return 2 * fabs(e);
}

/* The rows of Z that a cut's vectors are made of go to the beginning of of->row, ascending, their z and d
 * beside them; those that stay to its end. Returns how many there are of the former. */
static int64_t deflate(struct division *of, int64_t first, int64_t size, double r) {
    double *const d = of->d + first, *const z = of->z + first;
    int64_t *const row = of->row + first, *const side = of->side + first, count = 0, rest = size, last = -1;
    double most = 0;
    for (int64_t i = 0; i < size; i++) most = fmax(most, fmax(fabs(d[i]), fabs(z[i])));
    const double rounding = 8 * DBL_EPSILON * most;
    for (int64_t i = 0; i < size; i++) {
        const int64_t at = of->order[first + i];
        if (!(r * fabs(z[at]) > rounding)) {
            row[--rest] = at;
            continue;
        }
        if (last >= 0) {
            const double length = hypot(z[last], z[at]), c = z[at] / length, s = z[last] / length,
                         apart = d[at] - d[last];
            if (fabs(apart * c * s) <= rounding) { /* all of z goes to one of the two */
                const double low = d[last] * c * c + d[at] * s * s;
                d[at] = d[last] * s * s + d[at] * c * c;
                d[last] = low;
                z[at] = length, z[last] = 0;
                side[at] |= side[last];
                side[last] = side[at];
                rotate(row_of(of->Z, of->k, first, last), row_of(of->Z, of->k, first, at), c, s, size);
                row[--rest] = last;
                count--;
            }
        }
        row[count++] = last = at;
    }
    for (int64_t i = 0; i < count; i++) of->near[first + i] = d[row[i]], of->kept[first + i] = z[row[i]];
    return count;
}

/* The roots, and z' in place of z: the product of what U has over the distances of the d. */
static void find_roots(struct division *of, int64_t first, int64_t count, double r) {
    const double *const d = of->near + first;
    double *const z = of->kept + first, *const square = of->z + first;
    const struct secular with = {.d = d, .z = z, .r = r, .count = count};
    for (int64_t j = 0; j < count; j++)
        of->value[first + j] = find_root(row_of(of->U, of->k, first, j), &with, j);
    for (int64_t i = 0; i < count; i++) square[i] = 1;
    for (int64_t j = 0; j < count; j++) {
        const double *const off = row_of(of->U, of->k, first, j);
        for (int64_t i = 0; i < j; i++) square[i] *= off[i] / (d[i] - d[j]);
        square[j] *= -off[j];
        for (int64_t i = j + 1; i < count; i++) square[i] *= off[i] / (d[i] - d[j]);
    }
    for (int64_t i = 0; i < count; i++) z[i] = copysign(sqrt(fmax(square[i], 0)), z[i]);
}

/* G gets the rows, first those of the first half's columns, then those of both, then the second's, and behind
 * them what stays. ends[side]: where those of a kind end. */
static void gather(int64_t ends[4], struct division *of, int64_t first, int64_t size, int64_t count) {
    static const int64_t kinds[] = {1, 3, 2};
    int64_t at = 0;
    for (int kind = 0; kind < 3; kind++) {
        for (int64_t i = 0; i < count; i++)
            if (of->side[first + of->row[first + i]] == kinds[kind]) of->place[first + at++] = i;
        ends[kinds[kind]] = at;
    }
    for (int64_t i = 0; i < size; i++)
        memcpy(row_of(of->G, of->k, first, i),
               row_of(of->Z, of->k, first, of->row[first + (i < count ? of->place[first + i] : i)]),
               (size_t)size * sizeof *of->G);
}

/* U's row j becomes the root's vector, in the order of G's rows. */
static void find_vector(struct division *of, int64_t first, int64_t j, int64_t count) {
    double *const u = row_of(of->U, of->k, first, j), *const v = of->near + first;
    double square = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = of->place[first + i];
        v[i] = of->kept[first + at] / u[at];
        square += v[i] * v[i];
    }
    for (int64_t i = 0; i < count; i++) u[i] = v[i] / sqrt(square);
}

/* Columns [begin, end) of the roots' rows: U times G's rows [low, high). */
static void multiply(struct division *of, int64_t first, int64_t count, int64_t low, int64_t high,
                     int64_t begin, int64_t end) {
    const int64_t k = of->k;
    for (int64_t c = begin; c < end; c += STRIP)
        for (int64_t r = low; r < high; r += DEEP)
            for (int64_t j = 0; j < count; j++)
                if (of->to[first + j])
                    ki_add_rows(of->to[first + j] + c, row_of(of->U, k, first, j) + r, ki_min(DEEP, high - r),
                                row_of(of->G, k, first, r) + c, k, ki_min(STRIP, end - c));
}

/* d becomes the roots and what stays, ascending. Of the last rows.count of them, vectors of what stays are
 * copied, and of->to has the places of the roots'. */
static void sort(struct division *of, int64_t first, int64_t size, int64_t count, struct wanted_rows rows) {
    double *const value = of->value + first, *const d = of->d + first;
    int64_t *const order = of->order + first;
    for (int64_t i = count; i < size; i++) value[i] = d[of->row[first + i]];
    for (int64_t i = size; i-- > count;) { /* they descend, but for rounding */
        int64_t at = count + size - 1 - i;
        for (; at > count && value[order[at - 1]] > value[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int64_t i = 0, a = 0, b = count; i < size; i++) {
        const bool is_root = a < count && (b == size || value[a] <= value[order[b]]);
        const int64_t at = is_root ? a++ : order[b++], place = i - (size - rows.count);
        double *const to = place >= 0 ? rows.to + place * rows.stride : NULL;
        d[i] = value[at];
        if (is_root)
            of->to[first + at] = to;
        else if (to)
            memcpy(to, row_of(of->G, of->k, first, at), (size_t)size * sizeof *to);
    }
}

static void join(struct division *of, int64_t first, int64_t size, int64_t half, struct wanted_rows rows) {
    int64_t ends[4];
    const double r = prepare(of, first, size, half);
    const int64_t count = deflate(of, first, size, r);
    find_roots(of, first, count, r);
    gather(ends, of, first, size, count);
    sort(of, first, size, count, rows);
    for (int64_t j = 0; j < count; j++) {
        if (!of->to[first + j]) continue;
        find_vector(of, first, j, count);
        memset(of->to[first + j], 0, (size_t)size * sizeof(double));
    }
    multiply(of, first, count, 0, ends[3], 0, half);
    multiply(of, first, count, ends[1], count, half, size);
}

/* d becomes the eigenvalues of rows [first, first + size), ascending, and `rows` the vectors of the last of
 * them. False: the caller asks to stop. */
static bool divide(struct division *of, int64_t first, int64_t size, struct wanted_rows rows) {
    if (size <= LEAF) {
        take_leaf(of, first, size, rows);
        return true;
    }
    const int64_t half = size / 2, second = first + half;
    const struct wanted_rows low = {row_of(of->Z, of->k, first, 0), of->k, half},
                             high = {row_of(of->Z, of->k, second, 0), of->k, size - half};
    of->d[second - 1] -= fabs(of->e[second - 1]);
    of->d[second] -= fabs(of->e[second - 1]);
    if (!divide(of, first, half, low) || !divide(of, second, size - half, high)) return false;
    if (ki_eigen_is_stopped(of->run, size)) return false;
    join(of, first, size, half, rows);
    return true;
}

kiln_status ki_eigen_divide(double *diagonal, double *Q, int64_t count, const double *beside, int64_t k,
                            struct ki_run *run) {
    kiln_status status;
    struct ki_arena own = {0};
    struct division of = {.d = diagonal, .e = beside, .k = k, .run = run};
    const bool whole = k > LEAF; /* a leaf needs no room */
    double **const squares[] = {&of.Z, &of.G, &of.U};
    for (int i = 0; whole && i < 3; i++) *squares[i] = ki_arena_doubles(&own, k * k);
    double **const vectors[] = {&of.z, &of.near, &of.value, &of.kept};
    for (int i = 0; whole && i < 4; i++) *vectors[i] = ki_arena_doubles(&own, k);
    int64_t **const places[] = {&of.order, &of.side, &of.row, &of.place};
    for (int i = 0; whole && i < 4; i++) *places[i] = ki_arena_integers(&own, k);
    if (whole) of.to = ki_arena_room(&own, k, sizeof *of.to);
    TRY(own.status);
    divide(&of, 0, k, (struct wanted_rows){Q, k, count});
done:
    return ki_arena_free(&own, status);
}
