/* The classes of a classifier. */
#ifndef CLI_CLASSES_H
#define CLI_CLASSES_H

#include "common.h"

/* The classes of a classifier: the values of y that stand for them, ascending, and what they are called. */
struct classes {
    double *values;
    int64_t count;
    char **names; /* NULL: the values are their names */
};
void classes_free(struct classes *classes);
int64_t classes_find(const struct classes *classes, double value); /* -1: none of them */
/* The class's name; *buffer (SHORTEST_ROOM bytes) is used where that is a number. */
const char *classes_name(const struct classes *classes, int64_t number, char *buffer);

/* y (rows) as the data have it becomes values of the classes; NaN: of no class that these know. Labels are
 * one where their texts are equal, or where both are plain numbers of one value: a file may say 1.0 for 1. 0
 * or an exit code. */
int classes_translate(double *y, int64_t rows, const struct classes *classes, const kiln_data *data);

/* The class with the largest score: of one column by its sign. */
int64_t class_of_scores(const double *scores, int64_t columns);
/* Finds what --class-weight says: *balanced, or a weight for each class (to free). 0 or an exit code. */
int classes_weights(double **weights, bool *balanced, const struct classes *classes, const char *text);
/* The classes of a model, with the run's device open; none if it is no classifier. Returns 0 or an exit
 * code. */
int classes_of_model(struct run *run, struct classes *classes, const kiln_model *model);

#endif
