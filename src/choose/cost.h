/* This header says what passes over a matrix cost on a device, from figures measured there once. */
#ifndef KI_COST_H
#define KI_COST_H

#include "kiln/tune.h"
#include "core/kernels/cache.h"
#include "core/matrix.h"

/* Columns of the matrices whose rates are measured. Dense: rows within a vector, rows in the first-level
 * cache, rows beyond it. Sparse: sums in the first-level cache, in the second, at its end, far beyond. */
enum { KI_DENSE_WIDTHS = 3, KI_SPARSE_WIDTHS = 4 };
extern const int64_t ki_dense_widths[KI_DENSE_WIDTHS], ki_sparse_widths[KI_SPARSE_WIDTHS];

/* An algorithm's: what is expected before its iterations and of one (choose/trial.h), at so many units. */
enum { KI_TRIALS = 3 };
struct ki_trial_figures {
    double units[KI_TRIALS], prepare[KI_TRIALS], iteration[KI_TRIALS];
};

struct ki_figures {
    double until;    /* seconds since 1970: then they are measured again */
    double start;    /* seconds to open the device and to load its kernels */
    double process;  /* seconds of a process that opens the device and does nothing else; 0: not told */
    double up, down; /* bytes a second from the host and back; 0 where nothing moves */
    double read;     /* bytes a second of its own memory */
    double dense[KI_DENSE_WIDTHS];   /* bytes of a dense X a second, in a fused pass */
    struct ki_pace pace;             /* of dense passes, beside an H200 */
    double row;                      /* seconds that a row of a sparse X takes besides its entries */
    double sparse[KI_SPARSE_WIDTHS]; /* entries of a sparse X a second */
    double thin;      /* ... of the widest, with too few entries for tiles (derived/panels_cpu.h) */
    double iteration; /* seconds of an iteration that are not computing: launches, waiting, small vectors */
    struct ki_trial_figures trial; /* instead of these rates */
};

struct ki_cost {
    double bytes; /* of X */
    bool streamed;
    double start, move, prepare; /* once */
    double pass, overhead;       /* in each pass */
    double total;
};

/* The work with its defaults filled in; ERR_ARGUMENT if it makes no sense. */
kiln_status ki_work_check(kiln_work *full, const kiln_work *work);
/* Returns the bytes of X. */
double ki_work_bytes(const kiln_work *work);
/* thin: of a wide sparse X, figures->thin applies. */
struct ki_cost ki_cost_of(const struct ki_figures *figures, const kiln_work *work, double budget, bool thin);

#endif
