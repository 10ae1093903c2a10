/* seconds = start + move + prepare + passes * (pass + overhead)
 *
 * The overhead model of the iterative-kernels paper (its section 4.2, T = c + o) with the terms that it
 * leaves to "whether data have to be transferred" spelt out; start is that of a process that uses the device,
 * and its end. What an iteration of an algorithm with a trial takes, and what comes before the first, was
 * measured (choose/trial.h). Elsewhere a pass is limited by memory: a dense one by bytes, a sparse one by its
 * rows and its entries, at a rate that depends on the number of columns, as the sums in w leave one cache
 * after the other. Between the measured widths the rate is interpolated on a logarithmic scale, as caches are
 * nested on one. */
#include "choose/cost.h"

#include <math.h>

#include "core/size.h"
#include "core/sized.h"
#include "choose/trial.h"

/* Vectors of n x k that an iteration of conjugate gradient reads or writes (kiln_cg_step, and w and y of the
 * pass). */
static const double VECTORS = 11;
/* Says what a pass takes with 8 columns of y, as a multiple of one column's time, and how many columns share
 * a pass. */
static const double EIGHT_COLUMNS = 1.3;
enum { COLUMNS_A_PASS = 8 };
/* X, and beside it what passes need: vectors, partial sums, what is derived from X. */
static const double ROOM = 1.1;

kiln_status ki_work_check(kiln_work *full, const kiln_work *work) {
    if (!work) return ki_fail(KILN_ERR_ARGUMENT, "work is NULL");
    kiln_work made;
    const kiln_status status = KI_TAKE(kiln_work, &made, work);
    if (status != KILN_OK) return status;
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
    int64_t entries, entries_of_y;
    if (!ki_mul3(made.rows, made.cols, 8, &entries)) entries = INT64_MAX;
    if (made.format == KILN_DENSE) made.nnz = entries / 8;
    if (entries == INT64_MAX && made.format == KILN_DENSE)
        return ki_fail(KILN_ERR_ARGUMENT, "shape %lld x %lld is too large", (long long)made.rows,
                       (long long)made.cols);
    /* The counts of plans, bytes of all columns of y and more, must stay numbers of 64 bits. */
    if (!ki_mul3(made.rows, 64, made.k, &entries_of_y) || !ki_mul3(made.nnz, 64, made.k, &entries_of_y))
        return ki_fail(KILN_ERR_ARGUMENT, "%lld rows with %lld entries and %lld columns of y are too many",
                       (long long)made.rows, (long long)made.nnz, (long long)made.k);
    if (made.nnz > entries / 8)
        return ki_fail(KILN_ERR_ARGUMENT, "%lld entries do not fit %lld x %lld", (long long)made.nnz,
                       (long long)made.rows, (long long)made.cols);
    *full = made;
    return KILN_OK;
}

const int64_t ki_dense_widths[KI_DENSE_WIDTHS] = {5, 40, 1 << 15};
const int64_t ki_sparse_widths[KI_SPARSE_WIDTHS] = {1 << 10, 1 << 16, 1 << 18, 1 << 22};

/* The rate at that many columns, on the line through two measured ones. */
static double between(double rate, int64_t width, double next_rate, int64_t next_width, int64_t cols) {
    const double t = log((double)cols / (double)width) / log((double)next_width / (double)width);
    return rate * pow(next_rate / rate, t);
}

static double rate_at(const double *rates, const int64_t *widths, int count, int64_t cols) {
    if (cols <= widths[0]) return rates[0];
    for (int i = 0; i + 1 < count; i++)
        if (cols <= widths[i + 1]) return between(rates[i], widths[i], rates[i + 1], widths[i + 1], cols);
    return rates[count - 1];
}

/* Without tiles nothing bounds how far sums lie apart: the line goes on. */
static double sparse_rate(const struct ki_figures *figures, int64_t cols, bool thin) {
    enum { EDGE = KI_SPARSE_WIDTHS - 2 };
    if (thin && cols > ki_sparse_widths[EDGE])
        return between(figures->sparse[EDGE], ki_sparse_widths[EDGE], figures->thin,
                       ki_sparse_widths[EDGE + 1], cols);
    return rate_at(figures->sparse, ki_sparse_widths, KI_SPARSE_WIDTHS, cols);
}

/* The time of k columns as a multiple of one column's. */
static double column_factor(int64_t k) {
    const double together = (double)ki_min(k, COLUMNS_A_PASS);
    return (double)ki_ceil_div(k, COLUMNS_A_PASS) *
           (1 + (EIGHT_COLUMNS - 1) * (together - 1) / (COLUMNS_A_PASS - 1));
}

double ki_work_bytes(const kiln_work *work) {
    const double element = (double)ki_type_bytes(work->type), nnz = (double)work->nnz;
    return work->format == KILN_CSR ? nnz * (element + 4) + 8 * ((double)work->rows + 1) : nnz * element;
}

/* On the lines through what was measured, and beyond the last point on the last line. */
static double on_lines(const double *seconds, const double *units, double wanted) {
    int i = 1;
    while (i + 1 < KI_TRIALS && wanted > units[i]) i++;
    if (wanted <= units[0] || units[i] <= units[i - 1]) return seconds[i - 1];
    return seconds[i - 1] +
           (seconds[i] - seconds[i - 1]) * (wanted - units[i - 1]) / (units[i] - units[i - 1]);
}

static void cost_by_trial(struct ki_cost *cost, const struct ki_trial_figures *figures,
                          const kiln_work *work) {
    const double units = work->trial->units(work);
    cost->prepare = on_lines(figures->prepare, figures->units, units);
    cost->overhead = figures->iteration[0];
    cost->pass = fmax(on_lines(figures->iteration, figures->units, units) - cost->overhead, 0);
}

static void cost_by_rates(struct ki_cost *cost, const struct ki_figures *figures, const kiln_work *work,
                          bool thin) {
    const double element = (double)ki_type_bytes(work->type), nnz = (double)work->nnz;
    cost->pass = work->format == KILN_CSR
                     ? (double)work->rows * figures->row + nnz / sparse_rate(figures, work->cols, thin)
                     : cost->bytes / rate_at(figures->dense, ki_dense_widths, KI_DENSE_WIDTHS, work->cols);
    cost->pass = fmax(cost->pass, cost->bytes / figures->read);
    cost->pass *= column_factor(work->k);
    cost->overhead =
        figures->iteration + VECTORS * (double)work->cols * (double)work->k * element / figures->read;
}

struct ki_cost ki_cost_of(const struct ki_figures *figures, const kiln_work *work, double budget, bool thin) {
    struct ki_cost cost = {.start = fmax(figures->start, figures->process)};
    cost.bytes = ki_work_bytes(work);
    cost.streamed = figures->up > 0 && cost.bytes * ROOM > budget;
    if (work->trial)
        cost_by_trial(&cost, &figures->trial, work);
    else
        cost_by_rates(&cost, figures, work, thin);
    if (cost.streamed)
        cost.pass = fmax(cost.pass, cost.bytes / figures->up);
    else if (figures->up > 0)
        cost.move = cost.bytes / figures->up;
    cost.total = cost.start + cost.move + cost.prepare + (double)work->passes * (cost.pass + cost.overhead);
    return cost;
}
