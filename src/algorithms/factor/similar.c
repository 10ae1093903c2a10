/* Columns that are alike: the cosine of their factors. A bias says how much a column is liked, not by whom,
 * so it does not count. */
#include "algorithms/registry.h"

#include "algorithms/algorithm.h"

static double dot(const double *a, const double *b, int64_t r) {
    double sum = 0;
    for (int64_t k = 0; k < r; k++) sum += a[k] * b[k];
    return sum;
}

static void insert(int64_t *columns, double *scores, int64_t top, int64_t *kept, int64_t column,
                   double score) {
    if (*kept == top && !(score > scores[top - 1])) return;
    int64_t at = *kept < top ? (*kept)++ : top - 1;
    for (; at > 0 && scores[at - 1] < score; at--) {
        scores[at] = scores[at - 1];
        columns[at] = columns[at - 1];
    }
    scores[at] = score;
    columns[at] = column;
}

kiln_status kiln_similar(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                         int64_t column) {
    static const char call[] = "kiln_similar";
    kiln_status status;
    double *b = NULL, mean;
    int64_t kept = 0;
    if (!columns || !scores || !model || top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL, or top is less than 1", call);
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->biases)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s has no factors", call, algorithm->shown.name));
    const struct ki_tensor *B = ki_model_tensor(model, "B");
    const int64_t r = B->cols - algorithm->biases(model, &mean);
    if (column < 0 || column >= B->rows)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: there is no column %lld", call, (long long)column));
    if (!(b = ki_alloc((size_t)(B->rows * B->cols) * sizeof *b)))
        TRY(ki_fail_nomem((size_t)(B->rows * B->cols) * sizeof *b, "the columns' factors"));
    for (int64_t i = 0; i < B->rows * B->cols; i++) b[i] = ki_tensor_value(B, i);
    const double *own = b + column * B->cols, own_square = dot(own, own, r);
    for (int64_t j = 0; j < B->rows; j++) {
        const double *other = b + j * B->cols, squares = own_square * dot(other, other, r);
        if (j != column)
            insert(columns, scores, top, &kept, j, squares > 0 ? dot(own, other, r) / sqrt(squares) : 0);
    }
    for (; kept < top; kept++) {
        columns[kept] = -1;
        scores[kept] = NAN;
    }
done:
    ki_free(b);
    return status;
}
