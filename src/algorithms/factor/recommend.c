/* The best columns of each row, by its scores A B^T (ops/sampled/top_products.c). */
#include <stdlib.h>

#include "algorithms/factor/entries.h"
#include "algorithms/registry.h"
#include "ops/sampled/top_products.h"

/* ------------------------------------------------------------------------------------ what is left out */

/* The entries' columns, ascending in each row. */
static kiln_status take_seen(struct ki_host_entries *entries, const char *call, const kiln_matrix *seen,
                             int64_t m, int64_t n) {
    if (kiln_matrix_format(seen) != KILN_CSR || kiln_matrix_rows(seen) != m || kiln_matrix_cols(seen) != n)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: seen must be sparse and %lld x %lld", call, (long long)m,
                       (long long)n);
    kiln_status status = ki_entries_new(entries, m, n, kiln_matrix_nnz(seen));
    if (status != KILN_OK) return status;
    TRY(kiln_matrix_get_csr(entries->start, entries->col, NULL, seen));
    for (int64_t i = 0; i < m; i++) {
        int32_t *col = entries->col + entries->start[i];
        const int64_t count = entries->start[i + 1] - entries->start[i];
        for (int64_t e = 1; e < count; e++)
            if (col[e] < col[e - 1]) {
                qsort(col, (size_t)count, sizeof *col, ki_by_column);
                break;
            }
    }
done:
    return status;
}

/* The products of checked rows with what `seen` has left out. */
static kiln_status best_products(struct ki_top_products *of, const char *call, const kiln_matrix *seen) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    if (seen) TRY(take_seen(&entries, call, seen, kiln_matrix_rows(of->A), kiln_matrix_rows(of->B)));
    of->start = entries.start;
    of->seen = entries.col;
    TRY(ki_top_products(of));
done:
    ki_host_entries_free(&entries);
    return status;
}

static kiln_status check_places(const char *call, const int64_t *columns, const double *scores, int64_t top) {
    if (!columns || !scores) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (top < 1) return ki_fail(KILN_ERR_ARGUMENT, "%s: top is %lld", call, (long long)top);
    return KILN_OK;
}

kiln_status kiln_top_products(int64_t *columns, double *scores, int64_t top, const kiln_matrix *A,
                              const kiln_matrix *B, const kiln_matrix *seen, const unsigned char *allowed) {
    static const char call[] = "kiln_top_products";
    kiln_status status;
    struct ki_top_products of = {
        .A = A, .B = B, .allowed = allowed, .top = top, .columns = columns, .scores = scores};
    TRY(check_places(call, columns, scores, top));
    if (!A || !B) TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call));
    TRY(ki_check_matrix(call, "A", A, A, kiln_matrix_rows(A), kiln_matrix_cols(A)));
    TRY(ki_check_matrix(call, "B", B, A, kiln_matrix_rows(B), kiln_matrix_cols(A)));
    TRY(best_products(&of, call, seen));
done:
    return status;
}

/* ------------------------------------------------------------------------------------- with a model */

/* A bias of the row, and the mean, change no order. */
static kiln_status add_means(double *scores, int64_t top, const kiln_matrix *A, double mean) {
    const int64_t m = kiln_matrix_rows(A), r = kiln_matrix_cols(A);
    kiln_status status;
    double *a = ki_alloc((size_t)(m * r) * sizeof *a);
    if (!a) TRY(ki_fail_nomem((size_t)(m * r) * sizeof *a, "the rows' factors"));
    TRY(ki_vector_get(a, A));
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < top; t++) scores[i * top + t] += mean + a[i * r + r - 1];
done:
    ki_free(a);
    return status;
}

kiln_status kiln_recommend_among(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                                 const kiln_matrix *A, const kiln_matrix *seen,
                                 const unsigned char *allowed) {
    static const char call[] = "kiln_recommend";
    kiln_status status;
    kiln_matrix *B = NULL;
    double mean;
    TRY(check_places(call, columns, scores, top));
    if (!model || !A) TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call));
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->biases)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s recommends nothing", call, algorithm->shown.name));
    TRY(kiln_model_tensor(&B, kiln_matrix_device(A), kiln_matrix_type(A), model, "B"));
    TRY(ki_check_matrix(call, "A", A, A, kiln_matrix_rows(A), kiln_matrix_cols(B)));
    struct ki_top_products of = {.A = A,
                                 .B = B,
                                 .ones = algorithm->biases(model, &mean),
                                 .allowed = allowed,
                                 .top = top,
                                 .columns = columns,
                                 .scores = scores};
    TRY(best_products(&of, call, seen));
    if (of.ones) TRY(add_means(scores, top, A, mean));
done:
    kiln_matrix_free(B);
    return status;
}

kiln_status kiln_recommend(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                           const kiln_matrix *A, const kiln_matrix *seen) {
    return kiln_recommend_among(columns, scores, top, model, A, seen, NULL);
}
