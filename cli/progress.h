/* Progress on standard error. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include <kiln.h>

/* doing: what the work is called where nobody tells of it for a second; "read". */
void progress_begin(const char *doing, double tolerance);
/* every: on anything but a terminal a line for every iteration, not only for 1, 2, 4, 8, ... */
void progress_show(const kiln_progress *now, bool every);
void progress_end(void); /* nothing more is told; the moving line goes */
/* Between these two the caller writes to standard error; the moving line is gone. */
void progress_hold(void);
void progress_release(void);

#endif
