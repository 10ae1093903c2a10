/* Sums over the pairs of a layout, see kiln_guttman in kiln/ops.h. */
#ifndef KI_OPS_GUTTMAN_H
#define KI_OPS_GUTTMAN_H

#include "kiln/ops.h"
#include "core/matrix.h"

/* In the order of kiln_guttman.sums. */
enum { KI_GUTTMAN_STRESS, KI_GUTTMAN_SQUARES, KI_GUTTMAN_DISTANCES, KI_GUTTMAN_PRODUCTS, KI_GUTTMAN_SUMS };

#endif
