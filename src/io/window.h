/* Text that comes in windows of whole lines, for who reads it piece by piece. */
#ifndef KI_IO_WINDOW_H
#define KI_IO_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ki_window {
    bool on;
    int64_t left; /* bytes, behind which the window closes at the next end of a line */
    bool quotes;  /* an end of line in quotes ends nothing: CSV */
    bool open;    /* what came last stands in quotes */
    bool closed;
};

/* Returns how many of the next bytes are the window's. */
size_t ki_window_keep(struct ki_window *window, const char *text, size_t size);

#endif
