/* Factors of half precision: made, copied, freed. */
#include "ops/sampled/half.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "ops/sampled/sddmm.h"
#include "pass/chain.h"

static kiln_status check_new(const char *call, kiln_half *const *half, const kiln_device *device,
                             kiln_half_type type, int64_t rows, int64_t cols) {
    if (!half || !device) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (type != KILN_F16 && type != KILN_BF16)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: type is %d, but must be KILN_F16 or KILN_BF16", call,
                       (int)type);
    if (rows < 0 || rows > INT64_MAX / (8 * KI_SAMPLE_COLUMNS) || cols < 1 || cols > KI_SAMPLE_COLUMNS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: shape %lld x %lld: columns must be from 1 to %d", call,
                       (long long)rows, (long long)cols, KI_SAMPLE_COLUMNS);
    return ki_check_single(call, device);
}

kiln_status kiln_half_dense(kiln_half **half, kiln_device *device, kiln_half_type type, int64_t rows,
                            int64_t cols, const uint16_t *values) {
    static const char call[] = "kiln_half_dense";
    kiln_half *made = NULL;
    float *words = NULL;
    kiln_status status;
    TRY(check_new(call, half, device, type, rows, cols));
    const int64_t numbers = rows * cols, elements = ki_ceil_div(numbers, 2);
    if (numbers > 0 && !values) return ki_fail(KILN_ERR_ARGUMENT, "%s: values is NULL", call);
    made = ki_calloc(sizeof *made);
    words = ki_calloc((size_t)elements * sizeof *words);
    if (!made || !words) TRY(ki_fail_nomem((size_t)elements * sizeof *words, "a factor of half precision"));
    *made = (kiln_half){.type = type, .rows = rows, .cols = cols};
    if (numbers > 0) memcpy(words, values, (size_t)numbers * sizeof *values);
    TRY(kiln_matrix_dense(&made->words, device, KILN_F32, elements, 1, words));
    *half = made;
    made = NULL;
done:
    kiln_half_free(made);
    ki_free(words);
    return status;
}

kiln_status kiln_half_copy(kiln_half **half, kiln_half_type type, const kiln_matrix *A) {
    static const char call[] = "kiln_half_copy";
    void *values = NULL;
    uint16_t *numbers = NULL;
    kiln_status status;
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: A is NULL", call);
    if (A->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: A must be dense", call);
    TRY(check_new(call, half, A->device, type, A->rows, A->cols));
    values = ki_alloc((size_t)(A->nnz * ki_type_bytes(A->type)));
    numbers = ki_alloc((size_t)A->nnz * sizeof *numbers);
    if (!values || !numbers)
        TRY(ki_fail_nomem((size_t)A->nnz * sizeof *numbers, "a factor of half precision"));
    TRY(kiln_matrix_get(values, A));
    for (int64_t i = 0; A->type == KILN_F32 && i < A->nnz; i++)
        numbers[i] = ki_half_of_float(((const float *)values)[i], type);
    for (int64_t i = 0; A->type == KILN_F64 && i < A->nnz; i++)
        numbers[i] = ki_half_of_double(((const double *)values)[i], type);
    TRY(kiln_half_dense(half, A->device, type, A->rows, A->cols, numbers));
done:
    ki_free(values);
    ki_free(numbers);
    return status;
}

void kiln_half_free(kiln_half *half) {
    if (!half) return;
    kiln_matrix_free(half->words);
    ki_free(half);
}
