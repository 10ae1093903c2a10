/* Log-likelihoods with all their constants, s the weight, phi the dispersion, k = s / phi, d the deviance:
 *   Gaussian          -d / (2 phi) - sum log(2 pi phi / s) / 2
 *   gamma             -d / (2 phi) + sum (k log k - k - log Gamma(k) - log y)
 *   inverse Gaussian  -d / (2 phi) - sum log(2 pi phi y^3 / s) / 2
 *   Tweedie           the sum of tweedie.h's densities at phi / s, of powers in (1, 2); else NaN
 * and, at phi = 1, minus the loss and kiln_loss_deviance's third column for the others. */
#include "algorithms/inference/inference.h"
#include "algorithms/inference/tweedie.h"
#include "ops/linear/families.h"

static double dispersed_constant(kiln_family family, double y, double s, double dispersion) {
    const double log_2_pi = 1.83787706640934548356, k = s / dispersion;
    if (family == KILN_GAMMA) return ki_gamma_constant(k) - log(y);
    const double cube = family == KILN_INVERSE_GAUSSIAN ? 3 * log(y) : 0;
    return -(log_2_pi - log(k) + cube) / 2;
}

/* The sum over rows of log f at the dispersion / s, or, counted, of s log f at the dispersion. */
static double tweedie_sum(const struct ki_inference_rows *rows, const kiln_loss *loss, double dispersion,
                          bool counted) {
    const struct ki_tweedie_rows own = {rows->m, rows->y, rows->mean, rows->weights};
    const double power = loss->parameter;
    if (!(power > 1 && power < 2)) return (double)NAN;
    return ki_tweedie_sum(kiln_matrix_device(loss->y), &own, dispersion, power, counted).value;
}

double ki_tweedie_akaike(const struct ki_inference_rows *rows, const kiln_loss *loss,
                         const struct ki_likelihood *at) {
    return 2 * (at->parameters + 1) - 2 * tweedie_sum(rows, loss, at->deviance / at->weight, true);
}

double ki_log_likelihood(const struct ki_inference_rows *rows, const kiln_loss *loss, double deviance,
                         double dispersion) {
    double sum = 0;
    if (loss->family == KILN_TWEEDIE) return tweedie_sum(rows, loss, dispersion, false);
    const bool dispersed =
        loss->family == KILN_GAUSSIAN || loss->family == KILN_GAMMA || loss->family == KILN_INVERSE_GAUSSIAN;
    if (!dispersed) {
        for (int64_t i = 0; i < rows->m; i++) sum -= rows->D[3 * i + 2];
        return sum - rows->loss;
    }
    for (int64_t i = 0; i < rows->m; i++)
        if (rows->weights[i] > 0)
            sum += dispersed_constant(loss->family, rows->y[i], rows->weights[i], dispersion);
    return sum - deviance / (2 * dispersion);
}
