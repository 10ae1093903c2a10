/* Training of linear models: what they add to a run (solve.h). What differs from algorithm to algorithm is
 * a row of a table, struct algorithm. */
#ifndef CLI_LINEAR_H
#define CLI_LINEAR_H

#include <kiln/tune.h>

#include "commands.h"
#include "common.h"
#include "metrics.h"
#include "solve.h"

struct training;
struct validation;

struct penalty {
    double l1, l2;
};

/* One problem for a solver: the rest is in the training. */
struct problem {
    struct penalty penalty;
    const kiln_matrix *weights; /* or NULL */
    bool warm;                  /* start from the training's W and b */
    kiln_control control;
};

/* The options struct of the algorithm as the command line sets it, and what each problem brings of its
 * own. */
#define GIVEN(type, settings) ((const type *)(const void *)(settings)->algorithm.bytes)
#define TAKE_PROBLEM(options, problem)                                                                       \
    ((options).warm_start = (problem)->warm, (options).weights = (problem)->weights,                         \
     (options).control = (problem)->control)

struct algorithm {
    const char *name, *title;
    /* Finds what can be said of the options before the data are read; sets the loss. NULL: nothing. Returns 0
     * or an exit code. */
    int (*check)(struct training *job);
    /* Finds what the targets are, once the data are there and before a device is chosen: finds the classes.
     * NULL: nothing. Returns 0 or an exit code. */
    int (*inspect)(struct training *job);
    /* Everything else of the algorithm's own: loss; allocates W and b unless a warm start has. Returns 0
     * or an exit code. */
    int (*prepare)(struct run *run, struct training *job);
    void (*set)(void *options, const struct training *job,
                const struct problem *problem); /* the algorithm's options struct */
    kiln_status (*solve)(const struct training *job, const struct problem *problem, kiln_report *report);
    double (*l2_of_C)(double C);                      /* NULL: the algorithm has no C */
    const char *(*score)(const struct training *job); /* the metric that cross-validation goes by */
};
extern const struct algorithm algorithm_linreg, algorithm_logreg, algorithm_glm, algorithm_svm;
const struct algorithm *algorithm_named(const char *name); /* NULL if there is none */

/* Count 0 where they are too many to be listed. Standard errors are those of one
 * column. */
struct coefficients {
    const struct training *job;
    double *W, *b, *errors; /* b and errors may be NULL */
    int64_t rows, count;
    double degrees; /* of freedom, of a dispersion that is estimated; infinite where it is known */
};

struct training {
    const struct algorithm *algorithm;
    const struct settings *settings;
    const kiln_model *warm; /* NULL without --warm-start */
    const kiln_data *data;
    const kiln_report *report;
    kiln_matrix *weights, *offset, *W, *b; /* each but W may be NULL */
    int64_t *groups; /* of each row, 0 ... group_count - 1, for cross-validation; or NULL */
    int64_t group_count;
    struct classes classes; /* count 0: the targets are numbers */
    double *class_weights;  /* one for each class, or NULL */
    bool balanced;
    kiln_loss loss;           /* kind, family, link and parameters */
    bool estimated;           /* the parameter of the family has been, by maximum likelihood */
    kiln_range range;         /* of a glm's targets */
    struct penalty penalty;   /* of the model that is kept */
    kiln_matrix *errors;      /* standard errors, NULL if not wanted */
    kiln_matrix *kept_errors; /* the same as the model keeps them */
    struct coefficients table;
    struct metrics metrics;
    struct validation *validation; /* of --cv or a path, or NULL */
    json_t *scores;                /* what the model keeps of it, or NULL */
};

extern const struct solver linear_solver; /* whose state is a struct training */

/* W n x columns and b 1 x columns, zeros unless a warm start has filled them. */
int linear_allocate(struct run *run, struct training *job, int64_t columns);
int linear_fail(const struct training *job); /* reports the library's error, in the data's words */
/* Finds what the library would do, with the penalty that is kept; 0 or an exit code. */
int linear_choose_solver(kiln_solver *choice, const struct training *job, const kiln_matrix *X);
double linear_value(const struct training *job,
                    const char *option); /* algorithm_value of the job's algorithm */

/* Finds the classes of the target; allocates for them. */
int linear_find_classes(struct training *job);
int linear_prepare_classifier(struct run *run, struct training *job);

/* linear_result.c: hooks of linear_solver. */
/* Tells how good the model is on the training data; its coefficients for people. */
int linear_finish(struct solving *s);
kiln_status linear_keep(kiln_model *model, const struct solving *s);
void linear_head(struct result *result, const struct solving *s);
void linear_metrics(struct result *result, const struct solving *s);
void linear_options(struct result *result, const struct solving *s);
void linear_put(struct result *result, const struct solving *s);
void coefficients_free(struct coefficients *table);

#endif
