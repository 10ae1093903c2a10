/* This file says what this machine offers: each library that Kiln would load at run time is loaded and asked
 * for its version. It is not closed again: vendor libraries may leave threads behind. Core knows no backend,
 * so the names stand here a second time; they are sonames, which do not change. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/kernels/cache.h"
#include "core/library.h"
#include "core/os/os.h"
#include "core/seams.h"
#include "core/sized.h"

enum { ROWS_MAX = 24 };

struct report {
    kiln_probe *rows;
    int count;
};

static kiln_probe *add(struct report *report, const char *what, bool found) {
    kiln_probe *row = &report->rows[report->count++];
    row->found = found;
    snprintf(row->what, sizeof row->what, "%s", what);
    return row;
}

/* Says what was found, or why not; and how to mend it. Too long a text is cut. */
KI_PRINTF(2, 3) static void detail(kiln_probe *row, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(row->detail, sizeof row->detail, format, args);
    va_end(args);
}

KI_PRINTF(2, 3) static void hint(kiln_probe *row, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(row->hint, sizeof row->hint, format, args);
    va_end(args);
}

/* ------------------------------------------------------------------------------------- libraries */

/* Calls a version function of the library; false if it has none or it fails. dlsym gives object pointers, and
 * only a copy of the bits turns one into a function pointer without a word from the compiler. */
static bool call_int(void *library, const char *symbol, int *value) {
    int (*function)(int *);
    void *address = dlsym(library, symbol);
    memcpy(&function, &address, sizeof function);
    return address && function(value) == 0;
}

static void driver_version(void *library, char *text, size_t bytes) {
    int v;
    if (call_int(library, "cuDriverGetVersion", &v))
        snprintf(text, bytes, "for CUDA up to %d.%d, ", v / 1000, v % 1000 / 10);
}

static void nvrtc_version(void *library, char *text, size_t bytes) {
    int (*function)(int *, int *), major, minor;
    void *address = dlsym(library, "nvrtcVersion");
    memcpy(&function, &address, sizeof function);
    if (address && function(&major, &minor) == 0) snprintf(text, bytes, "version %d.%d, ", major, minor);
}

static void property_version(void *library, const char *symbol, char *text, size_t bytes) {
    int (*function)(int, int *), major, minor;
    void *address = dlsym(library, symbol);
    memcpy(&function, &address, sizeof function);
    if (address && function(0, &major) == 0 && function(1, &minor) == 0)
        snprintf(text, bytes, "version %d.%d, ", major, minor);
}

static void cublas_version(void *library, char *text, size_t bytes) {
    property_version(library, "cublasGetProperty", text, bytes);
}

static void cusparse_version(void *library, char *text, size_t bytes) {
    property_version(library, "cusparseGetProperty", text, bytes);
}

static void nccl_version(void *library, char *text, size_t bytes) {
    int v;
    if (call_int(library, "ncclGetVersion", &v))
        snprintf(text, bytes, "version %d.%d.%d, ", v / 10000, v % 10000 / 100, v % 100);
}

static void mpi_version(void *library, char *text, size_t bytes) {
    int (*function)(char *, int *), length = 0;
    char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING of either implementation */
    void *address = dlsym(library, "MPI_Get_library_version");
    memcpy(&function, &address, sizeof function);
    if (!address || function(version, &length) != 0) return;
    version[sizeof version - 1] = '\0';
    version[strcspn(version, "\n,")] = '\0';
    snprintf(text, bytes, "%.60s, ", version);
}

/* Name of the BLAS behind the soname: Debian's libblas.so.3 may be any of them. */
static void blas_version(void *library, char *text, size_t bytes) {
    char *(*function)(void);
    void *address = dlsym(library, "openblas_get_config");
    memcpy(&function, &address, sizeof function);
    if (address)
        snprintf(text, bytes, "%.100s, ", function());
    else if (dlsym(library, "bli_info_get_version_str"))
        snprintf(text, bytes, "BLIS, ");
    else if (dlsym(library, "MKL_Get_Version_String"))
        snprintf(text, bytes, "Intel MKL, ");
    else
        snprintf(text, bytes, "the reference BLAS, ");
}

struct candidate {
    const char *what, *names[8]; /* sonames, newest first */
    void (*version)(void *library, char *text, size_t bytes);
    const char *hint;
    const char *wheel; /* part of the CUDA toolkit: its folder in pip's packages */
    const char *path_variable, *missing;
    bool ours; /* it lies beside this library */
};

static const struct candidate candidates[] = {
    {.what = "BLAS",
     .names = {"libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libblas.so.3"},
     .version = blas_version,
     .hint = "apt install libopenblas0",
     .path_variable = "KILN_BLAS",
     .missing = "dense products use Kiln's own code"},
    {.what = "CUDA driver",
     .names = {"libcuda.so.1"},
     .version = driver_version,
     .hint = "only for NVIDIA GPUs: apt install nvidia-driver, and the module loaded (nvidia-smi shows it)",
     .missing = "no NVIDIA GPU can be used"},
    {.what = "NVRTC",
     .names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
     .version = nvrtc_version,
     .hint = "only for NVIDIA GPUs: pip install nvidia-cuda-nvrtc-cu12 and set KILN_NVRTC_PATH, or install "
             "the CUDA toolkit; without it OpenCL serves them",
     .wheel = "cuda_nvrtc",
     .path_variable = "KILN_NVRTC_PATH",
     .missing = "kernels for CUDA cannot be built"},
    {.what = "cuBLAS",
     .names = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
     .version = cublas_version,
     .hint = "pip install nvidia-cublas-cu12, or the CUDA toolkit",
     .wheel = "cublas",
     .missing = "optional: only benchmarks compare with it"},
    {.what = "cuSPARSE",
     .names = {"libcusparse.so.12", "libcusparse.so.11"},
     .version = cusparse_version,
     .hint = "pip install nvidia-cusparse-cu12, or the CUDA toolkit",
     .wheel = "cusparse",
     .missing = "optional: only benchmarks compare with it"},
    {.what = "OpenCL loader",
     .names = {"libOpenCL.so.1"},
     .hint = "apt install ocl-icd-libopencl1",
     .missing = "no OpenCL device can be used"},
    {.what = "NCCL",
     .names = {"libnccl.so.2"},
     .version = nccl_version,
     .hint = "apt install libnccl2, or pip install nvidia-nccl-cu12",
     .wheel = "nccl",
     .missing = "optional: what several GPUs add up goes from one to another by copies, and between "
                "processes by MPI"},
    {.what = "MPI",
     .names = {"libmpi.so.40", "libmpich.so.12"},
     .version = mpi_version,
     .hint = "apt install openmpi-bin, or apt install mpich",
     .missing = "optional: needed for several machines"},
    {.what = "Kiln for MPI",
     .names = {"libkiln-openmpi.so", "libkiln-mpich.so"},
     .hint =
         "build Kiln again where mpicc is installed: apt install libopenmpi-dev, or apt install libmpich-dev",
     .path_variable = "KILN_MPI_PATH",
     .missing = "optional: what --mpi loads",
     .ours = true},
};

static void load(struct ki_library *library, const struct candidate *candidate) {
    if (candidate->wheel) ki_library_toolkit(library, candidate->names, candidate->wheel);
    for (int i = 0; candidate->names[i] && !library->handle && !candidate->wheel; i++)
        (candidate->ours ? ki_library_beside : ki_library_name)(library, candidate->names[i]);
}

static void tell_missing(kiln_probe *row, const struct candidate *candidate, bool chosen,
                         const struct ki_library *library) {
    const char *path = chosen ? secure_getenv(candidate->path_variable) : "";
    if (chosen)
        detail(row, "%s=%.100s: %.100s", candidate->path_variable, path,
               *path != '/'       ? "not an absolute path"
               : *library->broken ? library->broken
                                  : "there is no such file");
    else if (*library->broken)
        detail(row, "%.200s; %s", library->broken, candidate->missing);
    else
        detail(row, "%s not found; %s", candidate->names[0], candidate->missing);
    hint(row, "%s", candidate->hint);
}

static void probe_library(struct report *report, const struct candidate *candidate) {
    struct ki_library found = {0};
    const bool chosen = candidate->path_variable && ki_library_chosen(&found, candidate->path_variable);
    if (!chosen) load(&found, candidate);
    void *const library = found.handle;
    kiln_probe *row = add(report, candidate->what, library != NULL);
    if (!library) {
        tell_missing(row, candidate, chosen, &found);
        return;
    }
    char version[128] = "", path[160];
    if (candidate->version) candidate->version(library, version, sizeof version);
    ki_os_library_file(path, sizeof path, library);
    detail(row, "%s%s", version, path);
    if (strncmp(version, "the reference BLAS", 18) == 0)
        hint(row, "it is many times slower than others: %s", candidate->hint);
}

/* ---------------------------------------------------------------------------- what is no library */

static void probe_processor(struct report *report) {
    char features[64] = "";
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) strcat(features, " AVX2 FMA");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) strcat(features, " AVX-512");
#endif
    struct utsname machine;
    kiln_probe *row = add(report, "CPU", true);
    detail(row, "%.60s%s, %ld processors online", uname(&machine) == 0 ? machine.machine : "", features,
           sysconf(_SC_NPROCESSORS_ONLN));
    row = add(report, "threads", true);
    detail(row, "%d by default (KILN_NUM_THREADS, OMP_NUM_THREADS, else affinity and cgroup quota)",
           ki_default_threads());
}

/* Finds what the loader would offer: the first line of each file is the library of a platform. */
static void probe_platforms(struct report *report) {
    static const char folder[] = "/etc/OpenCL/vendors";
    char list[200] = "";
    bool nvidia = false;
    int count = 0;
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        size_t length = strlen(file->d_name), used = strlen(list);
        if (length < 4 || strcmp(file->d_name + length - 4, ".icd") != 0) continue;
        snprintf(list + used, sizeof list - used, "%s%.60s", count++ ? ", " : "", file->d_name);
        if (strstr(file->d_name, "nvidia")) nvidia = true;
    }
    if (files) closedir(files);
    kiln_probe *row = add(report, "OpenCL platforms", count > 0);
    detail(row, "%s in %s", count ? list : "no .icd file", folder);
    if (!count) hint(row, "apt install pocl-opencl-icd (processors), or a GPU's own driver package");
    /* Containers often carry the driver's library without the line that announces it. */
    void *driver = dlopen("libnvidia-opencl.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver && !nvidia) {
        row = add(report, "OpenCL on NVIDIA", false);
        detail(row, "libnvidia-opencl.so.1 is installed, but no file in %s names it", folder);
        hint(row, "mkdir -p %s && echo libnvidia-opencl.so.1 > %s/nvidia.icd", folder, folder);
    }
}

static kiln_status probe_cache(struct report *report) {
    struct ki_cache *cache = ki_alloc(sizeof *cache);
    if (!cache) return ki_fail_nomem(sizeof *cache, "the kernel cache");
    ki_cache_open(cache);
    kiln_probe *row = add(report, "kernel cache", cache->folder >= 0);
    if (cache->folder >= 0)
        detail(row, "%.150s, %lld bytes", cache->path, (long long)ki_cache_bytes(cache));
    else
        detail(row, "%.110s%s%.100s; kernels are built anew in each run", cache->path,
               *cache->path ? ": " : "", cache->why);
    hint(row, "%s", cache->hint);
    ki_cache_close(cache);
    ki_free(cache);
    return KILN_OK;
}

static void probe_zstd(struct report *report) {
#ifdef KILN_HAVE_ZSTD
    detail(add(report, "zstd", true), "reading of .zst files is built in");
#else
    kiln_probe *row = add(report, "zstd", false);
    detail(row, "reading of .zst files is not built in");
    hint(row, "apt install libzstd-dev, and build Kiln again");
#endif
}

kiln_status kiln_probe_machine(kiln_probe **probes, int64_t *count, size_t size) {
    if (!probes || !count) return ki_fail(KILN_ERR_ARGUMENT, "kiln_probe_machine: an argument is NULL");
    struct report report = {ki_calloc(ROWS_MAX * sizeof(kiln_probe)), 0};
    if (!report.rows) return ki_fail_nomem(ROWS_MAX * sizeof(kiln_probe), "the list of what was found");
    probe_processor(&report);
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        probe_library(&report, &candidates[i]);
    probe_platforms(&report);
    probe_zstd(&report);
    kiln_status status = probe_cache(&report);
    if (status != KILN_OK) {
        ki_free(report.rows);
        return status;
    }
    return KI_GIVE_ROWS(kiln_probe, probes, count, size, report.rows, report.count);
}
