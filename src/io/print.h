/* Text output in parallel: items (rows, mostly) are printed by all threads into buffers, which go out in
 * order. */
#ifndef KI_PRINT_H
#define KI_PRINT_H

#include "io/data.h"

struct ki_printer {
    const struct ki_table *table;
    kiln_type type;
    int threads;
    int64_t count; /* items */
    /* At most how many bytes item i needs. */
    int64_t (*bound)(const struct ki_printer *printer, int64_t i);
    /* Prints item i and returns the place behind it. Called by several threads at once. */
    char *(*print)(const struct ki_printer *printer, char *at, int64_t i);
    int64_t first; /* row that is the table's row 0: X of a table in a file comes in slices */
};
/* Items are rows where the table lies in a file. */
kiln_status ki_print_items(struct ki_output *output, const struct ki_printer *printer);

/* Formatted text, for headers. */
kiln_status ki_print_header(struct ki_output *output, const char *format, ...) KI_PRINTF(2, 3);

#endif
