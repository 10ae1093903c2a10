/* Passes over the tiles of a sparse X, a launch each; K columns of y from `first` of chain->k on. */
#ifndef KI_MMCHAIN_PANELS_H
#define KI_MMCHAIN_PANELS_H

#include "derived/layout.h"
#include "pass/chain.h"

/* layout->dots (rows x K) = (tiled part of X) y. */
kiln_status ki_tiles_dots(struct ki_layout *layout, const struct ki_chain *chain, int K, int first);
/* out += alpha (tiled part of X)^T factors; factors has `factors_k` columns, those from factors_first on are taken. */
kiln_status ki_tiles_sums(struct ki_layout *layout, const struct ki_chain *chain, int K, int first,
                          double alpha, const struct ki_buffer *factors, int factors_k, int factors_first);
/* Rows of out, those of the columns in bands, = the sum of what the bands left in layout->band_sums, in order, + beta z;
 * `width` columns of it, from `first` on. */
kiln_status ki_bands_sum(const struct ki_layout *layout, const struct ki_bands *bands,
                         const struct ki_chain *chain, int width, int first);

#endif
