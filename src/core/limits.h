/* Sizes from which on another way is taken. Tests lower them before they open a device, so that the library
 * that ships walks every way with little data; nothing else writes the table. Times and shares that fits come
 * from stay with their models. */
#ifndef KI_LIMITS_H
#define KI_LIMITS_H

#include <stdint.h>

struct ki_limits {
    int64_t index32; /* GPU kernels index with 32 bits up to this offset, with 64 beyond */

    /* Thresholds of what is derived from a sparse X, on any device (src/derived). */
    int due;                 /* the scattering pass that makes it: X multiplied once would not gain by it */
    int64_t rows_entries;    /* X of fewer entries: rows are not looked at, */
    int64_t columns_entries; /* and columns are not: it is multiplied in less time than is saved */
    int64_t sampled_entries; /* where a group cuts columns: so many entries are counted, of more every
                          * so-manyth row's */

    /* On a GPU. */
    int64_t narrow_bytes;   /* of a dense X that is read: of more, values are narrow where they can be; of 0
                             * they also stay so, whatever a wide pass promises */
    int64_t cached_bytes;   /* of y: with as many of w they stay in the second cache level without panels */
    int64_t gathered_bytes; /* of rows that entries gather: more are gathered in slices */
    int gathered_slice;     /* of so many bytes of a row, */
    int gathered_entries;   /* if a row is gathered so often */
    int64_t vector_entries; /* that a vector of threads goes through in a launch, counted by an int */
    int64_t
        ranked_bytes; /* of ranks that links gather from: a block, where there are more than two of them */
    int64_t collective_bytes; /* of a group's sum that goes by NCCL even where copies are predicted faster */
    int64_t popular_columns;  /* of which y and w stay there */
    int panel_bits;           /* a panel has 2^bits columns: 16 MB of y and of w each in f64 */
    int panel_height;         /* rows of a block of a panel */
    int piece;                /* entries of a block that a work-group takes */
    int segment;              /* entries of a long row that a work-group takes */
    int segmented_least, segmented_most; /* rows of more entries, as the mean has it, are cut into segments */
    int launch_entries; /* taken one by one, beyond those in registers, cost what a launch of their own
                         * does */
    int band_bytes;     /* of a band's factors, which the first cache level holds */
    int band_entries;   /* of a column in a band that are worth a sum of their own */
    int64_t
        chip_bytes; /* of w and y in a group's local memory; more would leave too little to the first cache
                     * level */
    int64_t chip_bytes_cpu; /* the same where OpenCL runs on a processor */

    /* These hold where OpenCL runs on a processor. */
    int64_t gram_columns; /* of X up to which gram.cl is taken: none as long as PoCL 5.0, which builds it
                       * wrongly, is in use */

    /* On the CPU. */
    int64_t cpu_columns;      /* y and w of fewer are in the second-level cache often enough */
    int64_t cpu_exact_bytes;  /* of y: copies of a w of less cost a deterministic device less than panels */
    int cpu_panel_bits;       /* a panel of y or w and a block of products take some 600 KB in f64 */
    int64_t cpu_cached_lines; /* of y and w side by side that stay in the second-level cache */
    int64_t ordered_rows;     /* of scores that are put in order at once, in 16 bytes each; more in slices */
    int64_t cpu_past_bytes;   /* of a result that is stored past the caches: so much would not stay there */
};

extern struct ki_limits ki_limits;

#endif
