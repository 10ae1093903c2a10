/* What passes over a matrix cost on a device, from figures measured there once. */
#ifndef KI_COST_H
#define KI_COST_H

#include "core/matrix.h"

/* Shapes of the sparse matrices whose rates are measured: columns whose sums stay on chip, and far too many. */
enum { KI_COLUMNS_NARROW = 1024, KI_COLUMNS_WIDE = 1 << 22 };

struct ki_figures {
    double start;     /* seconds to open the device and to load its kernels */
    double up, down;  /* bytes a second from the host and back; 0 where nothing moves */
    double read;      /* bytes a second of its own memory */
    double dense;     /* bytes of a dense X a second, in a fused pass */
    double narrow;    /* entries of a sparse X a second, with KI_COLUMNS_NARROW columns */
    double wide;      /* ... with KI_COLUMNS_WIDE columns */
    double iteration; /* seconds of an iteration that are not computing: launches, waiting, small vectors */
};

struct ki_cost {
    double bytes; /* of X */
    bool streamed;
    double start, move;    /* once */
    double pass, overhead; /* in each pass */
    double total;
};

/* The work with its defaults filled in; ERR_ARGUMENT if it makes no sense. */
kiln_status ki_work_check(kiln_work *full, const kiln_work *work);
struct ki_cost ki_cost_of(const struct ki_figures *figures, const kiln_work *work, double budget);

#endif
