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
    const kiln_matrix *cut; /* D or X, of which the members of a group, and panels, have rows */
    struct ki_offset place; /* of `cut` in the rows that begin with row `base` */
    int64_t base;
    /* Rows of an X in a file from row `from` on, which are the pairs' columns; `cut` has their rows. NULL:
     * on.X has all of both. */
    const kiln_matrix *columns;
    int64_t from;
};

/* D's columns [first, first + Z->rows) are the distances of X's rows from Z's. X and Z may lie in a file. */
struct ki_distances {
    kiln_matrix *D;
    const kiln_matrix *X, *Z;
    const kiln_matrix *held; /* Z, where it is in memory */
    int64_t first;
};

/* Returns whether guttman_block.cl serves the step (dissimilarities, few dimensions), and its launches;
 * `points`: of the points' stress, in place of R, U and sums. */
bool ki_guttman_in_blocks(const struct ki_guttman *pairs, bool points);
kiln_status ki_guttman_blocks(const struct ki_guttman *pairs, bool points);

#endif
