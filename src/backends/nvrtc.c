/* Finding NVRTC and compiling with it.
 *
 * The result is machine code (a cubin), which runs on every driver that knows the device. PTX, for GPUs that
 * a pack has no machine code for, needs a driver as new as the NVRTC that made it. */
#define _GNU_SOURCE
#include "backends/nvrtc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/pack.h"
#include "core/library.h"
#include "core/seams.h"

typedef struct nvrtc_program_opaque *nvrtc_program;

static struct {
#define FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "backends/nvrtc.fn.h"
#undef FUNCTION
} nvrtc;

static const struct ki_symbol symbols[] = {
#define FUNCTION(member, symbol, parameters) {#symbol, &nvrtc.member},
#include "backends/nvrtc.fn.h"
#undef FUNCTION
};

enum { NVRTC_NO_MEMORY = 1, NVRTC_COMPILATION = 6, NVRTC_BUILTINS = 7 };

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL};

static struct ki_library library;
static const char *missing; /* a function that this NVRTC lacks */
static bool named;          /* KILN_NVRTC_PATH says which, and nothing else is tried */
static char version[16];
static bool has_minimal; /* knows --minimal: 12.4 and later */
static int failed;       /* what nvrtcVersion said */

static void load(void) {
    named = ki_library_chosen(&library, "KILN_NVRTC_PATH");
    if (!named) ki_library_toolkit(&library, sonames, "cuda_nvrtc");
    if (!library.handle) return;
    missing = ki_library_resolve(&library, symbols, sizeof symbols / sizeof *symbols);
    if (missing) return;
    int major = 0, minor = 0;
    failed = nvrtc.version(&major, &minor);
    snprintf(version, sizeof version, "%d.%d", major, minor);
    has_minimal = major > 12 || (major == 12 && minor >= 4);
}

static kiln_status not_found(void) {
    if (named)
        ki_fail(KILN_ERR_DEVICE, "cuda: KILN_NVRTC_PATH does not name a library by its absolute path%s%s",
                library.broken[0] ? ": " : "", library.broken);
    else if (library.broken[0])
        ki_fail(KILN_ERR_DEVICE, "cuda: NVRTC does not load: %s", library.broken);
    else
        ki_fail(KILN_ERR_DEVICE, "cuda: no NVRTC, CUDA's run-time compiler (tried %d places: %s)",
                library.places, library.tried);
    return ki_hint("pip install nvidia-cuda-nvrtc, or KILN_NVRTC_PATH=/where/it/is/libnvrtc.so.13");
}

/* Finds whether this NVRTC makes code for the architecture. An older one that cannot is found out here and
 * not at the first kernel. */
static kiln_status knows(int architecture) {
    int count = 0, *list = NULL, code = nvrtc.architecture_count(&count);
    kiln_status status = KILN_OK;
    bool known = false;
    if (code == 0 && count > 0) {
        list = ki_alloc((size_t)count * sizeof *list);
        if (!list) return ki_fail_nomem((size_t)count * sizeof *list, "the compiler's architectures");
        code = nvrtc.architectures(list);
    }
    if (code) {
        status = ki_fail_native(KILN_ERR_DEVICE, "nvrtc", code, "cuda: NVRTC %s (%s) does not work: error %d",
                                version, library.path, code);
    } else {
        for (int i = 0; i < count; i++) known = known || list[i] == architecture;
        if (!known) {
            ki_fail(KILN_ERR_DEVICE, "cuda: NVRTC %s (%s) makes no code for compute capability %d.%d",
                    version, library.path, architecture / 10, architecture % 10);
            status = ki_hint(
                "KILN_NVRTC_PATH names another NVRTC; pip install nvidia-cuda-nvrtc brings the newest");
        }
    }
    ki_free(list);
    return status;
}

kiln_status ki_nvrtc_load(int architecture) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!library.handle) return not_found();
    if (missing) {
        ki_fail(KILN_ERR_DEVICE, "cuda: %s has no %s: this NVRTC is too old", library.path, missing);
        return ki_hint("pip install nvidia-cuda-nvrtc, version 11.2 or later");
    }
    if (failed)
        return ki_fail_native(KILN_ERR_DEVICE, "nvrtc", failed, "cuda: NVRTC (%s) does not work: error %d",
                              library.path, failed);
    return knows(architecture);
}

const char *ki_nvrtc_version(void) {
    return version;
}

/* The compiler's words, or NULL if it has none or there is no memory for them. */
static char *log_of(nvrtc_program program) {
    size_t bytes = 0;
    if (nvrtc.log_size(program, &bytes) || bytes == 0) return NULL;
    char *log = ki_calloc(bytes + 1);
    if (log && nvrtc.log(program, log)) log[0] = '\0';
    return log;
}

static kiln_status compile_failed(nvrtc_program program, int code) {
    if (code == NVRTC_NO_MEMORY) return ki_fail(KILN_ERR_NOMEM, "out of memory in the kernel compiler");
    char *log = log_of(program);
    ki_fail_native(KILN_ERR_BUILD, "nvrtc", code, "cuda: NVRTC %s: error %d: %.600s", version, code,
                   log ? log : "");
    ki_free(log);
    if (code == NVRTC_BUILTINS)
        return ki_hint("libnvrtc-builtins must lie beside %s; pip install nvidia-cuda-nvrtc brings both",
                       library.path);
    return KILN_ERR_BUILD;
}

/* Says what every kernel is compiled with. IEEE arithmetic is the default, and is said all the same. */
static const char *const always[] = {"-default-device", "-fmad=true", "-ftz=false", "-prec-div=true",
                                     "-prec-sqrt=true"};
enum { ALWAYS = sizeof always / sizeof *always, OPTIONS_MAX = 64 };
/* Without declarations of textures and of CUDA's run-time library, which no kernel uses: a third of what
 * NVRTC does of one program at a time, whatever threads ask. The machine code is the same. */
static const char minimal[] = "--minimal";

/* Says which line an instruction comes from, for profilers and sanitizers: a tenth of the compiler's time,
 * two thirds of what it writes, and not one instruction. Whoever names the kernels' sources wants it, and
 * begins with an empty cache, which knows nothing of it. */
static const char lines[] = "-lineinfo";

/* Splits text, in place, at spaces. */
static int split(const char **words, int room, char *text) {
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word && count < room; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return count;
}

static kiln_status result_of(void **result, size_t *bytes, nvrtc_program program, bool ptx) {
    size_t size = 0;
    int code = (ptx ? nvrtc.ptx_size : nvrtc.cubin_size)(program, &size);
    if (code || size == 0)
        return ki_fail_native(KILN_ERR_BUILD, "nvrtc", code, "cuda: NVRTC %s made no machine code (error %d)",
                              version, code);
    void *made = ki_resize(NULL, size);
    if (!made) return ki_fail_nomem(size, "a built kernel");
    if ((code = (ptx ? nvrtc.ptx : nvrtc.cubin)(program, made))) {
        ki_free(made);
        return ki_fail_native(KILN_ERR_BUILD, "nvrtc", code,
                              "cuda: NVRTC %s: error %d handing out its result", version, code);
    }
    *result = made;
    *bytes = size;
    return KILN_OK;
}

kiln_status ki_nvrtc_compile(void **result, size_t *bytes, const char *source, const char *options,
                             int architecture) {
    kiln_status status = KILN_OK;
    nvrtc_program program = NULL;
    const char *words[OPTIONS_MAX];
    char target[40];
    const bool ptx = architecture & KI_PACK_PTX;
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d", ptx ? "compute" : "sm",
             architecture & ~KI_PACK_PTX);
    memcpy(words, always, sizeof always);
    int count = ALWAYS;
    words[count++] = target;
    if (has_minimal) words[count++] = minimal;
    if (secure_getenv("KILN_KERNEL_DIR")) words[count++] = lines;
    char *text = ki_strdup(options);
    if (!text) return ki_fail_nomem(strlen(options) + 1, "compiler options");
    count += split(words + count, OPTIONS_MAX - count, text);
    int code = nvrtc.create(&program, source, "kernel.cu", 0, NULL, NULL);
    if (code) {
        status = ki_fail_native(KILN_ERR_BUILD, "nvrtc", code, "cuda: NVRTC %s: error %d taking a source",
                                version, code);
        goto done;
    }
    if ((code = nvrtc.compile(program, count, words)))
        status = compile_failed(program, code);
    else
        status = result_of(result, bytes, program, ptx);
    nvrtc.destroy(&program);
done:
    ki_free(text);
    return status;
}
