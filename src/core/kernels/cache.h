/* The cache folder: built kernels and this machine's profile, kept from run to run.
 *
 * The folder's content is hostile input. The boundary is the user id: what another user could have written is
 * not used, and what is damaged is a miss. The cache is an optimisation: no failure of it is a failure of the
 * caller, it costs a rebuild and at most one message. Host memory running out is the one error reported as
 * such. */
#ifndef KI_CACHE_H
#define KI_CACHE_H

#include "core/device.h"

enum { KI_CACHE_PATH = 4096 };

/* A GPU's latencies and instructions take so many times as long as an H200's in dense passes
 * (pass/dense/pace.h); 0: not known. */
struct ki_pace {
    double latency, issue;
};

struct ki_cache {
    int folder;               /* descriptor, opened once; -1: memory only */
    bool read_only;           /* a write failed: no more are tried */
    bool warned;              /* the user was told of a trouble already */
    bool tidied;              /* the size cap was enforced since opening */
    char why[256];            /* memory only: why */
    char hint[128];           /* and how to mend it */
    char path[KI_CACHE_PATH]; /* "" if there is no place for it */
    /* Figures of the device that dense passes ask for again and again, as the profile had them. */
    struct {
        bool known;
        double read;            /* bytes a second; 0: not known */
        struct ki_pace pace[2]; /* of f32 and f64 */
    } recalled;
};

/* Finds, creates (0700) and opens the folder; on any trouble the cache is memory only and says why. */
void ki_cache_open(struct ki_cache *cache);
void ki_cache_close(struct ki_cache *cache);
/* The device's cache, opened at first use. */
kiln_status ki_cache_of(struct ki_cache **cache, kiln_device *device);

/* One file of the folder. `name` has no '/'. read: *bytes (from ki_resize, the caller's) stays NULL if there
 * is no file that may be trusted with at most `most` bytes; one that is there all the same is removed. */
kiln_status ki_cache_read_file(char **bytes, size_t *size, struct ki_cache *cache, const kiln_device *device,
                               const char *name, size_t most);
struct ki_piece {
    const void *bytes;
    size_t size;
};
/* Writes a temporary file and renames it to name: readers see the old file or the new one. */
void ki_cache_write_file(struct ki_cache *cache, const kiln_device *device, const char *name,
                         const struct ki_piece *pieces, int count);
/* Writes all bytes to the open file; false with errno set where that fails. */
bool ki_write_all(int file, const void *bytes, size_t size);
/* Little-endian. */
static inline void ki_store(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> (8 * i));
}
void ki_cache_drop_file(struct ki_cache *cache, const kiln_device *device, const char *name, const char *why);
/* Bytes in the folder. */
int64_t ki_cache_bytes(const struct ki_cache *cache);

/* Built kernels by key, the text of everything that a binary depends on. *binary stays NULL if there is none.
 */
kiln_status ki_cache_get(void **binary, size_t *bytes, kiln_device *device, const char *key);
kiln_status ki_cache_put(kiln_device *device, const char *key, const void *binary, size_t bytes);
/* Removes an entry that its user found wanting. */
kiln_status ki_cache_drop(kiln_device *device, const char *key, const char *why);

/* Calls take(context, key) for each entry; damaged ones are passed over. */
kiln_status ki_cache_each(struct ki_cache *cache, const kiln_device *device,
                          kiln_status (*take)(void *context, const char *key), void *context);

/* A profile calls a device by its name and description. */
enum { KI_FIGURE_OWNER = 200 };
void ki_figures_owner(char owner[KI_FIGURE_OWNER], const kiln_device_info *info);
/* Figures measured on this machine, by name ("bandwidth cuda:0 NVIDIA H200"; no tab or newline). *found =
 * false and *value untouched if there is none. */
kiln_status ki_cache_profile_get(bool *found, double *value, kiln_device *device, const char *name);
kiln_status ki_cache_profile_put(kiln_device *device, const char *name, double value);

#endif
