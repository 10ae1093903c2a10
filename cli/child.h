/* Work that meets drivers, in a child process of its own: a driver that crashes, ends the process or hangs
 * does not take this process with it. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include <kiln.h>

enum { FATE_ROOM = 400 };

/* Both processes see this: the first member of what the work is given, which child_share has made. */
struct child {
    char doing[160]; /* for "while %s" */
    volatile int steps;
    volatile bool finished;
    kiln_status status; /* of the work that has finished, and its error's message and hint */
    char message[600], hint[400];
};

/* Zeroed memory that a child writes and this process reads; NULL if there is none. child_unshare takes
 * NULL. */
void *child_share(size_t bytes);
void child_unshare(void *shared, size_t bytes);

/* The child: what it does from now on. The time limit is of each step. */
void child_step(struct child *child, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Does `work` in a child, which is killed where a step takes longer than `seconds`. True if it came to its
 * end, whatever the status; else `fate` says how it ended. No driver may have been loaded in this process,
 * as none survives a fork. */
bool child_run(char fate[FATE_ROOM], struct child *child, double seconds, kiln_status (*work)(void *shared));

#endif
