/* --device auto: data are read onto the CPU, and once their shape is known the device is chosen on which
 * the work is expected to end first. */
#ifndef CLI_CHOOSE_H
#define CLI_CHOOSE_H

#include <kiln/tune.h>

#include "common.h"

/* Each returns 0 or the exit code of an error that it has reported. */
int choose_reader(struct run *run); /* opens the device that --device names; for auto the CPU */
/* `passes` passes over the data with k columns of y. */
kiln_work choose_work(const struct verb *verb, const kiln_data *data, int64_t k, int64_t passes);
/* Under --device auto: opens the device that suits the work, moves the data there, and says why. */
int choose_device(struct run *run, kiln_data *data, const kiln_work *work);
/* The section "choice": what was expected of each device, and what it came to. Nothing where --device
 * named the device. */
void choose_put(struct result *result, const struct run *run);
void choose_put_estimate(struct result *result, const void *estimates, int64_t i); /* a table's row */

/* Passes over X that training is expected to take before it converges, from experience with real data. */
int64_t choose_passes(const struct verb *verb, const struct settings *settings, int64_t columns);
int64_t choose_width(const struct verb *verb, const struct settings *settings); /* the verb's, or 1 */
/* The seconds of a process that uses the device, with the driver's start and its cleaning up afterwards:
 * kiln_choose_options' function of this name. */
double process_of(void *user, const char *device);

#endif
