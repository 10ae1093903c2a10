/* Any bytes as the files of the cache folder. As a kernel's entry, and as changes to a sound one, they are a
 * miss that removes the file, or exactly the bytes behind the key; as the machine's profile they give finite
 * figures, and a new figure is kept beside them. The hash of an entry is not compared in a fuzz build, so
 * that what lies behind it is reached. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/kernels/cache.h"
#include "core/seams.h"
#include "core/sha256.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char key[] = "a compiler, a driver, and the source of a kernel";
static const char binary[] = "what the compiler made of it";
static char folder[] = "/tmp/kiln-fuzz-XXXXXX", entry[128], profile[64];

static void demand(bool holds) {
    if (!holds) abort();
}

static void clean(void) {
    unlink(entry);
    unlink(profile);
    rmdir(folder);
}

static void begin(void) {
    char name[65];
    demand(mkdtemp(folder) && setenv("KILN_CACHE_DIR", folder, 1) == 0);
    ki_sha256_hex(name, key, strlen(key));
    snprintf(entry, sizeof entry, "%s/%s.kernel", folder, name);
    snprintf(profile, sizeof profile, "%s/profile", folder);
    atexit(clean);
}

static void write_file(const char *path, const void *bytes, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    demand(file >= 0 && write(file, bytes, size) == (ssize_t)size && close(file) == 0);
}

static void use_bytes(kiln_device *device, const uint8_t *bytes, size_t size) {
    void *found = NULL;
    size_t length = 0;
    write_file(entry, bytes, size);
    demand(ki_cache_get(&found, &length, device, key) == KILN_OK);
    if (found)
        demand(length + strlen(key) < size && memcmp(found, bytes + size - length, length) == 0);
    else
        demand(access(entry, F_OK) != 0);
    ki_free(found);
}

/* Pairs of bytes: a place and what is changed there; an odd byte at the end cuts the entry there. */
static void use_changes(kiln_device *device, const uint8_t *bytes, size_t size) {
    uint8_t sound[512];
    demand(ki_cache_put(device, key, binary, strlen(binary)) == KILN_OK);
    const int file = open(entry, O_RDONLY | O_CLOEXEC);
    demand(file >= 0);
    ssize_t length = read(file, sound, sizeof sound);
    demand(length > 0 && close(file) == 0);
    for (size_t i = 0; i + 1 < size; i += 2) sound[bytes[i] % length] ^= bytes[i + 1];
    if (size % 2) length = bytes[size - 1] % (length + 1);
    use_bytes(device, sound, (size_t)length);
}

static void use_profile(kiln_device *device, const uint8_t *bytes, size_t size) {
    static const char *const names[] = {"bandwidth cpu", "a", ""};
    double value = 0;
    bool found = false;
    write_file(profile, bytes, size);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        demand(ki_cache_profile_get(&found, &value, device, names[i]) == KILN_OK);
        demand(!found || isfinite(value));
    }
    demand(ki_cache_profile_put(device, names[0], 0.1) == KILN_OK);
    demand(ki_cache_profile_get(&found, &value, device, names[0]) == KILN_OK);
    demand(found && value == 0.1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static void (*const uses[])(kiln_device *, const uint8_t *, size_t) = {use_bytes, use_changes,
                                                                           use_profile};
    kiln_device device = {.budget = 0};
    if (!*entry) begin();
    if (size == 0) return 0;
    uses[bytes[0] % 3](&device, bytes + 1, size - 1);
    if (device.cache) ki_cache_close(device.cache);
    ki_free(device.cache);
    return 0;
}
