/* This folder's CPU bodies, a row each (bodies/bodies.h): of doubles, whatever the table's type. */
#ifndef KI_METRICS_BODIES_H
#define KI_METRICS_BODIES_H

#include <stdbool.h>

#include "kiln/ops.h"

struct ki_home; /* metrics/runs.h */
struct ki_judged_sums;
struct ki_labelled;
struct ki_number_sums;
struct ki_run;
struct ki_two_sums;

/* clang-format off */
#define KI_BODIES_metrics(BODY)                                                                              \
    BODY(void, metric_exp, (double *x, int64_t count))                                                       \
    BODY(void, metric_judge, (struct ki_judged_sums *sums, struct ki_run *run, const kiln_loss *loss,        \
                              bool one_mean))                                                                \
    BODY(void, metric_keys, (struct ki_labelled *to, const double *score, const double *y, double value,     \
                             int drop))                                                                      \
    BODY(void, metric_number, (struct ki_number_sums *to, const struct ki_run *run))                         \
    BODY(void, metric_read, (double *to, const struct ki_home *home, int64_t from, int64_t apart,            \
                             int64_t count))                                                                 \
    BODY(void, metric_two, (struct ki_two_sums *sums, const struct ki_run *run, const double classes[2],     \
                            double lost_most))
/* clang-format on */

#endif
