/* A sparse X of far more columns than entries without the columns that have none: see newton_narrow.c. */
#ifndef KI_NEWTON_NARROW_H
#define KI_NEWTON_NARROW_H

#include "algorithms/run/arena.h"

struct ki_narrow_task {
    kiln_matrix *W, *b;
    const kiln_matrix *X, *y;
    const void *options; /* the call's */
    bool warm;           /* W is a start */
};
typedef kiln_status ki_narrow_call(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                   const void *options, kiln_report *report);

/* Makes the call of the columns that have entries where that pays, and W and the report from it; else *solved
 * is false. So it is where the call finds bad data (ERR_DATA), whose place is to be told of X as it is. */
kiln_status ki_narrow_solve(bool *solved, ki_narrow_call *call, const struct ki_narrow_task *task,
                            kiln_report *report);

#endif
