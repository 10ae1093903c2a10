/* Changes of a table as a whole, for data.c. */
#ifndef KI_TABLE_APPEND_H
#define KI_TABLE_APPEND_H

#include "io/data.h"

/* Rows of `more`, of the same type, go behind those of `table`; more is left to be cleared. name: of its
 * file. */
kiln_status ki_table_append(struct ki_table *table, struct ki_table *more, kiln_type type, const char *name);
/* Leaves out the entries of a sparse table in columns from `cols` on, with a warning or an error as `extra`
 * says. A table that is dense or stays in its file is left as it is. */
kiln_status ki_table_narrow(struct ki_table *table, kiln_type type, int64_t cols, kiln_extra extra,
                            const char *name);

#endif
