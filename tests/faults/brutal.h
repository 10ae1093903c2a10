/* Faults on purpose, through the seams: the n-th allocation or file call fails, once or from then on. A test
 * lets n grow until nothing fails any more, so that every point of failure has had its turn. */
#ifndef BRUTAL_H
#define BRUTAL_H

#include <stdbool.h>

#include "core/check.h"
#include "core/seams.h"
#include "kiln.h"

/* Memory. From start on the n-th allocation (from 0) fails; stop restores the seams, checks that no block is
 * alive that was not at start and that a failure was reported to a STEP, and returns whether one happened. */
void brutal_start(long n, bool persistent);
bool brutal_stop(void);
bool brutal_fired(void);
long brutal_calls(void);        /* allocations since start */
void brutal_relent(void);       /* no more failures: the caller has seen it */
void brutal_spare(bool spared); /* whether allocations neither count nor fail from here on; start says no */

/* A call that must succeed, or say KILN_ERR_NOMEM because of the failure, and then succeed when called again.
 */
#define STEP(call)                                                                                           \
    do {                                                                                                     \
        kiln_status step_status = (call);                                                                    \
        if (step_status != KILN_OK && brutal_fired()) {                                                      \
            assert_int_equal(step_status, KILN_ERR_NOMEM);                                                   \
            assert_int_equal(kiln_last_error()->status, KILN_ERR_NOMEM);                                     \
            brutal_relent();                                                                                 \
            step_status = (call);                                                                            \
        }                                                                                                    \
        if (step_status != KILN_OK) fail_msg("%s: %s", #call, kiln_last_error()->message);                   \
    } while (0)

/* Runs body(context) with each allocation failing in turn, modes = 1: once, 2: once and then from there on;
 * prints how many there were. Each body opens all it needs through STEP and frees it. */
void brutal_memory(const char *what, int modes, void (*body)(void *context), void *context);

/* Files: what a call can meet. A harmless one must not be noticed. */
struct brutal_file_fault {
    const char *name;
    int code; /* errno; 0: short reads and writes */
    bool harmless;
};
extern const struct brutal_file_fault brutal_file_faults[]; /* ends with a NULL name */
void brutal_files_start(const struct brutal_file_fault *fault, long n, bool persistent);
bool brutal_files_stop(void); /* whether one happened */
/* Whether one hit a call whose failure can lose something: not so the closing of a file opened for reading,
 * and the opening of a folder that may be written but not read, which then cannot be synchronised. */
bool brutal_files_mattered(void);
/* Returns whether a file was renamed over another before fsync had put it on the disk: a power cut may then
 * leave neither. */
bool brutal_files_torn_by_power(void);
/* Files whose path begins so are spared, and not counted. NULL: none are. */
void brutal_files_spare(const char *prefix);

#endif
