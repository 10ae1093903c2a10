/* Scalar formulas over `real`, shared by CPU bodies and GPU kernels like scalar_math.h; included once per
 * element type, with FN(name) making the name of its own for the type. GPU kernels have one type. */
#include "dialect/scalar_math.h"

/* W_ij = f(X_ij): kiln_map_kind of kiln.h. */
SCALAR_FN real FN(map_value)(real x, int kind) {
    switch (kind) {
    case 1: return x < 0 ? -x : x + 0;
    case 2: return x * x;
    case 3: return (real)sqrt(x);
    case 4: return x == 0 ? (real)0 : (real)1 / x;
    case 6: return (real)log(x);
    default: return (real)exp(x);
    }
}

/* The index-th uniform number in [0, 1): the top 53 (f64) or 24 (f32) bits of Philox output. */
SCALAR_FN real FN(random_uniform)(uint64 seed, uint64 stream, uint64 index) {
    uint32 w[4];
    philox(w, seed, stream, index);
    if (sizeof(real) == 4) return (real)(w[0] >> 8) * (real)5.9604644775390625e-8;     /* 2^-24 */
    return (real)((((uint64)w[0] << 32) | w[1]) >> 11) * (real)1.1102230246251565e-16; /* 2^-53 */
}

/* The sum of twelve uniforms of 16 bits, minus 6: mean 0, variance 1, exact arithmetic and so the same bits
 * everywhere. */
SCALAR_FN real FN(random_normal)(uint64 seed, uint64 stream, uint64 index) {
    uint32 w[8];
    philox(w, seed, stream, 2 * index);
    philox(w + 4, seed, stream, 2 * index + 1);
    uint32 sum = 0;
    for (int i = 0; i < 6; i++) sum += (w[i] & 0xffffu) + (w[i] >> 16);
    /* (sum + 6) / 65536 - 6 as one integer difference, exact in either type. */
    return (real)((int)sum + 6 - 6 * 65536) * (real)1.52587890625e-5; /* 2^-16 */
}

/* One element of ops/linear/newton.h's vector work; op is a constant wherever this is inlined. */
SCALAR_FN void FN(pair_element)(int op, real *out, real *second, real x, real y, real inverse, real shift,
                                real column, real scalar, wide *sums) {
    if (op == 0) {
        *out += column * x - shift;
        sums[0] += (wide)x * (wide)*out;
        sums[1] += (wide)x * (wide)x * (wide)column;
    } else if (op == 1) {
        *out += scalar * x;
        *second -= scalar * y;
        sums[0] += (wide)*second * (wide)inverse * (wide)*second;
    } else if (op == 2) {
        *out = inverse * x + (scalar != 0 ? scalar * *out : (real)0);
        sums[0] += (wide)x * (wide)inverse * (wide)x;
    } else if (op == 3) {
        real v = x > column ? x - column : (x < -column ? x + column : (real)0);
        if (y != 0) v = y > 0 ? x + column : x - column;
        *out = v;
        sums[y != 0 || column == 0 ? 0 : 1] += (wide)v * (wide)inverse * (wide)v;
    } else if (op == 4) {
        const real step = scalar * y, moved = x + step, orthant = x != 0 ? x : step;
        const real slope = *second + (orthant > 0 ? column : -column);
        const int leaves = column > 0 && orthant != 0 && !(orthant > 0 ? moved > 0 : moved < 0);
        *out = leaves ? -x : step;
        sums[0] += (wide)leaves;
        sums[1] += (wide)(orthant != 0 ? slope : *second) * (wide)*out;
    } else if (op == 5) {
        *out += scalar * x;
        *second += scalar * y;
        const real r = *second;
        real v = r > column ? r - column : (r < -column ? r + column : (real)0);
        if (*out != 0) v = *out > 0 ? r + column : r - column;
        sums[*out != 0 || column == 0 ? 0 : 1] += (wide)v * (wide)inverse * (wide)v;
    } else if (op == 6) {
        const real v = y > 0 ? x + column : (y < 0 ? x - column : x);
        *out = y != 0 || column == 0 ? inverse * v + (scalar != 0 ? scalar * *out : (real)0) : (real)0;
    } else if (op == 7) {
        *out = x + (scalar != 0 ? scalar * y : (real)0);
        sums[0] += (wide)*out * (wide)*second;
        sums[1] += (wide)column * (wide)(*out < 0 ? -*out : *out);
    } else {
        const wide move = (wide)x - (wide)y, size = x < 0 ? -(wide)x : (wide)x;
        const bool settled = (move < 0 ? -move : move) <= (wide)scalar * size;
        *out = settled ? y : x;
        sums[0] += settled ? (wide)0 : move * move;
    }
}

/* The formulas of ops/linear/scales.h for one column, in `wide`, as differences cancel. */

SCALAR_FN void FN(column_measure)(real *square, real *mean, real *centred, real c, wide weight, wide doubted,
                                  wide flat, wide *sums) {
    const wide about_c = (wide)*square, shift = (wide)*mean / weight,
               about = about_c - weight * shift * shift, level = (wide)c + shift,
               about_zero = weight * level * level, whole = (about > 0 ? about : (wide)0) + about_zero;
    const real q = (real)whole, m = (real)level, size = m < 0 ? -m : m, far = c < 0 ? -c : c;
    const real inverse =
        q > 0 ? (weight > 1 ? (real)weight : (real)1) / q : (real)0; /* of a square, at least */
    const bool told =
        size > (real)1e-6 * far || about > doubted * about_c; /* else c is off, and all is rounding */
    const bool lost = told && (q > 0 ? inverse - inverse != 0 : size > 0); /* to underflow */
    *square = q;
    *mean = told ? m : (real)0; /* what is left of c is no better a start */
    const bool varies = about > flat * about_zero,
               counts_as_constant =
                   !varies && about > doubted * about_c; /* else it is constant, or rounding */
    *centred = varies ? (real)about : (counts_as_constant ? (real)-about : (real)0);
    if (!(q - q == 0 && m - m == 0 && about - about == 0) || lost) sums[0] += 1;
    if (about_c > 0 && about <= doubted * about_c) sums[1] += 1;
    if (counts_as_constant) sums[2] += 1;
}

/* Divided by 1 + l2, so that f32 has room for it. */
SCALAR_FN real FN(column_weigh)(real square, real centred, real *penalty, wide weight, wide l2, int intercept,
                                int standardize, int plain) {
    const real diagonal = intercept ? centred : square;
    *penalty = (real)(standardize ? l2 * (wide)centred / weight : l2);
    if (!(diagonal > 0)) return (real)0;
    if (*penalty - *penalty != 0) return *penalty; /* infinite: column_invert finds it */
    if (plain) return !standardize ? (real)1 : centred > 0 ? centred : square;
    return (real)(((wide)diagonal + (wide)*penalty) / (1 + l2));
}

SCALAR_FN real FN(column_invert)(real square, real inverse, wide *sums) {
    const real inverted = inverse > 0 ? (real)(1 / (wide)inverse) : (real)0;
    sums[0] += (wide)inverted * (wide)square;
    if (!(inverse > 0) && square > 0) sums[1] += 1;
    if (inverse > 0 && !(inverted > 0 && inverted - inverted == 0)) sums[2] += 1;
    return inverted;
}

/* Sampled products, kiln_sample_kind of kiln.h: what becomes of an entry s and the product d at its place,
 * and its part of the sum. A NaN passes through the floor. 0: the entry itself. Of implicit ratings, whose
 * confidence is 1 + least |s|, 5 is what the entry wants beyond what is wanted of every cell, less its
 * part of the product; 6 that part alone (kiln_factor_rows). 7 and 8 are these of a confidence least |s|. */
SCALAR_FN real FN(sample_value)(int kind, real s, real d, real least) {
    const real size = least * (s < 0 ? -s : s), seen = kind > 6 ? size - 1 : size;
    switch (kind) {
    case 0: return s;
    case 1: return d;
    case 2: return s * d;
    case 3: return s == 0 ? (real)0 : s / (d < least ? least : d);
    case 5: return (s > 0 ? 1 + size : (real)0) - seen * d;
    case 7: return (s > 0 ? size : (real)0) - seen * d;
    case 6:
    case 8: return seen * d;
    default: return s - d;
    }
}

SCALAR_FN wide FN(sample_part)(int kind, real s, real d, real least) {
    const wide size = (wide)least * (wide)(s < 0 ? -s : s), off = (wide)(s > 0) - (wide)d;
    switch (kind) {
    case 1: return (wide)d * (wide)d;
    case 2: return (wide)s * (wide)d * (wide)d;
    case 3: return s == 0 ? (wide)0 : (wide)s * (wide)(real)log(d < least ? least : d);
    case 5: return (1 + size) * off * off - (wide)d * (wide)d;
    case 7: return size * off * off - (wide)d * (wide)d;
    default: return (wide)(s - d) * (wide)(s - d);
    }
}
