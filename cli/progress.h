/* Progress on standard error. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include <kiln.h>

void progress_begin(double tolerance);
/* every: on anything but a terminal a line for every iteration, not only for 1, 2, 4, 8, ... */
void progress_show(const kiln_progress *now, bool every);
void progress_clear(void); /* takes the moving line away, if there is one */

#endif
