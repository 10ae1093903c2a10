/* This file says what a forked child may use of what its parent had.
 *
 * The child has one thread, the one that forked, and a copy of the memory as it was at that instant. The
 * library's own locks and threads are renewed in it, by the files that have them, so that the CPU works at
 * once. GPU drivers do not survive a fork: what the parent had of them is lost in the child, and so is the
 * driver itself, which a process can start once. */
#include <pthread.h>

#include "core/device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kiln_device *devices; /* linked by next_open */
static atomic_int generation = 1;

void ki_fork_enter(kiln_device *device) {
    pthread_mutex_lock(&lock);
    device->next_open = devices;
    devices = device;
    pthread_mutex_unlock(&lock);
}

void ki_fork_leave(kiln_device *device) {
    pthread_mutex_lock(&lock);
    kiln_device **at = &devices;
    while (*at && *at != device) at = &(*at)->next_open;
    if (*at) *at = device->next_open;
    pthread_mutex_unlock(&lock);
}

static kiln_status refuse(kiln_status status, const char *what) {
    ki_fail(status, "%s was opened before this process was forked, and does not survive that", what);
    return ki_hint(
        "open GPUs after the fork, or start processes anew (in Python: multiprocessing's \"spawn\"); the CPU "
        "works in both");
}

kiln_status ki_fork_own(struct ki_fork_owner *owner, const char *driver) {
    int none = 0;
    const int here = atomic_load(&generation);
    if (atomic_compare_exchange_strong(&owner->generation, &none, here) || none == here) return KILN_OK;
    return refuse(KILN_ERR_DEVICE, driver);
}

kiln_status ki_fork_fail(const kiln_device *device) {
    return refuse(KILN_ERR_DEVICE_LOST, device->info.name);
}

static void before(void) {
    pthread_mutex_lock(&lock);
}

static void in_parent(void) {
    pthread_mutex_unlock(&lock);
}

static void in_child(void) {
    atomic_fetch_add(&generation, 1);
    for (kiln_device *device = devices; device; device = device->next_open)
        device->lost = device->forked = true;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch(void) {
    pthread_atfork(before, in_parent, in_child);
}
