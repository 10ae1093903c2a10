/* A descent in the dual, for newton_dual.c, which runs it, and newton_dual_state.c, which keeps it. */
#ifndef KI_NEWTON_DUAL_WORK_H
#define KI_NEWTON_DUAL_WORK_H

#include "algorithms/newton/newton_centre.h"
#include "algorithms/newton/newton_dual.h"
#include "ops/linear/dual.h"
#include "ops/linear/dual_judge.h"

/* A problem: two classes, softmax of all, or some classes each against the rest. */
struct ki_dual_problem {
    struct ki_dual dual;
    double *y, *a;           /* a: also what `rest` is */
    struct ki_centre centre; /* of the intercept's penalty: b less what t adds */
    double residual;         /* what the sweeps leave, as the tolerance counts it */
    double best, mark;       /* the least of all residuals; what it was when the sweeps were judged last */
    int64_t sweeps, total;   /* total: rows of a weight */
    double work;             /* sweeps, counting the rows that took part */
    bool done;
};

/* All of them. */
struct ki_dual_descent {
    struct ki_newton *newton;
    const struct ki_dual_task *task;
    struct ki_dual_judge *judge; /* of one problem; NULL: the engine judges, and has measured the columns */
    double *reciprocal, *square, *s; /* s NULL: ones */
    double weight;                   /* sum of s */
    bool uniform;
    struct ki_dual_problem *problems;
    int64_t sides; /* classes of a problem, each against the rest, the last one's as many as are left */
    int64_t k;     /* columns of its w: these, or those of softmax */
    int count;     /* at once */
    bool shared;   /* two threads a problem */
};

/* Does what ki_dual_solve does, and finds the criterion. judge has its l2 and scale; its reference is 0 where
 * it cannot judge, and nothing has been solved. */
kiln_status ki_dual_solve_judged(struct ki_newton *newton, const struct ki_dual_task *task,
                                 struct ki_dual_judge *judge);

/* Numbers in a problem's `a`, of one column with `rest` and what moves between sweeps want of the rows; in
 * dual.w, with `own` and what they want of the columns. */
int64_t ki_dual_variables(const struct ki_dual_descent *all);
int64_t ki_dual_weights(const struct ki_dual_descent *all);

/* Between two rounds: keeps the state of problems first ... first + count - 1 and the results of those
 * before, if it is time to, or the run is cancelled. */
kiln_status ki_dual_keep(struct ki_dual_descent *all, int64_t first, int count);
/* Tells of a state that waits which problems it has under way, of how many classes, and whether two threads
 * share each. */
kiln_status ki_dual_look(struct ki_dual_descent *all, int64_t *first, int *count);
/* The same and all that was kept, once these problems have begun; the state waits no more. ERR_MODEL: it is
 * none. */
kiln_status ki_dual_resume(struct ki_dual_descent *all, int64_t first, int count);

#endif
