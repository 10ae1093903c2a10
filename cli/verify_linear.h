/* Between verify_linear.c (the objective, the gradient, the gap) and verify_metrics.c (what follows from
 * rows). */
#ifndef CLI_VERIFY_LINEAR_H
#define CLI_VERIFY_LINEAR_H

#include "classes.h"
#include "verify.h"

struct claimed_linear {
    const struct classes *classes;
    const kiln_loss *loss; /* with targets, weights (those of classes among them) and offset */
    const kiln_verify_options *penalty;
    const kiln_matrix *W, *b, *sample; /* sample: weights without those of classes; NULL = ones */
    const kiln_verification *found;
};
/* Claims what the model's text "metrics" and its standard errors say. 0 or an exit code. */
int verify_metrics(struct run *run, struct verifying *v, const struct claimed_linear *l);

#endif
