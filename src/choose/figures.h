/* A device's figures for the cost model (choose/cost.h), measured once and kept in the machine's profile. */
#ifndef KI_FIGURES_H
#define KI_FIGURES_H

#include "choose/cost.h"
#include "core/kernels/cache.h"

/* Figures that a pass of this work needs, from the profile. *found = false if one is not there: then they are
 * as they were, but for `process`, which is there whenever it has been told; `start` is 0 where nobody has
 * opened the device for a choice (ki_figures_keep_start). `device` gives the cache folder and may be another
 * than the owner, which need not be open. */
kiln_status ki_figures_recall(bool *found, struct ki_figures *figures, kiln_device *device, const char *owner,
                              const kiln_work *work);
/* The same for an open device, measuring what is missing, but for `start` and `process`. *told as below. */
kiln_status ki_figures_measure(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                               bool *told);
/* Says, unless *told, that this machine is being measured: one line, whatever is measured for one choice. */
void ki_figures_tell(const kiln_device *device, bool *told);
/* For a device that began to open at that time: runs an iteration, which loads kernels, and keeps how long
 * all of it took, but for building kernels. The least counts. */
kiln_status ki_figures_keep_start(struct ki_figures *figures, kiln_device *device, const kiln_work *work,
                                  double opened_at);
/* Somebody has told how long a process takes that opens the device and does nothing else. */
kiln_status ki_figures_keep_process(struct ki_figures *figures, kiln_device *device, double seconds);

/* These measure what figures are made of (choose/figures_rates.c). */
kiln_status ki_rates_dense(double rates[KI_DENSE_WIDTHS], kiln_device *device, kiln_type type);
/* row, sparse and thin of the figures. */
kiln_status ki_rates_sparse(struct ki_figures *figures, kiln_device *device, kiln_type type);
kiln_status ki_rates_iteration(double *seconds, kiln_device *device, kiln_type type);
kiln_status ki_rates_link(double *up, double *down, kiln_device *device);
/* Runs one, small, to its end. */
kiln_status ki_rates_first_iteration(kiln_device *device, kiln_type type);

#endif
