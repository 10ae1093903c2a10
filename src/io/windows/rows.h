/* Rows of a table whose X lies in a file, some at a time, for who writes them. */
#ifndef KI_IO_ROWS_H
#define KI_IO_ROWS_H

#include "io/data.h"

struct ki_rows {
    struct ki_table
        part; /* its arrays are the slice's; y points into the table's, classes are its; zeroed at first */
    int64_t first, room; /* the slice's first row; entries that it has room for */
};

/* The rows behind the slice's: at least one, or none at the end. The file may change meanwhile: ERR_IO,
 * ERR_DATA. */
kiln_status ki_rows_next(struct ki_rows *rows, const struct ki_table *table, kiln_type type);
void ki_rows_free(struct ki_rows *rows);

#endif
