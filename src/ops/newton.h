/* The vector work of a truncated Newton step, several operations in one walk over the vectors: beside a pass over X of one
 * gigabyte they cost little, but on a GPU each is a launch and each sum a wait, and there are many in a step.
 *
 * A vector here is a pair: n x k coefficients w and 1 x k intercepts b (NULL without an intercept). The elements'
 * formulas are pair_element's in dialect/real_math.h; the intercepts' have mean = column = 0. */
#ifndef KI_OPS_NEWTON_H
#define KI_OPS_NEWTON_H

#include "kiln.h"

/* What an operation does; the sums that it leaves follow the semicolon. Numbers as in dialect/real_math.h. */
enum ki_pair_op {
    /* out += column .* x - mean * out.b;  x . out, x . (column .* x) */
    KI_PAIR_COMPLETE = 0,
    /* out += scalar x, second -= scalar y;  second . (inverse .* second) */
    KI_PAIR_ADVANCE = 1,
    /* out = inverse .* x + scalar out;  x . (inverse .* x) */
    KI_PAIR_TURN = 2,
    /* out = the least subgradient of f + |column .* y| where f has the gradient x;  out . (inverse .* out) */
    KI_PAIR_LEAST = 3,
    /* out = x + scalar y, but x where that would not go against the least subgradient `inverse`, and 0 where it leaves the
     * orthant of x, or, for x = 0, the one that the subgradient points away from;  inverse . (out - x), sum |column .* out| */
    KI_PAIR_PROJECT = 4,
    /* out = x + scalar y;  out . second, out . (inverse .* out) */
    KI_PAIR_MIX = 5
};

struct ki_pair {
    kiln_matrix *w, *b;
};

struct ki_pairs {
    enum ki_pair_op op;
    struct ki_pair out, second, x, y, inverse;
    const kiln_matrix *mean;   /* n x 1; COMPLETE with an intercept */
    const kiln_matrix *column; /* n x 1; COMPLETE, LEAST, PROJECT */
    double scalar;
};

/* Operands must be what the operation names, of matching shapes, on one device. sums, three of them, in double and in a
 * fixed order; NULL where none is wanted. */
kiln_status ki_pairs_run(double *sums, const struct ki_pairs *pairs);

#endif
