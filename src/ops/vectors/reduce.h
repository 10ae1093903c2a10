/* Column reductions behind dot and norm: result[c] = sum (or max) over rows r of f(X_rc, Y_rc), in double. */
#ifndef KI_REDUCE_H
#define KI_REDUCE_H

enum ki_reduce_kind {
    KI_REDUCE_DOT = 0,     /* x * y */
    KI_REDUCE_ABS = 1,     /* |x| */
    KI_REDUCE_SQUARES = 2, /* (x * scale)^2: the scale keeps extreme values from overflowing */
    KI_REDUCE_MAX = 3,     /* max |x|, NaN if there is one */
    KI_REDUCE_SUM = 4      /* x */
};

#endif
