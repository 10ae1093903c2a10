/* How well scores rank rows, and whether predictions mean what they say. */
#ifndef CLI_CURVES_H
#define CLI_CURVES_H

#include <stdint.h>

/* A row: its weight, and that negative where it is not of the class. */
struct scored {
    double score, weight;
};

/* The share of pairs of a positive and a negative row in which the positive one has the higher score; a tie counts half. Sorts the
 * rows. NaN without a pair. */
double roc_area(struct scored *rows, int64_t count);

/* The receiver operating characteristic: of the rows above each threshold, the shares of all negative and of all positive ones,
 * from (0, 0) to (1, 1). Of longer curves so many points are kept, evenly along the curve; the area is that of all of them. */
enum { ROC_POINTS = 200 };
struct roc {
    double false_share[ROC_POINTS + 2], true_share[ROC_POINTS + 2];
    int64_t count; /* 0: there are not both, positive and negative rows */
    double area;
};
void roc_make(struct roc *roc, struct scored *rows, int64_t count); /* sorts the rows */

/* Rows in order of their predictions, in bins of about equal weight; equal predictions share a bin. */
enum { BINS = 10 };
struct bin {
    double least, most, weight; /* of the predictions in it */
    double predicted, observed; /* means */
    double error;               /* standard error of the mean observed; NaN of a single row */
    double residuals
        [3]; /* observed - predicted: a tenth of the weight lies below the first, half below the second, nine tenths
                                 * below the third */
};
struct judged {
    double predicted, observed, weight;
};
/* Sorts the rows, those without weight left out. Returns how many bins there are. */
int calibrate(struct bin bins[BINS], struct judged *rows, int64_t count);

#endif
