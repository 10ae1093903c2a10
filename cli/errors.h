/* Errors for people (standard error), for programs (--json), and for the shell (exit codes). */
#ifndef CLI_ERRORS_H
#define CLI_ERRORS_H

#include <kiln.h>

#include "json.h"

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* Says what was being done: "cannot open" means exit code 3 for data, 7 for a model, 1 for output. */
enum activity { WORKING, READING, USING_MODEL, WRITING, ACTIVITIES };

enum { EXIT_DONE = 0, EXIT_NOT_CONVERGED = 4, EXIT_INTERRUPTED = 130 };

int exit_code(kiln_status status, enum activity activity);

/* The object that --json has of an error under the key "error". */
json_t *error_json(const kiln_error *error);

/* Finds what else a hint may say where memory is short; NULL, as at first: nothing. */
void offer_for_memory(const char *more);

/* Reports an error on standard error, with --json also as the object on standard output, and returns the exit
 * code: of the library's last error, or of one of our own. */
int report_library(enum activity activity);
int report_own(kiln_status status, enum activity activity, const char *hint, const char *format, ...)
    CLI_PRINTF(4, 5);

/* A failure never looks like success, whatever the record says. */
static inline int never_zero(int code) {
    return code ? code : 1;
}
#define fail_library(activity) never_zero(report_library(activity))
#define fail_with(...) never_zero(report_own(__VA_ARGS__))

#endif
