/* Cross-validation and the path over the penalty. */
#ifndef CLI_CV_H
#define CLI_CV_H

#include "linear.h"

/* Holds what came of one value of the penalty, in one fold or in all that are finished together. */
struct outcome {
    double metrics[METRICS_MOST]; /* or their sums: of those that the validation names */
    int64_t iterations;
    int64_t nonzeros; /* coefficients that are not 0; with folds only where the values are l1's */
    bool unconverged; /* anywhere */
};

struct tried {
    struct penalty penalty;
    double *score;          /* of each fold; on a path without folds one, on the training data */
    double mean, error;     /* of the mean, NaN with fewer than two folds */
    double objective, norm; /* without folds: at the result, and ||W|| */
    struct outcome latest,
        sum; /* of the fold under way, which an interruption leaves unfinished; of those finished */
};

/* A model's predictions for the rows that it is judged by, on the host, in rows of `wide` numbers. */
struct fitted {
    int64_t rows, wide;
    const double *scores, *means;
};

struct validation {
    const char *metric;
    bool higher_is_better;
    bool sparse;          /* the values are l1's, else l2's; the other penalty is the same for all of them */
    struct tried *tried;  /* strongest penalty first */
    int64_t count, folds; /* folds 0: a path on the training data alone */
    int64_t finished;     /* folds, fewer than all where training was interrupted; without folds values */
    struct metric metrics[METRICS_MOST];
    int metric_count;
    int32_t *fold;    /* which one holds a row out; NULL without folds */
    bool cut;         /* a model of a fold has ended at its limit: a checkpoint stays before that fold */
    double *held_out; /* values x rows x columns of W, where --held-out wants them; or NULL */
    double
        *paths; /* without folds, for a picture: all coefficients at each value, path_size of them; or NULL */
    int64_t path_size;
    double *numbers;         /* with a checkpoint: all that goes along with it, held_out too; or NULL */
    int64_t best, one_error; /* the best mean; the strongest penalty within a standard error of it */
};

/* The name of the values, for tables and axes, and the strength that one of them stands for. */
const char *cv_penalty_name(const struct validation *validation);
double cv_strength(const struct validation *validation, int64_t i);
/* Returns whether the settings ask for a cross-validation. */
bool cv_wanted(const struct settings *settings);
/* Fills *validation, to be freed in any case, and sets job->penalty to the value that --select asks for. */
int cv_run(struct run *run, struct training *job, struct validation *validation);
void cv_free(struct validation *validation);
json_t *cv_json(const struct training *job, const struct validation *validation);
void cv_print(FILE *file, const json_t *table); /* of what cv_json made */
/* Finds which values have models that did not converge, in words; "" where all did. */
void cv_list_unconverged(char *text, size_t room, const struct validation *validation);
int cv_print_path(struct run *run, const struct training *job, const struct validation *validation);
double cv_nonzeros(const struct validation *validation, const struct tried *tried); /* mean over the folds */
int cv_plot(const char *path, const struct validation *validation, const struct training *job);

/* cv_train.c: trains all models and takes what comes of them. 0, or an exit code; EXIT_INTERRUPTED with what
 * is finished. */
int cv_train(struct run *run, struct training *job, struct validation *validation);
/* cv_state.c: what is kept of it, nothing without --checkpoint and --resume. */
/* Takes what the file to go on from has, by which some folds may be finished; 0 or an exit code. */
int cv_state_begin(const struct run *run, struct validation *validation, const struct training *job);
void cv_state_note(struct validation *validation); /* a fold is finished */

/* cv_folds.c: the fold of each row. */
int cv_deal(int32_t *fold, const struct training *job, int64_t folds);
/* cv_held_out.c, nothing without --held-out. rows: those that `fitted` has, by number. value: the one that
 * was chosen. */
int cv_held_out_new(struct validation *validation, const struct training *job);
void cv_held_out_keep(const struct validation *validation, const struct training *job, int64_t value,
                      const struct fitted *fitted, const int64_t *rows);
int cv_held_out_write(const struct validation *validation, const struct training *job, int64_t value);

#endif
