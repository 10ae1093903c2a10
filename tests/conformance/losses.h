/* This header has what the cases of the losses share: problems over kinds, families and links, targets that a
 * loss accepts, and predictors that its link accepts. */
#ifndef CONFORMANCE_LOSSES_H
#define CONFORMANCE_LOSSES_H

#include "shapes.h"

/* The problem's loss; k > 1 columns are softmax whatever its kind. The matrices of loss and host are the
 * operands'. */
struct loss_pair {
    kiln_loss loss;
    struct host_loss host;
};
struct loss_pair loss_of(const struct work *work);
bool loss_is_softmax(const struct problem *problem);

/* Every family with every link that makes sense for it, `thin`: each family and each link once. Calls add for
 * each. */
void loss_each_model(struct problem_list *list, struct problem problem, bool thin);

/* Uniform between low and high, made on the host. */
kiln_status make_between(struct work *work, struct operand *A, int64_t rows, int64_t cols, double low,
                         double high);
/* work->target, and by the problem's flags weights, offset and shift. */
kiln_status make_loss_operands(struct work *work);
/* work->y: coefficients W, so small that every predictor is in the link's range. */
kiln_status make_coefficients(struct work *work);
/* The middle of the predictors that link (and family) accept; 0.4 to either side is fine too. */
double loss_middle(int family, int link);

#endif
