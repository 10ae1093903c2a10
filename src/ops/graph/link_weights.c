/* Whether links have weights at all: of a list without any the reader makes ones, and ones are the links of an
 * unweighted graph, whose values need not be read. A piece of values at a time, where the values are. */
#include "core/each.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "kiln/ops.h"
#include "ops/graph/ranks_error.h"

enum { PIECE = 1 << 16 };

/* sums[0] = pieces of values in which not all are 1. */
static kiln_status count_others(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                                int64_t entry, kiln_matrix **made, double *sums) {
    static const kiln_batch_kind ends[] = {KILN_BATCH_MIN, KILN_BATCH_MAX};
    const int64_t nnz = kiln_matrix_nnz(rows), count = ki_ceil_div(nnz, PIECE);
    kiln_matrix *found = NULL, *wide = NULL;
    kiln_batch *pieces = NULL;
    int64_t *offsets = ki_alloc((size_t)(count + 1) * sizeof *offsets);
    double *values = ki_alloc((size_t)(count + 1) * sizeof *values);
    kiln_status status = KILN_OK;
    (void)each, (void)row, (void)entry, (void)made;
    if (!offsets || !values) TRY(ki_fail_nomem((size_t)(count + 1) * 16, "pieces of links"));
    for (int64_t p = 0; p <= count; p++) offsets[p] = ki_min(p * PIECE, nnz);
    kiln_device *device = kiln_matrix_device(rows);
    TRY(kiln_batch_ragged(&pieces, device, count, offsets));
    TRY(kiln_matrix_dense(&found, device, kiln_matrix_type(rows), count, 1, NULL));
    for (int end = 0; end < 2 && sums[0] == 0; end++) {
        TRY(kiln_batch_reduce(found, ends[end], rows, pieces));
        TRY(kiln_matrix_copy(&wide, device, KILN_F64, found));
        TRY(kiln_matrix_get(values, wide));
        for (int64_t p = 0; p < count; p++) sums[0] += !(values[p] == 1);
        kiln_matrix_free(wide);
        wide = NULL;
    }
done:
    kiln_matrix_free(found);
    kiln_matrix_free(wide);
    kiln_batch_free(pieces);
    ki_free(offsets);
    ki_free(values);
    return status;
}

kiln_status ki_links_weighted(bool *weighted, const kiln_matrix *A) {
    double others = 0;
    const struct ki_each each = {.run = count_others, .sums = 1, .call = "links"};
    if (kiln_matrix_format(A) != KILN_CSR || kiln_matrix_nnz(A) == 0) {
        *weighted = kiln_matrix_nnz(A) > 0;
        return KILN_OK;
    }
    const kiln_status status = ki_each_run(NULL, &others, &each, A);
    if (status == KILN_OK) *weighted = others > 0;
    return status;
}
