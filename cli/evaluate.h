/* kiln evaluate: what is known of a model on data, and its picture. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include "curves.h"
#include "predict.h"

/* One class against the rest, or one target. */
struct judgement {
    char name[80];
    struct roc roc; /* of classes */
    struct bin bins[BINS];
    int bin_count;
};

enum { JUDGED_MOST = 20 }; /* of more classes or targets there are no curves */
struct evaluation {
    struct prediction p;
    struct judgement *judged; /* of each class, of two the second alone; or of each target */
    int64_t count;            /* 0: too many */
    double *ranks;            /* of a binomial glm's rows, or NULL */
    bool classes,
        probable; /* probable: predictions are probabilities or numbers, so that they can be calibrated */
};

/* Adds d2 = 1 - deviance / that of the best intercept alone, as R2 is for squares; with an offset that has it too. evaluate_deviance.c */
int evaluate_explained_deviance(const struct run *run, struct prediction *p);
/* ROC and calibration, or calibration and residuals. */
int evaluate_plot(const char *path, const struct evaluation *e, const char *title);

#endif
