/* PageRank's steps, in each layout of the links. The first COLS rows of X are the graph, but every tenth
 * vertex has no links. */
#include <math.h>

#include "selftest_kinds.h"

enum { STEPS = 2, ALONE = 10 };

static const double damping = 0.85;

static void links_of(double *links, const struct problem *p) {
    for (int i = 0; i < COLS; i++)
        for (int j = 0; j < COLS; j++) links[i * COLS + j] = i % ALONE && p->X[i][j] != 0;
}

/* All terms are positive: the size of a rank is the rank. */
static void expect_ranks(struct bench *b, const double *links, int at) {
    double ranks[COLS], next[COLS];
    for (int i = 0; i < COLS; i++) ranks[i] = 1. / COLS;
    for (int step = 0; step < STEPS; step++) {
        double mass = 0;
        for (int i = 0; i < COLS; i += ALONE) mass += ranks[i];
        for (int j = 0; j < COLS; j++) next[j] = (1 - damping + damping * mass) / COLS;
        for (int i = 0; i < COLS; i++) {
            double out = 0;
            for (int j = 0; j < COLS; j++) out += links[i * COLS + j];
            for (int j = 0; j < COLS; j++)
                if (links[i * COLS + j] != 0) next[j] += damping * ranks[i] / out;
        }
        for (int j = 0; j < COLS; j++) ranks[j] = next[j];
    }
    for (int j = 0; j < COLS; j++) bench_term(b, at + j, ranks[j]);
}

static void ranks_of(struct bench *b, kiln_layout layout) {
    static double links[COLS * COLS];
    double start[COLS], state[4 + STEPS] = {0, -1}; /* a goal that is never met */
    links_of(links, b->p);
    for (int i = 0; i < COLS; i++) start[i] = 1. / COLS;
    const kiln_ranks ranks = {.size = sizeof ranks,
                              .A = bench_csr(b, COLS, COLS, links),
                              .damping = damping,
                              .P = bench_dense(b, COLS, 1, start),
                              .C = bench_empty(b, COLS, 1),
                              .next = bench_empty(b, COLS, 1),
                              .factor = bench_empty(b, COLS, 1),
                              .S = bench_scalars(b, 4 + STEPS, 1, state),
                              .layout = layout};
    RUN(b, kiln_ranks_begin(&ranks));
    RUN(b, kiln_ranks_step(&ranks, 0, STEPS));
    expect_ranks(b, links, bench_take(b, ranks.P));
}

static void by_rows(struct bench *b) {
    ranks_of(b, KILN_LAYOUT_CSR);
}

static void by_bins(struct bench *b) {
    ranks_of(b, KILN_LAYOUT_HYBRID);
}

static void by_shares(struct bench *b) {
    ranks_of(b, KILN_LAYOUT_BALANCED);
}

const struct kind graph_kinds[] = {
    {"ranks_step", "ranks", by_rows, true, false},
    {"ranks_step", "ranks, bins", by_bins, true, false},
    {"ranks_step", "ranks, even", by_shares, true, false},
    {0},
};
