/* The time that an algorithm takes on a device, found by running it there.
 *
 *   seconds = prepare(units) + iterations * iteration(units)
 *
 * units are what an iteration's time grows with: links, pairs, products. On made data of three sizes the
 * algorithm makes a few iterations and then more. What differs is iterations', what is left is what comes
 * before them: building a layout, a start. An iteration of the smallest is launches and waiting, the overhead
 * o of the iterative-kernels paper's T = c + o. */
#ifndef KI_TRIAL_H
#define KI_TRIAL_H

#include "choose/cost.h"

struct kiln_trial {
    const char *name;        /* in the machine's profile */
    int64_t rows[KI_TRIALS]; /* of the made data, ascending */
    int64_t times_gpu;       /* a GPU's last size is so many times the other */
    double slow;             /* seconds that a unit takes, at most, on one thread of any processor */
    double bytes;            /* that a unit of the made data takes, at most, with all that the run adds */
    kiln_work (*work)(int64_t rows); /* its shape */
    double (*units)(const kiln_work *work);
    kiln_status (*make)(kiln_matrix **X, kiln_device *device, kiln_type type, int64_t rows);
    /* *done: iterations made, no more than those wanted. */
    kiln_status (*run)(int64_t *done, const kiln_matrix *X, int64_t iterations);
};

kiln_status ki_trial_measure(struct ki_trial_figures *figures, kiln_device *device, kiln_type type,
                             const struct kiln_trial *trial);
/* Figures that any processor with so many threads reaches. */
void ki_trial_assume(struct ki_trial_figures *figures, const struct kiln_trial *trial, double threads);

#endif
