/* Changes of a table as a whole, for data.c. */
#ifndef KI_TABLE_APPEND_H
#define KI_TABLE_APPEND_H

#include "io/data.h"

/* Rows of `more`, of the same type, go behind those of `table`; more is left to be cleared. name: of its
 * file. */
kiln_status ki_table_append(struct ki_table *table, struct ki_table *more, kiln_type type, const char *name);
/* ERR_DATA where it cannot, as its format, columns or targets are others. */
kiln_status ki_table_check_alike(const struct ki_table *table, const struct ki_table *more, const char *name);

/* ERR_DATA where columns, targets or classes have other names. */
kiln_status ki_table_same_names(const struct ki_table *table, const struct ki_table *more, const char *name);
/* Returns whether the columns, targets and classes that a schema makes are the table's. */
bool ki_table_agrees(const struct ki_table *said, const struct ki_table *table);
/* ERR_UNSUPPORTED: rows of one of several files have groups, whose numbers are the file's own. */
kiln_status ki_table_refuse_groups(const char *name);

/* Holds what was left out of the rows so far. */
struct ki_narrowed {
    int64_t rows, cols;     /* cols: the most that there were */
    int64_t dropped, first; /* entries, and the row of the first one */
};
/* Leaves out the entries of a sparse table in columns from `cols` on, or fails, as `extra` says. A table that
 * is dense or stays in its file is left as it is. */
kiln_status ki_table_narrow(struct ki_narrowed *narrowed, struct ki_table *table, kiln_type type,
                            int64_t cols, kiln_extra extra, const char *name);
/* Warns of them, if `extra` says so. */
kiln_status ki_warn_narrowed(struct ki_warnings *warnings, const struct ki_narrowed *narrowed, int64_t cols,
                             kiln_extra extra, const char *name);

#endif
