/* Points at the same place, for SMACOF's majorisation (ops/points/guttman.h). d_ij >= u . (y_i - y_j) for any
 * unit vector u, with equality where both points are at one place: any u majorises there, while none at all
 * would keep two points together that their dissimilarity pushes apart. So of a distance below the root of
 * the least normal number, which is divided by that root, and in the first dimension as much is added to all
 * differences: it is the unit vector of such points, and no more than rounding to others. */
#ifndef KI_APART_H
#define KI_APART_H

#ifdef REAL_F64
#define REAL_HAIR 1.4916681462400413e-154 /* 2^-511 */
#else
#define REAL_HAIR 1.0842021724855044e-19f /* 2^-63 */
#endif

/* A difference in that dimension, as forces take it. */
#define APART_IN(dimension, apart) ((dimension) == 0 ? (apart) + REAL_HAIR : (apart))

#endif
