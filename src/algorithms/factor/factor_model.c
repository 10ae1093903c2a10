/* This file has what models of two factors share (factor_model.h). */
#include "algorithms/factor/factor_model.h"

#include "algorithms/algorithm.h"
#include "algorithms/factor/entries.h"

kiln_status ki_factor_model(kiln_model **model, const char *algorithm, const kiln_matrix *A,
                            const kiln_matrix *B, const double *settings, int count) {
    kiln_status status;
    kiln_model *made = NULL;
    kiln_matrix *row = NULL;
    TRY(kiln_model_create(&made, algorithm));
    TRY(kiln_matrix_dense(&row, kiln_matrix_device(A), KILN_F64, 1, count, settings));
    TRY(kiln_model_set_tensor(made, "A", A));
    TRY(kiln_model_set_tensor(made, "B", B));
    TRY(kiln_model_set_tensor(made, "settings", row));
    TRY(ki_model_check(made));
    *model = made;
    made = NULL;
done:
    kiln_matrix_free(row);
    kiln_model_free(made);
    return status;
}

kiln_status ki_factor_columns(kiln_matrix **B, const kiln_model *model, const kiln_matrix *X) {
    const int64_t columns = ki_model_tensor(model, "B")->rows;
    if (kiln_matrix_format(X) != KILN_CSR)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_transform: X must be sparse");
    if (kiln_matrix_cols(X) != columns)
        return ki_fail(KILN_ERR_MODEL, "kiln_transform: the model has %lld columns, X has %lld",
                       (long long)columns, (long long)kiln_matrix_cols(X));
    double sum;
    const kiln_status status = ki_entries_sum(&sum, "kiln_transform", X, ki_algorithm_of(model)->topics);
    if (status != KILN_OK) return status;
    return kiln_model_tensor(B, kiln_matrix_device(X), kiln_matrix_type(X), model, "B");
}
