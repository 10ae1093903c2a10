/* This header has what CPU loops over elements share: large matrices are cut into parts for the threads. */
#include "core/size.h"
#include "core/threads.h"

struct FN(elements) {
    kiln_matrix *W;
    const kiln_matrix *X, *Y;
    const double *a, *b;
    double value;
    uint64_t seed, stream;
    int kind, parts; /* kind: of map, or the distribution */
    void (*range)(const struct FN(elements) * e, real *out, int64_t first, int64_t end);
};

static void FN(elements_part)(void *arg, int part) {
    const struct FN(elements) *e = arg;
    e->range(e, VALUES(e->W), ki_part_begin(e->W->nnz, part, e->parts),
             ki_part_begin(e->W->nnz, part + 1, e->parts));
}

static void FN(each_element)(struct FN(elements) * e) {
    enum { WORTH_A_PART = 16384 };
    const int threads = e->W->device->threads;
    e->parts = (int)ki_max(ki_min(e->W->nnz / WORTH_A_PART, (int64_t)threads * 4), 1);
    ki_parallel(threads, e->parts, FN(elements_part), e);
}

/* An operand's numbers for row i: all of W's k, or one that stands for each. */
struct FN(row) {
    const real *at;
    int64_t step; /* to the next column: 1 or 0 */
};

static struct FN(row) FN(row_of)(const kiln_matrix *A, int64_t i, int64_t k) {
    return A->cols == 1 ? (struct FN(row)){VALUES(A) + i, k == 1} : (struct FN(row)){VALUES(A) + i * k, 1};
}

/* The columns of row i in a range of elements [first, end). */
static int64_t FN(row_begin)(int64_t i, int64_t k, int64_t first) {
    return ki_max(first - i * k, 0);
}
static int64_t FN(row_end)(int64_t i, int64_t k, int64_t end) {
    return ki_min(end - i * k, k);
}
