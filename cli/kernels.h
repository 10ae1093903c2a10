/* kiln kernels. */
#ifndef CLI_KERNELS_H
#define CLI_KERNELS_H

#include "options.h"

enum { KERNELS_OPTIONS = 3 };
extern const struct option kernels_options[KERNELS_OPTIONS];

#endif
