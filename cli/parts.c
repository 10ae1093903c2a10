/* --parts PATTERN: the files that match it, as if they had been named one after the other. */
#include "parts.h"

#include <glob.h>

/* For as long as the process runs: arguments point into it. */
static glob_t found;

bool parts_add(struct command *command, const char **problem, const char **hint) {
    const char *pattern = command->settings.parts;
    if (!pattern) return true;
    *hint = "a pattern as the shell's, in quotes: --parts 'part-*.npz'";
    const int code = glob(pattern, GLOB_ERR, NULL, &found);
    *problem = code == GLOB_NOMATCH ? "no file matches" : "its folder cannot be read";
    if (code) return false;
    *problem = "too many files match";
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (command->count >= command->verb->most) return false;
        command->arguments[command->count++] = found.gl_pathv[i];
    }
    return true;
}
