/* This header says what an algorithm says of its state so that a run can be stopped and go on: a table of its
 * parts. Every call does nothing where the control brings no checkpoint (kiln/checkpoint.h). Methods that
 * take steps make these calls through run.h. */
#ifndef KI_CHECKPOINT_H
#define KI_CHECKPOINT_H

#include "algorithms/algorithm.h"

#define KI_STATE_MOST (INT64_C(1) << 53) /* integers of a state are no larger */

/* One part: a matrix, numbers of the host, a flag, or another report. None of them: the run has no such
 * part. */
struct ki_state {
    const char *name;
    kiln_matrix *const *matrix; /* where it stands, as matrices change places; of a sparse one the values */
    double *reals;
    int64_t *integers; /* up to KI_STATE_MOST */
    bool *flag;
    kiln_report *report; /* iterations, passes, figures, how it ended, and the trace */
    int64_t count;       /* of reals or integers; 0 = 1 */
    int64_t least, most; /* of integers; both 0: whatever they are */
};

/* A matrix that the caller gave besides X: weights, targets. NULL: was not given. */
struct ki_given {
    const char *name;
    const kiln_matrix *matrix;
};
enum { KI_GIVEN = 4 };

/* Holds what makes a run the same as another. */
struct ki_described {
    const kiln_control *control;
    const char *algorithm; /* as the registry has it */
    const void *options;   /* defaults filled in */
    int64_t seed;          /* of an algorithm whose options have one that the registry does not list */
    const kiln_matrix *X;
    struct ki_given given[KI_GIVEN];
    kiln_report
        *report;   /* the run's own: iterations, passes, figures of the last iteration and trace go along */
    int64_t most;  /* iterations: a run that goes on has stopped where these are done; 0: the algorithm looks
               * itself */
    double *start; /* its clock, which then counts the seconds of before, too */
};

/* To be called when data and options have been checked. Looks at the data, once, and at the checkpoint:
 * ERR_MODEL says in what they differ. */
kiln_status ki_checkpoint_begin(const struct ki_described *run);
/* Returns whether there is a state to go on from, which nobody has taken yet. */
bool ki_checkpoint_waits(const kiln_control *control);
/* Returns whether that state has a part of that name; whether there is a state without one, as of a device
 * that works without it. */
bool ki_checkpoint_has(const kiln_control *control, const char *name);
bool ki_checkpoint_lacks(const kiln_control *control, const char *name);
/* Some parts of that state, where it waits; ERR_MODEL if it has no such part, or one of another shape. */
kiln_status ki_checkpoint_look(const kiln_control *control, const struct ki_state *state, int count);
/* The same, and the report and the clock: the state waits no more. *resumed: whether it did. */
kiln_status ki_checkpoint_resume(bool *resumed, const kiln_control *control, const struct ki_state *state,
                                 int count);
/* After an iteration: keeps the state if it is time to, or if the run ends so that it might go on. `stop`:
 * how the iteration ended it. */
kiln_status ki_checkpoint_step(const kiln_control *control, const struct ki_state *state, int count,
                               kiln_stop stop);
/* Returns whether ki_checkpoint_step would keep it, for states that are put together first. */
bool ki_checkpoint_due(const kiln_control *control, kiln_stop stop);
/* The control without its checkpoint, for runs within a run. */
kiln_control ki_checkpoint_apart(const kiln_control *control);
bool ki_checkpoint_kept(const kiln_control *control); /* whether the control brings a checkpoint */

#endif
