/* This file computes how many columns of X do not depend on others, without their Gram matrix: the dimensions
 * of X's null space are missing.
 *
 * Z random, W the least-squares solution of X W = X Z to which conjugate gradient comes from zero: the part
 * of Z in the space that X's rows span. Z - W is the other part, random in the null space, and k columns of
 * it span that space if it has fewer than k dimensions. In units of the columns' spreads the squares of its
 * singular values are then about k, and what rounding and the tolerance leave of the other directions is far
 * below: where it is not, nothing is told. */
#include "algorithms/eigen.h"
#include "algorithms/newton/glm.h"

enum { FEW = 8, MANY = 32, ITERATIONS = 200, RANK_SEED = 19360611 };

struct rank {
    struct ki_glm *glm;
    int64_t n;
    double *spread; /* of each column, 0 for one without */
    double *Z, *W;  /* n x k */
    bool found;     /* W, in as many passes as the fit took */
    bool cancelled;
};

/* Z and the solution W, n x k. */
static kiln_status rank_solve(struct rank *of, int64_t k) {
    kiln_status status;
    struct ki_run *run = &of->glm->newton.run;
    const struct ki_newton *newton = &of->glm->newton;
    const kiln_matrix *X = newton->X;
    const kiln_linreg_options options = {.no_intercept = newton->no_intercept,
                                         .weights = newton->weights,
                                         .max_iterations = ki_max(ITERATIONS, run->report.passes),
                                         .control = ki_checkpoint_apart(run->control),
                                         .solver = KILN_LINREG_CG};
    kiln_report report = {.size = sizeof report};
    struct ki_arena arena = {0};
    kiln_matrix *Z = ki_arena_model(&arena, X, of->n, k), *W = ki_arena_model(&arena, X, of->n, k),
                *b = ki_arena_model(&arena, X, 1, k), *y = ki_arena_rows(&arena, X, k);
    TRY(arena.status);
    TRY(kiln_fill_random(Z, KILN_NORMAL, RANK_SEED, (uint64_t)k));
    TRY(ki_vector_get(of->Z, Z));
    for (int64_t i = 0; i < of->n * k; i++)
        of->Z[i] = of->spread[i / k] > 0 ? of->Z[i] / of->spread[i / k] : 0;
    memcpy(of->W, of->Z, (size_t)(of->n * k) * sizeof(double));
    TRY(ki_vector_set(Z, of->W));
    TRY(kiln_multiply(y, 1, KILN_PLAIN, X, Z, 0, NULL));
    TRY(kiln_linreg(W, b, X, y, &options, &report));
    TRY(ki_vector_get(of->W, W));
    of->found = report.converged;
    of->cancelled = report.stopped_by == KILN_STOP_CANCELLED;
    run->report.passes += report.passes + 1;
done:
    kiln_report_free(&report);
    return ki_arena_free(&arena, status);
}

/* *count = the rank of Z - W; -1 where its singular values do not say it. */
static kiln_status count_dimensions(int64_t *count, const struct rank *of, int64_t k) {
    const double surely = 1e-3, hardly = 1e-6;
    double A[MANY * MANY] = {0}, squares[MANY];
    kiln_status status;
    for (int64_t j = 0; j < of->n; j++) {
        double row[MANY];
        for (int64_t c = 0; c < k; c++) row[c] = of->spread[j] * (of->Z[j * k + c] - of->W[j * k + c]);
        for (int64_t c = 0; c < k; c++)
            for (int64_t d = 0; d < k; d++) A[c * k + d] += row[c] * row[d];
    }
    TRY(ki_eigen(squares, NULL, 0, A, k, NULL));
    *count = 0;
    for (int64_t c = 0; c < k && *count >= 0; c++)
        *count = squares[c] >= surely ? *count + 1 : squares[c] <= hardly ? *count : -1;
done:
    return status;
}

/* Returns whether vectors of k columns take no more than a quarter of the device's memory. */
static bool rank_has_room(const struct rank *of, int64_t k) {
    enum { VECTORS = 8 };
    kiln_device_info info = {0};
    const double length = (double)of->n + (double)kiln_matrix_rows(of->glm->X);
    return kiln_device_get_info(kiln_matrix_device(of->glm->X), &info) == KILN_OK &&
           VECTORS * sizeof(double) * (double)k * length <= 0.25 * (double)info.memory;
}

kiln_status ki_glm_rank(struct ki_parameters *parameters, struct ki_glm *glm) {
    kiln_status status;
    const struct ki_newton *newton = &glm->newton;
    const struct ki_columns *columns = &newton->columns;
    struct ki_arena arena = {0};
    struct rank of = {.glm = glm, .n = kiln_matrix_cols(glm->X)};
    of.spread = ki_arena_doubles(&arena, of.n);
    TRY(arena.status);
    for (int64_t j = 0; j < of.n; j++)
        of.spread[j] =
            sqrt(newton->no_intercept ? columns->square[j] : columns->variance[j] * columns->weight);
    int64_t most = !glm->options->no_intercept;
    for (int64_t j = 0; j < of.n; j++) most += of.spread[j] > 0;
    *parameters = (struct ki_parameters){(int64_t)fmin((double)most, glm->rows), KI_AT_MOST};
    for (int64_t k = FEW; k <= MANY && (double)most < glm->rows && rank_has_room(&of, k); k *= MANY / FEW) {
        of.Z = ki_arena_doubles(&arena, of.n * k);
        of.W = ki_arena_doubles(&arena, of.n * k);
        TRY(arena.status);
        TRY(rank_solve(&of, k));
        int64_t missing = -1;
        if (of.found) TRY(count_dimensions(&missing, &of, k));
        if (missing == k) continue; /* and perhaps more */
        if (missing >= 0) *parameters = (struct ki_parameters){most - missing, KI_COUNTED};
        break;
    }
    if (of.cancelled) parameters->how = KI_UNCOUNTED;
done:
    return ki_arena_free(&arena, status);
}
