/* The entries of the training data that a factor model keeps. */
#ifndef KI_SEEN_H
#define KI_SEEN_H

#include "algorithms/registry.h"

/* For the tensors of a row of the registry: 's' is how many entries there are. */
#define KI_SEEN_TENSORS                                                                                      \
    {"seen_counts", 'm', '1', true, false, false}, {                                                         \
        "seen_columns", 's', '1', true, false, true                                                          \
    }
kiln_status ki_check_seen(const kiln_model *model, int64_t cols); /* for the row's check */

#endif
