/* The links of a graph by where they lead, in a layout for sums over them: row v of a layout is vertex v with
 * the sources of the links that lead to it. A is the adjacency matrix (row i links to column j), or some
 * columns of it, of which a layout is made once and kept in slots.
 *
 *   csr       rows one after the other (derived/columns.h)
 *   hybrid    windows of rows, each window's rows sorted by length: rows of equal length are done together,
 *             so that no row waits for a longer one and nothing is padded. On a GPU they lie column by
 *             column (ELLPACK), each run of equal rows for itself, and rows of more than KI_LONG links are a
 *             balanced matrix of their own; on the CPU they lie row by row
 *   balanced  csr, cut into shares of equal work, rows and links counted together, wherever rows begin
 *             and end
 *
 * None has a value for a link unless weights are asked for. */
#ifndef KI_LINKS_H
#define KI_LINKS_H

#include "kiln/ops.h"
#include "derived/columns.h"

enum {
    KI_LONG = 64,
    KI_RUNS = KI_LONG + 2
}; /* runs of 0, 1, ..., KI_LONG links, and one of all longer rows */

/* Holds what a layout's cost depends on. */
struct ki_links_shape {
    int64_t rows, sources, links;
    int64_t longest;   /* links of a row, at most */
    int64_t long_rows; /* of more than KI_LONG links */
};

/* Shares of as many rows and links, on a GPU, in a line in which each row stands behind its links: an item
 * is the source of a link, or ~row. A share is what a team of `lanes` threads takes, KI_SHARE_A_THREAD
 * items each, which lie so that the team loads them side by side; behind the line's end are links of
 * vertex 0. Where the ranks of all sources do not stay in the second cache level, the sources come in
 * `blocks` blocks: the rows with their links from the first block's sources, then with those from the
 * second's, so that each row is there once a block. start: by block and row, where its links would begin
 * without the rows between. int32_t all. */
enum { KI_SHARE_A_THREAD = 8 };
struct ki_link_shares {
    int64_t count, blocks;
    int lanes;
    struct ki_buffer item, weight, start;
};

enum { KI_WINDOW = 1024, KI_WINDOW_CPU = 4096 }; /* rows of a window on a GPU, and on the CPU at most */
struct ki_windows {
    int64_t height; /* rows of a window, but for the last */
    /* int32_t by place, the order within windows. CPU: the row. GPU: row | first place of its run << 10 |
     * (rows of the run - 1) << 20, all within the window; -1 for a long row */
    struct ki_buffer place;
    struct ki_buffer
        start; /* by place, rows + 1: where a row's links would begin, row by row; int64_t on the CPU,
                * int32_t on a GPU */
    struct ki_buffer source, weight;
    struct ki_buffer runs; /* CPU: int32_t, KI_RUNS for each window: rows in a run */
    /* GPU: the rows of more than KI_LONG links */
    int64_t long_rows, long_links;
    struct ki_buffer long_row;
    struct ki_link_shares shares;
};

struct ki_links {
    kiln_layout layout;
    struct ki_columns in;                /* csr, balanced */
    const struct ki_windows *windows;    /* hybrid */
    const struct ki_link_shares *shares; /* balanced, on a GPU */
};

/* Says how one layout does for k columns: what it reads and writes, and the seconds that it is expected to
 * take for a step. */
struct ki_links_cost {
    kiln_layout layout;
    double bytes, seconds;
    const char *limit; /* in words */
};
enum { KI_LAYOUTS = 3 };
/* The costs are those of each layout, the fastest first. */
void ki_links_costs(struct ki_links_cost costs[KI_LAYOUTS], const kiln_device *device,
                    const struct ki_links_shape *shape, kiln_type type, int64_t k, bool weights);
kiln_status ki_links_shape_get(struct ki_links_shape *shape, const kiln_matrix *A);

/* A is held. layout 0: the one that costs the least, or csr where memory is too short for it. Errors:
 * memory, and ki_columns_get's. */
kiln_status ki_links_get(struct ki_links *links, const kiln_matrix *A, kiln_layout layout, int64_t k,
                         bool weights);

/* derived/links_cpu.c and links_gpu.c: fill what is zero. */
kiln_status ki_windows_fill_cpu(struct ki_windows *windows, const kiln_matrix *A,
                                const struct ki_columns *in);
kiln_status ki_windows_fill_gpu(struct ki_windows *windows, const kiln_matrix *A,
                                const struct ki_columns *in);
/* Fills in the shares of the rows of A, whose links `in` has; `blocks` is set. */
kiln_status ki_link_shares_fill(struct ki_link_shares *shares, const kiln_matrix *A,
                                const struct ki_columns *in);

#endif
