/* Cross-validation and the path over the penalty. */
#ifndef CLI_CV_H
#define CLI_CV_H

#include "train.h"

/* What came of one value of the penalty. */
struct tried {
    double l2;
    double *score;          /* of each fold; on a path without folds one, on the training data */
    double mean, error;     /* of the mean, NaN with fewer than two folds */
    int64_t iterations;     /* of all folds */
    double objective, norm; /* without folds: at the result, and ||W|| */
    bool converged;
};

struct validation {
    const char *metric;
    bool higher_is_better;
    struct tried *tried;     /* strongest penalty first */
    int64_t count, folds;    /* folds 0: a path on the training data alone */
    int64_t best, one_error; /* the best mean; the strongest penalty within a standard error of it */
};

/* Whether the settings ask for it. */
bool cv_wanted(const struct settings *settings);
/* Fills *validation, to be freed in any case, and sets job->l2 to the value that --select asks for. */
int cv_run(struct run *run, struct training *job, struct validation *validation);
void cv_free(struct validation *validation);
json_t *cv_json(const struct run *run, const struct validation *validation);
void cv_print(FILE *file, const struct validation *validation);
int cv_tell_path(struct run *run, const struct training *job, const struct validation *validation);
int cv_plot(const char *path, const struct validation *validation);

#endif
