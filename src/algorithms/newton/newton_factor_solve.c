/* Solutions by the Newton engine's factor, M^-1 r (newton_factor.c): class by class side by side, what adds
 * up to zero over the classes by the factors and what does not by the penalty. */
#include "algorithms/newton/newton_factor.h"

/* Takes a row's mean over the classes off it. */
static double take_mean(double *row, int64_t k) {
    double mean = 0;
    for (int64_t c = 0; c < k; c++) mean += row[c] / (double)k;
    for (int64_t c = 0; c < k; c++) row[c] -= mean;
    return mean;
}

static void solve_class(void *arg, int c) {
    const struct ki_newton_work *work = arg;
    const struct ki_factor *factor = work->factor;
    const int64_t size = factor->size, k = work->newton->k;
    double *r = factor->column + c * size;
    for (int64_t i = 0; i < size; i++) r[i] = factor->r[i * k + c];
    const double *U = factor->U + c * size * size;
    factor->classes[c].product =
        k > 1 ? ki_substitute_narrow((const float *)U, r, size) : ki_substitute(U, r, size);
    for (int64_t i = 0; i < size; i++) factor->r[i * k + c] = r[i];
}

/* r = M^-1 r; returns their product. */
static double factor_solve(struct ki_newton_work *work) {
    const struct ki_factor *factor = work->factor;
    const struct ki_newton *newton = work->newton;
    const int64_t n = factor->n, size = factor->size, k = newton->k;
    double product = 0, *r = factor->r;
    for (int64_t i = 0; k > 1 && i < size; i++) factor->scale[i] = take_mean(r + i * k, k);
    ki_newton_parallel(kiln_matrix_device(newton->X), (int)k, solve_class, work);
    for (int64_t c = 0; c < k; c++) product += factor->classes[c].product;
    for (int64_t i = 0; k > 1 && i < size; i++) {
        const double penalty = i < n ? ki_newton_penalty_of(newton, i) : 0, mean = factor->scale[i];
        const double part = penalty > 0 ? mean / penalty : 0;
        take_mean(r + i * k, k);
        for (int64_t c = 0; c < k; c++) r[i * k + c] += part;
        product += (double)k * mean * part;
    }
    return product;
}

/* Columns that are left out have no part in it. */
static void factor_leave_out(const struct ki_newton *newton, double *r) {
    const int64_t k = newton->k;
    for (int64_t j = 0; j < kiln_matrix_cols(newton->X); j++) {
        const double diagonal =
            newton->no_intercept ? newton->columns.square[j] : newton->columns.variance[j];
        for (int64_t c = 0; c < k && !(diagonal > 0); c++) r[j * k + c] = 0;
    }
}

void ki_newton_factor_turn(const struct ki_newton_work *work, double *vector) {
    factor_leave_out(work->newton, vector);
    ki_substitute(work->factor->U, vector, work->factor->size);
}

kiln_status ki_newton_solve_factor(struct ki_newton_work *work, double *rho) {
    kiln_status status;
    struct ki_factor *factor = work->factor;
    const struct ki_newton *newton = work->newton;
    const int64_t n = factor->n, k = newton->k;
    TRY(ki_vector_get(factor->r, work->R.w));
    if (work->R.b) TRY(ki_vector_get(factor->r + n * k, work->R.b));
    factor_leave_out(newton, factor->r);
    *rho = work->scale * factor_solve(work);
    for (int64_t i = 0; i < factor->size * k; i++) factor->r[i] *= work->scale;
    if (work->Z.b) TRY(ki_vector_set(work->Z.b, factor->r + n * k));
    TRY(ki_vector_set(work->Z.w, factor->r));
done:
    return status;
}
