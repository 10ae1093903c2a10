/* This header says what work takes on a device that has nothing else to do. */
#ifndef KI_STOPWATCH_H
#define KI_STOPWATCH_H

#include "core/device.h"

struct ki_stopwatch {
    double wall, threads; /* seconds */
};

struct ki_stopwatch ki_stopwatch_begin(void);
/* Seconds since then, of work that has ended. On a processor those of the wall or of all threads together,
 * whichever is less: where others had the processor meanwhile the latter are closer to the truth, and at most
 * as many times too long as there are threads. Elsewhere they are never less. */
double ki_stopwatch_seconds(struct ki_stopwatch begun, const kiln_device *device);

#endif
