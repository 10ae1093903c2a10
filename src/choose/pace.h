/* Measuring how a GPU goes through dense passes beside an H200 (pass/dense/pace.h). */
#ifndef KI_CHOOSE_PACE_H
#define KI_CHOOSE_PACE_H

#include "pass/dense/pace.h"
#include "pass/launch.h"

/* A probe is a pass over X by one plan, with so many groups on each compute unit. */
struct ki_pace_probe {
    kiln_matrix X;
    struct ki_chain chain; /* whose X is the one above, or one like it */
    struct ki_plan plan;
    int64_t groups;
    double seconds; /* as measured */
};
enum { KI_PACE_GROUP = 128 }; /* threads of a group */
enum ki_pace_number { KI_PACE_LATENCY, KI_PACE_ISSUE, KI_PACE_NUMBERS };

/* The probe for a number, on X without contents. */
void ki_pace_probe(struct ki_pace_probe *probe, kiln_device *device, kiln_type type,
                   enum ki_pace_number number);
/* The candidate of the probe's plan: the seconds that the model predicts at the pace of its device, and how
 * the plan is launched. */
struct ki_candidate ki_pace_candidate(const struct ki_pace_probe *probe);

/* The pace with which the model predicts what the probes took, between KI_PACE_LEAST and KI_PACE_MOST. A
 * number is 1 where its probe took less than the least allows: something else bounds it then. The device has
 * this pace from then on; its cache is open (ki_find_pace). */
#define KI_PACE_LEAST 0.25
#define KI_PACE_MOST 256.0
struct ki_pace ki_pace_fit(const struct ki_pace_probe probes[KI_PACE_NUMBERS]);

/* Measures: 1 and 1 on a Hopper GPU, and on what is no GPU. */
kiln_status ki_rates_pace(struct ki_pace *pace, kiln_device *device, kiln_type type);

#endif
