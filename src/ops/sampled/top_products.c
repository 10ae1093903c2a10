/* The largest products of rows: checks are the callers'. The CPU's body multiplies and chooses in one, so
 * that no scores are stored; on a GPU a block of rows is multiplied, and the host chooses from its scores. */
#include "ops/sampled/top_products.h"

#include <math.h>

#include "bodies/bodies.h"
#include "core/each.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/combine.h"

int ki_by_column(const void *a, const void *b) {
    const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* ------------------------------------------------------------------------------------- a row's best */

struct ki_best ki_best_begin(const struct ki_top_products *of, int64_t i) {
    return (struct ki_best){.columns = of->columns + i * of->top,
                            .scores = of->scores + i * of->top,
                            .top = of->top,
                            .seen = of->start ? of->seen + of->start[i] : NULL,
                            .seen_count = of->start ? of->start[i + 1] - of->start[i] : 0};
}

static bool has_seen(const struct ki_best *best, int64_t column) {
    int64_t low = 0, high = best->seen_count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (best->seen[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < best->seen_count && best->seen[low] == column;
}

/* Returns whether place a is a worse one than b. */
static bool is_worse(const struct ki_best *best, int64_t a, int64_t b) {
    return best->scores[a] < best->scores[b] ||
           (best->scores[a] == best->scores[b] && best->columns[a] > best->columns[b]);
}

static void swap_places(struct ki_best *best, int64_t a, int64_t b) {
    const int64_t column = best->columns[a];
    const double score = best->scores[a];
    best->columns[a] = best->columns[b];
    best->scores[a] = best->scores[b];
    best->columns[b] = column;
    best->scores[b] = score;
}

static void sink(struct ki_best *best, int64_t count) {
    for (int64_t at = 0;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && is_worse(best, child + 1, child)) child++;
        if (!is_worse(best, child, at)) return;
        swap_places(best, at, child);
        at = child;
    }
}

void ki_best_consider(struct ki_best *best, const unsigned char *allowed, int64_t j, double score) {
    const bool full = best->kept == best->top;
    if ((full && !(score > best->scores[0])) || (allowed && !allowed[j]) || has_seen(best, j)) return;
    int64_t at = full ? 0 : best->kept++;
    best->columns[at] = j;
    best->scores[at] = score;
    if (full) sink(best, best->top);
    for (; !full && at > 0 && is_worse(best, at, (at - 1) / 2); at = (at - 1) / 2)
        swap_places(best, at, (at - 1) / 2);
}

/* The places that are left. */
static void fill_rest(struct ki_best *best) {
    for (int64_t t = best->kept; t < best->top; t++) {
        best->columns[t] = -1;
        best->scores[t] = NAN;
    }
}

void ki_best_end(struct ki_best *best) {
    for (int64_t count = best->kept; count > 1; count--) {
        swap_places(best, 0, count - 1);
        sink(best, count - 1);
    }
    fill_rest(best);
}

/* ---------------------------------------------------------------------------------------------- CPU */

/* A matrix's values: where they lie, or where that is in other processes a copy. */
static kiln_status at_home(const void **values, void **copy, const kiln_matrix *A) {
    if (!ki_in_processes(A)) {
        *values = ki_host(&A->values);
        return KILN_OK;
    }
    const size_t bytes = (size_t)(A->rows * A->cols * ki_type_bytes(A->type));
    if (!(*copy = ki_alloc(bytes))) return ki_fail_nomem(bytes, "the rows' factors");
    *values = *copy;
    return kiln_matrix_get(*copy, A);
}

/* The next place of a row's list: of the slices' heads the best one, of equal ones the first, whose columns
 * are before the others'. */
static void take_head(struct ki_best *row, const struct ki_best *slices, int64_t *heads, int count) {
    int from = -1;
    for (int s = 0; s < count; s++)
        if (heads[s] < slices[s].kept &&
            (from < 0 || slices[s].scores[heads[s]] > slices[from].scores[heads[from]]))
            from = s;
    if (from < 0) return;
    row->columns[row->kept] = slices[from].columns[heads[from]];
    row->scores[row->kept++] = slices[from].scores[heads[from]++];
}

void ki_top_few(struct ki_top_work *work, const struct ki_bodies *bodies) {
    enum { FEW = 16, PLACES = 64, PRODUCTS_WORTH_THREADS = 1 << 20 };
    const struct ki_top_products *of = work->of;
    int64_t columns[FEW * PLACES];
    double scores[FEW * PLACES];
    struct ki_best best[FEW];
    if ((double)work->m * (double)work->n * (double)work->r < PRODUCTS_WORTH_THREADS) work->threads = 1;
    const int64_t wanted = work->m > 0 ? ki_min(work->threads / work->m, FEW / work->m) : 1;
    work->slices = of->top <= PLACES && wanted > 1 ? (int)wanted : 1;
    for (int64_t first = 0; first < work->m; first += FEW) {
        const int rows = (int)ki_min(FEW, work->m - first), lists = rows * work->slices;
        for (int l = 0; l < lists; l++) {
            best[l] = ki_best_begin(of, first + l / work->slices);
            if (work->slices == 1) continue;
            best[l].columns = columns + l * PLACES;
            best[l].scores = scores + l * PLACES;
        }
        struct ki_top_work some = *work;
        some.best = best;
        some.m = rows;
        some.a = (const char *)work->a + first * work->r * ki_type_bytes(work->type);
        bodies->top_few(&some);
        for (int i = 0; i < rows && work->slices > 1; i++) {
            struct ki_best row = ki_best_begin(of, first + i);
            int64_t heads[FEW] = {0};
            for (int64_t t = 0; t < of->top; t++)
                take_head(&row, best + i * work->slices, heads, work->slices);
            fill_rest(&row);
        }
    }
}

static kiln_status run_cpu(const struct ki_top_products *of) {
    kiln_status status;
    const kiln_matrix *A = of->A, *B = of->B;
    struct ki_top_work work = {.of = of,
                               .type = B->type,
                               .m = A->rows,
                               .n = B->rows,
                               .r = B->cols,
                               .ones = of->ones,
                               .threads = A->device->threads};
    void *a = NULL, *b = NULL;
    const int64_t padded = ki_ceil_div(work.n, KI_TOP_ROWS) * KI_TOP_ROWS; /* panels divide it */
    TRY(at_home(&work.a, &a, A));
    TRY(at_home(&work.b, &b, B));
    if (work.m < 8) {
        ki_top_few(&work, ki_bodies(A));
        goto done;
    }
    const size_t bytes = (size_t)(padded * work.r * ki_type_bytes(B->type));
    if (!(work.panels = ki_alloc(bytes))) TRY(ki_fail_nomem(bytes, "the columns' factors"));
    ki_bodies(A)->top_products(&work);
done:
    ki_free(work.panels);
    ki_free(a);
    ki_free(b);
    return status;
}

/* ---------------------------------------------------------------------------------------------- GPU */

/* A block of rows: its scores, n x KI_TOP_ROWS. */
struct block {
    const struct ki_top_products *of;
    const void *scores;
    int64_t first, count;
};

static void choose_row(void *arg, int i) {
    const struct block *block = arg;
    const struct ki_top_products *of = block->of;
    struct ki_best best = ki_best_begin(of, block->first + i);
    const bool single = of->B->type == KILN_F32;
    for (int64_t j = 0; j < of->B->rows; j++) {
        const int64_t at = j * KI_TOP_ROWS + i;
        const double score =
            single ? (double)((const float *)block->scores)[at] : ((const double *)block->scores)[at];
        if (!isnan(score)) ki_best_consider(&best, of->allowed, j, score);
    }
    ki_best_end(&best);
}

/* p = rows first .. first + count - 1 of a, transposed, and zeros. */
static void turn_block(void *p, const void *a, const struct ki_top_products *of, int64_t first,
                       int64_t count) {
    const int64_t r = of->B->cols;
    const bool single = of->B->type == KILN_F32;
    for (int64_t k = 0; k < r; k++)
        for (int64_t i = 0; i < KI_TOP_ROWS; i++) {
            const int64_t from = (first + i) * r + k, to = k * KI_TOP_ROWS + i;
            const double own = i >= count               ? 0
                               : of->ones && k == r - 1 ? 1
                               : single                 ? (double)((const float *)a)[from]
                                                        : ((const double *)a)[from];
            if (single)
                ((float *)p)[to] = (float)own;
            else
                ((double *)p)[to] = own;
        }
}

static kiln_status run_gpu(const struct ki_top_products *of) {
    kiln_status status;
    kiln_device *device = of->B->device;
    const kiln_type type = of->B->type;
    const int64_t m = of->A->rows, n = of->B->rows, r = of->B->cols, element = ki_type_bytes(type);
    kiln_matrix *P = NULL, *S = NULL;
    void *a = ki_alloc((size_t)(m * r * element)), *p = ki_alloc((size_t)(r * KI_TOP_ROWS * element));
    void *s = ki_alloc((size_t)(n * KI_TOP_ROWS * element));
    if (!a || !p || !s) TRY(ki_fail_nomem((size_t)(n * KI_TOP_ROWS * element), "the scores"));
    TRY(kiln_matrix_get(a, of->A));
    TRY(kiln_matrix_dense(&P, device, type, r, KI_TOP_ROWS, NULL));
    TRY(kiln_matrix_dense(&S, device, type, n, KI_TOP_ROWS, NULL));
    for (int64_t first = 0; first < m; first += KI_TOP_ROWS) {
        struct block block = {of, s, first, ki_min(KI_TOP_ROWS, m - first)};
        turn_block(p, a, of, first, block.count);
        TRY(kiln_matrix_set(P, p));
        TRY(kiln_multiply(S, 1, KILN_PLAIN, of->B, P, 0, NULL));
        TRY(kiln_matrix_get(s, S));
        ki_parallel(ki_default_threads(), (int)block.count, choose_row, &block);
    }
done:
    kiln_matrix_free(P);
    kiln_matrix_free(S);
    ki_free(a);
    ki_free(p);
    ki_free(s);
    return status;
}

kiln_status ki_top_products(const struct ki_top_products *of) {
    kiln_device *device = of->A->device;
    if (of->A->rows == 0) return KILN_OK;
    if (!ki_on_cpu(device)) return run_gpu(of);
    const struct ki_operand operands[] = {{of->A, false}, {of->B, false}};
    kiln_status status = ki_operands_hold(device, operands, 2);
    if (status != KILN_OK) return status;
    status = run_cpu(of);
    ki_operands_release(device, operands, 2);
    return status;
}
