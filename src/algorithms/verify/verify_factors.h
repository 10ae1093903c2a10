/* What a factor model says of itself. */
#ifndef KI_VERIFY_FACTORS_H
#define KI_VERIFY_FACTORS_H

#include "algorithms/factor/als.h"

struct ki_factor_claims {
    double mean, l2, alpha;
    bool biases, counted, implicit, means_fixed; /* means_fixed: the penalty leaves the biases out */
};
kiln_status ki_verify_factors(kiln_als_verification *result, const char *call, const kiln_matrix *R,
                              const kiln_matrix *A, const kiln_matrix *B,
                              const struct ki_factor_claims *claims);

#endif
