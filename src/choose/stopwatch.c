#define _GNU_SOURCE
#include "choose/stopwatch.h"

#include <math.h>
#include <time.h>

#include "core/seams.h"

/* INFINITY where the system does not say. */
static double threads_clock(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return INFINITY;
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct ki_stopwatch ki_stopwatch_begin(void) {
    const double threads = threads_clock();
    return (struct ki_stopwatch){ki_clock(), isinf(threads) ? 0 : threads};
}

double ki_stopwatch_seconds(struct ki_stopwatch begun, const kiln_device *device) {
    const double wall = ki_clock() - begun.wall;
    return ki_on_cpu(device) ? fmin(wall, threads_clock() - begun.threads) : wall;
}
