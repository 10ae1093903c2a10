/* r2 and d2 are 1 - rest / all, for whoever has the two sums already: of squares, or of deviances. */
#ifndef KI_EXPLAINED_H
#define KI_EXPLAINED_H

#include <math.h>

/* all: what the targets' mean alone leaves. Returns NaN where that is nothing. */
static inline double ki_explained(double rest, double all) {
    return all > 0 ? 1 - rest / all : (double)NAN;
}

#endif
