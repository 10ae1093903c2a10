/* The parts of the conformance suite's own program: what it was asked for, one case, and the walk through
 * all (main.c). */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "cases.h"

struct options {
    const char *device, *except, *operation, *type, *require;
    bool verbose, quick, large, all, low_limits, plans;
    int threads, each, part, parts;
};
/* False: it was said on standard error what is wrong with the command line. */
bool parse_options(struct options *options, int argc, char **argv);
/* Returns whether something of that name was asked for; an option that was not given is for all. */
bool wanted(const char *option, const char *name);

/* A device's line in the closing table, and a case that it counts, told if it failed: what, and why. */
struct suite;
struct tally;
void suite_report(struct suite *suite, struct tally *tally, bool passed, double ratio, double gate,
                  const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 6, 7)))
#endif
    ;
/* Every plan of mmchain on the device (plans.c). */
void run_plans(struct suite *suite, const struct options *options, struct tally *tally, kiln_device *device,
               const char *device_name, kiln_type type);

struct outcome {
    bool passed;
    double ratio, gate;
    char why[400];
};
/* atomics: sums may differ from run to run. */
struct outcome run_case(const struct operation *operation, const struct problem *problem, kiln_device *device,
                        kiln_type type, bool atomics);

#endif
