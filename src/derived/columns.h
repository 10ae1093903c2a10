/* A copy of a sparse matrix by columns, each with its entries in the order of their rows; made when it is
 * first asked for, and kept in a slot (core/slots.h). Sums over columns then need neither atomics nor copies
 * of the result. */
#ifndef KI_COLUMNS_H
#define KI_COLUMNS_H

#include "core/matrix.h"

struct ki_columns {
    const struct ki_buffer *start;       /* X->cols + 1 */
    const struct ki_buffer *row, *value; /* value: NULL where only the pattern was asked for */
    bool long_starts;                    /* of int64_t, as always on the CPU; otherwise of int32_t */
};

/* Says what is wanted: where entries are, 4 bytes an entry; with their values; and with 64-bit starts on a
 * GPU where they are so many. */
enum ki_columns_kind { KI_COLUMNS_PATTERN, KI_COLUMNS_VALUES, KI_COLUMNS_ANY };

/* X is held. ERR_LIMIT: 2^31 rows or more, and, but for KI_COLUMNS_ANY, so many entries on a GPU. */
kiln_status ki_columns_get(struct ki_columns *columns, const kiln_matrix *X, enum ki_columns_kind kind);
/* Drops X's copies, which whoever asks again has made anew. */
void ki_columns_drop(const kiln_matrix *X);

/* Holds what a slot holds, which a GPU fills by derived/transpose.c. On failure the slot frees what is there
 * already. */
struct ki_columns_copy {
    struct ki_buffer start, row, value;
};
kiln_status ki_columns_fill_gpu(struct ki_columns_copy *copy, const kiln_matrix *X, bool values,
                                bool long_starts);

#endif
