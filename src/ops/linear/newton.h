/* The vector work of a truncated Newton step, several operations in one walk over the vectors: beside a
 * pass over X of one gigabyte they cost little, but on a GPU each is a launch and each sum a wait, and
 * there are many in a step.
 *
 * A vector here is a pair: n x k coefficients w and 1 x k intercepts b (NULL without an intercept). The
 * elements' formulas are pair_element's in dialect/real_math.h; the intercepts' have mean = column = 0. */
#ifndef KI_OPS_NEWTON_H
#define KI_OPS_NEWTON_H

#include "kiln/ops.h"

/* Each operation does this; its sums follow the semicolon. Numbers are as in dialect/real_math.h. */
enum ki_pair_op {
    /* out += column .* x - mean * out.b;  x . out, x . (column .* x) */
    KI_PAIR_COMPLETE = 0,
    /* out += scalar x, second -= scalar y;  second . (inverse .* second) */
    KI_PAIR_ADVANCE = 1,
    /* out = inverse .* x + scalar out;  x . (inverse .* x) */
    KI_PAIR_TURN = 2,
    /* out = the least subgradient of f + |column .* y| where f has the gradient x;  out . (inverse .* out)
     * over the free elements, where y or column is not 0 or 0, and over the others, which are fixed */
    KI_PAIR_LEAST = 3,
    /* out = the move from x by scalar y, but only as far as 0 where that would leave the orthant of x, or,
     * for x = 0, of scalar y;  how many would leave, out . (the gradient, in that orthant, of f + |column
     * .* x|, f having `second`) */
    KI_PAIR_REACH = 4,
    /* out += scalar x, second += scalar y;  LEAST's sums at the point `out` with f's gradient `second` */
    KI_PAIR_MOVE = 5,
    /* out = inverse .* (LEAST's out) + scalar out over the free elements of x and y as LEAST's, 0 over the
     * fixed ones */
    KI_PAIR_FACE = 6,
    /* out = x + scalar y;  out . second, sum |column .* out| */
    KI_PAIR_MIX = 7,
    /* out = x, but y where x is no further from it than scalar |x|;  (out - y) . (out - y) */
    KI_PAIR_SETTLE = 8
};

struct ki_pair {
    kiln_matrix *w, *b;
};

struct ki_pairs {
    enum ki_pair_op op;
    struct ki_pair out, second, x, y, inverse;
    const kiln_matrix *mean;   /* n x 1; COMPLETE with an intercept */
    const kiln_matrix *column; /* n x 1; COMPLETE and from LEAST on; NULL counts as zeros */
    double scalar;
};

struct ki_programs;
/* Lists the kernel of an operation on so many numbers in all. */
void ki_pairs_program(struct ki_programs *programs, kiln_type type, int64_t count, enum ki_pair_op op);

/* Operands must be what the operation names, of matching shapes, on one device. sums, three of them, in
 * double and in a fixed order; NULL where none is wanted. */
kiln_status ki_pairs_run(double *sums, const struct ki_pairs *pairs);

/* The threads on which a choice between two ways to the optimum may depend: where the CPU must give the
 * same bits with any number of threads, a fixed number. */
int ki_newton_threads(const kiln_device *device);

/* body(arg, part) for each part in [0, parts) on the host's threads: results must depend on the part
 * alone. */
void ki_newton_parallel(const kiln_device *device, int parts, void (*body)(void *arg, int part), void *arg);

#endif
