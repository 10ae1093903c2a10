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

kiln_status ki_svd_graph_product(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *W,
                                 const kiln_matrix *Y) {
    kiln_status status;
    const double part = s->one_way ? 0.25 : 0.5;
    for (int64_t c = 0; c < room->count; c++) room->scale[c] = 1, room->root[c] = 0.5;
    TRY(kiln_times(room->scaled, Y, s->inverse));
    TRY(kiln_multiply(W, part, KILN_PLAIN, s->X, room->scaled, 0, NULL));
    if (s->one_way) { /* apart from W: a pass that adds to it could not begin anew with smaller panels */
        TRY(kiln_multiply(room->columns, part, KILN_TRANSPOSED, s->X, room->scaled, 0, NULL));
        TRY(kiln_combine(W, room->scale, W, room->scale, room->columns));
    }
    TRY(kiln_times(W, W, s->inverse));
    TRY(kiln_combine(W, room->scale, W, room->root, Y));
    s->run.report.passes += s->one_way ? 2 : 1;
done:
    return status;
}

/* ---- weights and connected components ---- */

/* Vertices in trees, each with its parent, roots with themselves; of each link that joined two of them there
 * is an entry. */
struct forest {
    int64_t *parent;
    struct ki_host_entries links;
};

static int64_t root_of(int64_t *parent, int64_t i) {
    for (; parent[i] != i; i = parent[i]) parent[i] = parent[parent[i]];
    return i;
}

static void join(struct forest *forest, int64_t row, int64_t first, int64_t column) {
    const int64_t a = root_of(forest->parent, first + row), b = root_of(forest->parent, column);
    struct ki_host_entries *const links = &forest->links;
    if (a == b) return;
    forest->parent[ki_max(a, b)] = ki_min(a, b);
    if (!links->start) return;
    links->col[links->nnz] = (int32_t)column;
    links->value[links->nnz++] = 1;
    links->start[row + 1] = links->nnz;
}

/* Rows of a dense X, wherever they lie. */
static kiln_status look_at_dense(struct forest *forest, const struct ki_each *each, const kiln_matrix *rows,
                                 int64_t row) {
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
            if (x > 0) join(forest, (first + e) / cols, row, (first + e) % cols);
        }
    }
done:
    ki_free(values);
    return status;
}

static kiln_status look_at_sparse(struct forest *forest, const struct ki_each *each, const kiln_matrix *rows,
                                  int64_t row) {
    struct ki_host_entries entries = {0};
    kiln_status status;
    TRY(ki_entries_get(&entries, rows));
    TRY(ki_entries_check(&entries, each->call, row, true));
    for (int64_t i = 0; i < entries.rows; i++)
        for (int64_t e = entries.start[i]; e < entries.start[i + 1]; e++)
            if (entries.value[e] > 0) join(forest, i, row, entries.col[e]);
done:
    ki_host_entries_free(&entries);
    return status;
}

/* *made = the links of a forest of its own, which is all that others need of rows in another process. */
static kiln_status find_links(struct forest *forest, const struct ki_each *each, const kiln_matrix *rows,
                              int64_t row, kiln_matrix **made) {
    kiln_status status;
    struct ki_arena own = {0};
    struct ki_host_entries *const links = &forest->links;
    const int64_t n = kiln_matrix_cols(rows), count = kiln_matrix_rows(rows);
    forest->parent = ki_arena_integers(&own, n);
    TRY(own.status);
    for (int64_t i = 0; i < n; i++) forest->parent[i] = i;
    TRY(ki_entries_new(links, count, n, ki_min(kiln_matrix_nnz(rows), n)));
    links->nnz = 0;
    TRY((kiln_matrix_format(rows) == KILN_DENSE ? look_at_dense : look_at_sparse)(forest, each, rows, row));
    for (int64_t i = 0; i < count; i++) links->start[i + 1] = ki_max(links->start[i + 1], links->start[i]);
    TRY(ki_entries_matrix(made, links, rows));
done:
    ki_host_entries_free(links);
    return ki_arena_free(&own, status);
}

/* Rows of X: weights are finite, and not negative; vertices that they join. */
static kiln_status look(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                        kiln_matrix **made, double *sums) {
    struct forest forest = {.parent = each->kept};
    (void)entry, (void)sums;
    if (each->made) return find_links(&forest, each, rows, row, made);
    return (kiln_matrix_format(rows) == KILN_DENSE ? look_at_dense : look_at_sparse)(&forest, each, rows,
                                                                                     row);
}

/* Weights are checked, and s->parts becomes the number of connected components. */
static kiln_status look_at_weights(struct ki_svd *s) {
    kiln_status status;
    struct ki_arena own = {0};
    struct forest forest = {.parent = ki_arena_integers(&own, s->n)};
    struct ki_each each = {.run = look, .made = ki_in_processes(s->X)};
    kiln_matrix *links = NULL, *copy = NULL;
    const kiln_matrix *whole;
    TRY(own.status);
    snprintf(each.call, sizeof each.call, "%s", s->call);
    for (int64_t i = 0; i < s->n; i++) forest.parent[i] = i;
    if (!each.made) each.kept = forest.parent;
    TRY(ki_each_run(&links, NULL, &each, s->X));
    if (links) {
        TRY(ki_whole_of(&whole, &copy, links));
        TRY(look_at_sparse(&forest, &each, whole, 0));
    }
    s->parts = 0;
    for (int64_t i = 0; i < s->n; i++) s->parts += forest.parent[i] == i;
done:
    kiln_matrix_free(copy);
    kiln_matrix_free(links);
    return ki_arena_free(&own, status);
}

/* ---- degrees ---- */

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
    TRY(look_at_weights(s));
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
    const int64_t parts = s->parts - s->isolated;
    int64_t zeros = 0;
    while (zeros < s->k && s->s[zeros] >= 1 - rounding) zeros++;
    ki_report_figure(report, "connected_components", (double)s->parts);
    ki_report_figure(report, "isolated", (double)s->isolated);
    if (parts > 1)
        ki_report_warn(
            report, "connected_components", "the graph of the largest connected part",
            "the graph falls into %lld parts that no link joins: as many eigenvalues of the Laplacian are 0, "
            "and their vectors are any basis of what these have",
            (long long)parts);
    else if (zeros > 1)
        ki_report_warn(report, "connected_components", "a graph without its weakest links",
                       "the graph nearly falls into parts: %s%lld eigenvalues of the Laplacian are 0 but for "
                       "rounding, and their vectors are any basis of what these have",
                       zeros == s->k ? "at least " : "", (long long)zeros);
    if (s->isolated > 0)
        ki_report_warn(report, "isolated", "the graph without them", "vertices without links: %lld",
                       (long long)s->isolated);
}
