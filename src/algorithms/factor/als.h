/* What als's training and its models share. */
#ifndef KI_ALS_H
#define KI_ALS_H

#include "algorithms/factor/entries.h"
#include "algorithms/registry.h"

void ki_als_fill(kiln_als_options *options, kiln_type type); /* 0 becomes the default, KILN_NONE 0 */

#endif
