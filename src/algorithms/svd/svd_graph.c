/* The matrix of a graph with the weights X, which need not be symmetric: a link leads both ways.
 *
 *   A = (1 + D^-1/2 S D^-1/2) / 2,   S = (X + X^T) / 2,   D = diag(S 1)
 *
 * A is symmetric, its eigenvalues lie in [0, 1] and so are its singular values, in the order that is wanted:
 * the normalised Laplacian 1 - D^-1/2 S D^-1/2 has 2 - 2 s, and the same vectors. So the search goes over A
 * itself, where it goes over A^T A of other matrices. */
#include "algorithms/factor/entries.h"
#include "algorithms/svd/svd.h"

#include <stdio.h>

#include "ops/vectors/reduce.h"

kiln_status ki_svd_graph_product(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *W,
                                 const kiln_matrix *Y) {
    kiln_status status;
    const double part = s->one_way ? 0.25 : 0.5;
    for (int64_t c = 0; c < room->count; c++) room->scale[c] = 1, room->root[c] = 0.5;
    TRY(kiln_times(room->scaled, Y, s->inverse));
    TRY(kiln_multiply(W, part, KILN_PLAIN, s->X, room->scaled, 0, NULL));
    if (s->one_way) TRY(kiln_multiply(W, part, KILN_TRANSPOSED, s->X, room->scaled, 1, W));
    TRY(kiln_times(W, W, s->inverse));
    TRY(kiln_combine(W, room->scale, W, room->root, Y));
    s->run.report.passes += s->one_way ? 2 : 1;
done:
    return status;
}

/* Rows of a dense X, wherever they lie. */
static kiln_status look_at_dense(const struct ki_each *each, const kiln_matrix *rows, int64_t row) {
    enum { PIECE = 1 << 16 };
    const int64_t cols = kiln_matrix_cols(rows), count = kiln_matrix_nnz(rows);
    const bool narrow = kiln_matrix_type(rows) == KILN_F32;
    kiln_status status = KILN_OK;
    void *const values = ki_alloc((size_t)PIECE * sizeof(double));
    if (!values) return ki_fail_nomem((size_t)PIECE * sizeof(double), "a piece of a graph's weights");
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t most = ki_min(count - first, PIECE);
        TRY(ki_elements_get(values, rows, first, most));
        for (int64_t e = 0; e < most; e++) {
            const double x = narrow ? (double)((const float *)values)[e] : ((const double *)values)[e];
            if (!isfinite(x) || x < 0)
                TRY(ki_fail(KILN_ERR_DATA,
                            "%s: the entry in row %lld, column %lld is %g, but must be a finite number >= 0 "
                            "(rows and columns count from 0)",
                            each->call, (long long)(row + (first + e) / cols),
                            (long long)((first + e) % cols), x));
        }
    }
done:
    ki_free(values);
    return status;
}

/* Names a weight that is not finite or negative, if rows of X have one. */
static kiln_status look(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                        kiln_matrix **made, double *sums) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    (void)entry, (void)made, (void)sums;
    if (kiln_matrix_format(rows) == KILN_DENSE) return look_at_dense(each, rows, row);
    TRY(ki_entries_get(&entries, rows));
    TRY(ki_entries_check(&entries, each->call, row, true));
done:
    ki_host_entries_free(&entries);
    return status;
}

static kiln_status check_weights(const struct ki_svd *s) {
    struct ki_each each = {.run = look};
    kiln_status status;
    double sum;
    TRY(ki_reduce_entries(&sum, s->X, KI_REDUCE_COUNTS));
    snprintf(each.call, sizeof each.call, "%s", s->call);
    if (!isfinite(sum)) TRY(ki_each_run(NULL, NULL, &each, s->X));
done:
    return status;
}

/* W = X Y, and Z = X^T Y. */
static kiln_status both_ways(const struct ki_svd *s, kiln_matrix *W, kiln_matrix *Z, const kiln_matrix *Y) {
    kiln_status status;
    TRY(kiln_multiply(W, 1, KILN_PLAIN, s->X, Y, 0, NULL));
    TRY(kiln_multiply(Z, 1, KILN_TRANSPOSED, s->X, Y, 0, NULL));
done:
    return status;
}

/* Finds whether X is not symmetric: of a random vector the two products differ by more than rounding. */
static kiln_status find_symmetry(struct ki_svd *s, kiln_matrix *W, kiln_matrix *Z, kiln_matrix *Y) {
    static const double minus = -1, one = 1;
    kiln_status status;
    double size = 0, off = 0;
    TRY(kiln_fill_random(Y, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_SVD));
    TRY(both_ways(s, W, Z, Y));
    TRY(kiln_norm(&size, W, KILN_NORM_2));
    TRY(kiln_combine(Z, &one, Z, &minus, W));
    TRY(kiln_norm(&off, Z, KILN_NORM_2));
    s->one_way = !(off <= 64 * ki_epsilon(kiln_matrix_type(s->X)) * size);
done:
    return status;
}

/* The roots of the degrees, and 1 for a vertex without links. */
static kiln_status take_degrees(struct ki_svd *s, double *degrees) {
    for (int64_t j = 0; j < s->n; j++) {
        if (!isfinite(degrees[j]))
            return (ki_fail(KILN_ERR_DATA,
                            "%s: the weights of vertex %lld's links add up to more than X's type "
                            "has room for (vertices count from 0)",
                            s->call, (long long)j),
                    ki_hint("divide the weights by a constant"));
        s->isolated += degrees[j] == 0;
        s->deviations[j] = degrees[j] > 0 ? sqrt(degrees[j]) : 1;
    }
    return KILN_OK;
}

kiln_status ki_svd_graph_measure(struct ki_svd *s) {
    static const double half = 0.5;
    kiln_status status;
    struct ki_arena own = {0};
    kiln_matrix *const W = ki_arena_rows(&own, s->X, 1), *const Z = ki_arena_model(&own, s->X, s->n, 1);
    kiln_matrix *const Y = ki_arena_model(&own, s->X, s->n, 1);
    double *const degrees = ki_arena_reals(&own, s->n);
    TRY(own.status);
    TRY(check_weights(s));
    TRY(find_symmetry(s, W, Z, Y));
    TRY(both_ways(s, W, Z, s->ones));
    TRY(kiln_combine(Z, &half, Z, &half, W));
    TRY(ki_vector_get(degrees, Z));
    s->run.report.passes += 4;
    TRY(take_degrees(s, degrees));
done:
    return ki_arena_free(&own, status);
}

void ki_svd_graph_tell(struct ki_svd *s) {
    kiln_report *report = &s->run.report;
    const double rounding = 64 * ki_epsilon(kiln_matrix_type(s->X));
    int64_t parts = 0;
    while (parts < s->k && s->s[parts] >= 1 - rounding) parts++;
    ki_report_figure(report, "connected_components", (double)parts);
    ki_report_figure(report, "isolated", (double)s->isolated);
    if (parts > 1)
        ki_report_warn(
            report, "connected_components", "the graph of the largest connected part",
            "the graph falls into parts, or nearly: %s%lld eigenvalues of the Laplacian are 0, and their "
            "vectors are any basis of what these have",
            parts == s->k ? "at least " : "", (long long)parts);
    if (s->isolated > 0)
        ki_report_warn(report, "isolated", "the graph without them", "vertices without links: %lld",
                       (long long)s->isolated);
}
