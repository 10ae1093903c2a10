/* Errors for people (standard error), for programs (--json), and for the shell (exit codes). */
#ifndef CLI_ERRORS_H
#define CLI_ERRORS_H

#include <kiln.h>

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* What was being done: "cannot open" means exit code 3 for data, 7 for a model, 1 for output. */
enum activity { WORKING, READING, USING_MODEL, WRITING, ACTIVITIES };

enum { EXIT_DONE = 0, EXIT_NOT_CONVERGED = 4, EXIT_INTERRUPTED = 130 };

int exit_code(kiln_status status, enum activity activity);

/* Each reports an error on standard error, with --json also as the object on standard output, and returns the
 * exit code: the library's last one, or one of our own. */
int fail_library(enum activity activity);
int fail_with(kiln_status status, enum activity activity, const char *hint, const char *format, ...)
    CLI_PRINTF(4, 5);

#endif
