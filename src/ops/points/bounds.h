/* This header says what passes over the same X leave behind for the next one: which centre is each row's,
 * what each centre's rows add up to and, on the CPU, how near the other centres can be. */
#ifndef KI_BOUNDS_H
#define KI_BOUNDS_H

#include "ops/points/assign.h"

enum { KI_BUNDLE = 16, KI_BOUNDS_GROUPS = 64 }; /* centres that are measured together; groups, at most */

struct kiln_bounds {
    kiln_device *device;
    kiln_type type;
    int64_t m, n, k;
    int64_t groups, each, padded; /* of centres; bundles in one; centres in whole groups */
    bool known;                   /* a pass has been made: labels, centres and sums are its */
    bool fresh;                   /* the next pass adds up all rows */
    bool valid, grouped;          /* bounds are of the last pass; centres have their groups */
    int64_t wait, next_wait;      /* passes before bounds are tried again, and after the next failure */
    int64_t changed;              /* rows that changed their centre in the last pass */
    /* Each row has its centre, now and before the pass; no less than the distance from it; groups: no more
     * than the distance from any other centre of the group. */
    int32_t *labels, *before;
    float *upper, *lower;
    /* Each centre has its group, how far it has moved, and rows that count. Each place in the groups has the
     * centre, -1 behind the last. Each group has the longest move, whose it is, and the second longest. */
    int32_t *group, *order, *mover;
    float *moved, *most, *second;
    int64_t *rows;
    double *centres;             /* k x n: those of the last pass */
    kiln_matrix *running;        /* of the rows of each: k x n sums, then the totals, k x 2 */
    double *sums;                /* the same, on the CPU */
    struct ki_buffer kept, last; /* a GPU's: centres of the rows, and the centres, of the last pass; a CPU's
                                  * `kept` has what it keeps of rows */
    double measured;             /* distances of the latest pass */
    double all, skipped;         /* distances that passes were for, and those that they did without */
};

/* Memory for what is kept, and the groups: before the first pass. */
kiln_status ki_bounds_begin(kiln_bounds *bounds);
/* A copy of the bounds becomes those of `rows` rows from `first` on. */
void ki_bounds_rows(kiln_bounds *copy, int64_t first, int64_t rows);
/* Groups of centres that are near each other, when `centres` are known; once. */
kiln_status ki_bounds_group(kiln_bounds *bounds);
/* Returns whether the next pass had better measure all distances, by the bodies that are made for that, and
 * leave no bounds; it is counted. */
bool ki_bounds_pause(kiln_bounds *bounds);
/* A pass by bounds has measured so many distances; all: because there were no bounds before it. */
void ki_bounds_count(kiln_bounds *bounds, double measured, bool all);

#endif
