/* Sums over the pairs of a layout, see kiln_guttman in kiln/ops.h. */
#ifndef KI_OPS_GUTTMAN_H
#define KI_OPS_GUTTMAN_H

#include "kiln/ops.h"
#include "core/matrix.h"
#include "kiln/ops.h"

/* In the order of kiln_guttman.sums. */
enum { KI_GUTTMAN_STRESS, KI_GUTTMAN_SQUARES, KI_GUTTMAN_DISTANCES, KI_GUTTMAN_PRODUCTS, KI_GUTTMAN_SUMS };

/* Whether guttman_block.cl serves the step (dissimilarities, few dimensions), and its launches; `points`: of the points' stress, in
 * place of R, U and sums. */
bool ki_guttman_in_blocks(const kiln_guttman *step, bool points);
kiln_status ki_guttman_blocks(const kiln_guttman *step, bool points);

#endif
