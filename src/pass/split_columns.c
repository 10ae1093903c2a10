/* The slices of a sparse matrix that lies on a group by columns: where the results are sums over columns, as
 * PageRank's are, each member has all that adds up to a part of them, and no sums are exchanged.
 *
 * A slice has a row for each of the whole's, with its entries in the slice's columns. Unlike a slice of rows
 * it is no piece of the whole's arrays, but copied once, by a thread for each member, which reads the whole
 * twice: to count, and to copy. */
#include <string.h>

#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "pass/group.h"

struct arrays {
    int64_t *start;
    int32_t *col;
    void *values;
};

struct copying {
    struct ki_split *split;
    const kiln_matrix *X;
    struct arrays of_X, slice[KI_MEMBERS];
    kiln_status status[KI_MEMBERS];
};

static struct arrays arrays_of(const kiln_matrix *X) {
    kiln_matrix *A = (kiln_matrix *)(uintptr_t)X;
    void *part[KI_PARTS];
    for (int i = 0; i < KI_PARTS; i++)
        part[i] = ki_on_cpu(X->device) ? ki_host(ki_matrix_part(A, i)) : ki_matrix_host(A, i);
    return (struct arrays){part[KI_ROW_START], part[KI_COL], part[KI_VALUES]};
}

/* Finds where the columns are cut: each has its share of columns and entries, by the entries of every
 * so-manyth row. */
static kiln_status cut(struct ki_split *split, const kiln_matrix *X, const struct arrays *of,
                       const struct ki_shares *shares) {
    const int64_t every = ki_ceil_div(ki_max(X->nnz, 1), ki_limits.sampled_entries), parts = split->count;
    int64_t *count = ki_calloc((size_t)ki_max(X->cols, 1) * sizeof *count), all = X->cols, before = 0;
    if (!count) return ki_fail_nomem((size_t)X->cols * sizeof *count, "the lengths of columns");
    for (int64_t row = 0; row < X->rows; row += every)
        for (int64_t e = of->start[row]; e < of->start[row + 1]; e++)
            count[of->col[e]] += every, all += every;
    for (int64_t c = 0, i = 1; i < parts; i++) {
        for (; c < X->cols && before < ki_shares_begin(shares, all, (int)i); c++) before += 1 + count[c];
        /* As long as there are columns each member has one. */
        split->first[i] =
            ki_max(ki_min(c, ki_max(X->cols - (parts - i), 0)), ki_min(split->first[i - 1] + 1, X->cols));
    }
    split->first[parts] = X->cols;
    ki_free(count);
    return KILN_OK;
}

static void count_rows(void *of, int i) {
    struct copying *copying = of;
    const struct arrays *X = &copying->of_X;
    const int64_t first = copying->split->first[i], end = copying->split->first[i + 1],
                  rows = copying->X->rows;
    int64_t *start = copying->slice[i].start, count = 0;
    for (int64_t row = 0; row < rows; row++) {
        start[row] = count;
        for (int64_t e = X->start[row]; e < X->start[row + 1]; e++)
            count += X->col[e] >= first && X->col[e] < end;
    }
    start[rows] = count;
}

static void copy_entries(void *of, int i) {
    const struct copying *copying = of;
    const struct arrays *X = &copying->of_X, *slice = &copying->slice[i];
    const int64_t first = copying->split->first[i], end = copying->split->first[i + 1],
                  all = X->start[copying->X->rows];
    const size_t size = (size_t)ki_type_bytes(copying->X->type);
    int64_t at = 0;
    for (int64_t e = 0; e < all; e++) {
        if (X->col[e] < first || X->col[e] >= end) continue;
        slice->col[at] = (int32_t)(X->col[e] - first);
        memcpy((char *)slice->values + (size_t)at * size, (const char *)X->values + (size_t)e * size, size);
        at++;
    }
}

static kiln_status new_array(void **array, int64_t count, int64_t size) {
    const size_t bytes = (size_t)(ki_max(count, 1) * size);
    *array = ki_alloc(bytes);
    return *array ? KILN_OK : ki_fail_nomem(bytes, "a slice of a matrix");
}

/* The slices' arrays become matrices. */
static kiln_status adopt(struct copying *copying) {
    struct ki_split *split = copying->split;
    const kiln_matrix *X = copying->X;
    kiln_status status = KILN_OK;
    for (int i = 0; i < split->count; i++) {
        struct arrays *slice = &copying->slice[i];
        TRY(ki_matrix_adopt_csr(&split->X[i], X->device->group->member[i], X->type, X->rows,
                                split->first[i + 1] - split->first[i], slice->start[X->rows], slice->start,
                                slice->col, slice->values));
        *slice = (struct arrays){NULL, NULL, NULL};
    }
done:
    return status;
}

static kiln_status fill(struct copying *copying) {
    const int count = copying->split->count;
    kiln_status status = KILN_OK;
    for (int i = 0; i < count; i++)
        TRY(new_array((void **)&copying->slice[i].start, copying->X->rows + 1, 8));
    ki_parallel(count, count, count_rows, copying);
    for (int i = 0; i < count; i++) {
        struct arrays *slice = &copying->slice[i];
        TRY(new_array((void **)&slice->col, slice->start[copying->X->rows], 4));
        TRY(new_array(&slice->values, slice->start[copying->X->rows], ki_type_bytes(copying->X->type)));
    }
    ki_parallel(count, count, copy_entries, copying);
    TRY(adopt(copying));
done:
    for (int i = 0; i < count; i++) {
        ki_free(copying->slice[i].start);
        ki_free(copying->slice[i].col);
        ki_free(copying->slice[i].values);
    }
    return status;
}

static const struct ki_slot_kind columns_kind = {.name = "a group's slices by columns",
                                                 .drop = ki_split_free};

kiln_status ki_split_columns_of(const struct ki_split **split, const kiln_matrix *X) {
    struct copying copying = {.split = ki_slot_get(X, &columns_kind), .X = X};
    struct ki_shares shares;
    kiln_status status = KILN_OK;
    *split = copying.split;
    if (copying.split) return KILN_OK;
    TRY(ki_split_in_memory(X));
    ki_shares_of(&shares, X);
    copying.of_X = arrays_of(X);
    copying.split = ki_calloc(sizeof *copying.split);
    if (!copying.split) return ki_fail_nomem(sizeof *copying.split, columns_kind.name);
    copying.split->count = X->device->group->count;
    TRY(cut(copying.split, X, &copying.of_X, &shares));
    TRY(fill(&copying));
    TRY(ki_slot_put(X, &columns_kind, copying.split, 0));
    *split = copying.split;
    copying.split = NULL;
done:
    if (copying.split) ki_split_free(X->device, copying.split);
    return status;
}
