#define _GNU_SOURCE
#include "core/fake.h"

#include <dirent.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "core/kernels/kernel_source.h"
#include "core/seams.h"
#include "core/sha256.h"

#define PLENTY ((int64_t)1 << 40)

struct fake fake;
static char root[64];

const char *world_path(const char *format, ...) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    int length = snprintf(path, sizeof paths[0], "%s/", root);
    va_list args;
    va_start(args, format);
    vsnprintf(path + length, sizeof paths[0] - (size_t)length, format, args);
    va_end(args);
    return path;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

int world_make(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/kiln-test-XXXXXX");
    assert_non_null(mkdtemp(root));
    assert_int_equal(mkdir(world_path("kernels"), 0755), 0);
    static const char *const parts[] = {"types.h", "fake.h", "arguments.h", "deeper.h"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        write_text(world_path("kernels/%s", parts[i]), "/* nothing */\n");
    write_text(world_path("kernels/shared.h"), "#include \"dialect/deeper.h\"\nshared\n");
    write_text(world_path("kernels/k.cl"),
               "#include \"dialect/shared.h\"\nthe kernels\n#include \"dialect/deeper.h\"\nand more\n");
    setenv("KILN_CACHE_DIR", world_path("cache"), 1);
    setenv("KILN_KERNEL_DIR", world_path("kernels"), 1);
    fake = (struct fake){0};
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int world_clear(void **state) {
    (void)state;
    remove_tree(root);
    return 0;
}

/* ------------------------------------------------------------------------------------- the backend */

/* The only right binary for a source and its options. */
static void right_binary(char text[256], const char *source, const char *options) {
    char hash[65];
    ki_sha256_hex(hash, source, strlen(source));
    snprintf(text, 256, "binary of %s with %s", hash, options);
}

static kiln_status fake_build(kiln_device *device, void **binary, size_t *bytes, const char *source,
                              const char *options) {
    static pthread_mutex_t several = PTHREAD_MUTEX_INITIALIZER;
    char made[256];
    if (fake.fail_builds) return ki_fail(KILN_ERR_BUILD, "device %s: no luck", device->info.name);
    right_binary(made, source, options);
    pthread_mutex_lock(&several);
    memcpy(fake.built, made, sizeof made);
    fake.builds++;
    pthread_mutex_unlock(&several);
    *bytes = strlen(made);
    *binary = ki_resize(NULL, *bytes);
    if (!*binary) return ki_fail_nomem(*bytes, "a binary");
    memcpy(*binary, made, *bytes);
    return KILN_OK;
}

static kiln_status fake_load(kiln_device *device, void **module, void **function, const void *binary,
                             size_t bytes, const char *name, const char *options) {
    (void)device;
    (void)name;
    (void)options;
    if (fake.refuse_loads_once) {
        fake.refuse_loads_once = false;
        return ki_fail(KILN_ERR_BUILD, "not this one");
    }
    assert_true(bytes < sizeof fake.loaded);
    memcpy(fake.loaded, binary, bytes);
    fake.loaded[bytes] = '\0';
    char *made = ki_strdup(fake.loaded);
    if (!made) return ki_fail_nomem(bytes, "a module");
    fake.loads++;
    *module = *function = made;
    return KILN_OK;
}

static void fake_unload(kiln_device *device, void *module, void *function) {
    (void)device;
    (void)function;
    fake.unloads++;
    ki_free(module);
}

static kiln_status fake_launch(kiln_device *device, void *function, int64_t groups, int64_t group_size,
                               bool together, const struct ki_arg *args, int count) {
    (void)device;
    (void)groups;
    (void)group_size;
    (void)args;
    (void)count;
    fake.launches++;
    fake.together += together;
    fake.launched = function;
    return KILN_OK;
}

static kiln_status fake_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    if (bytes > fake.memory_left)
        return ki_fail(KILN_ERR_DEVICE_NOMEM, "device %s: no memory left", device->info.name);
    void *memory = ki_alloc((size_t)bytes);
    if (!memory) return ki_fail_nomem((size_t)bytes, "a fake buffer");
    fake.allocs++;
    fake.memory_left -= bytes;
    *buffer = (struct ki_buffer){.handle = (uintptr_t)memory, .bytes = bytes};
    return KILN_OK;
}

static void fake_release(kiln_device *device, struct ki_buffer *buffer) {
    (void)device;
    fake.releases++;
    fake.memory_left += buffer->bytes;
    ki_free(ki_host(buffer));
}

static kiln_status fake_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                               int64_t bytes) {
    (void)device;
    fake.uploads++;
    memcpy((char *)ki_host(to) + offset, from, (size_t)bytes);
    return KILN_OK;
}

static kiln_status fake_download(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                                 int64_t bytes) {
    (void)device;
    fake.downloads++;
    memcpy(to, (const char *)ki_host(from) + offset, (size_t)bytes);
    return KILN_OK;
}

static kiln_status fake_sync(kiln_device *device) {
    (void)device;
    return KILN_OK;
}

const struct ki_backend fake_backend = {.name = "fake",
                                        .alloc = fake_alloc,
                                        .release = fake_release,
                                        .upload = fake_upload,
                                        .download = fake_download,
                                        .build = fake_build,
                                        .load = fake_load,
                                        .unload = fake_unload,
                                        .launch = fake_launch,
                                        .sync = fake_sync};

static void hear(void *user, const char *text) {
    (void)user;
    fake.messages++;
    fake.warnings += strncmp(text, "kernel cache", 12) == 0;
    snprintf(fake.last_message, sizeof fake.last_message, "%s", text);
}

void fake_open(kiln_device *device) {
    *device = (kiln_device){.backend = &fake_backend, .options.message = hear, .budget = PLENTY};
    device->properties.alloc_max = PLENTY;
    device->properties.has_f64 = true;
    fake.memory_left = PLENTY;
    snprintf(device->info.name, sizeof device->info.name, "fake:0");
    snprintf(device->properties.cache_key, sizeof device->properties.cache_key, "fake compiler 1, driver 1");
}

void fake_close(kiln_device *device) {
    ki_kernels_free(device);
    ki_memory_clear(device);
    assert_null(device->kernels);
    assert_null(device->cache);
}

void fake_run(kiln_device_statistics *statistics, const char *function, const char *defines) {
    kiln_device device;
    struct ki_kernel *kernel = NULL;
    char *source = NULL, right[256];
    fake_open(&device);
    assert_int_equal(ki_kernel_source(&source, "fake", "k", KILN_F64), KILN_OK);
    right_binary(right, source, defines);
    ki_free(source);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", function, KILN_F64, defines), KILN_OK);
    assert_non_null(kernel);
    assert_string_equal(fake.loaded, right);
    *statistics = device.statistics;
    fake_close(&device);
}

/* ----------------------------------------------------------------------------------- its entries */

static int find_entries(char path[512]) {
    int count = 0;
    DIR *folder = opendir(world_path("cache"));
    for (struct dirent *file; folder && (file = readdir(folder));) {
        if (!strstr(file->d_name, ".kernel")) continue;
        count++;
        snprintf(path, 512, "%s", world_path("cache/%s", file->d_name));
    }
    if (folder) closedir(folder);
    return count;
}

int entry_count(void) {
    char path[512];
    return find_entries(path);
}

const char *only_entry(void) {
    static char path[512];
    assert_int_equal(find_entries(path), 1);
    return path;
}
