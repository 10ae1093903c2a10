/* Loading the CUDA driver, and the table that sorts its error codes. */
#include "backends/cuda_driver.h"

#include <pthread.h>
#include <string.h>

#include "core/library.h"

struct ki_cuda_driver ki_cuda;

static const struct ki_symbol symbols[] = {
#define FUNCTION(member, symbol, parameters) {#symbol, &ki_cuda.member},
#include "backends/cuda.fn.h"
#undef FUNCTION
};

/* Says what the failed calls are called in NVIDIA's documentation. */
static const struct {
    const char *member, *symbol;
} names[] = {
#define FUNCTION(member, symbol, parameters) {#member, #symbol},
#include "backends/cuda.fn.h"
#undef FUNCTION
};

static struct ki_library library;
static const char *missing; /* a function that this driver lacks */
static int initialised;     /* what cuInit said */

static void load(void) {
    if (!ki_library_name(&library, "libcuda.so.1")) return;
    missing = ki_library_resolve(&library, symbols, sizeof symbols / sizeof *symbols);
    if (!missing) initialised = ki_cuda.init(0);
}

kiln_status ki_cuda_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static struct ki_fork_owner owner;
    const kiln_status own = ki_fork_own(&owner, "cuda: the driver");
    if (own != KILN_OK) return own;
    pthread_once(&once, load);
    if (!library.handle) {
        if (library.broken[0])
            ki_fail(KILN_ERR_DEVICE, "cuda: the NVIDIA driver does not load: %s", library.broken);
        else
            ki_fail(KILN_ERR_DEVICE, "cuda: libcuda.so.1 not found: no NVIDIA driver here");
        return ki_hint("--device auto, or install the NVIDIA driver (in a container: run it with the GPU "
                       "passed through)");
    }
    if (missing) {
        ki_fail(KILN_ERR_DEVICE, "cuda: libcuda.so.1 has no %s: the NVIDIA driver is too old", missing);
        return ki_hint("--device auto, or install NVIDIA driver 520 or later");
    }
    return ki_cuda_check(NULL, initialised, "init");
}

/* Every code that cuda.h 13.0 declares. NVIDIA says of most of the fatal ones that "the process must be
 * terminated and relaunched"; a memory or link error (214, 220) and "unknown" (999) join them because the
 * results cannot be trusted, and 3, 4, 201 and 709 because there is no context any more. */
static const short fatal[] = {3,   4,   201, 214, 220, 226, 700, 702, 709, 710,
                              714, 715, 716, 717, 718, 719, 721, 810, 911, 999};
static const short configuration[] = {34,  36,  46,  100, 101, 102, 209, 221, 222, 223,
                                      803, 804, 800, 801, 802, 805, 806, 807, 808, 809};
static const short refused[] = {1,   5,   6,   7,   8,   200, 202, 205, 206, 207, 208, 210, 211, 212, 213,
                                215, 216, 217, 218, 219, 224, 225, 300, 301, 302, 303, 304, 400, 401, 402,
                                500, 600, 701, 703, 704, 705, 708, 711, 712, 713, 720, 811, 812, 900, 901,
                                902, 903, 904, 905, 906, 907, 908, 909, 910, 912, 913, 914, 915, 916};

static const struct {
    enum ki_cuda_class is;
    const short *codes;
    size_t count;
} classes[] = {
    {KI_CUDA_FATAL, fatal, sizeof fatal / sizeof *fatal},
    {KI_CUDA_CONFIGURATION, configuration, sizeof configuration / sizeof *configuration},
    {KI_CUDA_REFUSED, refused, sizeof refused / sizeof *refused},
};

enum ki_cuda_class ki_cuda_classify(int code) {
    if (code == 2) return KI_CUDA_NO_MEMORY;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        for (size_t j = 0; j < classes[i].count; j++)
            if (classes[i].codes[j] == code) return classes[i].is;
    return KI_CUDA_FATAL; /* a code from the future: not to be trusted */
}

/* Says what helps against one code in particular. */
static const struct {
    int code;
    const char *hint;
} remedies[] = {
    {34, "libcuda.so.1 is the toolkit's stub: put the NVIDIA driver's own library first on the library path"},
    {36, "install a newer NVIDIA driver"},
    {46, "another process holds the GPU: wait for it, or take another (--device cuda:1)"},
    {100, "--device auto; 'nvidia-smi' and CUDA_VISIBLE_DEVICES tell what this process may see"},
    {802, "the GPU's fabric manager is not ready: start nvidia-fabricmanager"},
    {803, "the NVIDIA kernel module and libcuda.so.1 have different versions: restart the machine"},
    {999, "restart the program; if that does not help, reload the nvidia_uvm kernel module"},
};

static const char *remedy(int code, const char *otherwise) {
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (remedies[i].code == code) return remedies[i].hint;
    return otherwise;
}

static const char *symbol_of(const char *member) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].member, member) == 0) return names[i].symbol;
    return member;
}

kiln_status ki_cuda_fail(kiln_device *device, int code, const char *call) {
    const char *name = NULL, *text = NULL;
    if (ki_cuda.error_name(code, &name) || !name) name = "unknown CUDA error";
    if (ki_cuda.error_string(code, &text) || !text) text = "no description";
    call = symbol_of(call);
    switch (ki_cuda_classify(code)) {
    case KI_CUDA_NO_MEMORY:
        ki_fail_native(KILN_ERR_DEVICE_NOMEM, "cuda", code, "cuda: %s: out of device memory", call);
        return ki_hint("--type f32, less data, or --device cpu");
    case KI_CUDA_REFUSED:
    case KI_CUDA_CONFIGURATION:
        ki_fail_native(KILN_ERR_DEVICE, "cuda", code, "cuda: %s: %s (%d, %s)", call, name, code, text);
        return ki_hint("%s", remedy(code, "--device cpu; 'kiln doctor' checks the driver"));
    default: break;
    }
    if (!device) {
        ki_fail_native(KILN_ERR_DEVICE, "cuda", code, "cuda: %s: %s (%d, %s)", call, name, code, text);
        return ki_hint("%s", remedy(code, "start the program again; 'kiln doctor' checks the driver"));
    }
    device->lost = true;
    ki_fail_native(KILN_ERR_DEVICE_LOST, "cuda", code,
                   "device %s is lost: %s: %s (%d, %s), caused by this call or by work queued before it",
                   device->info.name, call, name, code, text);
    return ki_hint(
        "%s",
        remedy(code, "start the program again; 'dmesg | grep Xid' tells whether the GPU itself failed"));
}
