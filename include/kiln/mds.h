/* Kiln: multi-dimensional scaling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_MDS_H
#define KILN_MDS_H

#include "kiln/models.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_mds_metric {
    KILN_MDS_RATIO = 1,    /* distances near the dissimilarities themselves */
    KILN_MDS_INTERVAL = 2, /* near a + b delta, a + b delta >= 0 and b >= 0 */
    KILN_MDS_ORDINAL = 3   /* near any values that rise with the dissimilarities (non-metric) */
} kiln_mds_metric;

typedef enum kiln_mds_ties {
    KILN_MDS_PRIMARY = 1,  /* equal dissimilarities may have different disparities */
    KILN_MDS_SECONDARY = 2 /* they have the same one */
} kiln_mds_ties;

typedef enum kiln_mds_init {
    KILN_MDS_TORGERSON = 1, /* classical scaling; of points their principal components */
    KILN_MDS_RANDOM = 2,
    KILN_MDS_GIVEN = 3 /* the layout in Y */
} kiln_mds_init;

typedef struct kiln_mds_options {
    size_t size;            /* see kiln.h */
    kiln_mds_metric metric; /* default ratio */
    kiln_mds_ties ties;     /* ordinal; default primary */
    kiln_mds_init init;     /* of the first start; default Torgerson */
    int dissimilarities; /* X is their matrix; default: X's rows are points, and their distances are meant */
    int64_t restarts;    /* starts in all, the others random; the best layout is kept; default 1 */
    uint64_t seed;       /* of random coordinates; default 0 */
    double tolerance;    /* default 1e-6 f64, 1e-5 f32 */
    int64_t max_iterations; /* of each start; default 1000 */
    const kiln_matrix
        *weights;              /* n x n, symmetric, >= 0; 0: the pair does not count. NULL: all count alike */
    kiln_matrix *point_stress; /* n x 1, f64 or X's type: sum_j w_ij (dhat_ij - d_ij)^2 wanted; or NULL */
    kiln_control control;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_mds_options;

/* Multi-dimensional scaling: a layout Y of n points in p dimensions whose distances d_ij = || y_i - y_j ||
 * come near their dissimilarities delta_ij:
 *   minimise  stress(Y) = sum_{i<j} w_ij (dhat_ij - d_ij)^2,   dhat = delta, or a fit of delta to d (metric)
 *   Y n x p, 1 <= p <= 64; X dense: n points (n x q) or their dissimilarities (n x n, symmetric; NaN:
 *   missing, weight 0; the diagonal is not read). Interval and ordinal disparities are scaled so that sum w
 *   dhat^2 = sum w; ordinal: dissimilarities that differ by 1e-12 of themselves, f32 1e-5, are equal;
 *     those of
 *   points are taken from X in long double, so that each device and kiln_verify_mds have the same order.
 * Stops when an iteration lowers the stress by at most tolerance times itself and falls have come to their
 * end (docs/results.md), or stress_1 is at most tolerance: near a perfect layout it falls by the same share
 * for ever. The stress never rises, and is that of the layout returned. report->objective is the stress,
 * residual its last relative fall, stress_1 if less; figures: "stress"; "stress_1", Kruskal's sqrt(stress /
 * sum w d^2); "setbacks", iterations whose stress rose by more than rounding, 0 or, as one ends its start, 1:
 * such a run has not converged. Any rotation, reflection and shift of a layout is as good; the minimum may be
 * a local one, which restarts help against. Points at the same place part where their disparity is not 0
 * (kiln_guttman_step).
 * Cost: one pass over the pairs an iteration (kiln_guttman_step); with weights up to 30 products with their
 * matrix more. Torgerson's start multiplies up to 40 times by p + 4 columns, and squares a copy of the
 * dissimilarities. The distances of points are kept as a matrix where a quarter of the device's memory holds
 * it, else computed anew in each pass: n is then bounded by time alone. Ordinal scaling sorts all pairs on
 * the host, 50 bytes each, and takes up to 30,000 points. Not converging is not an error. On failure Y,
 * point_stress and the report are untouched.
 * Determinism: as kiln_guttman_step. Errors: ERR_ARGUMENT; ERR_UNSUPPORTED (sparse X); ERR_LIMIT (too many
 * points for ordinal); ERR_DATA (X empty, not square or not symmetric, dissimilarities or weights negative or
 * infinite, no pair that counts, a stress that no double, or of a point no number of point_stress' type,
 * holds); memory and device errors.
 * Source: de Leeuw, Applications of convex analysis to multidimensional scaling, 1977; Borg and Groenen,
 * Modern Multidimensional Scaling, 2nd ed. 2005, chapters 8 and 9; Kruskal, Psychometrika 29 (1964). */
KILN_API kiln_status kiln_mds(kiln_matrix *Y, const kiln_matrix *X, const kiln_mds_options *options,
                              kiln_report *report);

/* A layout's stress again by slow reference code, in long double on the host; of the options metric, ties,
 * dissimilarities and weights count. Cost: for each of two layouts one walk over the pairs, three for
 * interval scaling; ordinal scaling sorts them, 128 bytes each. */
typedef struct kiln_mds_verification {
    size_t size;
    double stress;
    /* how much lower, relative, the stress of the layout after one more iteration is; NaN with weights or
     * where pairs are missing */
    double fall;
    double stress_1; /* sqrt(stress / sum w d^2) */
    /* bounds of what the rounding of X's type may have made of these in training: of stress and stress_1,
     * differences that are no more than rounding; of fall, what it may exceed the fall that training has
     * seen by */
    double stress_rounding, stress_1_rounding, fall_rounding;
} kiln_mds_verification;
/* Shapes as kiln_mds. Errors: ERR_ARGUMENT; ERR_DATA (dissimilarities or weights negative or infinite, points
 * that are not finite); memory and device errors. */
KILN_API kiln_status kiln_verify_mds(kiln_mds_verification *result, const kiln_matrix *Y,
                                     const kiln_matrix *X, const kiln_mds_options *options);

#ifdef __cplusplus
}
#endif
#endif
