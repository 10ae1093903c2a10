/* Checks that algorithms make of their arguments; an error's message begins with the call's name and says
 * which entry of which operand is of no use. */
#include "algorithms/run/arena.h"

kiln_status ki_check_matrix(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *X,
                            int64_t rows, int64_t cols) {
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, name);
    if (kiln_matrix_format(A) != KILN_DENSE)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is sparse, but must be dense", call, name);
    if (kiln_matrix_device(A) != kiln_matrix_device(X))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s and X lie on different devices", call, name);
    if (kiln_matrix_type(A) != kiln_matrix_type(X))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s and X differ in type", call, name);
    if (kiln_matrix_rows(A) != rows || kiln_matrix_cols(A) != cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %lld x %lld, but must be %lld x %lld", call, name,
                       (long long)kiln_matrix_rows(A), (long long)kiln_matrix_cols(A), (long long)rows,
                       (long long)cols);
    return KILN_OK;
}

/* Names the first entry that is not finite, or not >= 0, if there is one; A's first row is number `row`. */
static kiln_status name_bad_entry(const char *call, const char *name, const kiln_matrix *A, bool negative,
                                  int64_t row) {
    kiln_status status = KILN_OK;
    const int64_t cols = kiln_matrix_cols(A);
    const int64_t count = kiln_matrix_nnz(A);
    int64_t bytes, e = 0;
    if (!ki_mul(count, sizeof(double), &bytes)) return ki_fail_nomem(SIZE_MAX, name);
    double *values = ki_alloc((size_t)bytes);
    if (!values) return ki_fail_nomem((size_t)bytes, name);
    TRY(ki_vector_get(values, A));
    while (e < count && isfinite(values[e]) && !(negative && values[e] < 0)) e++;
    if (e == count) goto done;
    status = ki_fail(KILN_ERR_DATA,
                     "%s: row %lld, column %lld of %s is %g, but must be %s (rows and columns count from 0)",
                     call, (long long)row + e / cols, (long long)(e % cols), name, values[e],
                     negative ? "a finite number >= 0" : "a finite number");
done:
    ki_free(values);
    return status;
}

struct named {
    const char *call, *name;
    bool negative;
};

static kiln_status check_rows(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                              kiln_matrix **made, double *sums) {
    const struct named *of = each->kept;
    (void)entry, (void)made, (void)sums;
    return name_bad_entry(of->call, of->name, rows, of->negative, row);
}

kiln_status ki_check_finite(const char *call, const char *name, const kiln_matrix *A, bool negative) {
    kiln_status status = KILN_OK;
    struct named of = {call, name, negative};
    if (ki_lies_in_file(A))
        return ki_each_run(NULL, NULL, &(struct ki_each){.run = check_rows, .kept = &of}, A);
    const int64_t cols = kiln_matrix_cols(A);
    double *largest = ki_alloc((size_t)cols * sizeof *largest);
    if (!largest) return ki_fail_nomem((size_t)cols * sizeof *largest, name);
    TRY(kiln_norm(largest, A, KILN_NORM_MAX));
    for (int64_t j = 0; j < cols; j++)
        if (!isfinite(largest[j])) TRY(name_bad_entry(call, name, A, negative, 0));
done:
    ki_free(largest);
    return status;
}

/* Without negative numbers |a| - a is zero throughout; sums could not tell, they round. */
kiln_status ki_find_negative(int64_t *column, const kiln_matrix *A) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t cols = kiln_matrix_cols(A);
    const kiln_ratio minus = {.factor = -1};
    kiln_matrix *const twice = ki_arena_rows(&arena, A, cols);
    double *const largest = ki_arena_reals(&arena, cols);
    TRY(arena.status);
    TRY(kiln_map(twice, KILN_MAP_ABS, A));
    TRY(kiln_combine_from(twice, NULL, twice, &minus, A));
    TRY(kiln_norm(largest, twice, KILN_NORM_MAX));
    *column = -1;
    for (int64_t c = cols; c-- > 0;)
        if (largest[c] > 0) *column = c;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_check_weights(const char *call, const kiln_matrix *weights) {
    kiln_status status;
    int64_t negative;
    TRY(ki_check_finite(call, "weights", weights, true));
    TRY(ki_find_negative(&negative, weights));
    if (negative >= 0) TRY(name_bad_entry(call, "weights", weights, true, 0));
done:
    return status;
}

/* Bytes that one pass over X reads. */
int64_t ki_bytes_of(const kiln_matrix *X) {
    const int64_t element = kiln_matrix_type(X) == KILN_F32 ? 4 : 8;
    if (kiln_matrix_format(X) == KILN_DENSE) return kiln_matrix_nnz(X) * element;
    return kiln_matrix_nnz(X) * (element + 4) + (kiln_matrix_rows(X) + 1) * 8;
}

kiln_status ki_check_strength(const char *call, const char *field, double given) {
    if (given >= 0 && !isinf(given)) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s_options.%s is %g, but must be a number >= 0", call, field, given);
}

kiln_status ki_check_iteration(const char *call, double tolerance, int64_t max_iterations) {
    if (!(tolerance >= 0))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.tolerance is %g, but must be a number >= 0", call,
                       tolerance);
    if (max_iterations < 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s_options.max_iterations is %lld, but must be > 0, or 0 for the default", call,
                       (long long)max_iterations);
    return KILN_OK;
}
