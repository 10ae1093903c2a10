/* kiln mmchain and kiln sddmm: what their options set, and these options. */
#ifndef CLI_PRODUCTS_H
#define CLI_PRODUCTS_H

#include "options.h"

struct mmchain_wanted {
    const char *v, *z;
    double alpha, beta;
};

struct sddmm_wanted {
    const char *kind; /* NULL: product */
    double alpha, floor;
};

enum { MMCHAIN_OPTIONS = 4, SDDMM_OPTIONS = 3 };
extern const struct option mmchain_options[MMCHAIN_OPTIONS], sddmm_options[SDDMM_OPTIONS];

#endif
