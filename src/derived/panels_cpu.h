/* What passes over a wide sparse X with one column of y derive from it on the CPU, once: kept with the matrix, gone with it.
 *
 * Where y and w are larger than the second-level cache, an entry of a random column moves two cache lines, its y's and its
 * w's there and back, for the sake of 16 bytes. In tiles, blocks of rows by panels of columns, each entry is read twice,
 * once for the products X y and once for the sums X^T p, but with its panel of y or w in the cache: 24 bytes in f64, which
 * stream, in place of some 140. Blocks belong to one thread in the first half and panels in the second, so that w needs no
 * copies, and the order of all sums is that of the tiles for any number of threads. */
#ifndef KI_WIDE_H
#define KI_WIDE_H

#include "kiln/tune.h"
#include "core/matrix.h"

/* A piece of a panel's tiles, whose sums are made by one thread: blocks [first, end). */
struct ki_wide_piece {
    int64_t panel, first, end;
    bool whole; /* the panel has no other */
};

struct ki_wide {
    int64_t passes;      /* that scattered */
    bool looked, skewed; /* few columns hold most entries */
    bool tried, tiled;   /* what follows is there */
    int bits;            /* panels have 2^bits columns */
    int64_t blocks, panels, pieces;
    int64_t *row; /* first row of each block, and X's rows */
    struct ki_wide_piece *piece;
    /* The entries, block by block, in a block panel by panel, and there row by row. A word is the row within the block above
     * the column within the panel. */
    struct ki_buffer word, value;
    int64_t *tile_end; /* block by block */
};

/* For a pass with one column of y, which scatters into w or not, and takes products too (fused) or not. *wide = NULL where it
 * is to take X row by row. */
kiln_status ki_wide_get(const struct ki_wide **wide, const kiln_matrix *X, bool scatters, bool fused);

/* Whether X's shape, if it is wide, lets passes with one column of y go through tiles. */
bool ki_wide_fits(const kiln_work *work);

#endif
