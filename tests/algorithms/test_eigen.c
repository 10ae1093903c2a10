/* The dense eigensolver on matrices with close, multiple, graded and glued eigenvalues, of sizes around those
 * at which it cuts: residuals and orthogonality by plain loops, to k epsilon, and spectra that are known. */
#include <float.h>

#include "algorithms/eigen.h"
#include "algorithms/on_cpu.h"

enum { MOST = 140 };

/* Rounding may make so much of a product of k numbers, and of the reflections and cuts before it. */
static double rounding_of(int64_t k) {
    return 8 * (double)k * DBL_EPSILON;
}

/* A = (1 - 2 u u^T) diag(s) (1 - 2 u u^T). */
static void reflect(double *A, const double *s, int64_t k) {
    double u[MOST], square = 0;
    uint64_t seed = 11;
    for (int64_t i = 0; i < k; i++) u[i] = uniform(&seed) - 0.4, square += u[i] * u[i];
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) {
            long double sum = 0;
            for (int64_t c = 0; c < k; c++)
                sum += ((i == c) - 2 * (long double)u[i] * u[c] / square) * s[c] *
                       ((j == c) - 2 * (long double)u[j] * u[c] / square);
            A[i * k + j] = (double)sum;
        }
}

/* values descend, and are those of A, with orthonormal Q. */
static void check(const char *name, const double *A, int64_t k, int64_t count) {
    static double room[MOST * MOST], Q[MOST * MOST];
    double values[MOST], most = 0;
    memcpy(room, A, (size_t)(k * k) * sizeof *A);
    for (int64_t i = 0; i < k; i++) /* which the lower triangle has no part in */
        for (int64_t j = 0; j < i; j++) room[i * k + j] = NAN;
    assert_int_equal(ki_eigen(values, Q, count, room, k, NULL), KILN_OK);
    for (int64_t c = 0; c < k; c++) most = fmax(most, fabs(values[c]));
    for (int64_t c = 1; c < k; c++) assert_true(values[c] <= values[c - 1]);
    for (int64_t c = 0; c < count; c++) {
        long double square = 0;
        for (int64_t i = 0; i < k; i++) {
            long double sum = -(long double)values[c] * Q[c * k + i];
            for (int64_t j = 0; j < k; j++) sum += (long double)A[i * k + j] * Q[c * k + j];
            square += sum * sum;
        }
        if (!(sqrtl(square) <= rounding_of(k) * most))
            fail_msg("%s, %d: || A q - s q || is %Lg, s_1 %g", name, (int)k, sqrtl(square), most);
        for (int64_t d = 0; d <= c; d++) {
            long double sum = c == d ? -1 : 0;
            for (int64_t i = 0; i < k; i++) sum += (long double)Q[c * k + i] * Q[d * k + i];
            if (!(fabsl(sum) <= rounding_of(k)))
                fail_msg("%s, %d: Q Q^T is off by %Lg", name, (int)k, fabsl(sum));
        }
    }
}

static void check_values(const double *A, const double *wanted, int64_t k) {
    static double room[MOST * MOST];
    double values[MOST];
    memcpy(room, A, (size_t)(k * k) * sizeof *A);
    assert_int_equal(ki_eigen(values, NULL, 0, room, k, NULL), KILN_OK);
    for (int64_t c = 0; c < k; c++)
        assert_true(fabs(values[c] - wanted[c]) <=
                    rounding_of(k) * fmax(fabs(wanted[0]), fabs(wanted[k - 1])));
}

static double kind_value(int kind, int64_t c, int64_t k) {
    switch (kind) {
    case 0: return (double)((k - 1 - c) * 3 / k);        /* three values, many times each */
    case 1: return pow(10, -30 * (double)c / (double)k); /* graded */
    case 2: return 1 - 4 * DBL_EPSILON * (double)c;      /* close */
    case 3: return c == 0 ? 1 : 0;                       /* rank 1 */
    case 4: return 1e200 * (double)(k - c);              /* squares leave the range */
    case 5: return c < k / 2 ? 1e-300 : -1e-300;         /* of both signs */
    default: return (double)(k - 2 * c);
    }
}

static const int64_t sizes[] = {1, 2, 3, 31, 32, 33, 34, 63, 64, 65, 97, 130};
enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = 7 };

static void spectra_are_found(void **state) {
    (void)state;
    static double A[MOST * MOST];
    double s[MOST];
    for (int i = 0; i < SIZES; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const int64_t k = sizes[i];
            for (int64_t c = 0; c < k; c++) s[c] = kind_value(kind, c, k);
            reflect(A, s, k);
            check_values(A, s, k);
            if (kind < 4 || kind == 6) /* else residuals leave the range of what is computed here */
                check("a spectrum", A, k, k), check("a part", A, k, (k + 2) / 3);
        }
}

/* Tridiagonal matrices whose eigenvalues agree to all digits though none is multiple: Wilkinson's; the same
 * many times, glued by 1e-9; and 2, -1, whose eigenvalues are 2 + 2 cos(pi j / (k + 1)). */
static void close_pairs_are_told_apart(void **state) {
    (void)state;
    static double A[MOST * MOST];
    double wanted[MOST];
    for (int i = 0; i < SIZES; i++)
        for (int kind = 0; kind < 3; kind++) {
            const int64_t k = sizes[i];
            memset(A, 0, sizeof A);
            for (int64_t c = 0; c < k; c++) {
                A[c * (k + 1)] = kind == 0   ? fabs((double)(2 * c + 1 - k) / 2)
                                 : kind == 1 ? fabs((double)(c % 21 - 10))
                                             : 2;
                if (c + 1 < k)
                    A[c * k + c + 1] = A[(c + 1) * k + c] = kind == 2                   ? -1
                                                            : kind == 1 && c % 21 == 20 ? 1e-9
                                                                                        : 1;
                wanted[c] = 2 + 2 * cos(acos(-1) * (double)(c + 1) / (double)(k + 1));
            }
            check("tridiagonal", A, k, k);
            if (kind == 2) check_values(A, wanted, k);
        }
}

/* A 1 beside a block of rank 2 that is 10^-20 to 10^-320 of it, whose squares and whose products of two no
 * number holds: what columns that depend on others leave to the search of an SVD. */
static void tiny_blocks_stand_beside_ones(void **state) {
    (void)state;
    static const int64_t at[] = {3, 6, 33, 70};
    static double A[MOST * MOST];
    double b[2][MOST];
    uint64_t seed = 3;
    for (int i = 0; i < 4; i++)
        for (int order = 20; order <= 320; order += 20) {
            const int64_t k = at[i];
            memset(A, 0, sizeof A);
            for (int64_t c = 0; c < k; c++) b[0][c] = uniform(&seed) - 0.5, b[1][c] = uniform(&seed) - 0.5;
            for (int64_t r = 1; r < k; r++)
                for (int64_t c = 1; c < k; c++)
                    A[r * k + c] = (b[0][r] * b[0][c] + b[1][r] * b[1][c]) * pow(10, -order);
            A[0] = 1;
            check("a tiny block", A, k, k);
        }
}

/* NaN gives no result, but there is an end. */
static void nan_ends(void **state) {
    (void)state;
    static double A[MOST * MOST], Q[MOST * MOST];
    double values[MOST];
    for (int64_t e = 0; e < 100 * 100; e++) A[e] = e % 7 == 3 ? NAN : (double)(e % 5);
    assert_int_equal(ki_eigen(values, Q, 100, A, 100, NULL), KILN_OK);
    assert_true(isnan(values[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectra_are_found), cmocka_unit_test(close_pairs_are_told_apart),
        cmocka_unit_test(tiny_blocks_stand_beside_ones), cmocka_unit_test(nan_ends)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
