/* This file says what the Newton engine's factor costs in passes over X: a Gram matrix, and what is done with
 * it (newton_factor.c); and the rows that a preconditioner is formed from where all would cost too much: a
 * sample that has the curvature of all,
 *
 *   row i stays with probability p_i = min(1, v_i / tau), and then with v_i / p_i = max(v_i, tau)
 *   for its curvature,
 *
 * tau such that about so many stay as are wanted. Rows of much curvature all stay; those that a classifier is
 * sure of, which soon are most, stand for each other. Row i stays where the running sum of p passes a whole
 * number: no random numbers, and neighbours that are alike get their share. */
#include "algorithms/newton/newton_work.h"

#include "derived/select.h"

enum {
    BLOCKS_MOST = 1 << 24, /* numbers in all classes' factors */
    CACHED = 1 << 21,      /* numbers that a processor's caches hold */
    DEAR = 8,              /* passes: a Gram matrix that costs more may do with a sample of the rows, */
    SAMPLE_LEAST = 2       /* of so many for each column at least */
};

/* Costs relative to an entry's part in a pass, measured on a CPU: a multiplication of a solution; of the
 * factorisation, beside sparse and dense entries; of the curvatures of all classes, rows x k, that a class's
 * is read out of, in cache and beyond. */
static const double NEAR_CURVATURE = 0.1, FAR_CURVATURE = 1, SOLVE_STEP = 0.8, SPARSE_STEP = 0.15,
                    DENSE_STEP = 0.5;

double ki_newton_factor_price(const struct ki_newton *newton, double size, double *host) {
    kiln_device_info info = {0};
    *host = INFINITY;
    const double rows = fmax((double)kiln_matrix_rows(newton->X), 1), k = newton->k;
    const double nnz = fmax((double)kiln_matrix_nnz(newton->X), 1), mean = nnz / rows,
                 n = (double)kiln_matrix_cols(newton->X);
    if (kiln_device_get_info(kiln_matrix_device(newton->X), &info) != KILN_OK) return INFINITY;
    const double threads = fmin(fmax(ki_newton_threads(kiln_matrix_device(newton->X)), 1),
                                1 + nnz / 16384) / /* that a pass is worth, beside those of the factors */
                           fmin(ki_newton_threads(kiln_matrix_device(newton->X)), k);
    const double solve = SOLVE_STEP * size * size * threads / nnz; /* a step's, beside its pass */
    const bool dense = kiln_matrix_format(newton->X) == KILN_DENSE;
    const double factor = (dense ? DENSE_STEP : SPARSE_STEP) * size * size * size * threads / (6 * nnz);
    if (solve > 1 || k * size * size > BLOCKS_MOST) return INFINITY;
    const double curvature = k > 1 ? (rows * k > CACHED ? FAR_CURVATURE : NEAR_CURVATURE) * k / mean : 0;
    *host = (info.is_gpu ? 0 : factor) + curvature;
    /* A GPU's products are so quick that a factor, for which it waits besides, must save many. */
    if (info.is_gpu) return 2 * ceil(n / 8) * fmin(k, 8);
    return ki_gram_price(newton->X);
}

/* Only on the CPU are those of no curvature passed over. */
int64_t ki_newton_sample_rows(const struct ki_newton *newton, double gram_price, int64_t size) {
    const int64_t m = kiln_matrix_rows(newton->X);
    if (newton->k == 1 || gram_price <= DEAR || !ki_selectable(newton->X)) return m;
    return ki_min(m, ki_max((int64_t)((double)m * DEAR / gram_price), SAMPLE_LEAST * size));
}

/* The tau at which about `wanted` rows are to be expected: it falls from step to step, and stays once no
 * further row is above it. */
static double threshold(const double *v, int64_t m, double total, double wanted) {
    enum { STEPS = 32 };
    double tau = total / wanted;
    for (int step = 0; step < STEPS; step++) {
        double above = 0, rest = 0;
        for (int64_t i = 0; i < m; i++) {
            above += v[i] >= tau ? 1 : 0;
            rest += v[i] >= tau ? 0 : v[i];
        }
        const double next = rest / (wanted - above);
        if (!(next < 0.98 * tau) || !(next > 0)) break;
        tau = next;
    }
    return tau;
}

bool ki_newton_sample(double *v, int64_t m, int64_t wanted) {
    double total = 0, passed = 0.5;
    int64_t count = 0;
    for (int64_t i = 0; i < m; i++) {
        total += v[i];
        count += v[i] > 0 ? 1 : 0;
    }
    if (count <= wanted || !(total > 0) || !isfinite(total)) return false;
    const double tau = threshold(v, m, total, (double)wanted);
    for (int64_t i = 0; i < m; i++) {
        passed += fmin(1, v[i] / tau);
        const bool stays = passed >= 1;
        passed -= stays ? 1 : 0;
        v[i] = stays ? fmax(v[i], tau) : 0;
    }
    return true;
}
