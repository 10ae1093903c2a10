/* kiln evaluate: what is known of a model on data, and its picture. */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include "predict.h"

struct evaluation;

/* One class against the rest, or one target. */
struct judgement {
    char name[80];
    const kiln_roc *roc;  /* of classes */
    const kiln_bin *bins; /* of what can be calibrated */
    int64_t bin_count;
    const struct evaluation *e;
};

struct evaluation {
    struct prediction p;
    struct judgement *judged; /* of each class, of two the second alone; or of each target */
    int64_t count;            /* 0: too many */
    bool classes,
        probable; /* probable: predictions are probabilities or numbers, so that they can be calibrated */
};

/* evaluate_topics.c: a topic model, perplexity and coherence. 0 or the exit code of an error that it has
 * reported. */
int evaluate_topics(struct run *run, const kiln_model *model);

/* ROC and calibration, or calibration and residuals. */
int evaluate_plot(const char *path, const struct evaluation *e, const char *title);

#endif
