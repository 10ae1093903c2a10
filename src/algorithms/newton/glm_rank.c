/* How many columns of X do not depend on others, without their Gram matrix: the dimensions of X's null space are missing.
 *
 * Z random, W the least-squares solution of X W = X Z to which conjugate gradient comes from zero: the part of Z in the space that X's
 * rows span. Z - W is the other part, random in the null space, and k columns of it span that space if it has fewer
 * than k dimensions. In units of the columns' spreads the squares of its singular values are then about k, and what
 * rounding and the tolerance leave of the other directions is far below: where it is not, nothing is told. */
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

static kiln_status rank_new(struct rank *of) {
    const struct ki_newton *newton = &of->glm->newton;
    const struct ki_columns *columns = &newton->columns;
    const bool centred = !newton->no_intercept;
    of->spread = ki_alloc((size_t)of->n * sizeof(double));
    if (!of->spread) return ki_fail_nomem((size_t)of->n * sizeof(double), "the columns' spreads");
    for (int64_t j = 0; j < of->n; j++)
        of->spread[j] = sqrt(centred ? columns->variance[j] * columns->weight : columns->square[j]);
    return KILN_OK;
}

static kiln_status make_room(struct rank *of, int64_t k) {
    const size_t bytes = (size_t)(of->n * k) * sizeof(double);
    ki_free(of->Z);
    ki_free(of->W);
    of->Z = ki_alloc(bytes);
    of->W = ki_alloc(bytes);
    return of->Z && of->W ? KILN_OK : ki_fail_nomem(2 * bytes, "random vectors");
}

static void rank_free(struct rank *of) {
    ki_free(of->spread);
    ki_free(of->Z);
    ki_free(of->W);
}

/* Z and the solution W, n x k. */
static kiln_status solve(struct rank *of, int64_t k) {
    kiln_status status;
    const struct ki_newton *newton = &of->glm->newton;
    const kiln_matrix *X = newton->X;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const kiln_linreg_options options = {.no_intercept = newton->no_intercept,
                                         .weights = newton->weights,
                                         .max_iterations = ki_max(ITERATIONS, newton->report.passes),
                                         .control = newton->control,
                                         .solver = KILN_LINREG_CG};
    kiln_report report = {.size = sizeof report};
    kiln_matrix *Z = NULL, *y = NULL, *W = NULL, *b = NULL;
    TRY(make_room(of, k));
    TRY(kiln_matrix_dense(&Z, device, type, of->n, k, NULL));
    TRY(kiln_matrix_dense(&W, device, type, of->n, k, NULL));
    TRY(kiln_matrix_dense(&b, device, type, 1, k, NULL));
    TRY(kiln_matrix_dense(&y, device, type, kiln_matrix_rows(X), k, NULL));
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
    of->glm->newton.report.passes += report.passes + 1;
done:
    kiln_report_free(&report);
    kiln_matrix_free(Z);
    kiln_matrix_free(y);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    return status;
}

/* The rank of Z - W; -1 where its singular values do not say it. */
static int64_t count_dimensions(const struct rank *of, int64_t k) {
    const double surely = 1e-3, hardly = 1e-6;
    double A[MANY * MANY] = {0}, Q[MANY * MANY];
    int64_t count = 0;
    for (int64_t j = 0; j < of->n; j++) {
        double row[MANY];
        for (int64_t c = 0; c < k; c++) row[c] = of->spread[j] * (of->Z[j * k + c] - of->W[j * k + c]);
        for (int64_t c = 0; c < k; c++)
            for (int64_t d = 0; d < k; d++) A[c * k + d] += row[c] * row[d];
    }
    ki_eigen(A, Q, k);
    for (int64_t c = 0; c < k; c++) {
        if (!(A[c * k + c] >= surely || A[c * k + c] <= hardly)) return -1;
        count += A[c * k + c] >= surely;
    }
    return count;
}

/* Whether vectors of k columns take no more than a quarter of the device's memory. */
static bool has_room(const struct rank *of, int64_t k) {
    enum { VECTORS = 8 };
    kiln_device_info info = {0};
    const double length = (double)of->n + (double)kiln_matrix_rows(of->glm->X);
    return kiln_device_get_info(kiln_matrix_device(of->glm->X), &info) == KILN_OK &&
           VECTORS * sizeof(double) * (double)k * length <= 0.25 * (double)info.memory;
}

kiln_status ki_glm_rank(struct ki_parameters *parameters, struct ki_glm *glm) {
    kiln_status status;
    struct rank of = {.glm = glm, .n = kiln_matrix_cols(glm->X)};
    TRY(rank_new(&of));
    int64_t most = !glm->options->no_intercept;
    for (int64_t j = 0; j < of.n; j++) most += of.spread[j] > 0;
    *parameters = (struct ki_parameters){(int64_t)fmin((double)most, glm->rows), KI_AT_MOST};
    for (int64_t k = FEW; k <= MANY && (double)most < glm->rows && has_room(&of, k); k *= MANY / FEW) {
        TRY(solve(&of, k));
        const int64_t missing = of.found ? count_dimensions(&of, k) : -1;
        if (missing == k) continue; /* and perhaps more */
        if (missing >= 0) *parameters = (struct ki_parameters){most - missing, KI_COUNTED};
        break;
    }
    if (of.cancelled) parameters->how = KI_UNCOUNTED;
done:
    rank_free(&of);
    return status;
}
