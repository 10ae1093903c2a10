/* A matrix that is made row by row and lies in a temporary file: for what is made of a matrix in a file,
 * which need not fit into memory either. The file has no name from the beginning on, so that nothing is left
 * of it whatever happens. */
#ifndef KI_SPILL_H
#define KI_SPILL_H

#include "core/file.h"

struct ki_spill {
    struct ki_file *file;
    kiln_type type;
    int64_t rows, cols; /* with room for so many rows */
    int64_t *row_start; /* rows + 1; NULL of a dense matrix */
    int64_t row;        /* that comes next */
};

/* For rows x cols with at most `entries` entries, of which a dense matrix has all; rows is what room is made
 * for, and may be less than come. ERR_IO where no such file can be made. free accepts what is zeroed. */
kiln_status ki_spill_begin(struct ki_spill *spill, kiln_type type, int64_t rows, int64_t cols,
                           int64_t entries, kiln_format format);
/* The next rows: start counts from any entry, whose column and value are the first; of a dense matrix start
 * and col are NULL. */
kiln_status ki_spill_rows(struct ki_spill *spill, int64_t rows, const int64_t *start, const int32_t *col,
                          const void *values);
/* All rows are there: the user of the device is told how large the file is. */
kiln_status ki_spill_close(struct ki_spill *spill, kiln_device *device);
/* The same, and *A has the file. */
kiln_status ki_spill_end(kiln_matrix **A, struct ki_spill *spill, kiln_device *device);
void ki_spill_free(struct ki_spill *spill);

#endif
