/* Predictions, and the ways to write them. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "metrics.h"

struct prediction {
    kiln_model *model;
    kiln_data *data;
    kiln_loss loss;
    struct classes classes;        /* count 0: the model predicts numbers */
    kiln_matrix *offset, *weights; /* NULL if not given */
    kiln_matrix *Eta, *y;          /* linear predictors; targets of classes, values of what the model knows */
    kiln_device *host;             /* of y */
    bool evaluated;                /* with all that kiln evaluate tells */
    double *scores, *means;        /* scores: linear predictor */
    const double *shown;           /* what is printed, rows x columns; NULL: labels */
    int64_t rows, columns;
    bool single;            /* the values are of 32 bits */
    struct metrics metrics; /* metrics.made NULL: the data have no targets */
};
enum { JUDGED_MOST = 20 }; /* of more classes or targets there are no curves */

/* Loads the model, unless it is there, reads the data, chooses a device, predicts and compares with the
 * targets, if there are any; to be freed in any case. 0 or an exit code. */
int prediction_make(struct run *run, struct prediction *p);
void prediction_free(struct prediction *p);
void prediction_warn(const struct prediction *p); /* of labels that mean nothing */
int64_t predicted_class(const struct prediction *p, int64_t row);

/* Before any work: whether the file's name promises a form that these predictions can have. */
int predict_check_output(const char *path, const struct prediction *p, bool labels);
/* To `path` (NULL: standard output), in the form that its name says. Each returns 0 or an exit code. */
int predict_write(struct run *run, const struct prediction *p, const char *path);

#endif
