/* Log-likelihoods with all their constants, phi the dispersion, d the deviance:
 *   Gaussian, gamma, inverse Gaussian  -d / (2 phi) and the rows' peaks (families.h)
 *   Tweedie                            tweedie.h's densities at phi / s
 * and, at phi = 1, minus half the deviance and kiln_loss_deviance's third column for those without a
 * dispersion. */
#include "algorithms/inference/inference.h"
#include "algorithms/inference/tweedie.h"

/* The sum over rows of log f at the dispersion / s, or, counted, of s log f at the dispersion. */
static double tweedie_sum(const struct ki_inference_rows *rows, const kiln_loss *loss, double dispersion,
                          bool counted) {
    const struct ki_tweedie_rows own = {rows->m, rows->y, rows->mean, rows->weights};
    return ki_tweedie_sum(kiln_matrix_device(loss->y), &own, dispersion, loss->parameter, counted).value;
}

double ki_akaike(const struct ki_inference_rows *rows, const kiln_loss *loss,
                 const struct ki_likelihood *at) {
    const struct ki_family *family = ki_family_find(loss->family);
    if (family->akaike) return family->akaike(at);
    if (loss->family != KILN_TWEEDIE) return NAN;
    return 2 * (at->parameters + 1) - 2 * tweedie_sum(rows, loss, at->deviance / at->weight, true);
}

double ki_log_likelihood(const struct ki_inference_rows *rows, const kiln_loss *loss, double deviance,
                         double dispersion) {
    const struct ki_family *family = ki_family_find(loss->family);
    double sum = 0;
    if (loss->family == KILN_TWEEDIE) return tweedie_sum(rows, loss, dispersion, false);
    if (family->shown.fixed_dispersion) {
        for (int64_t i = 0; i < rows->m; i++) sum -= rows->D[3 * i + 2];
        return sum - deviance / 2;
    }
    if (!family->peak) return NAN;
    for (int64_t i = 0; i < rows->m; i++)
        if (rows->weights[i] > 0) sum += family->peak(rows->y[i], rows->weights[i] / dispersion);
    return sum - deviance / (2 * dispersion);
}
