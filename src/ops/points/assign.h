/* Between the checks of kiln_assign and its bodies. */
#ifndef KI_ASSIGN_H
#define KI_ASSIGN_H

#include "kiln/ops.h"
#include "core/matrix.h"
#include "pass/roles.h"

struct ki_assign {
    kiln_matrix *labels, *distances, *sums; /* NULL: not wanted */
    double *totals;
    int64_t first; /* the number of C's first row; > 0: labels and distances hold what is to be bettered */
    const kiln_matrix *X, *C, *weights;
    kiln_bounds *bounds;    /* NULL: there are none */
    const int32_t *known;   /* labels of all rows, where they are known; else NULL */
    int32_t *found;         /* the labels as integers; NULL: not wanted */
    double *kept;           /* a copy of sums and totals before they are rounded; NULL: not wanted */
    kiln_matrix **wide;     /* the same of the panels so far, where X goes by in panels; NULL: it does not */
    bool adds;              /* to `wide`, and on a CPU to `kept`: the panel is not the first */
    struct ki_offset place; /* of X's rows in those that the bounds are of */
    bool paused;            /* this pass measures all distances */
};

kiln_status ki_assign_gpu(const struct ki_assign *of); /* X and the others are on the device */

#endif
