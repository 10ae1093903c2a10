/* A start for the Newton engine from the dual: see newton_dual.c. */
#ifndef KI_NEWTON_DUAL_H
#define KI_NEWTON_DUAL_H

#include "algorithms/newton/labels.h"
#include "algorithms/newton/newton.h"

/* Finds whether the dual is to be descended in, for an engine that is filled in but not open yet: as asked
 * for, else where it is expected to be faster. ERR_UNSUPPORTED: it is asked for, and cannot be. */
kiln_status ki_dual_choose(bool *wanted, const struct ki_newton *newton, kiln_classifier_solver solver);

/* Finds what that has to say, for the rows' `choose`. */
kiln_status ki_dual_explain(kiln_solver *choice, const struct ki_newton *newton,
                            kiln_classifier_solver solver);
kiln_status ki_logreg_explain(kiln_solver *choice, const void *options, const kiln_matrix *X, int64_t k);
kiln_status ki_svm_explain(kiln_solver *choice, const void *options, const kiln_matrix *X, int64_t k);

struct ki_dual_task {
    bool logistic;
    const struct ki_labels *labels;
    const kiln_matrix *y; /* as the labels know it */
    int64_t
        problems;  /* 1: the second class against the first, or softmax of all; else each against the rest */
    double *W, *b; /* results, in as many columns as problems or classes of softmax */
};

/* Returns whether a state waits that was kept during a descent; one that was kept behind it has no need of
 * another. */
bool ki_dual_waits(const kiln_control *control);

/* Solves about as closely as the engine's tolerance asks. Adds a sweep to passes for each that all rows
 * would have made, and sets cancelled. After open. Goes on from a state that waits. */
kiln_status ki_dual_solve(struct ki_newton *newton, const struct ki_dual_task *task);

/* The same without the engine, which need not be open, where one problem has no intercept, one penalty for
 * all columns and no checkpoint: the descent judges itself (ops/linear/dual_judge.h). */
struct ki_dual_alone {
    bool descended; /* W and b are where it ended, a start for the engine where it is not `met` */
    bool met;       /* the criterion is, and the engine's report says so: nothing is left to do */
    /* then how far the dual's objective is below the primal's, and what rounding may have made of both */
    double gap, rounding;
};
kiln_status ki_dual_alone(struct ki_dual_alone *alone, struct ki_newton *newton,
                          const struct ki_dual_task *task);

#endif
