/* The normal distribution, as standard errors of coefficients take it. */
#ifndef CLI_NORMAL_H
#define CLI_NORMAL_H

#include <math.h>

static const double NORMAL_95 = 1.959963984540054; /* so many standard errors hold 95 % between them */

/* Of both tails. */
static inline double normal_p(double z) {
    return erfc(fabs(z) / sqrt(2));
}

#endif
