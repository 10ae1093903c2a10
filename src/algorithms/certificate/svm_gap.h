/* The duality gap of support vector machines. */
#ifndef KI_SVM_GAP_H
#define KI_SVM_GAP_H

#include "algorithms/newton/newton.h"

struct ki_svm_gap {
    bool regression;
    double epsilon;
    /* sums over the problems so far: of the duals' objectives, NaN where an unpenalised column leaves
     * none; and of what rounding may have made of these and of the primals' */
    double dual, rounding;
    double primal; /* of the rounding, the primals' */
};

/* Adds those of the problem that the engine has just solved: target m x 1 as the loss sees it, and the
 * objective alone. */
kiln_status ki_svm_gap_add(struct ki_svm_gap *gap, struct ki_newton *newton, const kiln_matrix *target,
                           double objective);

#endif
