/* --parts PATTERN: the files that match it, as if they had been named one after the other. */
#include "parts.h"

#include <glob.h>

/* For as long as the process runs: arguments point into it. */
static glob_t found;

/* Holds what glob says, and what to do about it; any other code is the last row's. */
static const struct failure {
    int code;
    const char *problem, *hint;
} failures[] = {
    {GLOB_NOSPACE, "no memory for the names of the files", "a pattern that fewer files match"},
    {GLOB_NOMATCH, "no file matches", "a pattern as the shell's, in quotes: --parts 'part-*.npz'"},
    {GLOB_ABORTED, "its folder cannot be read", "you may not list it: see ls -ld"}};
enum { LAST = sizeof failures / sizeof *failures - 1 };

bool parts_add(struct command *command, const char **problem, const char **hint) {
    const char *pattern = command->settings.parts;
    if (!pattern) return true;
    const int code = glob(pattern, GLOB_ERR, NULL, &found);
    if (code) {
        const struct failure *failure = failures;
        while (failure < failures + LAST && failure->code != code) failure++;
        *problem = failure->problem;
        *hint = failure->hint;
        return false;
    }
    *problem = "too many files match";
    *hint = "the shell's ls lists those that match; the help says what the command takes";
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (command->count >= command->verb->most) return false;
        command->arguments[command->count++] = found.gl_pathv[i];
    }
    return true;
}
