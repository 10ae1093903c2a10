/* The rows that a preconditioner is formed from: a sample that has the curvature of all,
 *
 *   row i stays with probability p_i = min(1, v_i / tau), and then with v_i / p_i = max(v_i, tau) for its curvature,
 *
 * tau such that about so many stay as are wanted. Rows of much curvature all stay; those that a classifier is sure of, which
 * soon are most, stand for each other. Row i stays where the running sum of p passes a whole number: no random numbers, and
 * neighbours that are alike get their share. */
#include "algorithms/newton/newton_work.h"

/* The tau at which about `wanted` rows are to be expected: it falls from step to step, and stays once no further row is above
 * it. */
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
