/* Models of two factors share this: als, sfa, gap and lda hold A (rows), B (columns) and a few numbers. */
#ifndef KI_FACTOR_MODEL_H
#define KI_FACTOR_MODEL_H

#include "algorithms/registry.h"

/* A new, checked model of the algorithm: A, B, and the numbers as its tensor "settings". */
kiln_status ki_factor_model(kiln_model **model, const char *algorithm, const kiln_matrix *A,
                            const kiln_matrix *B, const double *settings, int count);
static inline double ki_factor_setting(const kiln_model *model, int i) {
    return ki_tensor_value(ki_model_tensor(model, "settings"), i);
}

/* The model's B for kiln_transform: a new matrix on X's device and of its type. ERR_ARGUMENT unless X is
 * sparse, ERR_MODEL unless it has B's rows as columns, ERR_DATA where an entry is not finite or, of topics,
 * negative. */
kiln_status ki_factor_columns(kiln_matrix **B, const kiln_model *model, const kiln_matrix *X);

#endif
