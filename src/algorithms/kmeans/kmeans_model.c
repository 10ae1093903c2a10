/* This file says what a model of K-Means is used for, and its row of the registry. The text "geometry" is
 * "spherical" where rows are to be scaled to length 1 first. */
#include "algorithms/kmeans/kmeans.h"

#include "algorithms/registry.h"

static kiln_status predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    static const double left[2] = {1, 0}, right[2] = {0, 1};
    const char *geometry = kiln_model_text(model, "geometry");
    struct ki_arena arena = {0};
    kiln_matrix *C = NULL, *unit = NULL;
    kiln_status status;
    TRY(ki_arena_take(&arena, &C,
                      kiln_model_tensor(&C, kiln_matrix_device(X), kiln_matrix_type(X), model, "centres")));
    if (kiln_matrix_cols(C) != kiln_matrix_cols(X)) {
        ki_fail(KILN_ERR_MODEL, "the model was trained on %lld columns, the data have %lld",
                (long long)kiln_matrix_cols(C), (long long)kiln_matrix_cols(X));
        TRY(ki_hint("read the data as the model's training data were read (kiln_read_options.model)"));
    }
    kiln_matrix *const labels = ki_arena_rows(&arena, X, 1), *const distances = ki_arena_rows(&arena, X, 1),
                       *const made = ki_arena_rows(&arena, X, 2);
    TRY(arena.status);
    if (geometry && strcmp(geometry, "spherical") == 0)
        TRY(ki_arena_take(&arena, &unit, ki_kmeans_unit(&unit, X)));
    TRY(kiln_assign(&(kiln_assignment){.labels = labels, .distances = distances}, unit ? unit : X, C, NULL));
    TRY(kiln_map(distances, KILN_MAP_SQRT, distances));
    TRY(kiln_combine(made, left, labels, right, distances));
    *P = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

static const kiln_option options_table[] = {
    KI_OPTION(kiln_kmeans_options, init, CHOICE, 1, 1, 1, 4, "k-means++|k-means-parallel|random|given",
              "How to begin: rows drawn one by one by their distance from those drawn before (k-means++), "
              "some 2k of them at once in five rounds (k-means-parallel: fewer passes where K is large), any "
              "K rows (random), or centres that are given."),
    KI_OPTION(kiln_kmeans_options, restarts, INTEGER, 1, 1, 1, 1e6, NULL,
              "Begin this many times and keep the result with the least inertia."),
    KI_OPTION_SEED(kiln_kmeans_options),
    KI_OPTION(
        kiln_kmeans_options, batch, INTEGER, 0, 0, 0, 9e15, NULL,
        "Rows in a mini-batch, drawn with replacement for each iteration. Default: all rows each time."),
    KI_OPTION(kiln_kmeans_options, spherical, FLAG, 0, 0, 0, 1, NULL,
              "Directions count, not lengths: rows and centres are scaled to length 1, and the inertia is "
              "twice the sum of 1 - cosine."),
    KI_OPTION(
        kiln_kmeans_options, algorithm, CHOICE, 0, 0, 1, 2, "lloyd|bounds",
        "lloyd computes all distances and sums in each pass; bounds computes only what the pass before "
        "leaves in doubt: on a CPU distances, for dense rows of 16 columns and 100 bytes or more, on a GPU "
        "sums of rows that change. The labels are the same. By default bounds serves 256 columns or more, or "
        "columns times centres of 65,536 or more, and on a GPU data from 64 MB on without weights."),
    KI_OPTION(
        kiln_kmeans_options, tolerance, REAL, 1e-4, 1e-4, 0, INFINITY, NULL,
        "Stop when the squares of the centres' moves in one iteration add up to at most this times the mean "
        "variance of the columns."),
    KI_OPTION_ITERATIONS(kiln_kmeans_options, 300, " of each start"),
    KI_OPTION(kiln_kmeans_options, patience, INTEGER, 0, 0, 0, 9e15, NULL,
              "With batch: stop after this many mini-batches in turn that have not lowered the smoothed "
              "inertia. Default: only when the centres no longer move."),
};

const struct ki_algorithm ki_algorithm_kmeans = {
    .shown = {"kmeans", "Cluster rows around K centres", KI_OPTIONS(options_table, kiln_kmeans_options),
              .predicts = 1, .trial = &ki_trial_kmeans},
    .given = offsetof(kiln_kmeans_options, given),
    .tensors = {{"centres", 'k', 'n', false, false, false}, {"clusters", 'k', '3', true, false, false}},
    .predict = predict,
    .passes = {40, 0, false}};
