/* seconds = start + move + passes * (pass + overhead)
 *
 * The overhead model of the iterative-kernels paper (its section 4.2, T = c + o) with the two terms that it leaves
 * to "whether data have to be transferred" spelt out. A pass is limited by memory: a dense one by bytes, a sparse one by
 * entries, at a rate that falls with the number of columns as the sums in w leave the chip. Between the two measured
 * widths the rate is interpolated on a logarithmic scale, as caches are nested on one. */
#include "core/cost.h"

#include <math.h>

#include "core/size.h"

/* Vectors of n x k that an iteration of conjugate gradient reads or writes (kiln_cg_step, and w and y of the pass). */
static const double VECTORS = 11;
/* What a pass takes with 8 columns of y, as a multiple of one column's time, and how many columns share a pass. */
static const double EIGHT_COLUMNS = 1.3;
enum { COLUMNS_A_PASS = 8 };
/* X, and beside it what passes need: vectors, partial sums, what is derived from X. */
static const double ROOM = 1.1;

kiln_status ki_work_check(kiln_work *full, const kiln_work *work) {
    if (!work) return ki_fail(KILN_ERR_ARGUMENT, "work is NULL");
    kiln_work made = *work;
    if (!made.format) made.format = KILN_DENSE;
    if (!made.type) made.type = KILN_F64;
    if (made.k == 0) made.k = 1;
    if (made.passes == 0) made.passes = 1;
    if (made.rows < 0 || made.cols < 0 || made.cols > INT32_MAX || made.nnz < 0 || made.k < 0 ||
        made.passes < 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "work: %lld x %lld, %lld entries, %lld columns of y, %lld passes: one is out of range",
                       (long long)made.rows, (long long)made.cols, (long long)made.nnz, (long long)made.k,
                       (long long)made.passes);
    int64_t entries;
    if (!ki_mul3(made.rows, made.cols, 8, &entries)) entries = INT64_MAX;
    if (made.format == KILN_DENSE) made.nnz = entries / 8;
    if (entries == INT64_MAX && made.format == KILN_DENSE)
        return ki_fail(KILN_ERR_ARGUMENT, "shape %lld x %lld is too large", (long long)made.rows,
                       (long long)made.cols);
    if (made.nnz > entries / 8)
        return ki_fail(KILN_ERR_ARGUMENT, "%lld entries do not fit %lld x %lld", (long long)made.nnz,
                       (long long)made.rows, (long long)made.cols);
    *full = made;
    return KILN_OK;
}

static double sparse_rate(const struct ki_figures *figures, int64_t cols) {
    const double t = log((double)cols / KI_COLUMNS_NARROW) / log((double)KI_COLUMNS_WIDE / KI_COLUMNS_NARROW);
    const double at = fmin(fmax(t, 0), 1);
    return pow(figures->narrow, 1 - at) * pow(figures->wide, at);
}

/* The time of k columns as a multiple of one column's. */
static double column_factor(int64_t k) {
    const double together = (double)ki_min(k, COLUMNS_A_PASS);
    return (double)ki_ceil_div(k, COLUMNS_A_PASS) *
           (1 + (EIGHT_COLUMNS - 1) * (together - 1) / (COLUMNS_A_PASS - 1));
}

struct ki_cost ki_cost_of(const struct ki_figures *figures, const kiln_work *work, double budget) {
    const double element = (double)ki_type_bytes(work->type), nnz = (double)work->nnz;
    const bool sparse = work->format == KILN_CSR;
    struct ki_cost cost = {.start = figures->start};
    cost.bytes = sparse ? nnz * (element + 4) + 8 * ((double)work->rows + 1) : nnz * element;
    cost.streamed = figures->up > 0 && cost.bytes * ROOM > budget;
    cost.pass = sparse ? fmax(nnz / sparse_rate(figures, work->cols), cost.bytes / figures->read)
                       : cost.bytes / figures->dense;
    cost.pass *= column_factor(work->k);
    if (cost.streamed)
        cost.pass = fmax(cost.pass, cost.bytes / figures->up);
    else if (figures->up > 0)
        cost.move = cost.bytes / figures->up;
    cost.overhead =
        figures->iteration + VECTORS * (double)work->cols * (double)work->k * element / figures->read;
    cost.total = cost.start + cost.move + (double)work->passes * (cost.pass + cost.overhead);
    return cost;
}
