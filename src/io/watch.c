/* This file says how far reading is, and what keeps it from going on. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/seams.h"
#include "io/input.h"

kiln_status ki_input_fail(const char *name, int code, const char *what) {
    ki_fail_errno(KILN_ERR_IO, code, "cannot %s %s: %s", what, name, strerror(code));
    if (code == ENOENT) return ki_hint("check the spelling; relative paths start at the current folder");
    if (code == EACCES) return ki_hint("you may not read it: see ls -l");
    if (code == EISDIR) return ki_hint("name a file in the folder");
    return KILN_ERR_IO;
}

kiln_status ki_watch_tell(const struct ki_watch *watch, int64_t done, int64_t bytes) {
    if (!watch->control.progress) return KILN_OK;
    const kiln_progress now = {.phase = "read",
                               .done = done,
                               .total = watch->total,
                               .objective = NAN,
                               .residual = NAN,
                               .seconds = ki_clock() - watch->start,
                               .bytes = bytes};
    if (!watch->control.progress(watch->control.user, &now)) return KILN_OK;
    return ki_fail(KILN_ERR_CANCELLED, "reading %s was cancelled", watch->name);
}
