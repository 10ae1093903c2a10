/* The densities of Tweedie's distributions. */
#ifndef KI_INFERENCE_TWEEDIE_H
#define KI_INFERENCE_TWEEDIE_H

#include <stdbool.h>

#include "kiln.h"

/* A log-density and its derivatives. */
struct ki_tweedie {
    double value;
    double by_power;      /* at a fixed mean and dispersion */
    double by_dispersion; /* with respect to the dispersion's logarithm */
};

/* Rows on the host, y >= 0; a mean of 0 is taken for the least number above it, and rows of weight 0 count
 * for nothing. */
struct ki_tweedie_rows {
    int64_t m;
    const double *y, *mean, *weights;
};
/* The sums over rows at dispersion / weight, or, counted, weight times the row at the dispersion, on
 * threads, whose number changes no bit. The power is in (1, 2), or above 2, where y > 0 and there are no
 * derivatives; a dispersion of 0 gives no number. */
struct ki_tweedie ki_tweedie_sum(const kiln_device *device, const struct ki_tweedie_rows *rows,
                                 double dispersion, double power, bool counted);

#endif
