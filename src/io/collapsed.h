/* Columns of whose numbers f32 keeps one, or a few, which are warned of. */
#ifndef KI_COLLAPSED_H
#define KI_COLLAPSED_H

#include "io/data.h"

/* The table lies in memory, and its features have their names. bytes: its files', which a small one is read
 * from again; path NULL: it cannot be. */
kiln_status ki_collapsed_tell(struct ki_table *table, kiln_file_format format, int64_t bytes,
                              const char *path, const kiln_read_options *options);

#endif
