/* A kernel is looked for in the device's list, then in packs, then in the disk cache, else it is built:
 * milliseconds once, so a specialised kernel for each shape of a problem costs next to nothing. */
#define _GNU_SOURCE
#include "core/kernels/kernels.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/kernels/kernel_source.h"
#include "core/kernels/pack.h"
#include "core/seams.h"
#include "core/sha256.h"
#include "core/size.h"
#include "core/threads.h"

struct ki_kernel {
    struct ki_kernel *next;
    void *module, *function;
    int64_t resident;                    /* groups on a compute unit at once; 0 = not yet asked */
    int64_t resident_given, local_bytes; /* groups of a unit with that memory each, where it was told of it */
    bool local_told;
    kiln_type type;
    const char *file, *name, *defines;
    char text[]; /* holds these three */
};

static struct ki_kernel *find(const kiln_device *device, const char *file, const char *function,
                              kiln_type type, const char *defines) {
    for (struct ki_kernel *kernel = device->kernels; kernel; kernel = kernel->next)
        if (kernel->type == type && !strcmp(kernel->name, function) && !strcmp(kernel->defines, defines) &&
            !strcmp(kernel->file, file))
            return kernel;
    return NULL;
}

static kiln_status new_kernel(struct ki_kernel **kernel, const char *file, const char *function,
                              kiln_type type, const char *defines) {
    size_t a = strlen(file) + 1, b = strlen(function) + 1, c = strlen(defines) + 1;
    struct ki_kernel *made = ki_calloc(sizeof *made + a + b + c);
    if (!made) return ki_fail_nomem(sizeof *made + a + b + c, "a kernel");
    made->type = type;
    made->file = memcpy(made->text, file, a);
    made->name = memcpy(made->text + a, function, b);
    made->defines = memcpy(made->text + a + b, defines, c);
    *kernel = made;
    return KILN_OK;
}

/* Everything that the binary depends on, and inputs only: what a compiler prints may differ from run to run.
 */
static kiln_status cache_key(char **key, const kiln_device *device, const char *source,
                             const struct ki_kernel *kernel) {
    static const char format[] = KI_KEY_START "platform %s\nsource %s\nprogram %s %s %s\n";
    char source_hash[65];
    ki_sha256_hex(source_hash, source, strlen(source));
    size_t bytes = sizeof format + 128 + strlen(ki_build_id) + strlen(device->properties.cache_key) +
                   strlen(device->backend->name) + strlen(kernel->defines) + strlen(kernel->file) +
                   sizeof source_hash;
    char *text = ki_alloc(bytes);
    if (!text) return ki_fail_nomem(bytes, "a kernel's key");
    snprintf(text, bytes, format, KILN_VERSION, ki_build_id, device->backend->name,
             device->properties.cache_key, source_hash, kernel->file, ki_program_type(kernel->type),
             kernel->defines);
    *key = text;
    return KILN_OK;
}

/* The SHA-256 of a program's source in hexadecimal. The library's own sources do not change, and each is
 * hashed once; those of a developer's folder may. */
static pthread_mutex_t hashing = PTHREAD_MUTEX_INITIALIZER;

static kiln_status source_hash(char hash[65], const kiln_device *device, const char *file, kiln_type type) {
    enum { ROOM = 128 };
    static struct {
        char file[32], hash[65];
        kiln_type type;
    } known[ROOM];
    static int count;
    const char *folder = secure_getenv("KILN_KERNEL_DIR");
    const bool lasts = (!folder || !*folder) && strlen(file) < sizeof known->file;
    kiln_status status = KILN_OK;
    char *source = NULL;
    int at = 0;
    pthread_mutex_lock(&hashing);
    while (at < count && (!lasts || known[at].type != type || strcmp(known[at].file, file) != 0)) at++;
    if (at < count) {
        memcpy(hash, known[at].hash, 65);
    } else if ((status = ki_kernel_source(&source, device->backend->name, file, type)) == KILN_OK) {
        ki_sha256_hex(hash, source, strlen(source));
        if (lasts && count < ROOM) {
            strcpy(known[count].file, file);
            memcpy(known[count].hash, hash, 65);
            known[count++].type = type;
        }
    }
    pthread_mutex_unlock(&hashing);
    ki_free(source);
    return status;
}

bool ki_kernels_packed(const kiln_device *device) {
    return device->properties.architecture > 0 && ki_pack_serves(device->properties.architecture);
}

bool ki_kernel_packed(const kiln_device *device, const char *file, kiln_type type, const char *defines) {
    char hash[65];
    return ki_kernels_packed(device) && source_hash(hash, device, file, type) == KILN_OK &&
           ki_pack_lists(device, hash, defines);
}

/* From a pack; kernel->function stays NULL if none has it that the driver accepts. */
static kiln_status load_packed(struct ki_kernel *kernel, kiln_device *device) {
    void *code = NULL;
    size_t bytes = 0;
    char hash[65];
    if (device->properties.architecture == 0) return KILN_OK;
    kiln_status status = source_hash(hash, device, kernel->file, kernel->type);
    if (status == KILN_OK) status = ki_pack_get(&code, &bytes, device, hash, kernel->defines);
    if (status != KILN_OK || !code) return status;
    status = device->backend->load(device, &kernel->module, &kernel->function, code, bytes, kernel->name,
                                   kernel->defines);
    ki_free(code);
    if (status == KILN_OK) device->statistics.kernels_cached++;
    if (status != KILN_ERR_BUILD) return status;
    ki_device_message(device, "pack of kernels: the driver refuses %s of %s, which is built", kernel->name,
                      kernel->file);
    kernel->module = kernel->function = NULL;
    return KILN_OK;
}

/* From the cache; kernel->function stays NULL if there is none that the backend accepts. */
static kiln_status load_cached(struct ki_kernel *kernel, kiln_device *device, const char *key) {
    void *binary = NULL;
    size_t bytes = 0;
    kiln_status status = ki_cache_get(&binary, &bytes, device, key);
    if (status != KILN_OK || !binary) return status;
    status = device->backend->load(device, &kernel->module, &kernel->function, binary, bytes, kernel->name,
                                   kernel->defines);
    ki_free(binary);
    if (status == KILN_OK) device->statistics.kernels_cached++;
    if (status != KILN_ERR_BUILD) return status;
    kernel->module = kernel->function = NULL;
    return ki_cache_drop(device, key, "the driver refuses it");
}

/* A kernel on its way: what it is built from, and what the compiler makes of that. */
struct making {
    struct ki_kernel *kernel;
    char *source, *key;
    void *binary;
    size_t bytes;
};

static void announce(const struct making *making, const kiln_device *device) {
    ki_device_message(device, "building kernel %s for %s (first use%s)", making->kernel->name,
                      device->info.name,
                      device->cache->folder >= 0 && !device->cache->read_only ? "; cached afterwards" : "");
}

static kiln_status compile(struct making *making, kiln_device *device) {
    return device->backend->build(device, &making->binary, &making->bytes, making->source,
                                  making->kernel->defines);
}

/* Compiled code becomes callable, and is kept on disk. */
static kiln_status settle(struct making *making, kiln_device *device) {
    struct ki_kernel *kernel = making->kernel;
    kiln_status status;
    TRY(device->backend->load(device, &kernel->module, &kernel->function, making->binary, making->bytes,
                              kernel->name, kernel->defines));
    device->statistics.kernels_built++;
    TRY(ki_cache_put(device, making->key, making->binary, making->bytes));
done:
    return status;
}

static kiln_status build(struct making *making, kiln_device *device) {
    kiln_status status;
    announce(making, device);
    TRY(compile(making, device));
    TRY(settle(making, device));
done:
    return status;
}

/* One thread at a time: the members of a group want the same kernels at the same moment, and what the first
 * has built the others find in the cache. */
static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

/* A forked child does not have the thread that may have held them. */
static void renew(void) {
    pthread_mutex_init(&hashing, NULL);
    pthread_mutex_init(&building, NULL);
}

__attribute__((constructor)) static void survive_forks(void) {
    pthread_atfork(NULL, NULL, renew);
}

static kiln_status load_or_build(struct making *making, kiln_device *device) {
    if (making->kernel->function) return KILN_OK;
    pthread_mutex_lock(&building);
    kiln_status status = load_cached(making->kernel, device, making->key);
    if (status == KILN_OK && !making->kernel->function) status = build(making, device);
    pthread_mutex_unlock(&building);
    return status;
}

static void free_kernel(kiln_device *device, struct ki_kernel *kernel) {
    if (!kernel) return;
    /* A lost device took its modules with it. */
    if (kernel->function && !device->lost) device->backend->unload(device, kernel->module, kernel->function);
    ki_free(kernel);
}

/* With a function, if a pack has it: else with what it is built from. */
static kiln_status begin(struct making *making, kiln_device *device, const char *file, const char *function,
                         kiln_type type, const char *defines) {
    kiln_status status;
    TRY(new_kernel(&making->kernel, file, function, type, defines));
    TRY(load_packed(making->kernel, device));
    if (making->kernel->function) goto done;
    TRY(ki_kernel_source(&making->source, device->backend->name, file, type));
    if (device->backend->compiler) TRY(device->backend->compiler(device));
    TRY(cache_key(&making->key, device, making->source, making->kernel));
done:
    return status;
}

/* A kernel that is callable becomes the device's; another goes. */
static void end(struct making *making, kiln_device *device) {
    struct ki_kernel *made = making->kernel;
    if (made && made->function) {
        made->next = device->kernels;
        device->kernels = made;
    } else {
        free_kernel(device, made);
    }
    ki_free(making->binary);
    ki_free(making->key);
    ki_free(making->source);
}

static kiln_status make_kernel(struct ki_kernel **kernel, kiln_device *device, const char *file,
                               const char *function, kiln_type type, const char *defines) {
    struct making making = {0};
    double start = ki_clock();
    kiln_status status;
    TRY(begin(&making, device, file, function, type, defines));
    TRY(load_or_build(&making, device));
    *kernel = making.kernel;
    device->statistics.build_seconds += ki_clock() - start;
done:
    if (status != KILN_OK && making.kernel) {
        free_kernel(device, making.kernel);
        making.kernel = NULL;
    }
    end(&making, device);
    return status;
}

kiln_status ki_kernel_get(struct ki_kernel **kernel, kiln_device *device, const char *file,
                          const char *function, kiln_type type, const char *defines) {
    struct ki_kernel *found = find(device, file, function, type, defines);
    if (!found) {
        kiln_status status = ki_device_alive(device);
        return status == KILN_OK ? make_kernel(kernel, device, file, function, type, defines) : status;
    }
    *kernel = found;
    return KILN_OK;
}

void ki_programs_add(struct ki_programs *programs, const char *file, const char *function, kiln_type type,
                     const char *defines) {
    for (int i = 0; i < programs->count; i++) {
        const struct ki_program *row = &programs->rows[i];
        if (row->type == type && !strcmp(row->file, file) && !strcmp(row->defines, defines)) return;
    }
    if (programs->count == KI_PROGRAMS_MOST) return;
    struct ki_program *row = &programs->rows[programs->count++];
    *row = (struct ki_program){.file = file, .function = function, .type = type};
    snprintf(row->defines, sizeof row->defines, "%s", defines);
}

/* Programs that are compiled side by side, and what the compiler said of each. */
struct ahead {
    kiln_device *device;
    struct making makings[KI_PROGRAMS_MOST];
    kiln_status status[KI_PROGRAMS_MOST];
    int count;
};

static void compile_part(void *arg, int part) {
    struct ahead *ahead = arg;
    ahead->status[part] = compile(&ahead->makings[part], ahead->device);
}

/* The first `count` of them are those that neither the device nor the cache has. */
static kiln_status begin_ahead(struct ahead *ahead, const struct ki_programs *programs) {
    kiln_device *device = ahead->device;
    kiln_status status = KILN_OK;
    for (int i = 0; i < programs->count; i++) {
        const struct ki_program *of = &programs->rows[i];
        struct making *making = &ahead->makings[ahead->count];
        if (find(device, of->file, of->function, of->type, of->defines)) continue;
        TRY(begin(making, device, of->file, of->function, of->type, of->defines));
        if (!making->kernel->function) TRY(load_cached(making->kernel, device, making->key));
        if (making->kernel->function) {
            end(making, device);
            *making = (struct making){0};
        } else {
            announce(making, device);
            ahead->count++;
        }
    }
done:
    return status;
}

kiln_status ki_programs_build(kiln_device *device, const struct ki_programs *programs) {
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK || !device->backend->build) return status;
    const double start = ki_clock();
    struct ahead *ahead = ki_calloc(sizeof *ahead);
    if (!ahead) return ki_fail_nomem(sizeof *ahead, "kernels");
    ahead->device = device;
    TRY(begin_ahead(ahead, programs));
    ki_parallel(ki_max(device->threads, 1), ahead->count, compile_part, ahead);
    for (int i = 0; i < ahead->count; i++)
        if (ahead->status[i] == KILN_OK) TRY(settle(&ahead->makings[i], device));
    device->statistics.build_seconds += ki_clock() - start;
done:
    for (int i = 0; i < KI_PROGRAMS_MOST; i++) end(&ahead->makings[i], device);
    ki_free(ahead);
    return status;
}

kiln_status ki_kernel_resident(kiln_device *device, int64_t *groups, struct ki_kernel *kernel,
                               int64_t group_size) {
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK) return status;
    if (!kernel->resident && device->backend->resident)
        status = device->backend->resident(device, &kernel->resident, kernel->function, group_size);
    if (status != KILN_OK) return status;
    if (kernel->resident < 1) kernel->resident = ki_max(1024 / group_size, 1);
    *groups = kernel->resident * device->properties.compute_units;
    return KILN_OK;
}

kiln_status ki_kernel_resident_with(kiln_device *device, int64_t *groups, struct ki_kernel *kernel,
                                    int64_t group_size, int64_t local_bytes) {
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK) return status;
    if (!device->backend->resident_with)
        status = ki_kernel_resident(device, groups, kernel, group_size);
    else if (!kernel->local_told || kernel->local_bytes != local_bytes)
        status = device->backend->resident_with(device, &kernel->resident_given, kernel->function, group_size,
                                                local_bytes);
    kernel->local_told = status == KILN_OK;
    kernel->local_bytes = local_bytes;
    if (status == KILN_OK && device->backend->resident_with)
        *groups = kernel->resident_given * device->properties.compute_units;
    return status;
}

enum { ARGUMENTS_MAX = 64 };

static kiln_status launch(kiln_device *device, struct ki_kernel *kernel, int64_t groups, int64_t group_size,
                          bool together, const struct ki_arg *args, int count) {
    struct ki_operand operands[ARGUMENTS_MAX] = {0};
    struct ki_arg found[ARGUMENTS_MAX];
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK || groups == 0) return status;
    if (count > ARGUMENTS_MAX) return ki_fail(KILN_ERR_INTERNAL, "a kernel with %d arguments", count);
    for (int i = 0; i < count; i++) /* CUDA refuses more than it was told of, other APIs take it */
        assert(args[i].size || !kernel->local_told || args[i].as.i64 <= kernel->local_bytes);
    for (int i = 0; i < count; i++)
        if (!args[i].kept) operands[i] = (struct ki_operand){args[i].matrix, args[i].written};
    if ((status = ki_operands_hold_launch(device, operands, count)) != KILN_OK) return status;
    for (int i = 0; i < count; i++) {
        assert(!args[i].matrix || !args[i].matrix->element || args[i].kept);
        found[i] = args[i].matrix ? ki_arg_buffer(&args[i].matrix->values) : args[i];
    }
    status = device->backend->launch(device, kernel->function, groups, group_size, together, found, count);
    ki_operands_release(device, operands, count);
    return status;
}

kiln_status ki_kernel_launch(kiln_device *device, struct ki_kernel *kernel, int64_t groups,
                             int64_t group_size, const struct ki_arg *args, int count) {
    return launch(device, kernel, groups, group_size, false, args, count);
}

kiln_status ki_kernel_launch_together(kiln_device *device, struct ki_kernel *kernel, int64_t groups,
                                      int64_t group_size, const struct ki_arg *args, int count) {
    return launch(device, kernel, groups, group_size, true, args, count);
}

const char *ki_defines(char text[KI_DEFINES_MOST], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, KI_DEFINES_MOST, format, args);
    va_end(args);
    return text;
}

kiln_status ki_kernel_run(kiln_device *device, const char *file, const char *function, kiln_type type,
                          const char *defines, int64_t groups, int64_t group_size, const struct ki_arg *args,
                          int count) {
    struct ki_kernel *kernel;
    const kiln_status status = ki_kernel_get(&kernel, device, file, function, type, defines);
    return status == KILN_OK ? ki_kernel_launch(device, kernel, groups, group_size, args, count) : status;
}

void ki_kernels_free(kiln_device *device) {
    while (device->kernels) {
        struct ki_kernel *first = device->kernels;
        device->kernels = first->next;
        free_kernel(device, first);
    }
    if (device->cache) ki_cache_close(device->cache);
    ki_free(device->cache);
    device->cache = NULL;
}
