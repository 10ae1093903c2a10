/* Class labels: which class each row belongs to, and the weight that this gives it. */
#ifndef KI_LABELS_H
#define KI_LABELS_H

#include "algorithms/run/arena.h"

/* Its memory is an arena's. */
struct ki_labels {
    double *values; /* of the classes, ascending */
    int64_t count;
    int32_t *of; /* each row's class; NULL where `pair` tells */
    const kiln_matrix
        *pair; /* the y given, of 0 and 1 or (`signs`) -1 and 1, both of which there are; or NULL */
    bool signs;
    double ones; /* with `pair`: how many rows are of the second class */
    int64_t rows;
    kiln_matrix *weights; /* m x 1: sample weight times class weight; NULL = ones */
};

struct ki_label_options {
    const kiln_matrix *weights;  /* m x 1, or NULL */
    const double *class_weights; /* or NULL */
    bool balanced;
};

/* y stays with the labels. ERR_DATA for fewer than two classes or too many (kiln_classes), or entries that
 * are not finite; ERR_ARGUMENT for class weights that are of no use. */
kiln_status ki_labels_new(struct ki_labels *labels, struct ki_arena *arena, const char *call,
                          const kiln_matrix *y, const struct ki_label_options *options);
/* *column = a new m x 1 matrix of the arena, on y's device: of row i, `yes` if it belongs to class c, else
 * `no`; for c < 0 the class's number. */
kiln_status ki_labels_column(kiln_matrix **column, struct ki_arena *arena, const struct ki_labels *labels,
                             const kiln_matrix *y, int64_t c, double yes, double no);
/* sums, `count` of them: the weight of each class. */
kiln_status ki_labels_sums(double *sums, const struct ki_labels *labels, const kiln_matrix *y);

#endif
