/* This file computes how good the best columns of rows are: each row's figures, by a search in its sorted
 * entries, then their sums in the rows' order. */
#include <math.h>
#include <stdlib.h>

#include "core/device.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/threads.h"
#include "kiln/factors.h"
#include "metrics/metrics.h"
#include "ops/sampled/top_products.h"

struct row {
    double recall, ndcg, map, auc; /* auc NaN: the row has all columns */
    int64_t hits;
};

struct rows {
    const int64_t *columns;
    int64_t top, count, n;
    const int64_t *start;
    int32_t *col;
    struct row *each;
};

static struct row measure(const int64_t *columns, int64_t top, const int32_t *wanted, int64_t count,
                          int64_t n) {
    struct row row = {0};
    double best = 0, before = 0; /* before: pairs of a hit and a miss behind it */
    const int64_t room = ki_min(top, count);
    int64_t misses = 0;
    for (int64_t t = 0; t < top; t++) {
        const int32_t column = (int32_t)columns[t];
        if (columns[t] >= 0 && bsearch(&column, wanted, (size_t)count, sizeof column, ki_by_column)) {
            row.hits++;
            row.ndcg += 1 / log2((double)t + 2);
            row.map += (double)row.hits / (double)(t + 1);
        } else if (misses < n - count) { /* more places may be empty than there are columns to miss */
            misses++;
            before += (double)row.hits;
        }
    }
    for (int64_t t = 0; t < room; t++) best += 1 / log2((double)t + 2);
    row.recall = (double)row.hits / (double)room;
    row.ndcg /= best;
    row.map /= (double)room;
    const double others = (double)(n - count), behind = others - (double)misses;
    row.auc = n > count ? (before + (double)(row.hits + count) / 2 * behind) / ((double)count * others) : NAN;
    return row;
}

static void measure_rows(void *arg, int64_t begin, int64_t end) {
    const struct rows *rows = arg;
    for (int64_t u = begin; u < end; u++) {
        const int64_t count = rows->start[u + 1] - rows->start[u];
        int32_t *wanted = rows->col + rows->start[u];
        if (count == 0) continue;
        qsort(wanted, (size_t)count, sizeof *wanted, ki_by_column);
        rows->each[u] = measure(rows->columns + u * rows->top, rows->top, wanted, count, rows->n);
    }
}

/* *share = that of the columns which a row with entries was recommended. */
static kiln_status cover(double *share, const struct rows *rows) {
    int64_t found = 0;
    bool *there = ki_calloc((size_t)rows->n);
    if (!there) return ki_fail_nomem((size_t)rows->n, "the columns recommended");
    for (int64_t u = 0; u < rows->count; u++)
        for (int64_t t = u * rows->top; rows->start[u + 1] > rows->start[u] && t < (u + 1) * rows->top; t++) {
            if (rows->columns[t] < 0) continue;
            found += !there[rows->columns[t]];
            there[rows->columns[t]] = true;
        }
    ki_free(there);
    *share = rows->n ? (double)found / (double)rows->n : 0;
    return KILN_OK;
}

static kiln_ranking sum_of(const struct rows *rows) {
    kiln_ranking sum = {0};
    int64_t hits = 0, room = 0, ranked = 0;
    for (int64_t u = 0; u < rows->count; u++) {
        const struct row *row = &rows->each[u];
        const int64_t count = rows->start[u + 1] - rows->start[u];
        if (count == 0) continue;
        sum.rows++;
        hits += row->hits;
        room += ki_min(rows->top, count);
        sum.recall += row->recall;
        sum.ndcg += row->ndcg;
        sum.map += row->map;
        if (isnan(row->auc)) continue;
        sum.auc += row->auc;
        ranked++;
    }
    if (!sum.rows) return sum;
    sum.recall /= (double)sum.rows;
    sum.ndcg /= (double)sum.rows;
    sum.map /= (double)sum.rows;
    sum.auc = ranked ? sum.auc / (double)ranked : NAN;
    sum.precision = (double)hits / (double)room;
    return sum;
}

kiln_status kiln_ranking_of(kiln_ranking *ranking, int64_t top, const int64_t *columns,
                            const kiln_matrix *test) {
    static const char call[] = "kiln_ranking_of";
    kiln_status status;
    int64_t *start = NULL;
    struct rows rows = {.columns = columns, .top = top};
    if (!ranking || !columns || !test || top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL, or top is less than 1", call);
    TRY(KI_CHECK_RESULT(kiln_ranking, ranking));
    if (kiln_matrix_format(test) != KILN_CSR)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: test must be sparse", call));
    rows.count = kiln_matrix_rows(test);
    rows.n = kiln_matrix_cols(test);
    for (int64_t i = 0; i < rows.count * top; i++)
        if (columns[i] < -1 || columns[i] >= rows.n)
            TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: there is no column %lld", call, (long long)columns[i]));
    const int64_t nnz = kiln_matrix_nnz(test);
    start = ki_alloc((size_t)(rows.count + 1) * sizeof *start);
    rows.col = ki_alloc((size_t)nnz * sizeof *rows.col);
    rows.each = ki_calloc((size_t)rows.count * sizeof *rows.each);
    if (!start || !rows.col || !rows.each) TRY(ki_fail_nomem((size_t)nnz * 4, "the entries on the host"));
    TRY(kiln_matrix_get_csr(start, rows.col, NULL, test));
    rows.start = start;
    ki_parallel_ranges(ki_default_threads(), rows.count, 256, measure_rows, &rows);
    kiln_ranking sum = sum_of(&rows);
    TRY(cover(&sum.coverage, &rows));
    if (!sum.rows) sum.coverage = 0;
    KI_GIVE(kiln_ranking, ranking, &sum);
done:
    ki_free(start);
    ki_free(rows.col);
    ki_free(rows.each);
    return status;
}

kiln_status kiln_rank(kiln_ranking *ranking, int64_t top, const kiln_model *model, const kiln_matrix *A,
                      const kiln_matrix *train, const kiln_matrix *test) {
    static const char call[] = "kiln_rank";
    kiln_status status;
    int64_t *columns = NULL, bytes = 0;
    double *scores = NULL;
    if (!ranking || !model || !A || !test || top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL, or top is less than 1", call);
    if (kiln_matrix_format(test) != KILN_CSR || kiln_matrix_rows(test) != kiln_matrix_rows(A))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: test must be sparse, with the rows of A", call));
    if (!ki_mul3(kiln_matrix_rows(A), top, sizeof *scores, &bytes)) TRY(ki_fail_nomem(SIZE_MAX, call));
    columns = ki_alloc((size_t)bytes);
    scores = ki_alloc((size_t)bytes);
    if (!columns || !scores) TRY(ki_fail_nomem((size_t)bytes, "the recommendations"));
    TRY(kiln_recommend(columns, scores, top, model, A, train));
    TRY(kiln_ranking_of(ranking, top, columns, test));
done:
    ki_free(columns);
    ki_free(scores);
    return status;
}
