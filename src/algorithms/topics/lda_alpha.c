/* Newton's method for alpha in linear time: the Hessian is a diagonal and a constant (Minka, "Estimating a
 * Dirichlet distribution", 2000; Blei et al. 2003, appendix A.4.2). A step that would lower the objective,
 * which is concave, is halved. */
#include "algorithms/topics/lda.h"

#include "ops/sampled/gamma.h"

enum { STEPS = 20, HALVINGS = 30 };
#define LEAST 1e-6 /* of alpha */

static double trigamma(double x) {
    double sum = 0;
    while (x < 20) {
        sum += 1 / (x * x);
        x += 1;
    }
    const double z = 1 / (x * x);
    return sum + 1 / x + z / 2 + z / x * (1 / 6.0 - z * (1 / 30.0 - z * (1 / 42.0 - z / 30.0)));
}

static double likelihood(const double *alpha, int64_t k, const double *logs, double m) {
    double sum = 0, value = 0;
    for (int64_t c = 0; c < k; c++) {
        sum += alpha[c];
        value += (alpha[c] - 1) * logs[c] - m * ki_log_gamma(alpha[c]);
    }
    return value + m * ki_log_gamma(sum);
}

/* The largest relative change that was made; 0: none raises the objective. next: work space, 2 k numbers. */
static double step(double *alpha, double *next, int64_t k, const double *logs, double m, double *value) {
    double sum = 0, over = 0, under = 0, *direction = next + k;
    for (int64_t c = 0; c < k; c++) sum += alpha[c];
    const double z = m * trigamma(sum), base = m * ki_digamma(sum);
    for (int64_t c = 0; c < k; c++) {
        const double g = base - m * ki_digamma(alpha[c]) + logs[c], q = -m * trigamma(alpha[c]);
        over += g / q;
        under += 1 / q;
    }
    const double b = over / (1 / z + under);
    for (int64_t c = 0; c < k; c++)
        direction[c] = (base - m * ki_digamma(alpha[c]) + logs[c] - b) / (-m * trigamma(alpha[c]));
    double size = 1;
    for (int halving = 0; halving < HALVINGS; halving++, size /= 2) {
        double change = 0;
        for (int64_t c = 0; c < k; c++) {
            next[c] = fmax(alpha[c] - size * direction[c], LEAST);
            change = fmax(change, fabs(next[c] - alpha[c]) / alpha[c]);
        }
        const double reached = likelihood(next, k, logs, m);
        if (!(reached > *value)) continue;
        memcpy(alpha, next, (size_t)k * sizeof *alpha);
        *value = reached;
        return change;
    }
    return 0;
}

void ki_lda_learn_alpha(double *alpha, double *work, int64_t k, const double *logs, double m) {
    double value = likelihood(alpha, k, logs, m);
    for (int i = 0; i < STEPS && step(alpha, work, k, logs, m, &value) > 1e-6; i++) continue;
}
