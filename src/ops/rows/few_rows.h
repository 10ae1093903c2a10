/* A linear model of a few rows that lie in the caller's memory (kiln/rows.h): checks are the caller's. */
#ifndef KI_FEW_ROWS_H
#define KI_FEW_ROWS_H

#include <stdbool.h>

#include "kiln/rows.h"

struct ki_few_rows {
    const kiln_row_model *model; /* whose loss, if it has a mean, is resolved */
    const kiln_memory *X;
    void *out;
    int64_t columns; /* of out; eta is computed in the last ones */
    int threads;
};

/* ERR_ARGUMENT, ERR_UNSUPPORTED unless it is a CPU. */
kiln_status ki_rows_check_cpu(const char *call, const kiln_device *device);
/* ERR_ARGUMENT, ERR_DATA: a sparse X in host memory is none. ascending: its rows' columns must ascend. */
kiln_status ki_rows_check_sparse(const char *call, const kiln_memory *X, bool ascending);

/* Returns where the entries of row i begin in a sparse X in host memory. */
static inline int64_t ki_memory_start(const kiln_memory *X, int64_t i) {
    return X->row_start_bits == 32 ? ((const int32_t *)X->row_start)[i] : ((const int64_t *)X->row_start)[i];
}

#endif
