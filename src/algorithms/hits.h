/* Between hits.c, the power iteration, and hits_lobpcg.c, which takes over where that is slow. */
#ifndef KI_HITS_H
#define KI_HITS_H

#include "algorithms/run/run.h"

struct ki_hits {
    struct ki_run run;
    kiln_hits_options options; /* defaults filled in */
    const kiln_matrix *A; /* with ones for its values, if unweighted; in f64, where f32's sums do not do */
    kiln_matrix *links;   /* A with ones, or NULL */
    kiln_matrix *a, *next, *h;
    kiln_matrix
        *scalars; /* rows 2 i and 2 i + 1: the eigenvalue and the change of the i-th queued iteration */
    bool gpu, has_f64, wide;       /* wide: in f64 */
    bool faster;                   /* the other method is at work */
    bool cut;                      /* it was ended before its time, and a checkpoint of it is the last */
    int64_t accelerations, queued; /* so far; iterations at once, the last time */
    double before;                 /* the change before these */
};

/* The next row of the trace, and the user's say. */
kiln_status ki_hits_record(struct ki_hits *s, double eigenvalue, double change);
/* The power iteration's part of the state, as the first entries of a table; their number. */
enum { KI_HITS_STATE = 5 };
int ki_hits_state(struct ki_state state[KI_HITS_STATE], struct ki_hits *s);
/* a = a vector whose change in a power step would be about half the tolerance, or as far as it came: nowhere
 * negative, its norm any. An iteration is a pass, as the power step is. */
kiln_status ki_hits_accelerate(struct ki_hits *s);

#endif
