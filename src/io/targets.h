/* kiln_read_options.target_file. */
#ifndef KI_TARGETS_H
#define KI_TARGETS_H

#include "io/data.h"

/* Reads the targets into a table that has none. */
kiln_status ki_read_targets(struct ki_table *table, const kiln_read_options *options);

#endif
