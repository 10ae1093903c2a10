/* This process's memory since its device was opened. */
#ifndef KILN_CLI_HELD_H
#define KILN_CLI_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct held {
    int64_t begun, mark; /* bytes in the process when counting began, and at most until then */
    int64_t most;        /* held at most before counting began anew */
};

/* Counts from now on. afresh: the kernel's mark of the most is set back, as far as the kernel lets it. */
struct held held_begin(bool afresh);
/* Bytes in the process now, for held_except; 0 where the kernel does not say. */
int64_t held_now(void);
/* Drivers that were only looked at, since the process held `before`, do not count. */
void held_except(struct held *held, int64_t before, bool afresh);
/* The most that was in the process, and as much of it as came since counting began. */
void held_most(int64_t *all, int64_t *own, const struct held *held);

#endif
