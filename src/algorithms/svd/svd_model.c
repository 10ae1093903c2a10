/* This file says what a model of kiln_svd is used for, and the rows of the registry: coordinates of rows,
 *
 *   P = (X - 1 mean^T) D^-1 V = X W - 1 (mean^T W),   W = D^-1 V. */
#include "algorithms/svd/svd.h"

static kiln_status tensor(kiln_matrix **A, struct ki_arena *arena, const kiln_model *model,
                          const kiln_matrix *X, const char *name) {
    return ki_arena_take(arena, A,
                         kiln_model_tensor(A, kiln_matrix_device(X), kiln_matrix_type(X), model, name));
}

static kiln_status predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *V = NULL, *mean = NULL, *deviation = NULL;
    TRY(tensor(&V, &arena, model, X, "V"));
    if (kiln_matrix_rows(V) != kiln_matrix_cols(X)) {
        ki_fail(KILN_ERR_MODEL, "the model was trained on %lld columns, the data have %lld",
                (long long)kiln_matrix_rows(V), (long long)kiln_matrix_cols(X));
        TRY(ki_hint("read the data as the model's training data were read (kiln_read_options.model)"));
    }
    const int64_t k = kiln_matrix_cols(V);
    const bool centred = ki_model_tensor(model, "mean");
    kiln_matrix *const made = ki_arena_rows(&arena, X, k);
    TRY(arena.status);
    if (ki_model_tensor(model, "deviation")) {
        TRY(tensor(&deviation, &arena, model, X, "deviation"));
        TRY(kiln_map(deviation, KILN_MAP_RECIPROCAL, deviation));
        TRY(kiln_times(V, V, deviation));
    }
    if (centred) {
        kiln_matrix *const shift = ki_arena_model(&arena, X, 1, k);
        kiln_matrix *const ones = ki_arena_fill(&arena, ki_arena_rows(&arena, X, 1), 1);
        TRY(tensor(&mean, &arena, model, X, "mean"));
        TRY(arena.status);
        TRY(kiln_multiply(shift, -1, KILN_TRANSPOSED, mean, V, 0, NULL));
        TRY(kiln_multiply(made, 1, KILN_PLAIN, ones, shift, 0, NULL));
    }
    TRY(kiln_multiply(made, 1, KILN_PLAIN, X, V, centred, centred ? made : NULL));
    *P = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

/* Singular values descend and are not negative; deviations are positive. */
static kiln_status check(const kiln_model *model) {
    const struct ki_tensor *s = ki_model_tensor(model, "s"), *D = ki_model_tensor(model, "deviation");
    for (int64_t i = 0; i < s->rows; i++) {
        const double value = ki_tensor_value(s, i);
        if (!(value >= 0) || isinf(value) || (i > 0 && value > ki_tensor_value(s, i - 1)))
            return ki_fail(KILN_ERR_MODEL,
                           "entry %lld of the tensor 's' is %g, but singular values descend "
                           "and are not negative",
                           (long long)i, value);
    }
    for (int64_t i = 0; D && i < D->rows; i++)
        if (!(ki_tensor_value(D, i) > 0))
            return ki_fail(KILN_ERR_MODEL, "entry %lld of the tensor 'deviation' is %g, but must be above 0",
                           (long long)i, ki_tensor_value(D, i));
    return KILN_OK;
}

kiln_status kiln_svd_model(kiln_model **model, const kiln_matrix *V, const kiln_matrix *s,
                           const kiln_svd_options *options, const kiln_report *report) {
    static const char call[] = "kiln_svd_model";
    kiln_status status;
    kiln_svd_options o;
    kiln_model *made = NULL;
    kiln_matrix *total = NULL;
    double first = 0; /* NaN: variances are not known */
    TRY(KI_TAKE(kiln_svd_options, &o, options));
    const bool divided = o.scale || o.graph;
    if (!model || !V || !s || (o.center && !o.mean) || (divided && !o.deviation))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s", call,
                       !model                ? "model is NULL"
                       : !V                  ? "V is NULL"
                       : !s                  ? "s is NULL"
                       : o.center && !o.mean ? "the means (kiln_svd_options.mean) are NULL"
                                             : "the deviations (kiln_svd_options.deviation) are NULL");
    if (o.variance) TRY(ki_vector_part(&first, o.variance, 0, 1));
    const struct {
        const char *name;
        const kiln_matrix *A;
    } tensors[] = {{"V", V},
                   {"s", s},
                   {"mean", o.center ? o.mean : NULL},
                   {"deviation", divided ? o.deviation : NULL},
                   {"variance", isnan(first) || o.graph ? NULL : o.variance}};
    TRY(kiln_model_create(&made, o.graph ? "spectral" : o.center ? "pca" : "svd"));
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i].A) TRY(kiln_model_set_tensor(made, tensors[i].name, tensors[i].A));
    const double variance = report ? kiln_report_figure(report, "variance") : NAN;
    if (isfinite(variance)) {
        TRY(kiln_matrix_dense(&total, kiln_matrix_device(V), KILN_F64, 1, 1, &variance));
        TRY(kiln_model_set_tensor(made, "total", total));
    }
    *model = made;
    made = NULL;
done:
    kiln_matrix_free(total);
    kiln_model_free(made);
    return status;
}

/* kiln pca always centres, so that its rows are all but the last. */
static const kiln_option options_table[] = {
    KI_OPTION(kiln_svd_options, scale, FLAG, 0, 0, 0, 1, NULL,
              "Divide each column by its standard deviation; a constant one stays as it is."),
    KI_OPTION(kiln_svd_options, solver, CHOICE, 0, 0, 1, 2, "krylov|gram",
              "Iterate on the data (krylov), or on the Gram matrix of their columns (gram), which is made in "
              "one pass or a few. Without it the way that is expected to be cheaper."),
    KI_OPTION_SEED(kiln_svd_options),
    KI_OPTION(kiln_svd_options, tolerance, REAL, 1e-8, 1e-5, 0, INFINITY, NULL,
              "Stop when for each triple |A v - s u| and |A'u - s v| are at most this times the largest "
              "singular value."),
    KI_OPTION_ITERATIONS(kiln_svd_options, 1000, ""),
    KI_OPTION(kiln_svd_options, center, FLAG, 0, 0, 0, 1, NULL,
              "Take off each column its mean: principal components."),
};
enum { OPTIONS = sizeof options_table / sizeof *options_table };

static const kiln_option graph_options[] = {
    KI_OPTION_SEED(kiln_svd_options),
    KI_OPTION(kiln_svd_options, tolerance, REAL, 1e-8, 1e-5, 0, INFINITY, NULL,
              "Stop when for each eigenvector |A v - s v| is at most this, A = (1 + D^-1/2 S D^-1/2) / 2."),
    KI_OPTION_ITERATIONS(kiln_svd_options, 1000, ""),
};

#define ROW(title, count)                                                                                    \
    .shown = {title,                                                                                         \
              .options = options_table,                                                                      \
              .option_count = (count),                                                                       \
              .options_bytes = sizeof(kiln_svd_options),                                                     \
              .predicts = 1,                                                                                 \
              .components = 10},                                                                             \
    .given = offsetof(kiln_svd_options, given),                                                              \
    .tensors = {{"V", 'n', 'k', false, false, false},       {"s", 'k', '1', false, false, false},            \
                {"mean", 'n', '1', true, false, false},     {"deviation", 'n', '1', true, false, false},     \
                {"variance", 'k', '1', true, false, false}, {"total", '1', '1', true, true, false}},         \
    .check = check, .predict = predict, .passes = {20, 4, false}
#define SVD_TITLE "svd", "Find the largest singular values and vectors"
#define PCA_TITLE "pca", "Find principal components"
const struct ki_algorithm ki_algorithm_svd = {ROW(SVD_TITLE, OPTIONS)};
const struct ki_algorithm ki_algorithm_pca = {ROW(PCA_TITLE, OPTIONS - 1)};
const struct ki_algorithm ki_algorithm_spectral = {
    .shown = {"spectral", "Lay out the vertices of a graph by eigenvectors of its Laplacian",
              KI_OPTIONS(graph_options, kiln_svd_options), .components = 2},
    .given = offsetof(kiln_svd_options, given),
    .tensors = {{"V", 'n', 'k', false, false, false},
                {"s", 'k', '1', false, false, false},
                {"deviation", 'n', '1', false, false, false}},
    .check = check,
    .instead = "the embedding is of the vertices that it was made of",
    .passes = {20, 8, false}};
