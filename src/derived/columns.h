/* A copy of a sparse matrix by columns, each with its entries in the order of their rows; made when it is first asked for, and
 * kept in a slot (core/slots.h). Sums over columns then need neither atomics nor copies of the result. */
#ifndef KI_COLUMNS_H
#define KI_COLUMNS_H

#include "core/matrix.h"

struct ki_columns {
    const struct ki_buffer *start;       /* X->cols + 1: of int64_t on the CPU, of int32_t on a GPU */
    const struct ki_buffer *row, *value; /* value: NULL where only the pattern was asked for */
};

/* X is held. values: its values, too, else its pattern is enough, 4 bytes an entry. ERR_LIMIT on a GPU: 2^31 entries or more. */
kiln_status ki_columns_get(struct ki_columns *columns, const kiln_matrix *X, bool values);
/* Drops X's copies, which whoever asks again has made anew. */
void ki_columns_drop(const kiln_matrix *X);
kiln_status ki_columns_gpu(struct ki_columns *columns, const kiln_matrix *X,
                           bool values); /* derived/transpose.c */
void ki_columns_drop_gpu(const kiln_matrix *X);

#endif
