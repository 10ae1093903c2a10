/* Several classes: what all of them have in common changes no probability.
 *
 *   softmax(eta + s 1) = softmax(eta): intercepts, and without an l1 term a row of W, may be shifted alike
 *
 * An l2 penalty wants the shift of W to be 0, and nothing that of the intercepts. But a step that conjugate
 * gradient takes with a scale for each class has some of it, rounding adds to that, and in f32 the intercepts
 * would run away together until their differences drown. So the mean over the classes is taken off a start
 * and each step: the intercepts of the centred columns add up to 0, whatever the device, the type and the
 * start; without l1 those of X's own columns do, too. With l1 W's rows have their own best shift. */
#include "algorithms/newton/newton_work.h"

/* A mean that is rounding stays: a start that has converged comes back as it is. */
static double rounding(const kiln_matrix *A) {
    return 64 * ki_epsilon(kiln_matrix_type(A));
}

/* b is 1 x k, and is centred on the host. */
static kiln_status center_intercepts(kiln_matrix *b) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t k = kiln_matrix_cols(b);
    double *values = ki_arena_doubles(&arena, k), sum = 0, largest = 0;
    TRY(arena.status);
    TRY(ki_vector_get(values, b));
    for (int64_t c = 0; c < k; c++) sum += values[c], largest = fmax(largest, fabs(values[c]));
    if (!isfinite(sum) || fabs(sum / (double)k) <= rounding(b) * largest) goto done;
    for (int64_t c = 0; c < k; c++) values[c] -= sum / (double)k;
    TRY(ki_vector_set(b, values));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status center_rows(struct ki_newton_work *work, kiln_matrix *w) {
    kiln_status status;
    const int64_t k = work->newton->k;
    const double part = 1 / (double)k;
    struct ki_arena arena = {0};
    double shift, largest = 0, *factors = ki_arena_doubles(&arena, 2 * k);
    TRY(arena.status);
    TRY(ki_newton_furnish(work));
    TRY(kiln_multiply(work->common, part, KILN_PLAIN, w, work->classes, 0, NULL));
    TRY(kiln_norm(&shift, work->common, KILN_NORM_MAX));
    TRY(kiln_norm(factors, w, KILN_NORM_MAX));
    for (int64_t c = 0; c < k; c++) largest = fmax(largest, factors[c]);
    if (!isfinite(shift) || shift <= rounding(w) * largest) goto done;
    for (int64_t c = 0; c < k; c++) factors[c] = 1, factors[k + c] = -1;
    TRY(kiln_combine(w, factors, w, factors + k, work->common));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_newton_center(struct ki_newton_work *work, const struct ki_pair *pair) {
    kiln_status status = KILN_OK;
    if (work->problem.kind != KILN_LOSS_SOFTMAX) return KILN_OK;
    if (!work->l1) TRY(center_rows(work, pair->w));
    if (work->mean) TRY(center_intercepts(pair->b));
done:
    return status;
}
