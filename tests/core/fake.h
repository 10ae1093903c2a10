/* A backend without a device: its compiler turns a source into a text that names it, so that a test sees
 * whether the kernel that it got is the kernel that it asked for. And a private world of folders for a test
 * of the cache. */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>

#include "core/kernels/cache.h"
#include "core/kernels/kernels.h"

struct fake {
    int builds, loads, unloads, launches, together; /* of the launches, groups that are to run at once */
    int messages, warnings;                         /* all; those about the cache */
    char last_message[512];
    char built[256];        /* what the last build made */
    char loaded[256];       /* what the last load got */
    bool refuse_loads_once; /* the next load says that the binary does not suit */
    bool fail_builds;
    void *launched;
    /* Memory of the device, which is the host's. */
    int allocs, releases, uploads, downloads;
    int64_t memory_left; /* what the driver still has; a fresh fake_open gives it plenty */
};
extern struct fake fake;
extern const struct ki_backend fake_backend;

/* Makes the folders root/, root/cache (not yet there), root/kernels with a kernel k.cl, and sets
 * KILN_CACHE_DIR and KILN_KERNEL_DIR to them. setup and teardown of cmocka. */
int world_make(void **state);
int world_clear(void **state);
const char *world_path(const char *format, ...) KI_PRINTF(1, 2); /* below root; one of four buffers in turn */
void remove_tree(const char *path);

/* A device on the fake backend, its figures zeroed. */
void fake_open(kiln_device *device);
void fake_close(kiln_device *device);
/* A device's whole life: asks for kernel `function` of k.cl with `defines`, checks that it is the right one,
 * closes. The device's figures are in `statistics`, messages in fake. */
void fake_run(kiln_device_statistics *statistics, const char *function, const char *defines);

/* The cache's entries: how many, and the path of the only one (fails the test if there is not exactly one).
 */
int entry_count(void);
const char *only_entry(void);

#endif
