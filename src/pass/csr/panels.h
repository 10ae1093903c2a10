/* Passes over the panels of a sparse X, a launch each; K columns of y from `first` of chain->k on. And the
 * sum over the bands of its transpose. */
#ifndef KI_PASS_PANELS_H
#define KI_PASS_PANELS_H

#include "derived/derived.h"
#include "pass/chain.h"

/* dots (rows x K) = (the part of X in panels) y. */
kiln_status ki_panels_dots(const struct ki_derived *derived, const struct ki_chain *chain,
                           const struct ki_buffer *dots, int K, int first);
/* out += alpha (the part of X in panels)^T factors; factors has `factors_k` columns, those from factors_first
 * on are taken. */
kiln_status ki_panels_sums(const struct ki_derived *derived, const struct ki_chain *chain, int K, int first,
                           double alpha, const struct ki_buffer *factors, int factors_k, int factors_first);
/* out = the sum of what the transpose's bands left, in order, + beta z; `width` columns of it, from `first`
 * on. */
kiln_status ki_bands_sum(const struct ki_transpose *transpose, const struct ki_chain *chain,
                         const struct ki_buffer *sums, int width, int first);

#endif
