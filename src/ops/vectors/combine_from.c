/* W = a X + b Y with coefficients that lie on the device: what an iteration does with its own norms and
 * products without waiting for them. */
#include "bodies/bodies.h"
#include "core/arguments.h"
#include "core/seams.h"
#include "core/sized.h"
#include "dialect/scalar_math.h"
#include "ops/vectors/combine_from.cl"
#include "pass/combine.h"

KI_ARGUMENTS(combine_from);

static kiln_status check_scalars(const char *call, const char *name, const kiln_matrix *R, int64_t row,
                                 const kiln_matrix *W) {
    if (!R) return KILN_OK;
    const kiln_status status = ki_check_wide(call, name, R, W, R->rows, W->cols);
    if (status != KILN_OK) return status;
    if (row < 0 || row >= R->rows)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the row is %lld, but %s has %lld", call, (long long)row, name,
                       (long long)R->rows);
    return R == W ? ki_fail(KILN_ERR_ARGUMENT, "%s: %s must not be W", call, name) : KILN_OK;
}

/* NULL stands for ones. */
static kiln_status take_ratio(kiln_ratio *own, const char *call, const kiln_ratio *given,
                              const kiln_matrix *W) {
    kiln_status status;
    TRY(KI_TAKE(kiln_ratio, own, given));
    if (own->factor == 0) own->factor = 1;
    if (!isfinite(own->factor)) TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: a factor is not finite", call));
    TRY(check_scalars(call, "what lies over", own->over, own->over_row, W));
    TRY(check_scalars(call, "what lies under", own->under, own->under_row, W));
done:
    return status;
}

static void on_host(double *out, const kiln_ratio *ratio, int64_t k) {
    const double *over =
                     ratio->over ? (const double *)ki_host(&ratio->over->values) + ratio->over_row * k : NULL,
                 *under = ratio->under ? (const double *)ki_host(&ratio->under->values) + ratio->under_row * k
                                       : NULL;
    for (int64_t c = 0; c < k; c++)
        out[c] = ratio_value(ratio->factor, over ? over[c] : 1, under ? under[c] : 1);
}

static kiln_status combine_cpu(kiln_matrix *W, const kiln_ratio *a, const kiln_matrix *X, const kiln_ratio *b,
                               const kiln_matrix *Y) {
    const int64_t k = W->cols;
    const size_t bytes = (size_t)(2 * k) * sizeof(double);
    double *each = ki_alloc(bytes);
    if (!each) return ki_fail_nomem(bytes, "coefficients");
    on_host(each, a, k);
    on_host(each + k, b, k);
    const kiln_status status = ki_combine(W, each, X, each + k, Y);
    ki_free(each);
    return status;
}

static kiln_status combine_gpu(kiln_matrix *W, const kiln_ratio *a, const kiln_matrix *X, const kiln_ratio *b,
                               const kiln_matrix *Y) {
    const int64_t k = W->cols;
    return ki_launch_elements(
        W, W->nnz, "combine_from", "combine_from", "",
        KI_PACK(combine_from, W, .W = W, .X = X, .Y = Y, .a_over = a->over, .a_under = a->under,
                .b_over = b->over, .b_under = b->under, .count = W->nnz, .a_over_at = a->over_row * k,
                .a_under_at = a->under_row * k, .b_over_at = b->over_row * k, .b_under_at = b->under_row * k,
                .k = (int32_t)k, .x_share = X->cols == 1 ? (int32_t)k : 1,
                .y_share = Y && Y->cols == 1 ? (int32_t)k : 1, .a = a->factor, .b = b->factor));
}

kiln_status kiln_combine_from(kiln_matrix *W, const kiln_ratio *a, const kiln_matrix *X, const kiln_ratio *b,
                              const kiln_matrix *Y) {
    static const char call[] = "kiln_combine_from";
    kiln_ratio own_a, own_b = {.factor = 1};
    kiln_status status;
    if (!W) return ki_fail(KILN_ERR_ARGUMENT, "%s: W is NULL", call);
    TRY(ki_check_dense(call, "W", W, W, W->rows, W->cols));
    TRY(ki_check_dense(call, "X", X, W, W->rows, X && X->cols == 1 ? 1 : W->cols));
    if (Y) TRY(ki_check_dense(call, "Y", Y, W, W->rows, Y->cols == 1 ? 1 : W->cols));
    TRY(take_ratio(&own_a, call, a, W));
    if (Y) TRY(take_ratio(&own_b, call, b, W));
    if (W->nnz == 0) return KILN_OK;
    if (!own_a.over && !own_a.under && !own_b.over && !own_b.under)
        return ki_combine_all(W, own_a.factor, X, own_b.factor, Y);
    TRY(ki_on_cpu(W->device) ? combine_cpu(W, &own_a, X, &own_b, Y) : combine_gpu(W, &own_a, X, &own_b, Y));
done:
    return status;
}
