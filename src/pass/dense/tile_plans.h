/* Plans of the tensor cores' kernel for several columns of y, pass/dense/tile.cl. */
#ifndef KI_MMCHAIN_TILE_H
#define KI_MMCHAIN_TILE_H

#include "pass/launch.h"

/* Calls offer(list, candidate) for each plan that the chain's device can run; `memory` is a compute unit's share of the
 * memory's bandwidth in bytes a nanosecond. */
void ki_tile_plans(const struct ki_chain *chain, double memory,
                   void (*offer)(void *list, const struct ki_candidate *candidate), void *list);

#endif
