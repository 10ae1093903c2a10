/* Entries before training: looked at and transposed where they lie, which takes a GPU milliseconds; on the
 * host, where the device has no room for that, where one is to be named, and to be shared out between
 * training and test. */
#include "algorithms/factor/entries.h"

#include <stdio.h>

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

static kiln_status transpose(kiln_matrix **T, const struct ki_host_entries *entries,
                             const kiln_matrix *like) {
    struct ki_host_entries to = {0};
    kiln_status status;
    TRY(ki_entries_new(&to, entries->cols, entries->rows, entries->nnz));
    for (int64_t e = 0; e < entries->nnz; e++) to.start[entries->col[e] + 1]++;
    for (int64_t j = 0; j < to.rows; j++) to.start[j + 1] += to.start[j];
    for (int64_t i = 0; i < entries->rows; i++)
        for (int64_t e = entries->start[i]; e < entries->start[i + 1]; e++) {
            const int64_t at = to.start[entries->col[e]]++;
            to.col[at] = (int32_t)i;
            to.value[at] = entries->value[e];
        }
    for (int64_t j = to.rows; j > 0; j--) to.start[j] = to.start[j - 1];
    to.start[0] = 0;
    TRY(ki_entries_matrix(T, &to, like));
done:
    ki_host_entries_free(&to);
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

/* *sum, if all entries are finite; else NaN or infinite. The device has room for X. */
static kiln_status finite_sum(double *sum, const kiln_matrix *X) {
    double largest;
    kiln_status status;
    TRY(ki_reduce_entries(&largest, X, KI_REDUCE_MAX));
    *sum = largest;
    if (isfinite(largest)) TRY(ki_reduce_entries(sum, X, KI_REDUCE_SUM));
done:
    return status;
}

static kiln_status take_on_host(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                                kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    TRY(ki_entries_get(&entries, rows));
    TRY(ki_entries_check(&entries, each->call, row, each->number > 0));
    for (int64_t e = 0; e < entries.nnz; e++) sums[0] += entries.value[e];
    if (each->made) TRY(transpose(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

/* The same where the entries lie; *sum is not finite, and nothing made, where an entry is not or where there
 * is no room. */
static kiln_status take_there(double *sum, bool makes, const kiln_matrix *rows, kiln_matrix **made) {
    kiln_status status;
    TRY(finite_sum(sum, rows));
    if (isfinite(*sum) && makes) TRY(ki_transposed_new(made, rows));
done:
    if (status != KILN_ERR_DEVICE_NOMEM) return status;
    *sum = NAN;
    return KILN_OK;
}

/* The sum of rows' entries, each of which must be finite, of counts (number 1) also not negative, and what
 * they are transposed, if that is wanted. */
static kiln_status take(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                        kiln_matrix **made, double *sums) {
    double sum = NAN;
    kiln_status status = KILN_OK;
    (void)entry;
    if (!(each->number > 0) && ki_transposed_fits(rows)) TRY(take_there(&sum, each->made > 0, rows, made));
    if (!isfinite(sum)) return take_on_host(each, rows, row, made, sums);
    sums[0] += sum;
done:
    return status;
}

kiln_status ki_entries_take(kiln_matrix **T, double *sum, const char *call, const kiln_matrix *X) {
    struct ki_each each = {.run = take, .made = !ki_lies_apart(X), .sums = 1};
    kiln_matrix *made = NULL;
    kiln_status status;
    snprintf(each.call, sizeof each.call, "%s", call);
    TRY(ki_each_run(&made, sum, &each, X));
    if (!made) TRY(ki_transposed_apart(&made, X));
    *T = made;
done:
    return status;
}

kiln_status ki_entries_sum(double *sum, const char *call, const kiln_matrix *X, bool counts) {
    struct ki_each each = {.run = take, .sums = 1, .number = counts};
    snprintf(each.call, sizeof each.call, "%s", call);
    return ki_each_run(NULL, sum, &each, X);
}

static kiln_status subtract(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                            kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)row, (void)entry, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    for (int64_t e = 0; e < entries.nnz; e++) entries.value[e] -= each->number;
    TRY(ki_entries_matrix(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

kiln_status ki_entries_less(kiln_matrix **E, const kiln_matrix *R, double mean) {
    return ki_each_run(E, NULL, &(struct ki_each){.run = subtract, .made = 1, .number = mean}, R);
}

static kiln_status centre(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                          kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)entry, (void)sums;
    TRY(ki_entries_get(&entries, rows));
    for (int64_t i = 0; i < entries.rows; i++)
        for (int64_t e = entries.start[i]; e < entries.start[i + 1]; e++)
            entries.value[e] -= each->number + each->row[row + i] + each->column[entries.col[e]];
    TRY(ki_entries_matrix(made, &entries, rows));
done:
    ki_host_entries_free(&entries);
    return status;
}

kiln_status ki_entries_centred(kiln_matrix **E, const kiln_matrix *R, double mean, const double *row,
                               const double *column) {
    const struct ki_each each = {.run = centre, .made = 1, .number = mean, .row = row, .column = column};
    return ki_each_run(E, NULL, &each, R);
}

static kiln_status add_squares(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                               int64_t entry, kiln_matrix **made, double *sums) {
    const double mean = each->number, count = (double)kiln_matrix_nnz(rows);
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)row, (void)entry, (void)made;
    if (ki_transposed_fits(rows)) {
        double norm, sum;
        TRY(ki_reduce_entries(&norm, rows, KI_REDUCE_SQUARES));
        TRY(ki_reduce_entries(&sum, rows, KI_REDUCE_SUM));
        const double about = norm * norm - 2 * mean * sum + count * mean * mean;
        if (isfinite(about) && about > LEFT * (norm * norm + count * mean * mean)) {
            sums[0] += about;
            goto done;
        }
    }
    TRY(ki_entries_get(&entries, rows));
    for (int64_t e = 0; e < entries.nnz; e++) {
        const double beside = entries.value[e] - mean;
        sums[0] += beside * beside;
    }
done:
    ki_host_entries_free(&entries);
    return status;
}

kiln_status ki_entries_squares(double *sum, const kiln_matrix *X, double mean) {
    return ki_each_run(NULL, sum, &(struct ki_each){.run = add_squares, .sums = 1, .number = mean}, X);
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
