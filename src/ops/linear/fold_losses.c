/* One fused pass, whose map is that of one loss, or of one curvature, for each of several columns. */
#include "ops/linear/fold_losses.h"

#include "ops/linear/families.h"
#include "pass/chain.h"
#include "pass/group.h"

bool ki_fold_losses_apply(const kiln_matrix *X) {
    return ki_on_cpu(X->device) && !ki_is_split(X) && !X->here && !X->streams;
}

kiln_status ki_fold_losses(const struct ki_fold_losses *of) {
    kiln_status status;
    struct ki_chain chain = {.kind = KI_CHAIN_FUSED,
                             .map = KI_ROW_FOLD_LOSSES,
                             .out = of->G,
                             .alpha = 1,
                             .X = of->X,
                             .y = of->W,
                             .v = of->fold,
                             .k = (int)of->W->cols,
                             .folds = of->folds,
                             .curvature = of->C,
                             .shift = of->b,
                             .sums = of->gb,
                             .products = of->values};
    TRY(ki_loss_resolve("ki_fold_losses", &chain.loss, of->loss));
    TRY(ki_chain_run(&chain));
done:
    return status;
}

kiln_status ki_fold_products(const struct ki_fold_products *of) {
    return ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                           .map = KI_ROW_SCALE,
                                           .out = of->G,
                                           .alpha = 1,
                                           .X = of->X,
                                           .y = of->P,
                                           .v = of->C,
                                           .k = (int)of->P->cols,
                                           .shift = of->b,
                                           .sums = of->gb});
}
