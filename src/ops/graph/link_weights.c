/* This file says whether links have weights at all: of a list without any the reader makes ones, and ones are
 * the links of an unweighted graph, whose values need not be read. */
#include "core/matrix.h"
#include "core/status.h"
#include "ops/graph/ranks_error.h"
#include "ops/vectors/reduce.h"

enum { COUNTED = 1 << 24 }; /* ones that a sum in f32 counts without rounding */

/* All links are ones where these are as many. */
kiln_status ki_links_weighted(bool *weighted, const kiln_matrix *A) {
    double ones;
    kiln_status status = KILN_OK;
    *weighted = true;
    if (A->format != KILN_CSR || (!A->device->properties.has_f64 && A->nnz > COUNTED)) return KILN_OK;
    TRY(ki_reduce_entries(&ones, A, KI_REDUCE_ONES));
    *weighted = !(ones == (double)A->nnz);
done:
    return status;
}
