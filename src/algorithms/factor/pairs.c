/* Predictions for single cells: a row of the model's and a column of the model's. */
#include "algorithms/algorithm.h"
#include "algorithms/registry.h"

static kiln_status take(double **values, const struct ki_tensor *tensor) {
    const int64_t count = tensor->rows * tensor->cols;
    if (!(*values = ki_alloc((size_t)count * sizeof **values)))
        return ki_fail_nomem((size_t)count * sizeof **values, "the factors");
    for (int64_t i = 0; i < count; i++) (*values)[i] = ki_tensor_value(tensor, i);
    return KILN_OK;
}

kiln_status kiln_predict_pairs(double *predictions, const kiln_model *model, int64_t count,
                               const int64_t *rows, const int64_t *columns) {
    static const char call[] = "kiln_predict_pairs";
    kiln_status status;
    double *a = NULL, *b = NULL, mean = 0;
    if (!model || count < 0 || (count > 0 && (!predictions || !rows || !columns)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->biases)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s has no factors", call, algorithm->shown.name));
    const struct ki_tensor *A = ki_model_tensor(model, "A"), *B = ki_model_tensor(model, "B");
    const bool biases = algorithm->biases(model, &mean);
    const int64_t r = B->cols;
    TRY(take(&a, A));
    TRY(take(&b, B));
    for (int64_t p = 0; p < count; p++) {
        if (rows[p] < 0 || rows[p] >= A->rows || columns[p] < 0 || columns[p] >= B->rows)
            TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: there is no row %lld or no column %lld", call,
                        (long long)rows[p], (long long)columns[p]));
        const double *x = a + rows[p] * r, *y = b + columns[p] * r;
        double sum = biases ? mean + x[r - 1] + y[r - 1] : 0;
        for (int64_t k = 0; k < r - biases; k++) sum += x[k] * y[k];
        predictions[p] = sum;
    }
done:
    ki_free(a);
    ki_free(b);
    return status;
}
