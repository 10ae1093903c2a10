/* Points at the same place, for SMACOF's majorisation (ops/points/guttman.h). d_ij >= u . (y_i - y_j) for any
 * unit vector u, with equality where both points are at one place: any u majorises there, while none at all
 * would keep two points together that their dissimilarity pushes apart. So the first coordinates of such points
 * count as a hair apart; their distance is 0 all the same. */
#ifndef KI_APART_H
#define KI_APART_H

#ifdef REAL_F64
#define REAL_HAIR 2.983336292480083e-154       /* 2^-510 */
#define REAL_HAIR_SQUARE 1.3350443151043208e-307 /* and 1.5 times its square: rounding may not reach that */
#elif defined(REAL_F32)
#define REAL_HAIR 2.168404344971009e-19f
#define REAL_HAIR_SQUARE 7.052966104933725e-38f

#else /* a CPU body, which has both types */
#define REAL_HAIR ((real)(real_bytes == 8 ? 0x1p-510 : 0x1p-62))
#define REAL_HAIR_SQUARE ((real)(real_bytes == 8 ? 0x1.8p-1020 : 0x1.8p-124))
#endif

#if defined(REAL_F32) || defined(REAL_F64)
DEVICE_FN real apart_in(int dimension, real a, real b) {
    return dimension == 0 && a == b ? REAL_HAIR : a - b;
}
#endif

#endif
