/* This header has what launch models have in common that take a plan's time from several bounds, and lists of
 * plans, the best predicted one first. */
#ifndef KI_PREDICT_H
#define KI_PREDICT_H

#include <stdio.h>

#include "core/device.h"
#include "kiln/tune.h"

/* The most of `count` bounds in seconds, which hides the others but for a share of them. *worst: which is the
 * most. */
static inline double ki_bounded(const double *seconds, int count, double not_hidden, int *worst) {
    double sum = 0;
    *worst = 0;
    for (int i = 0; i < count; i++) {
        sum += seconds[i];
        if (seconds[i] > seconds[*worst]) *worst = i;
    }
    return seconds[*worst] + not_hidden * (sum - seconds[*worst]);
}

/* Exchanges that add up what so many lanes have, a power of two. */
static inline int ki_halvings(int lanes) {
    int steps = 0;
    for (; lanes > 1; lanes /= 2) steps++;
    return steps;
}

/* The data sheet promises so many bytes a second of the device's memory; `unknown` where nothing does. */
static inline double ki_promised_bandwidth(const kiln_device *device, double unknown) {
    return device->properties.bandwidth > 0 ? device->properties.bandwidth : unknown;
}

/* The only plan of a CPU, which takes so many bytes to and from memory. */
static inline kiln_plan ki_cpu_plan(const kiln_device *device, double bytes) {
    kiln_plan plan = {.chosen = 1, .vector = 1, .group = device->threads, .groups = 1, .occupancy = 1};
    plan.bytes = bytes;
    plan.seconds = bytes / ki_promised_bandwidth(device, 2e10);
    snprintf(plan.variant, sizeof plan.variant, "cpu");
    snprintf(plan.limit, sizeof plan.limit, "memory");
    return plan;
}

#endif
