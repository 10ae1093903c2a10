/* What the operations on losses share. */
#ifndef KI_LOSS_H
#define KI_LOSS_H

#include "kiln/ops.h"
#include "core/matrix.h"

/* *resolved = the loss with its default link filled in, so that no body sees KILN_LINK_DEFAULT. ERR_ARGUMENT for a kind,
 * family, link or parameter that there is not. */
kiln_status ki_loss_resolve(const char *call, kiln_loss *resolved, const kiln_loss *loss);

/* A function of each row of Eta: kiln_loss_mean, or kiln_loss_deviance if `deviance`. The loss is resolved. */
struct ki_loss_rows {
    kiln_matrix *out;
    const kiln_loss *loss;
    const kiln_matrix *Eta;
    bool deviance;
};

#endif
