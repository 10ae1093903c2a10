/* The best columns of each row, by its scores A B^T: the product for a block of rows on the device, the
 * choice on the host. */
#include "algorithms/factor/entries.h"
#include "algorithms/registry.h"

enum { ROWS_AT_ONCE = 64 };

struct scorer {
    kiln_matrix *B, *P, *S; /* n x r; r x block; n x block */
    double *a, *p, *s;      /* all of A on the host; P and S */
    int64_t m, n, r, block; /* block: rows at once */
    double mean;
    bool biases;
};

static void scorer_free(struct scorer *scorer) {
    kiln_matrix_free(scorer->B);
    kiln_matrix_free(scorer->P);
    kiln_matrix_free(scorer->S);
    ki_free(scorer->a);
    ki_free(scorer->p);
    ki_free(scorer->s);
}

static kiln_status scorer_begin(struct scorer *scorer, const char *call, const kiln_model *model,
                                const kiln_matrix *A) {
    kiln_status status;
    TRY(ki_model_check(model));
    const struct ki_algorithm *algorithm = ki_algorithm_of(model);
    if (!algorithm->biases)
        TRY(ki_fail(KILN_ERR_MODEL, "%s: a model of %s recommends nothing", call, algorithm->shown.name));
    scorer->biases = algorithm->biases(model, &scorer->mean);
    kiln_device *device = kiln_matrix_device(A);
    const kiln_type type = kiln_matrix_type(A);
    TRY(kiln_model_tensor(&scorer->B, device, type, model, "B"));
    scorer->m = kiln_matrix_rows(A);
    scorer->n = kiln_matrix_rows(scorer->B);
    scorer->r = kiln_matrix_cols(scorer->B);
    scorer->block = ki_max(1, ki_min(ROWS_AT_ONCE, scorer->m));
    TRY(ki_check_matrix(call, "A", A, A, scorer->m, scorer->r));
    TRY(kiln_matrix_dense(&scorer->P, device, type, scorer->r, scorer->block, NULL));
    TRY(kiln_matrix_dense(&scorer->S, device, type, scorer->n, scorer->block, NULL));
    scorer->a = ki_alloc((size_t)(scorer->m * scorer->r) * sizeof(double));
    scorer->p = ki_alloc((size_t)(scorer->r * scorer->block) * sizeof(double));
    scorer->s = ki_alloc((size_t)(scorer->n * scorer->block) * sizeof(double));
    if (!scorer->a || !scorer->p || !scorer->s)
        TRY(ki_fail_nomem((size_t)(scorer->n * scorer->block) * sizeof(double), "the scores"));
    TRY(ki_vector_get(scorer->a, A));
done:
    return status;
}

/* s[j * block + i] = the score of column j for row first + i. A bias of the row meets no factor but 1. */
static kiln_status score_block(struct scorer *scorer, int64_t first, int64_t count) {
    kiln_status status;
    const int64_t r = scorer->r;
    for (int64_t k = 0; k < r; k++)
        for (int64_t i = 0; i < scorer->block; i++) {
            const double own = i < count ? scorer->a[(first + i) * r + k] : 0;
            scorer->p[k * scorer->block + i] = scorer->biases && k == r - 1 ? 1 : own;
        }
    TRY(ki_vector_set(scorer->P, scorer->p));
    TRY(kiln_multiply(scorer->S, 1, KILN_PLAIN, scorer->B, scorer->P, 0, NULL));
    TRY(ki_vector_get(scorer->s, scorer->S));
    for (int64_t i = 0; i < count && scorer->biases; i++)
        for (int64_t j = 0; j < scorer->n; j++)
            scorer->s[j * scorer->block + i] += scorer->mean + scorer->a[(first + i) * r + r - 1];
done:
    return status;
}

/* The `top` best of row i of the block that are not seen, best first, by insertion: top is small beside n. */
static void choose(int64_t *columns, double *scores, int64_t top, const struct scorer *scorer, int64_t i,
                   const int32_t *seen, int64_t seen_count, bool *taken) {
    int64_t kept = 0;
    for (int64_t e = 0; e < seen_count; e++) taken[seen[e]] = true;
    for (int64_t j = 0; j < scorer->n; j++) {
        const double score = scorer->s[j * scorer->block + i];
        if (taken[j] || (kept == top && !(score > scores[top - 1]))) continue;
        int64_t at = kept < top ? kept++ : top - 1;
        for (; at > 0 && scores[at - 1] < score; at--) {
            scores[at] = scores[at - 1];
            columns[at] = columns[at - 1];
        }
        scores[at] = score;
        columns[at] = j;
    }
    for (int64_t e = 0; e < seen_count; e++) taken[seen[e]] = false;
    for (; kept < top; kept++) {
        columns[kept] = -1;
        scores[kept] = NAN;
    }
}

static kiln_status check_seen(const char *call, const char *name, const struct scorer *scorer,
                              const kiln_matrix *seen) {
    if (kiln_matrix_format(seen) == KILN_CSR && kiln_matrix_rows(seen) == scorer->m &&
        kiln_matrix_cols(seen) == scorer->n)
        return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be sparse and %lld x %lld", call, name,
                   (long long)scorer->m, (long long)scorer->n);
}

kiln_status kiln_recommend(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                           const kiln_matrix *A, const kiln_matrix *seen) {
    static const char call[] = "kiln_recommend";
    kiln_status status;
    struct scorer scorer = {0};
    struct ki_host_entries entries = {0};
    bool *taken = NULL;
    if (!columns || !scores || !model || !A)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (top < 1) return ki_fail(KILN_ERR_ARGUMENT, "%s: top is %lld", call, (long long)top);
    TRY(scorer_begin(&scorer, call, model, A));
    if (seen) TRY(check_seen(call, "seen", &scorer, seen));
    if (seen) TRY(ki_entries_get(&entries, seen));
    if (!(taken = ki_calloc((size_t)scorer.n))) TRY(ki_fail_nomem((size_t)scorer.n, "the columns seen"));
    for (int64_t first = 0; first < scorer.m; first += scorer.block) {
        const int64_t count = ki_min(scorer.block, scorer.m - first);
        TRY(score_block(&scorer, first, count));
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = first + i, from = seen ? entries.start[row] : 0;
            choose(columns + row * top, scores + row * top, top, &scorer, i, seen ? entries.col + from : NULL,
                   seen ? entries.start[row + 1] - from : 0, taken);
        }
    }
done:
    ki_free(taken);
    ki_host_entries_free(&entries);
    scorer_free(&scorer);
    return status;
}

/* ------------------------------------------------------------------------------------------ rankings */

struct hits {
    int64_t hits, shown, possible; /* possible: min(top, test entries) */
    double gain, best;
};

static struct hits count_hits(const int64_t *columns, int64_t top, const int32_t *wanted, int64_t count) {
    struct hits hits = {.possible = ki_min(top, count)};
    for (int64_t place = 0; place < top && columns[place] >= 0; place++) {
        hits.shown++;
        for (int64_t e = 0; e < count; e++)
            if (wanted[e] == columns[place]) {
                hits.hits++;
                hits.gain += 1 / log2((double)place + 2);
            }
    }
    for (int64_t place = 0; place < hits.possible; place++) hits.best += 1 / log2((double)place + 2);
    return hits;
}

kiln_status kiln_rank(kiln_ranking *ranking, int64_t top, const kiln_model *model, const kiln_matrix *A,
                      const kiln_matrix *train, const kiln_matrix *test) {
    static const char call[] = "kiln_rank";
    kiln_status status;
    struct ki_host_entries entries = {0};
    kiln_ranking sum = {0};
    int64_t *columns = NULL, shown = 0, hits = 0, bytes = 0;
    double *scores = NULL;
    if (!ranking || !model || !A || !test || top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL, or top is less than 1", call);
    TRY(KI_CHECK_RESULT(kiln_ranking, ranking));
    if (kiln_matrix_format(test) != KILN_CSR || kiln_matrix_rows(test) != kiln_matrix_rows(A))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: test must be sparse, with the rows of A", call));
    if (!ki_mul3(kiln_matrix_rows(A), top, sizeof *scores, &bytes)) TRY(ki_fail_nomem(SIZE_MAX, call));
    columns = ki_alloc((size_t)bytes);
    scores = ki_alloc((size_t)bytes);
    if (!columns || !scores) TRY(ki_fail_nomem((size_t)bytes, "the recommendations"));
    TRY(kiln_recommend(columns, scores, top, model, A, train));
    TRY(ki_entries_get(&entries, test));
    for (int64_t u = 0; u < entries.rows; u++) {
        const int64_t count = entries.start[u + 1] - entries.start[u];
        if (count == 0) continue;
        const struct hits row = count_hits(columns + u * top, top, entries.col + entries.start[u], count);
        sum.recall += (double)row.hits / (double)row.possible;
        sum.ndcg += row.gain / row.best;
        shown += row.shown;
        hits += row.hits;
        sum.rows++;
    }
    if (sum.rows > 0) {
        sum.recall /= (double)sum.rows;
        sum.ndcg /= (double)sum.rows;
    }
    sum.precision = shown > 0 ? (double)hits / (double)shown : 0;
    KI_GIVE(kiln_ranking, ranking, &sum);
done:
    ki_free(columns);
    ki_free(scores);
    ki_host_entries_free(&entries);
    return status;
}
