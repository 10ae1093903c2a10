/* kiln pca: principal components. */
#include "decompose.h"

const struct verb verb_of_pca = {
    "pca",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Find principal components",
    "Principal components: the directions in which the rows of DATA vary most, from the singular values of "
    "DATA about their columns' means, divided by their deviations with --scale. Coordinates along component "
    "j have the variance s_j^2 / (rows - 1). The signs are such that in each direction the entry of the "
    "largest size is positive.\n\n" DECOMPOSE_DATA,
    "kiln pca iris.csv --ignore species --scale --plot iris.svg -o iris.kiln\n"
    "kiln pca expression.npz -k 50 --coordinates cells.csv\n"
    "kiln predict iris.kiln new.csv",
    DECOMPOSE_VERB,
};
