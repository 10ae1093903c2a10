/* One run of a method that takes steps: what every such method does beside its mathematics.
 *
 *     struct ki_run run = {0};
 *     TRY(KI_RUN_OPEN(&run, pagerank, &options, given, report));  options are checked, the clock starts
 *     ...                                                       data are checked
 *     ki_run_on(&run, X, options.tolerance, options.max_iterations);
 *     ...                                                       matrices are made: ki_run_rows, ki_run_model
 *     TRY(ki_run_begin(&run, (struct ki_described){.options = &options}));
 *     KI_RUN_STATE(&run, state);                                what a checkpoint holds
 *     TRY(ki_run_resume(&run));
 *     while (ki_run_goes_on(&run)) {
 *         ...                                                   one step
 *         TRY(ki_run_step(&run, &(kiln_trace_row){.residual = ..., .objective = ...}));
 *     }
 *     ...                                                       results are copied out
 * done:
 *     return ki_run_close(&run, status);                        the report is given, everything is freed
 */
#ifndef KI_RUN_H
#define KI_RUN_H

#include "algorithms/registry.h"
#include "algorithms/run/arena.h"
#include "algorithms/run/checkpoint.h"

struct ki_run {
    const struct ki_algorithm *algorithm;
    const kiln_control *control;
    const kiln_matrix *X; /* its device and type are those of the run's matrices */
    struct ki_arena arena;
    kiln_report report; /* the method counts the passes over X in it */
    kiln_report *to;    /* the caller's, or NULL */
    double start;       /* the clock; a run that goes on counts the seconds of before, too */

    /* Stop rules: the residual is at most `tolerance`, iterations are `most`. A tolerance below 0 is none:
     * `most` iterations are what was asked for. */
    double tolerance;
    int64_t most;
    int64_t pass_bytes; /* of X, that a pass reads */
    bool cancelled;     /* the caller has asked to stop */
    bool unsettled;     /* a small residual of this iteration says nothing */
    bool gains;         /* the residual is what an iteration gains, which may be little once */
    bool unbounded;     /* an objective that is not finite is no failure */
    bool resumed;       /* the run goes on from a checkpoint */

    const struct ki_state *state; /* at the end of an iteration */
    int parts;

    /* Restarts, of which the best one is the result. `most` is for each of them. The first start that ends
     * at that limit stays in the checkpoint: under a higher limit the run goes on there, and makes the
     * starts after it again. */
    int64_t restarts, turn; /* 0: one start; those that have ended */
    int64_t begun;          /* report.iterations when this one began */
    int former;             /* parts at the end of the state that there are from the second start on */
    bool limited;           /* a start, or a problem, before this one ended at the limit */
    kiln_report best;       /* of the starts before */

    /* Problems in turn, whose results are the run's together: blocks of targets, or classes, each against
     * the rest. `most` is for each of them, and the first that ends there stays in the checkpoint. */
    int64_t problems, ended;    /* 0: one, of which a checkpoint has nothing to say; those that have ended, */
    int64_t worst;              /* the worst kiln_stop among them, */
    double objective, residual; /* the sum of their objectives, the largest of their residuals */
    const struct ki_state *outer; /* what a checkpoint holds of them beside the state of the one at hand */
    int outer_parts;
};

enum { KI_RUN_PARTS = 64 }; /* of a state, with all that is around it, at most */

/* ---- from beginning to end ---- */

/* *own = the options that the caller gave, checked by their rows; the caller's report is to be *to. */
#define KI_RUN_OPEN(run, name, own, given, to)                                                               \
    ki_run_open((run), &ki_algorithm_##name, 1 ? (own) : (kiln_##name##_options *)NULL,                      \
                1 ? (given) : (const kiln_##name##_options *)NULL, KI_LAYOUT(kiln_##name##_options),         \
                &(own)->control, (to))
kiln_status ki_run_open(struct ki_run *run, const struct ki_algorithm *algorithm, void *own,
                        const void *given, const struct ki_layout *layout, const kiln_control *control,
                        kiln_report *to);
/* After the checks: the data, and the rules by which the run stops. */
void ki_run_on(struct ki_run *run, const kiln_matrix *X, double tolerance, int64_t most);
/* The checkpoint's look at data and options, which `about` tells beside X. */
kiln_status ki_run_begin(struct ki_run *run, struct ki_described about);
/* A run within another, as of a part of its rows: it has that one's clock and algorithm, no options, no
 * result, and no checkpoint, which the outer one keeps. Its progress is `control`'s. */
kiln_status ki_run_within(struct ki_run *run, const struct ki_run *outer, const kiln_control *control);
/* Gives the report, if `status` says that there is one, and frees everything. Returns `status`. */
kiln_status ki_run_close(struct ki_run *run, kiln_status status);

/* ---- memory, freed with the run; TRY(run->arena.status) behind it ---- */

/* As long as X, of any size of the model, and for sums: see arena.h. */
kiln_matrix *ki_run_rows(struct ki_run *run, const kiln_matrix *X, int64_t cols);
kiln_matrix *ki_run_model(struct ki_run *run, int64_t rows, int64_t cols);
kiln_matrix *ki_run_sums(struct ki_run *run, int64_t rows, int64_t cols);
double *ki_run_reals(struct ki_run *run, int64_t count); /* zeros on the host */

/* ---- steps ---- */

/* The state: an array that lives until it is kept, or another takes its place. */
#define KI_RUN_STATE(run, table)                                                                             \
    ((run)->state = (table), (run)->parts = (int)(sizeof(table) / sizeof *(table)))
/* The first `count` parts of a state that waits, which decide where the others are. */
kiln_status ki_run_look(struct ki_run *run, int count);
/* Takes a state that waits; run->resumed: whether there was one. */
kiln_status ki_run_resume(struct ki_run *run);

/* Says what a checkpoint holds of several problems beside the state of the one at hand, from the first to the
 * last. _look_around takes it, and `ended`, where a state waits; the rest follows when the problem is set
 * up. */
#define KI_RUN_AROUND(run, table)                                                                            \
    ((run)->outer = (table), (run)->outer_parts = (int)(sizeof(table) / sizeof *(table)))
kiln_status ki_run_look_around(struct ki_run *run);

/* A problem begins; not where it is resumed. It ends: what it adds to the report. */
void ki_run_problem(struct ki_run *run);
void ki_run_problem_ends(struct ki_run *run, kiln_stop stop, double residual, double objective);
/* Iterations of the problem, or the start, at hand. */
static inline int64_t ki_run_iterations(const struct ki_run *run) {
    return run->report.iterations - run->begun;
}

/* The next of several starts begins; not where a start is resumed. */
void ki_run_start(struct ki_run *run);

/* Returns whether no rule has stopped the run, or this start. */
static inline bool ki_run_goes_on(const struct ki_run *run) {
    return run->report.stopped_by == KILN_STOP_NONE;
}
/* The end of an iteration, which is counted: its row, the caller's progress, the stop rules, the
 * checkpoint. */
kiln_status ki_run_step(struct ki_run *run, const kiln_trace_row *row);

/* The same in its parts. A row of the iteration that the report counts; its seconds are filled in. */
kiln_status ki_run_row(struct ki_run *run, const kiln_trace_row *row);
void ki_run_tell(struct ki_run *run); /* run->cancelled: the caller asks to stop */
/* The same within an iteration. Where there is a checkpoint, which has no state in between, the caller is
 * heard at its end. */
void ki_run_ask(struct ki_run *run);
/* Progress of work of another kind, which has no objective; NaN: nor a residual. Whether the caller asks to
 * stop. */
bool ki_run_stage(const struct ki_run *run, const char *phase, int64_t done, int64_t total, double residual);
/* CANCELLED, or ITERATIONS where there are `most`; else NONE. */
kiln_stop ki_run_limit(const struct ki_run *run);
/* report.stopped_by, unless the method has stopped the run by a rule of its own. */
void ki_run_judge(struct ki_run *run);
kiln_status ki_run_keep(struct ki_run *run);

#endif
