/* Text that comes in windows of whole lines, for who reads it piece by piece. */
#ifndef KI_IO_WINDOW_H
#define KI_IO_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct ki_window {
    bool on;
    int64_t left; /* bytes, behind which the window closes at the next end of a line */
    bool quotes;  /* an end of line in quotes ends nothing: CSV */
    bool open;    /* the last byte stands in quotes */
    bool closed;
    char *rest; /* bytes behind the window, the next one's: rest[begin..end) */
    size_t begin, end;
};

static inline bool ki_window_has_rest(const struct ki_window *window) {
    return window->begin < window->end;
}

/* Opens the next one; there may be none before. */
void ki_window_open(struct ki_window *window, int64_t bytes, bool quotes);
/* *n: of so many bytes that have come those of the window. The others are its rest; again: they came from
 * there. */
kiln_status ki_window_keep(struct ki_window *window, const char *text, size_t *n, bool again);
/* Takes up to `want` bytes of the rest, and returns how many. */
size_t ki_window_take(struct ki_window *window, char *to, size_t want);
/* Puts bytes before the rest. */
kiln_status ki_window_return(struct ki_window *window, const char *bytes, size_t size);
void ki_window_free(struct ki_window *window);

#endif
