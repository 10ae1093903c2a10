/* This header says what passes over a sparse X of many columns, with one column of y, derive from it on the
 * CPU (core/slots.h): its entries by panels of columns.
 *
 * Where y and w are larger than the second-level cache, an entry of a random column moves two cache lines,
 * its y's and its w's there and back, for the sake of 16 bytes. In panels, cut into blocks of rows, each
 * entry is read twice, once for the products X y and once for the sums X^T p, but with its panel of y or w in
 * the cache: 24 bytes in f64, which stream, in place of some 140. Blocks belong to one thread in the first
 * half and panels in the second, so that w needs no copies, and the order of all sums is that of the blocks
 * for any number of threads. */
#ifndef KI_PANELS_CPU_H
#define KI_PANELS_CPU_H

#include "kiln/tune.h"
#include "core/matrix.h"

/* A piece of a panel, whose sums are made by one thread: blocks [first, end). */
struct ki_cpu_piece {
    int64_t panel, first, end;
    bool whole; /* the panel has no other */
};

struct ki_cpu_panels {
    int bits;                      /* panels have 2^bits columns */
    int64_t blocks, count, pieces; /* blocks of rows, panels, and pieces of panels */
    int64_t *row;                  /* first row of each block, and X's rows */
    struct ki_cpu_piece *piece;
    /* The entries, block by block, in a block panel by panel, and there row by row. A word is the row within
     * the block above the column within the panel. */
    struct ki_buffer word, value; /* value: none where X has none (KILN_ELEMENT_SAME) */
    int64_t *end;                 /* of each panel's part of each block, block by block */
};

/* For a pass with one column of y, which scatters into w or not, and takes products too (fused) or not.
 * *panels = NULL where it is to take X row by row. */
kiln_status ki_cpu_panels_get(const struct ki_cpu_panels **panels, const kiln_matrix *X, bool scatters,
                              bool fused);

/* Returns whether X's shape, if its columns are many, lets passes with one column of y go through panels. */
bool ki_cpu_panels_fit(const kiln_work *work);

#endif
