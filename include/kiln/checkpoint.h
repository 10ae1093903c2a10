/* Kiln: long runs that are stopped, by whoever or whatever, and go on where they were.
 *
 *   kiln_checkpoint *checkpoint = NULL;
 *   kiln_checkpoint_open(&checkpoint, &(kiln_checkpoint_options){.checkpoint = "run.ckpt",
 *     .resume = before});
 *   options.control = kiln_checkpoint_control(checkpoint, control);
 *   kiln_als(A, B, R, &options, &report);
 *   kiln_checkpoint_close(checkpoint);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_CHECKPOINT_H
#define KILN_CHECKPOINT_H

#include "kiln/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state of one run of an algorithm, in a file of its own: all that its iteration goes on with, beside the
 * data and the options. An algorithm keeps it after an iteration, whenever `checkpoint_every` seconds have
 * passed, and once more when the run is cancelled or comes to its limit of iterations; not when it has
 * converged. The file is replaced as a whole: at every instant it is the last checkpoint or the one
 * before. */
typedef struct kiln_checkpoint kiln_checkpoint;

typedef struct kiln_checkpoint_options {
    size_t size;
    const char *checkpoint;  /* the file that is written; NULL = none */
    double checkpoint_every; /* seconds from the end of one write to the next; default 600 */
    const char *resume; /* the file to go on from, which may be the same; NULL = the run begins as ever */
} kiln_checkpoint_options;

/* Reads the file to go on from, if one is given, and checks all that can be checked without the data: format,
 * checksum, that it is a checkpoint. The names are copied. One checkpoint serves one run; with
 * kiln_checkpoint_along several, one after the other, of which the file has the one that was under way.
 * Errors: ERR_ARGUMENT (checkpoint is NULL, a time that is negative or not finite), ERR_MODEL (the file is
 * damaged, or no checkpoint), ERR_IO, ERR_NOMEM. On failure *checkpoint is untouched. */
KILN_API kiln_status kiln_checkpoint_open(kiln_checkpoint **checkpoint,
                                          const kiln_checkpoint_options *options);

/* The control to give to the run: it brings the checkpoint along, and asks the caller's own control as ever,
 * which may be zeroed. The checkpoint must outlive the run. Calls that take a control and are no algorithms,
 * such as reading, ask the caller's.
 *
 * The run that goes on must be of the same algorithm, with data, weights and options as before: the options
 * that say when to stop (tolerance, max_iterations, iterations) may differ, as may the device and the number
 * of threads; only a descent in the dual goes on with the CPU alone, and on so many more threads that
 * Newton's method would be chosen it may be refused. Data are compared by shape, type and sums of products
 * with random vectors, in up to 256 bands of rows, to within rounding: one pass over X at the beginning of
 * the run, whether it goes on or is the first, and no place in the report. A start that is given (warm_start,
 * centres) does not count any more. On a deterministic device of the same kind the run ends at the same bits
 * as one that was never stopped, with the same trace but for its times, as far as that is the same from run
 * to run.
 * After a request to stop the algorithm ends its present iteration, which for Newton's method is a whole
 * step, so that there is a state to keep.
 * Two things begin anew if the stop came in their middle: starts that are computed (k-means||, classical
 * scaling), and Cholesky factors of linreg.
 * A limit of iterations counts for each start and each class by itself: those that came to it before the stop
 * are not taken up again.
 *
 * Cost, beside that pass: a number in double for each row at the beginning; to write, the state once more in
 * host memory, its checksum, and the file; to go on, reading it, and of Newton's method one pass.
 * docs/long-runs.md says what each algorithm's state is.
 *
 * The run fails with ERR_MODEL where the checkpoint is of another algorithm or of other options or data, and
 * says which; with ERR_IO where one cannot be written. The former file is then whole. */
KILN_API kiln_control kiln_checkpoint_control(kiln_checkpoint *checkpoint, kiln_control control);

/* For programs that do more than the run: `count` numbers of their own go along with every state, such as
 * what came of the folds of a cross-validation, which is a run of kiln_path and one of the model that is
 * kept. They are read at each write, and must outlive the runs. To be called before the first run. *found:
 * whether the file to go on from has such numbers; where it has as many, they are then in `numbers`. 0
 * without such a file. Errors: ERR_ARGUMENT (an argument is NULL, count < 1), ERR_MODEL (the file has no such
 * numbers, or, *found = 1, not so many), ERR_NOMEM. */
KILN_API kiln_status kiln_checkpoint_along(kiln_checkpoint *checkpoint, double *numbers, int64_t count,
                                           int *found);

/* Holds what became of it. Zero it before the call. */
typedef struct kiln_checkpoint_info {
    size_t size;
    int64_t written;   /* how many times the file was */
    int64_t bytes;     /* the last time */
    int64_t iteration; /* in the file; -1 = none was written */
    int64_t resumed;   /* iteration that the run went on from; -1 = it did not */
    double seconds;    /* that writing took, all told */
    int64_t failed;    /* how many times the file could not be written: the run goes on, and what was written
                 * before stays */
    const char *
        problem; /* what the last of these was about, until the checkpoint is closed; NULL = there was none */
} kiln_checkpoint_info;
/* ERR_ARGUMENT: an argument is NULL, or an impossible size. */
KILN_API kiln_status kiln_checkpoint_get_info(kiln_checkpoint_info *info, const kiln_checkpoint *checkpoint);

/* Frees it; the file stays. NULL is allowed. */
KILN_API void kiln_checkpoint_close(kiln_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
