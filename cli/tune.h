/* kiln tune: what is measured, and its plot. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include "plans.h"

/* X of the work's shape, with random values; columns of a sparse X equally likely or, with zipf, popular in
 * inverse proportion to their number. Sparse: work->nnz becomes what X has after columns drawn twice in a row
 * were dropped. Returns 0 or the exit code of an error that it has reported. */
int tune_matrix(kiln_matrix **X, struct run *run, kiln_work *work, bool zipf);
/* Writes the plot as SVG: each plan's time in ascending order, predictions beside it, the choice marked. */
int tune_plot(const char *path, const struct plan_row *tuned, int64_t count, const char *title);

#endif
