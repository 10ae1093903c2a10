/* Columns' moments on the host, and vectors between host and device. */
#include "algorithms/run/arena.h"

/* Elements of A's type become doubles where they are, from the end. */
static void widen(double *values, const kiln_matrix *A, int64_t count) {
    const float *narrow = (const float *)values;
    if (kiln_matrix_type(A) == KILN_F64) return;
    for (int64_t i = count; i-- > 0;) {
        float value;
        memcpy(&value, narrow + i, sizeof value);
        values[i] = value;
    }
}

kiln_status ki_vector_get(double *values, const kiln_matrix *A) {
    const kiln_status status = kiln_matrix_get(values, A);
    if (status == KILN_OK) widen(values, A, kiln_matrix_nnz(A));
    return status;
}

kiln_status ki_vector_part(double *values, const kiln_matrix *A, int64_t first, int64_t count) {
    const kiln_status status = ki_elements_get(values, A, first, count);
    if (status == KILN_OK) widen(values, A, count);
    return status;
}

kiln_status ki_vector_set(kiln_matrix *A, double *values) {
    for (int64_t i = 0; kiln_matrix_type(A) == KILN_F32 && i < kiln_matrix_nnz(A); i++) {
        const float narrow = (float)values[i];
        memcpy((char *)values + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
    }
    const kiln_status status = kiln_matrix_set(A, values);
    ki_matrix_not_shared(A);
    return status;
}

kiln_status ki_vector_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t count,
                          const double *values) {
    if (type == KILN_F64) return kiln_matrix_dense(A, device, type, count, 1, values);
    int64_t bytes;
    float *narrow = ki_mul(count, sizeof *narrow, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    if (!narrow) return ki_fail_nomem((size_t)count * sizeof *narrow, "a vector");
    for (int64_t i = 0; i < count; i++) narrow[i] = (float)values[i];
    kiln_status status = kiln_matrix_dense(A, device, type, count, 1, narrow);
    ki_free(narrow);
    return status;
}

kiln_status ki_columns_measure(struct ki_columns *columns, struct ki_moments *asked, struct ki_arena *arena,
                               const kiln_matrix *X, const kiln_matrix *weights, double weight) {
    kiln_status status;
    const int64_t cols = kiln_matrix_cols(X);
    struct ki_arena own = {0};
    struct ki_moments moments = *asked;
    struct ki_columns made = {.weight = weight,
                              .square = ki_arena_doubles(arena, cols),
                              .mean = ki_arena_doubles(arena, cols),
                              .variance = ki_arena_doubles(arena, cols)};
    TRY(arena->status);
    TRY(ki_moments_measure(&moments, &own, X, weights, weight));
    TRY(ki_vector_get(made.square, moments.square));
    TRY(ki_vector_get(made.mean, moments.mean));
    TRY(ki_vector_get(made.variance, moments.centred));
    for (int64_t j = 0; j < cols; j++) made.variance[j] /= weight;
    made.flats = moments.flats;
    asked->passes = moments.passes;
    asked->right = ki_arena_give(&own, moments.right);
    if (asked->right) TRY(ki_arena_take(arena, &asked->right, KILN_OK));
    *columns = made;
done:
    return ki_arena_free(&own, status);
}

void ki_columns_one_constant(struct ki_columns *columns, int64_t cols) {
    bool found = false;
    for (int64_t j = 0; j < cols && columns->flats.count > 0; j++) {
        if (columns->variance[j] > 0 || !(columns->square[j] > 0)) continue;
        if (found) columns->square[j] = 0;
        found = true;
    }
}
