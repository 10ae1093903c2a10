/* Kernels built before they are needed: on a machine that has kept none, what training a linear model begins
 * with is built side by side, which takes as long as the longest of them, and not as long as all together. */
#ifndef KI_OPS_AHEAD_H
#define KI_OPS_AHEAD_H

#include <stdbool.h>

#include "kiln/ops.h"

/* Holds what is trained on X: by Newton's method, a loss of two classes or a glm, or least squares. */
struct ki_ahead {
    const kiln_matrix *X;
    bool newton, labels; /* labels: y is looked at for two classes */
    kiln_loss loss;      /* its kind, family and link */
    bool gram;           /* least squares: by a factor of the normal equations, else by conjugate gradient */
    bool weighted;       /* with it: rows have weights */
    int64_t targets;     /* least squares: columns of y */
};

/* Builds, or takes from the disk cache, what X's device lacks of these kernels; nothing on the CPU. A kernel
 * that is not foreseen is built when it is asked for, and so is one that the compiler refuses, which then
 * says why. */
kiln_status ki_linear_ahead(const struct ki_ahead *ahead);

#endif
