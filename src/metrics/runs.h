/* A run of rows as doubles, which CPU bodies measure in vectors, and what they find. */
#ifndef KI_METRIC_RUNS_H
#define KI_METRIC_RUNS_H

#include "kiln/linear.h"
#include "kiln/ops.h"
#include "core/matrix.h"
#include "dialect/joins.h"

/* A matrix, and its values where the host reads them: where they lie, or a copy of them. */
struct ki_home {
    const kiln_matrix *matrix; /* NULL: there is no such matrix */
    const void *values;        /* NULL: the host does not read them */
    void *copy;                /* NULL: they lie in the matrix, which is held */
    bool single;
};

/* The sums of one target. */
struct ki_number_sums {
    struct ki_sum square, absolute, error; /* s e^2, s |e|, -s e */
    struct ki_variation y;
};

enum { KI_RUN = 256 };

/* Arrays hold zeros behind `count`, to the end of a vector. */
struct ki_run {
    int64_t count;
    double eta[KI_RUN], y[KI_RUN], weight[KI_RUN];
    double mean[KI_RUN]; /* what a number is compared with */
    bool given;          /* the means are, and not eta's */
};

/* The sums of a GLM's rows. */
struct ki_judged_sums {
    double weight, deviance, brier, right;
    bool outcomes; /* each y is 0 or 1 */
};

/* The sums of rows of two classes, or of neither: table[class][taken]. */
struct ki_two_sums {
    double lost, brier, table[3][2];
};

/* Keys that rank as numbers do, 0 as -0. Signs are as good as random: nothing branches on them. */
static inline uint64_t ki_key(double value) {
    union {
        double value;
        uint64_t bits;
    } of = {value + 0.0};
    return of.bits ^ ((UINT64_C(0) - (of.bits >> 63)) | UINT64_C(1) << 63);
}

#endif
