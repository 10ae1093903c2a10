/* Passes over strips of a sparse X (derived/layout.h), for one column of y. */
#ifndef KI_MMCHAIN_STRIPS_H
#define KI_MMCHAIN_STRIPS_H

#include "derived/layout.h"
#include "pass/chain.h"

/* The whole chain; chain->out holds beta z already, unless it is PLAIN. */
kiln_status ki_strips_pass(const struct ki_layout *layout, const struct ki_chain *chain);

#endif
