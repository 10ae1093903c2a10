/* Columns of a matrix without names that are no features: targets, weights, an offset. */
#ifndef KI_NUMBERED_H
#define KI_NUMBERED_H

#include "io/data.h"

/* Moves the columns that options->target, weights and offset name by their numbers, from 1 on, or -1 for the
 * last, from a dense table's values to its y, weights and offset; the others move up. name: of the file. */
kiln_status ki_take_numbered(struct ki_table *table, const char *name, const kiln_read_options *options);

#endif
