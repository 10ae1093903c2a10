/* What the parts of K-Means share: the run's state, and how it begins (kmeans_start.c). */
#ifndef KI_KMEANS_H
#define KI_KMEANS_H

#include "algorithms/algorithm.h"

struct kmeans {
    const kiln_matrix *X;
    kiln_kmeans_options options; /* defaults filled in */
    kiln_device *device;
    kiln_type type;
    int64_t m, n, k;
    kiln_matrix *C, *sums;      /* k x n */
    double *centres, *next;     /* k x n: C, and what it becomes */
    double *totals;             /* k x 2, as kiln_assign has them */
    double *best, *best_totals; /* of the restarts */
    double *weights;            /* m, or NULL: ones */
    double scale;               /* mean variance of X's columns */
    double began, objective, residual;
    uint64_t draws; /* random numbers taken so far */
    bool cancelled;
    int64_t relocated;
    kiln_report report;
};

double ki_kmeans_random(struct kmeans *s); /* uniform in [0, 1) */
/* Tells the control how far the run is; s->cancelled if it asks to stop. Once a pass. */
void ki_kmeans_tell(struct kmeans *s);
kiln_status ki_kmeans_start(struct kmeans *s); /* s->C */

#endif
