/* This header has what the rows of the linear models share: their losses (model_loss.c) and predictions
 * (predict_linear.c). */
#ifndef KI_LINEAR_MODEL_H
#define KI_LINEAR_MODEL_H

#include "algorithms/algorithm.h"
#include "algorithms/registry.h"

kiln_status ki_loss_linreg(kiln_loss *loss, const kiln_model *model);
kiln_status ki_loss_logreg(kiln_loss *loss, const kiln_model *model);
kiln_status ki_loss_glm(kiln_loss *loss, const kiln_model *model);
kiln_status ki_loss_svm(kiln_loss *loss, const kiln_model *model);

kiln_status ki_predict_linear(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X); /* X W + b */
kiln_status ki_predict_logreg(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);
kiln_status ki_predict_glm(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);

#endif
