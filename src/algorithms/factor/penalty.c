/* The default penalty of a factor model, from the data's size and spread alone (penalty.h has the formula),
 * and whether it has left anything of the factors. */
#include "algorithms/factor/penalty.h"

#include "algorithms/factor/balance.h"
#include "algorithms/factor/entries.h"
#include "ops/vectors/reduce.h"

#define SHARE 0.8     /* of the noise's largest singular value: best on MovieLens, whole and thinned */
#define NOTHING 0.01  /* the share of what is to be explained that counts as none of it */
#define SMALLEST 1e-3 /* deviation, relative to the mean: equal entries have none */

static kiln_status count_rows(double *to, const kiln_matrix *R) {
    const int64_t m = kiln_matrix_rows(R);
    int64_t *start = ki_alloc((size_t)(m + 1) * sizeof *start);
    kiln_status status;
    if (!start) return ki_fail_nomem((size_t)(m + 1) * sizeof *start, "the entries of rows");
    TRY(kiln_matrix_get_csr(start, NULL, NULL, R));
    for (int64_t u = 0; u < m; u++) to[u] = (double)(start[u + 1] - start[u]);
done:
    ki_free(start);
    return status;
}

static kiln_status count_columns(double *to, const kiln_matrix *R) {
    kiln_matrix *ones = NULL;
    kiln_status status;
    TRY(kiln_matrix_like(&ones, R, KILN_TYPE_DEFAULT, NULL));
    TRY(ki_entries_times(to, KILN_TRANSPOSED, ones, NULL));
done:
    kiln_matrix_free(ones);
    return status;
}

kiln_status ki_counts_take(struct ki_counts *counts, struct ki_arena *arena, const kiln_matrix *R,
                           const kiln_matrix *transposed) {
    const int64_t m = kiln_matrix_rows(R), n = kiln_matrix_cols(R);
    kiln_status status;
    counts->row = ki_arena_reals(arena, m);
    counts->column = ki_arena_reals(arena, n);
    TRY(arena->status);
    TRY(count_rows(counts->row, R));
    TRY(transposed ? count_rows(counts->column, transposed) : count_columns(counts->column, R));
    for (int64_t u = 0; u < m; u++) counts->rows += counts->row[u] > 0;
    for (int64_t i = 0; i < n; i++) counts->columns += counts->column[i] > 0;
done:
    return status;
}

kiln_status ki_spread_take(struct ki_spread *spread, const kiln_matrix *R, double sum) {
    kiln_status status;
    const double nnz = (double)kiln_matrix_nnz(R);
    spread->mean = sum / nnz;
    TRY(ki_entries_squares(&spread->squares, R, spread->mean));
    const double least = SMALLEST * fabs(spread->mean);
    spread->deviation = fmax(sqrt(spread->squares / nnz), least);
    if (!(spread->deviation > 0)) spread->deviation = 1;
done:
    return status;
}

static double most_of(struct ki_room room, const kiln_matrix *R) {
    return kiln_matrix_type(R) == KILN_F32 ? room.f32 : room.f64;
}

/* A mean would hide a large entry among many, whose row and column are as badly off as if it were alone. */
kiln_status ki_room_has(bool *has, struct ki_room room, const kiln_matrix *R) {
    const double most = most_of(room, R), limits[] = {most, 1 / most, 0};
    bool beyond[3];
    kiln_status status;
    TRY(ki_reduce_beyond(beyond, R, limits, 3));
    *has = !beyond[0] && (beyond[1] || !beyond[2]);
done:
    return status;
}

kiln_status ki_room_below(bool *has, struct ki_room room, const kiln_matrix *R, double times) {
    bool beyond;
    const kiln_status status = ki_reduce_beyond(&beyond, R, (double[]){most_of(room, R) / times}, 1);
    if (status == KILN_OK) *has = !beyond;
    return status;
}

kiln_status ki_room_on_average(bool *has, struct ki_room room, const kiln_matrix *R, double times) {
    double sum;
    kiln_status status;
    TRY(ki_reduce_entries(&sum, R, KI_REDUCE_ABS));
    *has = times * sum <= most_of(room, R) * (double)kiln_matrix_nnz(R);
done:
    return status;
}

kiln_status ki_room_fail(const char *call, const char *what, const kiln_matrix *R) {
    ki_fail(KILN_ERR_DATA, "%s: %s leave %s for entries as large or small as these", call, what,
            kiln_matrix_type(R) == KILN_F32 ? "f32" : "f64");
    return ki_hint("scale the entries of R");
}

double ki_factor_penalty(const struct ki_counts *counts, int64_t nnz, double deviation) {
    return SHARE * deviation *
           (sqrt((double)nnz / (double)counts->rows) + sqrt((double)nnz / (double)counts->columns));
}

kiln_status ki_factor_figures(kiln_report *report, double l2, const kiln_matrix *A, const kiln_matrix *B,
                              int64_t factors, double squares) {
    struct ki_arena arena = {0};
    struct ki_balance balance = {0};
    double size = 0;
    kiln_status status;
    TRY(ki_balance_begin(&balance, &arena, NULL, A, B));
    TRY(ki_balance_measure(&balance, A, B));
    for (int64_t k = 0; k < factors; k++) size += sqrt(balance.a[k]) * sqrt(balance.b[k]);
    ki_report_figure(report, "l2", l2);
    const bool nothing = squares > 0 && size < NOTHING * sqrt(squares);
    ki_report_figure(report, "zero_factors", nothing);
    if (nothing)
        ki_report_warn(report, "zero-factors", "a smaller penalty (kiln_als_options.l2)",
                       "all factors are about 0: the penalty of %.3g leaves nothing of them", l2);
done:
    return ki_arena_free(&arena, status);
}
