/* What the tool says on standard error, and what it hears: signals. */
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
bool talk_interrupted(void);

/* The callback and its user for kiln_control. On a terminal a line that moves; elsewhere a line at iterations
 * 1, 2, 4, 8,
 * ... and, while reading, at seconds 1, 2, 4, ... `tolerance` lets the bar tell how far the residual has
 * come. */
kiln_control talk_control(double tolerance);
kiln_control talk_silent_control(void); /* shows nothing, but passes signals on */

#endif
