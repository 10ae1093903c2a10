/* This header has what the cases of batches share: where the vectors lie (struct problem's family), and where
 * their elements are. */
#ifndef CONFORMANCE_BATCHES_H
#define CONFORMANCE_BATCHES_H

#include "refusals.h"

enum batch_layout {
    BATCH_ROWS,    /* the rows of a dense X, without a batch */
    BATCH_APART,   /* vectors with gaps between them, the first from element 3 on */
    BATCH_COLUMNS, /* the columns of X */
    BATCH_STEPS,   /* every second element of each row */
    BATCH_RAGGED,  /* none to many elements, the first from element 5 on */
    BATCH_HUGE,    /* ragged: short vectors about a long one */
    BATCH_SPARSE,  /* the rows of a sparse X */
    BATCH_LAYOUTS
};

/* Calls problem_add for each layout and a few shapes; rows x cols is X's. */
void batches_list(struct problem_list *list, struct problem problem);
/* X, with batch and layout in work->own. */
kiln_status batches_prepare(struct work *work);
const kiln_batch *batches_batch(const struct work *work); /* NULL for BATCH_ROWS */
int64_t batches_count(const struct work *work);
int64_t batches_length(const struct work *work, int64_t v);
/* The number of element i of vector v among X's values. */
int64_t batches_element(const struct work *work, int64_t v, int64_t i);

#endif
