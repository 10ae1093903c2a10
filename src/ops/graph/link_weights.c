/* This file says whether links have weights at all: of a list without any the reader makes ones, and ones are
 * the links of an unweighted graph, whose values need not be read. Values are looked at where they are. */
#include "core/each.h"
#include "core/matrix.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "kiln/ops.h"
#include "ops/graph/ranks_error.h"

enum { PIECE = 1 << 16 };

/* The values lie on the device: *others = ends of pieces, least or largest values, that are not 1. */
static kiln_status look_there(double *others, const kiln_matrix *A) {
    static const kiln_batch_kind ends[] = {KILN_BATCH_MIN, KILN_BATCH_MAX};
    const int64_t nnz = A->nnz, count = ki_ceil_div(nnz, PIECE);
    kiln_matrix *found = NULL, *wide = NULL;
    kiln_batch *pieces = NULL;
    int64_t *offsets = ki_alloc((size_t)(count + 1) * sizeof *offsets);
    double *values = ki_alloc((size_t)(count + 1) * sizeof *values);
    kiln_status status = KILN_OK;
    if (!offsets || !values) TRY(ki_fail_nomem((size_t)(count + 1) * 16, "pieces of links"));
    for (int64_t p = 0; p <= count; p++) offsets[p] = ki_min(p * PIECE, nnz);
    TRY(kiln_batch_ragged(&pieces, A->device, count, offsets));
    TRY(kiln_matrix_dense(&found, A->device, A->type, count, 1, NULL));
    for (int end = 0; end < 2 && *others == 0; end++) {
        TRY(kiln_batch_reduce(found, ends[end], A, pieces));
        TRY(kiln_matrix_copy(&wide, A->device, KILN_F64, found));
        TRY(kiln_matrix_get(values, wide));
        for (int64_t p = 0; p < count; p++) *others += !(values[p] == 1);
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

/* The values lie in host memory or in a file, and are counted up to the first piece in which some are not
 * 1. */
static kiln_status look_here(double *others, const kiln_matrix *A) {
    void *values = ki_alloc((size_t)PIECE * sizeof(double));
    kiln_status status = KILN_OK;
    if (!values) TRY(ki_fail_nomem((size_t)PIECE * sizeof(double), "a piece of links"));
    for (int64_t first = 0; first < A->nnz && *others == 0; first += PIECE) {
        const int64_t count = ki_min(A->nnz - first, PIECE);
        TRY(ki_elements_get(values, A, first, count));
        for (int64_t e = 0; e < count; e++)
            *others +=
                !(A->type == KILN_F32 ? ((const float *)values)[e] == 1 : ((const double *)values)[e] == 1);
    }
done:
    ki_free(values);
    return status;
}

static kiln_status look(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                        kiln_matrix **made, double *sums) {
    (void)each, (void)row, (void)entry, (void)made;
    return rows->nnz == 0             ? KILN_OK
           : ki_matrix_resident(rows) ? look_there(sums, rows)
                                      : look_here(sums, rows);
}

kiln_status ki_links_weighted(bool *weighted, const kiln_matrix *A) {
    double others = 0;
    const struct ki_each each = {.run = look, .sums = 1, .call = "links"};
    *weighted = true;
    if (A->format != KILN_CSR) return KILN_OK;
    const kiln_status status = ki_each_run(NULL, &others, &each, A);
    if (status == KILN_OK) *weighted = others > 0;
    return status;
}
