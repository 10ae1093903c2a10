/* The means that sfa takes off, what a model of it holds, and factors of new rows: their mean, then one exact
 * solve. */
#include "algorithms/factor/sfa.h"

#include "algorithms/factor/entries.h"
#include "algorithms/factor/factor_model.h"
#include "algorithms/factor/seen.h"

enum { MEAN, L2, DAMPING, SETTINGS };

/* -------------------------------------------------------------------------------------------- means */

/* Holds R - mean and ones at R's entries. */
struct entries {
    kiln_matrix *E, *N;
};

static kiln_status take_mean(struct entries *entries, struct ki_arena *arena, const kiln_matrix *R,
                             double mean) {
    kiln_status status;
    TRY(ki_arena_take(arena, &entries->E, ki_entries_centred(&entries->E, R, mean, NULL, NULL)));
    TRY(ki_arena_take(arena, &entries->N, kiln_matrix_like(&entries->N, R, KILN_TYPE_DEFAULT, NULL)));
done:
    return status;
}

/* row = E 1 / (N 1 + damping), and 0 where there is no entry. */
static kiln_status measure_rows(double *row, const struct entries *of, double damping) {
    const int64_t m = kiln_matrix_rows(of->E);
    struct ki_arena arena = {0};
    double *const counts = ki_arena_reals(&arena, m);
    kiln_status status;
    TRY(arena.status);
    TRY(ki_entries_times(counts, KILN_PLAIN, of->N, NULL));
    TRY(ki_entries_times(row, KILN_PLAIN, of->E, NULL));
    for (int64_t u = 0; u < m; u++) row[u] = counts[u] > 0 ? row[u] / (counts[u] + damping) : 0;
done:
    return ki_arena_free(&arena, status);
}

/* column = (E^T 1 - N^T row) / (N^T 1 + damping). */
static kiln_status measure_columns(double *column, const struct entries *of, const double *row,
                                   double damping) {
    const int64_t m = kiln_matrix_rows(of->E), n = kiln_matrix_cols(of->E);
    struct ki_arena arena = {0};
    double *const counts = ki_arena_reals(&arena, n), *const of_rows = ki_arena_reals(&arena, n),
                  *const rows = ki_arena_reals(&arena, m);
    kiln_status status;
    TRY(arena.status);
    memcpy(rows, row, (size_t)m * sizeof *rows);
    TRY(ki_entries_times(counts, KILN_TRANSPOSED, of->N, NULL));
    TRY(ki_entries_times(of_rows, KILN_TRANSPOSED, of->N, rows));
    TRY(ki_entries_times(column, KILN_TRANSPOSED, of->E, NULL));
    for (int64_t i = 0; i < n; i++)
        column[i] = counts[i] > 0 ? (column[i] - of_rows[i]) / (counts[i] + damping) : 0;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_sfa_means_measure(struct ki_sfa_means *means, struct ki_arena *arena, const kiln_matrix *R,
                                 double damping) {
    struct ki_arena own = {0};
    struct entries entries;
    double sum;
    kiln_status status;
    means->row = ki_arena_reals(arena, kiln_matrix_rows(R));
    means->column = ki_arena_reals(arena, kiln_matrix_cols(R));
    TRY(arena->status);
    TRY(ki_entries_sum(&sum, "kiln_sfa", R, false));
    means->mean = sum / (double)kiln_matrix_nnz(R);
    TRY(take_mean(&entries, &own, R, means->mean));
    TRY(measure_rows(means->row, &entries, damping));
    TRY(measure_columns(means->column, &entries, means->row, damping));
done:
    return ki_arena_free(&own, status);
}

kiln_status ki_sfa_centred(kiln_matrix **S, struct ki_arena *arena, const kiln_matrix *R,
                           const struct ki_sfa_means *means) {
    return ki_arena_take(arena, S, ki_entries_centred(S, R, means->mean, means->row, means->column));
}

/* ------------------------------------------------------------------------------------------ columns */

kiln_status ki_sfa_factors(kiln_matrix *F, const kiln_matrix *A) {
    const int64_t rows = kiln_matrix_rows(A), cols = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    double *const wide = ki_arena_room(&arena, rows * cols, sizeof(double));
    double *const narrow = ki_arena_room(&arena, rows * cols, sizeof(double));
    kiln_status status;
    TRY(arena.status);
    TRY(ki_vector_get(wide, A));
    for (int64_t i = 0; i < rows; i++)
        memcpy(narrow + i * (cols - 1), wide + i * cols, (size_t)(cols - 1) * sizeof *wide);
    TRY(ki_vector_set(F, narrow));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_sfa_join(kiln_matrix *A, const kiln_matrix *F, const double *last) {
    const int64_t rows = kiln_matrix_rows(A), cols = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    double *const wide = ki_arena_room(&arena, rows * cols, sizeof(double));
    double *const narrow = ki_arena_room(&arena, rows * cols, sizeof(double));
    kiln_status status;
    TRY(arena.status);
    TRY(ki_vector_get(narrow, F));
    for (int64_t i = 0; i < rows; i++) {
        memcpy(wide + i * cols, narrow + i * (cols - 1), (size_t)(cols - 1) * sizeof *wide);
        wide[i * cols + cols - 1] = last[i];
    }
    TRY(ki_vector_set(A, wide));
done:
    return ki_arena_free(&arena, status);
}

/* ------------------------------------------------------------------------------------------- models */

static kiln_status check_model(const kiln_model *model) {
    const struct ki_tensor *settings = ki_model_tensor(model, "settings"), *B = ki_model_tensor(model, "B");
    kiln_status status = ki_model_check_names(model, "rows", ki_model_tensor(model, "A")->rows);
    if (status == KILN_OK) status = ki_model_check_names(model, "columns", B->rows);
    for (int i = 0; status == KILN_OK && i < SETTINGS; i++)
        if (!isfinite(ki_tensor_value(settings, i)) || (i == L2 && !(ki_tensor_value(settings, i) > 0)) ||
            (i == DAMPING && ki_tensor_value(settings, i) < 0))
            status =
                ki_fail(KILN_ERR_MODEL, "tensor 'settings' has the value %g", ki_tensor_value(settings, i));
    if (status == KILN_OK && B->cols < 2)
        status = ki_fail(KILN_ERR_MODEL, "tensor 'B' has no factors beside the means");
    return status == KILN_OK ? ki_check_seen(model, B->rows) : status;
}

static bool has_biases(const kiln_model *model, double *mean) {
    *mean = ki_factor_setting(model, MEAN);
    return true;
}

/* The means of new rows, as training would have it, and those of the model's columns. */
static kiln_status means_of(struct ki_sfa_means *means, struct ki_arena *arena, const kiln_model *model,
                            const kiln_matrix *X) {
    const struct ki_tensor *B = ki_model_tensor(model, "B");
    struct ki_arena own = {0};
    struct entries entries;
    kiln_status status;
    means->mean = ki_factor_setting(model, MEAN);
    means->row = ki_arena_reals(arena, kiln_matrix_rows(X));
    means->column = ki_arena_reals(arena, B->rows);
    TRY(arena->status);
    for (int64_t i = 0; i < B->rows; i++) means->column[i] = ki_tensor_value(B, i * B->cols + B->cols - 1);
    TRY(take_mean(&entries, &own, X, means->mean));
    TRY(measure_rows(means->row, &entries, ki_factor_setting(model, DAMPING)));
done:
    return ki_arena_free(&own, status);
}

static kiln_status transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X) {
    struct ki_arena arena = {0};
    kiln_matrix *B = NULL, *S = NULL;
    struct ki_sfa_means means = {0};
    kiln_status status;
    TRY(ki_arena_take(&arena, &B, ki_factor_columns(&B, model, X)));
    const int64_t r = kiln_matrix_cols(B);
    TRY(means_of(&means, &arena, model, X));
    TRY(ki_sfa_centred(&S, &arena, X, &means));
    kiln_matrix *const F = ki_arena_model(&arena, X, kiln_matrix_rows(B), r - 1),
                       *const solved = ki_arena_rows(&arena, X, r - 1),
                       *const made = ki_arena_rows(&arena, X, r);
    TRY(arena.status);
    TRY(ki_sfa_factors(F, B));
    TRY(kiln_factor_solve(
        solved, &(kiln_factor_rows){
                    .R = S, .B = F, .l2 = ki_factor_setting(model, L2), .solver = KILN_FACTOR_CHOLESKY}));
    TRY(ki_sfa_join(made, solved, means.row));
    *A = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

static const kiln_option options_table[] = {
    KI_OPTION(
        kiln_sfa_options, l2, POSITIVE, 0, 0, 0, INFINITY, NULL,
        "Strength of the L2 penalty. By default 0.8 d (sqrt(entries a row) + sqrt(entries a column)), d "
        "the ratings' standard deviation."),
    KI_OPTION(kiln_sfa_options, damping, REAL, 5, 5, 0, INFINITY, NULL,
              "A mean is its sum divided by its count plus this, so that few entries count for less."),
    KI_OPTION_SHARE(kiln_sfa_options, 1e-4),
    KI_OPTION_ITERATIONS(kiln_sfa_options, 200, ""),
};

const struct ki_algorithm ki_algorithm_sfa = {
    .shown = {"sfa", "Factor a matrix of ratings about its means by conjugate gradient",
              KI_OPTIONS(options_table, kiln_sfa_options), .components = 32, .trial = &ki_trial_sfa},
    .given = offsetof(kiln_sfa_options, given),
    .tensors = {{"A", 'm', 'r', false, false, false},
                {"B", 'n', 'r', false, false, false},
                {"settings", '1', '3', false, true, false},
                KI_SEEN_TENSORS},
    .check = check_model,
    .transform = transform,
    .biases = has_biases,
    .instead = "kiln recommend shows what it recommends to a user",
    .passes = {25, 0, false}};

void ki_sfa_fill(kiln_sfa_options *o, kiln_type type) {
    ki_options_fill(o, &ki_algorithm_sfa, type);
}

kiln_status kiln_sfa_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B, double mean,
                           const kiln_sfa_options *options) {
    kiln_status status;
    kiln_sfa_options o;
    if (!model || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "kiln_sfa_model: an argument is NULL");
    TRY(KI_TAKE(kiln_sfa_options, &o, options));
    ki_sfa_fill(&o, kiln_matrix_type(A));
    TRY(ki_factor_known("kiln_sfa_model", &o, &ki_algorithm_sfa));
    const double values[SETTINGS] = {mean, o.l2, o.damping};
    status = ki_factor_model(model, "sfa", A, B, values, SETTINGS);
done:
    return status;
}
