/* Sums over the pairs of a layout, see kiln_guttman in kiln/ops.h. */
#ifndef KI_OPS_GUTTMAN_H
#define KI_OPS_GUTTMAN_H

#include "core/matrix.h"
#include "kiln/ops.h"
#include "pass/roles.h"

/* In the order of kiln_guttman.sums. */
enum { KI_GUTTMAN_STRESS, KI_GUTTMAN_SQUARES, KI_GUTTMAN_DISTANCES, KI_GUTTMAN_PRODUCTS, KI_GUTTMAN_SUMS };

/* The pairs (i, j), j > i, of the rows i that `place` says: of all, or of a group's member. R, U, sums and
 * points are what these pairs add up to. D and weights have these rows alone. */
struct ki_guttman {
    kiln_guttman on;
    const kiln_matrix *cut; /* D or X, of which the members of a group have rows */
    struct ki_offset place;
};

/* Returns whether guttman_block.cl serves the step (dissimilarities, few dimensions), and its launches;
 * `points`: of the points' stress, in place of R, U and sums. */
bool ki_guttman_in_blocks(const struct ki_guttman *pairs, bool points);
kiln_status ki_guttman_blocks(const struct ki_guttman *pairs, bool points);

#endif
