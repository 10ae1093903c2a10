/* The vector work of a truncated Newton step, several operations in one walk over the vectors: beside a pass over X of one
 * gigabyte they cost little, but on a GPU each is a launch and each sum a wait, and there are many in a step.
 *
 * A vector here is a pair: n x k coefficients w and 1 x k intercepts b (NULL without an intercept). The elements'
 * formulas are pair_element's in dialect/real_math.h; the intercepts' have mean = column = 0. */
#ifndef KI_OPS_NEWTON_H
#define KI_OPS_NEWTON_H

#include "kiln.h"

enum ki_pair_op {                       /* numbers as in dialect/real_math.h */
                  KI_PAIR_COMPLETE = 0, /* out += column .* x - mean * out.b;  x . out, x . (column .* x) */
                  KI_PAIR_ADVANCE =
                      1,            /* out += scalar x, second -= scalar y;  second . (inverse .* second) */
                  KI_PAIR_TURN = 2, /* out = inverse .* x + scalar out;  x . (inverse .* x) */
                  KI_PAIR_FACE =
                      3, /* out = the least subgradient of f + |column .* y| where f has the gradient x; second =
                             inverse where y may move, else 0;  out . (inverse .* out), sum |column .* y| */
                  KI_PAIR_PROJECT =
                      4 /* out = x + scalar y, but 0 where that leaves x's orthant, or, for x = 0, the one that the
                             least subgradient `inverse` points away from;  inverse . (out - x), sum |column .* out| */
};

struct ki_pair {
    kiln_matrix *w, *b;
};

struct ki_pairs {
    enum ki_pair_op op;
    struct ki_pair out, second, x, y, inverse;
    const kiln_matrix *mean;   /* n x 1; COMPLETE with an intercept */
    const kiln_matrix *column; /* n x 1; COMPLETE, FACE, PROJECT */
    double scalar;
};

/* Operands must be what the operation names, of matching shapes, on one device. sums, three of them, in double and in a
 * fixed order; NULL where none is wanted. */
kiln_status ki_pairs_run(double *sums, const struct ki_pairs *pairs);

#endif
