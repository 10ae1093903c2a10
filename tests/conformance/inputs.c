/* Operands of a problem: dense values straight from Philox; sparse rows by stratified sampling, which gives
 * distinct, sorted columns in one step each: row entry number t of L takes a column from the t-th of L equal
 * slices. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/device.h"
#include "core/threads.h"

enum stream {
    STREAM_LENGTH = 1,
    STREAM_COLUMN,
    STREAM_VALUE,
    STREAM_SHUFFLE,
    STREAM_DEVICE,
    STREAM_DENSE = 100
};

enum { ROWS_WORTH_A_PART = 1024 };

static void *must(void *memory) {
    if (!memory) {
        fprintf(stderr, "conformance: out of memory\n");
        exit(1);
    }
    return memory;
}

double random_uniform(uint64_t stream, uint64_t index) {
    uint32_t word[4];
    reference_philox(word, SEED, stream, index);
    return ((double)word[0] + (double)word[1] / 4294967296.0) / 4294967296.0;
}

/* ------------------------------------------------------------------------------------------ CSR */

static int64_t at_most(int64_t value, int64_t limit) {
    return value < limit ? value : limit;
}

static int64_t row_length(const struct problem *p, int64_t i) {
    double u = random_uniform(STREAM_LENGTH, (uint64_t)i);
    int64_t varied = at_most(1 + (int64_t)(u * (double)(2 * p->per_row - 1)), p->cols);
    switch (p->pattern) {
    case PATTERN_DENSE: return p->cols;
    case PATTERN_NO_ENTRIES: return 0;
    case PATTERN_EMPTY_ROWS: return i % 3 == 1 && i != p->rows - 1 ? varied : 0;
    case PATTERN_EMPTY_COLUMNS: return at_most(varied, (p->cols - 2) / 3);
    case PATTERN_DENSE_ROW: return i == p->rows / 2 ? p->cols : varied;
    case PATTERN_POWER_LAW: return at_most((int64_t)((double)p->per_row / 3 / pow(1 - u, 0.7)), p->cols);
    default: return varied;
    }
}

/* Popular columns come first; the t-th slice of the distribution may lie in the column just taken, so move
 * on. */
static int32_t zipf_column(const struct problem *p, int64_t length, int64_t t, double u, int32_t previous) {
    double rank = pow((double)p->cols + 1, ((double)t + u) / (double)length) - 1;
    int64_t col = rank > previous ? (int64_t)rank : previous + 1;
    if (col <= previous) col = previous + 1;
    return (int32_t)at_most(col, p->cols - (length - t));
}

static void shuffle_row(int32_t *col, int64_t begin, int64_t length) {
    for (int64_t t = length - 1; t > 0; t--) {
        int64_t other = (int64_t)(random_uniform(STREAM_SHUFFLE, (uint64_t)(begin + t)) * (double)(t + 1));
        int32_t swapped = col[t];
        col[t] = col[other];
        col[other] = swapped;
    }
}

static void fill_row(const struct problem *p, int32_t *col, int64_t begin, int64_t length) {
    int64_t hot = p->cols / 2;
    int64_t width = p->pattern == PATTERN_EMPTY_COLUMNS ? (p->cols - 2) / 3 : p->cols;
    for (int64_t t = 0; t < length; t++) {
        double u = random_uniform(STREAM_COLUMN, (uint64_t)(begin + t));
        int64_t low = t * width / length, high = (t + 1) * width / length;
        int64_t chosen = low + (int64_t)(u * (double)(high - low));
        if (p->pattern == PATTERN_ZIPF) chosen = zipf_column(p, length, t, u, t ? col[t - 1] : -1);
        if (p->pattern == PATTERN_EMPTY_COLUMNS) chosen = 1 + 3 * chosen;
        if (p->pattern == PATTERN_HOT_COLUMN && low <= hot && hot < high) chosen = hot;
        col[t] = (int32_t)chosen;
    }
    if (p->pattern == PATTERN_UNSORTED) shuffle_row(col, begin, length);
}

struct rows_to_fill {
    const struct problem *problem;
    struct host_matrix *X;
};

static void fill_rows(void *of, int64_t first, int64_t stop) {
    const struct rows_to_fill *rows = of;
    struct host_matrix *X = rows->X;
    for (int64_t i = first; i < stop; i++) {
        int64_t begin = X->row_start[i], length = X->row_start[i + 1] - begin;
        fill_row(rows->problem, X->col + begin, begin, length);
        for (int64_t e = begin; X->values && e < begin + length; e++)
            host_set(X, e, 2 * random_uniform(STREAM_VALUE, (uint64_t)e) - 1);
    }
}

void make_csr(struct host_matrix *X, const struct problem *p, kiln_type type) {
    size_t element = type == KILN_F32 ? 4 : 8;
    *X = (struct host_matrix){.type = type, .rows = p->rows, .cols = p->cols};
    X->row_start = must(malloc((size_t)(p->rows + 1) * sizeof *X->row_start));
    X->row_start[0] = 0;
    for (int64_t i = 0; i < p->rows; i++) X->row_start[i + 1] = X->row_start[i] + row_length(p, i);
    X->nnz = X->row_start[p->rows];
    X->col = must(malloc((size_t)X->nnz * sizeof *X->col + 1));
    if (!(p->flags & WITH_ONES)) X->values = must(malloc((size_t)X->nnz * element + 1));
    struct rows_to_fill rows = {p, X};
    ki_parallel_ranges(ki_default_threads(), p->rows, ROWS_WORTH_A_PART, fill_rows, &rows);
}

/* ---------------------------------------------------------------------------------------- dense */

void host_new(struct operand *A, kiln_type type, int64_t rows, int64_t cols) {
    A->host = (struct host_matrix){.type = type, .rows = rows, .cols = cols, .nnz = rows * cols};
    A->host.values = must(calloc((size_t)(rows * cols) + 1, type == KILN_F32 ? 4 : 8));
}

kiln_status operand_upload(struct work *work, struct operand *A) {
    const struct host_matrix *h = &A->host;
    if (h->row_start)
        return kiln_matrix_csr(&A->matrix, work->device, h->type, h->rows, h->cols, h->row_start, h->col,
                               h->values);
    return kiln_matrix_dense(&A->matrix, work->device, h->type, h->rows, h->cols, h->values);
}

/* Operands of a problem differ by their place in struct work. */
static uint64_t stream_of(const struct work *work, const struct operand *A) {
    return STREAM_DENSE + (uint64_t)((const char *)A - (const char *)work);
}

kiln_status make_random(struct work *work, struct operand *A, int64_t rows, int64_t cols) {
    if (rows * cols > HOST_MADE_MAX) {
        A->host = (struct host_matrix){.type = work->type, .rows = rows, .cols = cols, .nnz = rows * cols};
        CHECK_OK(kiln_matrix_dense(&A->matrix, work->device, work->type, rows, cols, NULL));
        return kiln_fill_random(A->matrix, KILN_NORMAL, SEED, stream_of(work, A));
    }
    uint64_t stream = stream_of(work, A);
    host_new(A, work->type, rows, cols);
    for (int64_t e = 0; e < rows * cols; e++)
        host_set(&A->host, e, 2 * random_uniform(stream, (uint64_t)e) - 1);
    return operand_upload(work, A);
}

kiln_status make_filled(struct work *work, struct operand *A, int64_t rows, int64_t cols, double value) {
    host_new(A, work->type, rows, cols);
    for (int64_t e = 0; e < rows * cols; e++) host_set(&A->host, e, value);
    return operand_upload(work, A);
}

struct operand *work_result(struct work *work, enum result result) {
    switch (result) {
    case RESULT_W: return &work->w;
    case RESULT_SUMS: return &work->sums;
    case RESULT_CURVATURE: return &work->curvature;
    default: return NULL;
    }
}

kiln_status make_result(struct work *work, enum result result, int64_t rows, int64_t cols) {
    return make_filled(work, work_result(work, result), rows, cols, (double)NAN);
}

kiln_status make_output(struct work *work, int64_t rows, int64_t cols) {
    return make_result(work, RESULT_W, rows, cols);
}

void make_alias(struct work *work, struct operand *A) {
    *A = work->w;
    A->alias = true;
}

kiln_status make_X(struct work *work) {
    const struct problem *p = work->problem;
    struct host_matrix *X = &work->X.host;
    if (p->pattern == PATTERN_CODES) return make_codes(work);
    if (p->format == KILN_DENSE && !(p->flags & WITH_X_NAN))
        return make_random(work, &work->X, p->rows, p->cols);
    if (p->format == KILN_DENSE) {
        host_new(&work->X, work->type, p->rows, p->cols);
        for (int64_t e = 0; e < X->nnz; e++)
            host_set(X, e, 2 * random_uniform(STREAM_VALUE, (uint64_t)e) - 1);
    } else {
        make_csr(X, p, work->type);
    }
    if (p->flags & WITH_X_NAN && X->nnz > 0)
        host_set(X, X->row_start ? X->nnz / 2 : p->rows / 2 * p->cols, (double)NAN);
    if (p->flags & WITH_X_INF) host_set(X, X->row_start[p->rows / 2 + 1] - 1, (double)INFINITY);
    return operand_upload(work, &work->X);
}

static kiln_status fetch(struct operand *A) {
    if (!A->matrix || A->host.values || A->host.row_start) return KILN_OK;
    void *values = must(malloc((size_t)A->host.nnz * (A->host.type == KILN_F32 ? 4 : 8) + 1));
    kiln_status status = kiln_matrix_get(values, A->matrix);
    if (status == KILN_OK)
        A->host.values = values;
    else
        free(values);
    return status;
}

kiln_status work_fetch(struct work *work) {
    CHECK_OK(fetch(&work->X));
    CHECK_OK(fetch(&work->v));
    CHECK_OK(fetch(&work->y));
    CHECK_OK(fetch(&work->z));
    return fetch(&work->w);
}

void operand_free(struct operand *A) {
    if (A->alias) return;
    kiln_matrix_free(A->matrix);
    free(A->host.values);
    free(A->host.row_start);
    free(A->host.col);
}

void work_free(struct work *work) {
    operand_free(&work->X);
    operand_free(&work->v);
    operand_free(&work->y);
    operand_free(&work->z);
    operand_free(&work->w);
    operand_free(&work->target);
    operand_free(&work->weights);
    operand_free(&work->offset);
    operand_free(&work->shift);
    operand_free(&work->sums);
    operand_free(&work->curvature);
    if (work->own) work->free_own(work->own);
    work->own = NULL;
}

/* ------------------------------------------------------------------------------------- problems */

static double expected_entries(const struct problem *p) {
    if (p->format == KILN_DENSE || p->pattern == PATTERN_DENSE) return (double)p->rows * (double)p->cols;
    return (double)p->rows * (double)p->per_row + (double)p->cols;
}

/* One problem of four, whatever else is in the list: the golden ratio's multiples spread evenly and have no
 * period. */
static bool in_sample(const struct problem *p) {
    const int64_t number = p->rows + 3 * p->cols + 5 * p->per_row + 7 * p->k + 11 * (int64_t)p->flags +
                           13 * p->kind + 17 * p->family + 19 * p->link + 23 * (int64_t)p->pattern;
    const double turns = 0.6180339887498949 * (double)number;
    return turns - floor(turns) < 0.25;
}

void problem_add(struct problem_list *list, struct problem problem) {
    if (list->sampled && !in_sample(&problem)) return;
    if (expected_entries(&problem) * (double)problem.k > (double)list->entries_max) return;
    int64_t capacity = list->count + 1;
    list->problems = must(realloc(list->problems, (size_t)capacity * sizeof *list->problems));
    list->problems[list->count++] = problem;
}

void problem_describe(char *text, size_t bytes, const struct problem *p) {
    static const char *const patterns[] = {
#define PATTERN_NAME(name) #name,
        PATTERN_LIST(PATTERN_NAME)
#undef PATTERN_NAME
    };
    static const char *const flags[] = {
#define FLAG_NAME(name, bit) [bit] = #name,
        FLAG_LIST(FLAG_NAME)
#undef FLAG_NAME
    };
    int used = snprintf(text, bytes, "%s %s %lldx%lld k=%lld", p->format == KILN_CSR ? "csr" : "dense",
                        patterns[p->pattern], (long long)p->rows, (long long)p->cols, (long long)p->k);
    if (p->format == KILN_CSR)
        used += snprintf(text + used, bytes - (size_t)used, " per_row=%lld", (long long)p->per_row);
    if (p->kind) used += snprintf(text + used, bytes - (size_t)used, " kind=%d", p->kind);
    if (p->family)
        used += snprintf(text + used, bytes - (size_t)used, " family=%d link=%d", p->family, p->link);
    if (p->alpha != 0)
        used += snprintf(text + used, bytes - (size_t)used, " alpha=%g beta=%g", p->alpha, p->beta);
    for (int bit = 0; bit < (int)(sizeof flags / sizeof *flags); bit++)
        if (p->flags >> bit & 1) used += snprintf(text + used, bytes - (size_t)used, " %s", flags[bit]);
}
