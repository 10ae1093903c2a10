/* Entries before training: looked at, transposed and centred where they lie, which takes a GPU milliseconds;
 * on the host where one is to be named, and to be shared out between training and test. */
#include "algorithms/factor/entries.h"

#include <stdio.h>

#include "algorithms/run/arena.h"
#include "derived/transposed.h"
#include "ops/vectors/reduce.h"

/* Says how much of the squares must be left about a mean: less would be rounding of the squares about 0. */
static const double LEFT = 1e-6;

kiln_status ki_entries_new(struct ki_host_entries *entries, int64_t rows, int64_t cols, int64_t nnz) {
    *entries = (struct ki_host_entries){.rows = rows, .cols = cols, .nnz = nnz};
    entries->start = ki_calloc((size_t)(rows + 1) * sizeof *entries->start);
    entries->col = ki_alloc((size_t)nnz * sizeof *entries->col);
    entries->value = ki_alloc((size_t)nnz * sizeof *entries->value);
    if (entries->start && entries->col && entries->value) return KILN_OK;
    ki_host_entries_free(entries);
    return ki_fail_nomem((size_t)nnz * 12 + (size_t)rows * 8, "the entries on the host");
}

void ki_host_entries_free(struct ki_host_entries *entries) {
    ki_free(entries->start);
    ki_free(entries->col);
    ki_free(entries->value);
    *entries = (struct ki_host_entries){0};
}

kiln_status ki_entries_get(struct ki_host_entries *entries, const kiln_matrix *X) {
    const int64_t nnz = kiln_matrix_nnz(X);
    kiln_status status = ki_entries_new(entries, kiln_matrix_rows(X), kiln_matrix_cols(X), nnz);
    if (status != KILN_OK) return status;
    TRY(kiln_matrix_get_csr(entries->start, entries->col, entries->value, X));
    if (kiln_matrix_type(X) == KILN_F32) /* widened from the end, where they are */
        for (int64_t e = nnz - 1; e >= 0; e--) {
            float narrow;
            memcpy(&narrow, (const char *)entries->value + e * (int64_t)sizeof narrow, sizeof narrow);
            entries->value[e] = narrow;
        }
done:
    if (status != KILN_OK) ki_host_entries_free(entries);
    return status;
}

kiln_status ki_entries_matrix(kiln_matrix **X, const struct ki_host_entries *entries,
                              const kiln_matrix *like) {
    const kiln_type type = kiln_matrix_type(like);
    float *narrow = NULL;
    kiln_status status = KILN_OK;
    if (type == KILN_F32) {
        if (!(narrow = ki_alloc((size_t)entries->nnz * sizeof *narrow)))
            TRY(ki_fail_nomem((size_t)entries->nnz * sizeof *narrow, "a matrix's values"));
        for (int64_t e = 0; e < entries->nnz; e++) narrow[e] = (float)entries->value[e];
    }
    TRY(kiln_matrix_csr(X, kiln_matrix_device(like), type, entries->rows, entries->cols, entries->start,
                        entries->col, narrow ? (const void *)narrow : entries->value));
done:
    ki_free(narrow);
    return status;
}

kiln_status ki_entries_check(const struct ki_host_entries *entries, const char *call, int64_t row,
                             bool counts) {
    for (int64_t i = 0; i < entries->rows; i++)
        for (int64_t e = entries->start[i]; e < entries->start[i + 1]; e++)
            if (!isfinite(entries->value[e]) || (counts && entries->value[e] < 0))
                return ki_fail(KILN_ERR_DATA,
                               "%s: the entry in row %lld, column %d is %g%s (rows and columns count from 0)",
                               call, (long long)row + i, entries->col[e], entries->value[e],
                               counts ? ", but must be a finite number >= 0" : "");
    return KILN_OK;
}

/* Names an entry that is not what entries must be (number 1: counts), if there is one. */
static kiln_status look(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                        kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)entry, (void)made, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    TRY(ki_entries_check(&entries, each->call, row, each->number > 0));
done:
    ki_host_entries_free(&entries);
    return status;
}

/* A sum tells whether all entries are finite, but for one that overflows. */
kiln_status ki_entries_sum(double *sum, const char *call, const kiln_matrix *X, bool counts) {
    struct ki_each each = {.run = look, .number = counts};
    kiln_status status;
    TRY(ki_reduce_entries(sum, X, counts ? KI_REDUCE_COUNTS : KI_REDUCE_SUM));
    snprintf(each.call, sizeof each.call, "%s", call);
    if (!isfinite(*sum)) TRY(ki_each_run(NULL, NULL, &each, X));
done:
    return status;
}

kiln_status ki_entries_take(kiln_matrix **T, double *sum, const char *call, const kiln_matrix *X) {
    kiln_status status;
    TRY(ki_entries_sum(sum, call, X, false));
    TRY((ki_lies_apart(X) ? ki_transposed_apart : ki_transposed_new)(T, X));
done:
    return status;
}

static kiln_status centre(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                          kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)entry, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    for (int64_t i = 0; i < entries.rows; i++)
        for (int64_t e = entries.start[i]; e < entries.start[i + 1]; e++)
            entries.value[e] -= each->number + (each->row ? each->row[row + i] : 0) +
                                (each->column ? each->column[entries.col[e]] : 0);
    TRY(ki_entries_matrix(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

/* A factor for (numbers, 1) . (1, other numbers): of each number what the type holds, or what that leaves. */
static kiln_status part_factor(kiln_matrix **made, struct ki_arena *arena, const kiln_matrix *R,
                               const double *numbers, int64_t count, int at, bool rest) {
    enum { COLUMNS = 2 };
    const bool narrow = kiln_matrix_type(R) == KILN_F32;
    double *const factor = ki_arena_reals(arena, COLUMNS * count);
    kiln_status status;
    *made = ki_arena_model(arena, R, count, COLUMNS);
    TRY(arena->status);
    for (int64_t i = 0; i < count; i++) {
        const double number = numbers ? numbers[i] : 0, whole = narrow ? (double)(float)number : number;
        factor[COLUMNS * i + at] = rest ? number - whole : whole;
        factor[COLUMNS * i + 1 - at] = 1;
    }
    TRY(ki_vector_set(*made, factor));
done:
    return status;
}

/* E = from - (row + column), of either the parts that the type holds, or of both what these leave. */
static kiln_status take_off(kiln_matrix *E, const kiln_matrix *from, const double *row, const double *column,
                            bool rest) {
    struct ki_arena arena = {0};
    kiln_matrix *A = NULL, *B = NULL;
    kiln_status status;
    TRY(part_factor(&A, &arena, E, row, kiln_matrix_rows(E), 0, rest));
    TRY(part_factor(&B, &arena, E, column, kiln_matrix_cols(E), 1, rest));
    TRY(kiln_sddmm(E, NULL, 1, &(kiln_sample){.kind = KILN_SAMPLE_RESIDUAL, .S = from, .A = A, .B = B}, 0));
done:
    return ki_arena_free(&arena, status);
}

/* E is made where R lies. A matrix in a file is written by ki_each alone, as is one that has no room beside
 * R. Rows come first, then columns, and last what the type had no digits for: a difference of numbers that
 * are near each other is exact, where a sum of means would be rounded at their size. */
kiln_status ki_entries_centred(kiln_matrix **E, const kiln_matrix *R, double mean, const double *row,
                               const double *column) {
    const struct ki_each each = {.run = centre, .made = 1, .number = mean, .row = row, .column = column};
    struct ki_arena arena = {0};
    kiln_matrix *made = NULL;
    kiln_status status;
    if (ki_lies_in_file(R) || ki_pair_too_large(R)) return ki_each_run(E, NULL, &each, R);
    double *const sums = ki_arena_reals(&arena, kiln_matrix_rows(R));
    TRY(arena.status);
    for (int64_t u = 0; u < kiln_matrix_rows(R); u++) sums[u] = mean + (row ? row[u] : 0);
    TRY(ki_arena_take(&arena, &made, kiln_matrix_like(&made, R, KILN_TYPE_DEFAULT, NULL)));
    TRY(take_off(made, R, sums, NULL, false));
    if (column) TRY(take_off(made, made, NULL, column, false));
    if (kiln_matrix_type(R) == KILN_F32) TRY(take_off(made, made, sums, column, true));
    *E = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

/* By the squares about 0, unless these would leave little but rounding. */
kiln_status ki_entries_squares(double *sum, const kiln_matrix *X, double mean) {
    const double count = (double)kiln_matrix_nnz(X);
    kiln_matrix *beside = NULL;
    kiln_status status;
    double squares, all;
    TRY(ki_reduce_entries(&squares, X, KI_REDUCE_SQUARES));
    TRY(ki_reduce_entries(&all, X, KI_REDUCE_SUM));
    *sum = squares - 2 * mean * all + count * mean * mean;
    if (isfinite(*sum) && *sum > LEFT * (squares + count * mean * mean)) goto done;
    TRY(ki_entries_centred(&beside, X, mean, NULL, NULL));
    TRY(ki_reduce_entries(sum, beside, KI_REDUCE_SQUARES));
done:
    kiln_matrix_free(beside);
    return status;
}

kiln_status ki_entries_times(double *to, kiln_transpose op, const kiln_matrix *X, double *v) {
    const bool plain = op == KILN_PLAIN;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    kiln_matrix *product = NULL, *vector = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&product, device, type, plain ? kiln_matrix_rows(X) : kiln_matrix_cols(X), 1,
                          NULL));
    TRY(kiln_matrix_dense(&vector, device, type, plain ? kiln_matrix_cols(X) : kiln_matrix_rows(X), 1, NULL));
    TRY(v ? ki_vector_set(vector, v) : kiln_fill(vector, 1));
    TRY(kiln_multiply(product, 1, op, X, vector, 0, NULL));
    TRY(ki_vector_get(to, product));
done:
    kiln_matrix_free(product);
    kiln_matrix_free(vector);
    return status;
}

kiln_status ki_factors_check(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *B,
                             const kiln_matrix *X, const kiln_matrix *test) {
    kiln_status status;
    if (!A || !B || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: A, B and %s must not be NULL", call, name);
    if (A == B) return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B are one matrix", call);
    if (kiln_matrix_format(X) != KILN_CSR)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be sparse", call, name);
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_cols(X);
    TRY(ki_check_matrix(call, "A", A, X, m, kiln_matrix_cols(A)));
    TRY(ki_check_matrix(call, "B", B, X, n, kiln_matrix_cols(A)));
    if (test &&
        (kiln_matrix_format(test) != KILN_CSR || kiln_matrix_rows(test) != m || kiln_matrix_cols(test) != n ||
         kiln_matrix_device(test) != kiln_matrix_device(X) || kiln_matrix_type(test) != kiln_matrix_type(X)))
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s: the entries held out (%s_options.test) must be sparse and as %s is", call, call,
                       name);
done:
    return status;
}
