/* This header says what the tool says on standard error, and what it hears: signals. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include <stdbool.h>

#include <kiln.h>

#include "errors.h"

void talk_begin(bool quiet, bool verbose, bool json);
bool talk_json(void);
bool talk_verbose(void);
bool talk_quiet(void);

void say(const char *format, ...) CLI_PRINTF(1, 2);       /* not with --quiet */
void say_error(const char *format, ...) CLI_PRINTF(1, 2); /* always */

/* The first SIGINT or SIGTERM is remembered, and the progress callback passes it on; the second ends the
 * process. */
void talk_catch_signals(void);
/* Both are left to the first of several processes, which all get them: it stops in good order, and then ends
 * the others. */
void talk_leave_signals(void);
bool talk_interrupted(void);

/* The callback and its user for kiln_control. On a terminal a line that moves; elsewhere a line at iterations
 * 1, 2, 4, 8, ... and after 1, 2, 4, ... seconds without one. `what` is being done, for those who hear
 * nothing of it; `tolerance` lets the bar tell how far the residual has come. */
kiln_control talk_control(const char *what, double tolerance);
/* The same for work that calls nobody back. */
void talk_doing(const char *what);
kiln_control talk_silent_control(void); /* shows nothing, but passes signals on */
/* The same for what is counted: "plan 3 of 12" is begun. Who calls it asks talk_interrupted() from then
 * on. */
void talk_step(const char *what, int64_t done, int64_t total, double seconds);
/* From here on nothing can stop half-way, until a control's callback is heard again, nor has anything to
 * save: a signal ends the process at once, as does one that came before. So it is with a solver's first
 * pass. */
void talk_unpolled(void);

#endif
