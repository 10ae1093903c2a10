/* What a forked child may use of what its parent had.
 *
 * The child has one thread, the one that forked, and a copy of the memory as it was at that instant. The library's own locks and
 * threads are renewed in it, so that the CPU works at once. GPU drivers do not survive a fork: what the parent had of them is lost
 * in the child, and so is the driver itself, which a process can start once. */
#ifndef KI_FORK_H
#define KI_FORK_H

#include <stdbool.h>
#include <stdatomic.h>

#include "core/status.h"

struct kiln_device;

/* An open device on a GPU is known here, so that a child finds it lost. */
void ki_fork_enter(struct kiln_device *device);
void ki_fork_leave(struct kiln_device *device);

/* Zeroed at first; which process of a line of forks has begun to start a driver. */
struct ki_fork_owner {
    atomic_int generation; /* 1 + the number of forks before it; 0: none has */
};
/* ERR_DEVICE_LOST for a device that was left behind. */
kiln_status ki_fork_fail(const struct kiln_device *device);

/* Called before a driver is started, and before each use of it: ERR_DEVICE with a hint in a child of the process that has. */
kiln_status ki_fork_own(struct ki_fork_owner *owner, const char *driver);

#endif
