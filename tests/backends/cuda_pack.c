/* Packs of kernels: what is in one is not built, and needs no compiler; what is damaged, strange, or could be
 * somebody else's is not used, and the user learns it once. Driver and compiler are stubs that compute
 * nothing. A process looks for packs once, so each look is a process of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/check.h"
#include "backends/stub.h"
#include "core/kernels/kernels.h"
#include "pass/launch.h"

static char folder[] = "/tmp/kiln-pack-XXXXXX", path[128], cache[64];
static const char programs[] =
    "# two programs, one of them twice\n\nrows f32 -DGROUP=64\nrows f64 -DGROUP=64\nrows f32 -DGROUP=64\n";

static int begin(void **state) {
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.pack", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    return setenv("KILN_CACHE_DIR", cache, 1) || setenv("KILN_KERNEL_PACK", path, 1);
}

static int finish(void **state) {
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

/* In a process of its own, as a process finds its compiler once and for all. */
static void make_of(const char *list, const char *architectures, int64_t expected) {
    const kiln_pack_options options = {
        .size = sizeof options, .architectures = architectures, .programs = list, .threads = 2};
    int status;
    const pid_t child = fork();
    if (child == 0) {
        int64_t built = 0;
        const kiln_status failed = kiln_kernels_build(path, &options, &built);
        _exit(failed != KILN_OK ? 1 : expected && built != expected ? 2 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void make(const char *architectures, int64_t expected) {
    make_of(programs, architectures, expected);
}

/* Holds what a process saw that asked for a kernel. */
struct seen {
    kiln_status opened, got;
    int64_t built, cached;
    int messages;
    char last[600], error[600];
};

static void count(void *user, const char *message) {
    struct seen *seen = user;
    if (!strstr(message, "pack of kernels")) return;
    seen->messages++;
    snprintf(seen->last, sizeof seen->last, "%s", message);
}

static void look(struct seen *seen, const char *defines) {
    kiln_device *device = NULL;
    struct ki_kernel *kernel;
    kiln_device_statistics statistics = {.size = sizeof statistics};
    const kiln_device_options options = {.size = sizeof options, .message = count, .message_user = seen};
    seen->opened = kiln_device_open(&device, "cuda", &options);
    if (seen->opened == KILN_OK) {
        seen->got = ki_kernel_get(&kernel, device, "rows", "copy_rows", KILN_F32, defines);
        if (seen->got == KILN_OK)
            seen->got = ki_kernel_get(&kernel, device, "rows", "copy_rows", KILN_F32, defines);
        kiln_device_get_statistics(device, &statistics);
        seen->built = statistics.kernels_built;
        seen->cached = statistics.kernels_cached;
    }
    if (seen->opened != KILN_OK || seen->got != KILN_OK)
        snprintf(seen->error, sizeof seen->error, "%s|%s", kiln_last_error()->message,
                 kiln_last_error()->hint);
    kiln_device_close(device);
}

static struct seen in_a_process(const char *defines, const char *nvrtc) {
    struct seen seen = {.opened = KILN_ERR_INTERNAL};
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        setenv("KILN_NVRTC_PATH", nvrtc, 1);
        look(&seen, defines);
        _exit(write(ends[1], &seen, sizeof seen) == sizeof seen ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &seen, sizeof seen), sizeof seen);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return seen;
}

#define NOWHERE "/nowhere/libnvrtc.so.13"

static void what_a_pack_has_needs_no_compiler(void **state) {
    (void)state;
    make("sm_90", 2);
    struct seen seen = in_a_process("-DGROUP=64", NOWHERE);
    if (seen.opened != KILN_OK || seen.got != KILN_OK) fail_msg("%s", seen.error);
    assert_int_equal(seen.cached, 1);
    assert_int_equal(seen.built, 0);
    assert_int_equal(seen.messages, 0);
    /* A pack that may not be used is named where nothing else is there. */
    assert_int_equal(chmod(path, 0666), 0);
    seen = in_a_process("-DGROUP=64", NOWHERE);
    assert_int_equal(seen.opened, KILN_ERR_DEVICE);
    assert_contains(seen.error, "others may write");
    assert_int_equal(chmod(path, 0600), 0);
    /* A kernel that it lacks does, and the user is told how to get one. */
    seen = in_a_process("-DGROUP=32", NOWHERE);
    assert_int_equal(seen.opened, KILN_OK);
    assert_int_equal(seen.got, KILN_ERR_DEVICE);
    assert_contains(seen.error, "pip install nvidia-cuda-nvrtc");
    seen = in_a_process("-DGROUP=32", "");
    assert_int_equal(seen.built, 1);
}

static void architectures(void **state) {
    (void)state;
    make("90,sm_80", 4);
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
    make("sm_80", 2); /* machine code of another generation */
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).opened, KILN_ERR_DEVICE);
    assert_int_equal(in_a_process("-DGROUP=64", "").built, 1);
    make(NULL, 4);         /* the stub knows two of the usual ones */
    make("compute_80", 2); /* the driver's compiler goes on from here */
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
    make("sm_80,compute_80,sm_90", 6);
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
    make_of("sm_90 rows f32 -DGROUP=64\nsm_80 rows f64 -DGROUP=64\nrows f32 -DGROUP=32", "sm_90", 2);
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
}

static void same_bytes(void **state) {
    (void)state;
    static char first[1 << 16], second[1 << 16];
    make("sm_80,sm_90", 4);
    FILE *file = fopen(path, "rb");
    const size_t bytes = fread(first, 1, sizeof first, file);
    fclose(file);
    make("sm_90,sm_80", 4);
    file = fopen(path, "rb");
    assert_int_equal(fread(second, 1, sizeof second, file), bytes);
    fclose(file);
    assert_memory_equal(first, second, bytes);
}

static void flip(off_t at) {
    unsigned char byte;
    const int file = open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 0x41;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static void remove_cache(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    assert_int_equal(system(command), 0);
}

/* A byte that is not what it was anywhere: the kernel is built, and the user learns why, or the byte is
 * another kernel's. */
static void damaged_packs_are_not_used(void **state) {
    (void)state;
    struct stat info;
    make("sm_90", 2);
    assert_int_equal(stat(path, &info), 0);
    for (off_t at = 0; at < info.st_size; at += 7) {
        flip(at);
        remove_cache();
        const struct seen seen = in_a_process("-DGROUP=64", "");
        flip(at);
        if (seen.got != KILN_OK || seen.built + seen.cached != 1)
            fail_msg("byte %d: %s", (int)at, seen.error);
        if (seen.built != (seen.messages == 1)) fail_msg("byte %d: %d messages", (int)at, seen.messages);
        if (seen.cached && at < 112) fail_msg("byte %d of the header is overlooked", (int)at);
    }
    assert_int_equal(truncate(path, info.st_size / 2), 0);
    remove_cache();
    assert_int_equal(in_a_process("-DGROUP=64", "").messages, 1);
}

static void not_used(const char *why) {
    remove_cache();
    const struct seen seen = in_a_process("-DGROUP=64", "");
    assert_int_equal(seen.built, 1);
    assert_int_equal(seen.messages, 1);
    assert_contains(seen.last, why);
}

static void packs_of_others_are_not_used(void **state) {
    (void)state;
    make("sm_90", 2);
    assert_int_equal(chmod(path, 0666), 0);
    not_used("others may write");
    assert_int_equal(unlink(path), 0);
    not_used("No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    not_used("not a regular file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    not_used("not a regular file");
    assert_int_equal(setenv("KILN_KERNEL_PACK", "a.pack", 1), 0);
    not_used("absolute path");
}

static void the_cache_folder_may_hold_one(void **state) {
    (void)state;
    assert_int_equal(unsetenv("KILN_KERNEL_PACK"), 0);
    assert_int_equal(mkdir(cache, 0700), 0);
    snprintf(path, sizeof path, "%s/kiln-kernels.pack", cache);
    make("sm_90", 2);
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
}

/* A pass over X of three rows and so many columns, and its halves: kernels that were built. */
static int64_t built_for(kiln_device *device, kiln_type type, int64_t cols, bool sparse) {
    static const int64_t starts[] = {0, 1, 2, 3};
    static const int32_t firsts[3];
    static const double zeros[3];
    kiln_matrix *X = NULL, *y = NULL, *p = NULL, *w = NULL;
    kiln_device_statistics before = {.size = sizeof before}, after = before;
    kiln_device_get_statistics(device, &before);
    const kiln_status made = sparse ? kiln_matrix_csr(&X, device, type, 3, cols, starts, firsts, zeros)
                                    : kiln_matrix_dense(&X, device, type, 3, cols, NULL);
    const bool good = made == KILN_OK && kiln_matrix_dense(&y, device, type, cols, 1, NULL) == KILN_OK &&
                      kiln_matrix_dense(&p, device, type, 3, 1, NULL) == KILN_OK &&
                      kiln_matrix_dense(&w, device, type, cols, 1, NULL) == KILN_OK &&
                      kiln_mmchain(w, 1, X, NULL, y, 0, NULL) == KILN_OK &&
                      kiln_mmchain(w, 1, X, p, y, 0, NULL) == KILN_OK &&
                      kiln_multiply(p, 1, KILN_PLAIN, X, y, 0, NULL) == KILN_OK &&
                      kiln_multiply(w, 1, KILN_TRANSPOSED, X, p, 0, NULL) == KILN_OK;
    kiln_device_get_statistics(device, &after);
    kiln_matrix_free(w);
    kiln_matrix_free(p);
    kiln_matrix_free(y);
    kiln_matrix_free(X);
    return good ? after.kernels_built - before.kernels_built : -1;
}

/* Returns whether the plan of a pass over rows that are not there is one of a pack. */
static bool packed_plan(kiln_device *device, int64_t rows, int64_t cols, int k) {
    kiln_matrix X = {.device = device, .type = KILN_F32, .format = KILN_DENSE, .rows = rows, .cols = cols};
    const struct ki_chain chain = {.kind = KI_CHAIN_FUSED, .alpha = 1, .k = k, .X = &X};
    struct ki_candidate *list = NULL;
    int count, chosen;
    X.nnz = rows * cols;
    if (ki_chain_candidates(&list, &count, &chosen, &chain) != KILN_OK) return false;
    const bool packed = ki_plan_packed(&list[chosen].plan, &chain);
    kiln_free(list);
    return packed;
}

/* 0, or the number of what went wrong. */
static int work_on_any_shape(bool builds) {
    static const int64_t cols[] = {1, 2, 3, 7, 8, 9, 28, 37, 100, 129, 1000, 1024, 4096, 4097, 20000, 50001};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    struct stub *driver = library ? dlsym(library, "stub_cuda") : NULL;
    kiln_device *device = NULL;
    int wrong = 0;
    int64_t all = 0;
    if (!driver || kiln_device_open(&device, "cuda", NULL) != KILN_OK) return 1;
    for (int type = KILN_F32; type <= KILN_F64 && !wrong; type++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols && !wrong; i++) {
            driver->used = 0;
            const int64_t dense = built_for(device, (kiln_type)type, cols[i], false);
            const int64_t sparse = built_for(device, (kiln_type)type, cols[i], true);
            if (dense < 0 || sparse < 0) wrong = 2;
            all += dense + sparse;
        }
    if (!wrong && (all > 0) != builds) wrong = 3;
    /* A pass that gains much by a kernel of its own is worth compiling one. */
    for (int k = 1; k <= 8 && !wrong; k *= 2) {
        if (packed_plan(device, 20000000, 128, k)) wrong = 4;
        if (packed_plan(device, 3000, 128, k) == builds) wrong = 5;
    }
    kiln_device_close(device);
    return wrong;
}

static void see_work(bool builds) {
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(work_on_any_shape(builds));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Passes over few rows of any width need nothing that the usual pack has not; without one all of them build
 * something. */
static void the_usual_pack_serves_any_shape(void **state) {
    (void)state;
    see_work(true);
    snprintf(cache, sizeof cache, "%s/other", folder); /* the first one has what was built */
    assert_int_equal(setenv("KILN_CACHE_DIR", cache, 1), 0);
    make_of(NULL, "sm_90", 0);
    see_work(false);
    make_of("usual\nrows f32 -DGROUP=64\nusual", "sm_90", 0);
    assert_int_equal(in_a_process("-DGROUP=64", NOWHERE).cached, 1);
    see_work(false);
}

static void refuse(const char *list, const char *architectures_of, const char *why) {
    const kiln_pack_options options = {.programs = list, .architectures = architectures_of};
    assert_fails(KILN_ERR_ARGUMENT, kiln_kernels_build(path, &options, NULL));
    assert_contains(kiln_last_error()->message, why);
    assert_int_equal(access(path, F_OK), -1);
}

static void bad_lists(void **state) {
    (void)state;
    refuse("rows f32 -DGROUP=64\nrows f16", NULL, "does not name a program");
    assert_int_equal(kiln_last_error()->line, 2);
    refuse("rows", NULL, "does not name a program");
    refuse("rows f32  -DGROUP=64 GROUP=32", NULL, "does not begin with '-'");
    refuse("rows f321", NULL, "does not name a program");
    refuse("rows f32 GROUP=64", NULL, "does not begin with '-'");
    refuse("../rows f32 -DGROUP=64", NULL, "does not have");
    refuse("", NULL, "no program");
    refuse("# nothing\n\n", NULL, "no program");
    refuse("rows f32 -DGROUP=64", "sm_", "no architecture");
    refuse("rows f32 -DGROUP=64", "", "no architecture");
    refuse("rows f32 -DGROUP=64", "sm_90,", "no architecture");
    refuse("rows f32 -DGROUP=64", "ninety", "no architecture");
    refuse("rows f32 -DGROUP=64", "compute_", "no architecture");
    refuse("sm_80 rows f32 -DGROUP=64", "sm_90", "for any of these architectures");
    refuse("sm_80 f32 -DGROUP=64", "sm_80", "does not name a program");
    const kiln_pack_options old = {.programs = "rows f32 -DGROUP=64", .architectures = "sm_70"};
    assert_fails(KILN_ERR_DEVICE, kiln_kernels_build(path, &old, NULL));
    const kiln_pack_options good = {.programs = "rows f32 -DGROUP=64", .architectures = "sm_90"};
    assert_fails(KILN_ERR_IO, kiln_kernels_build("/nowhere/a.pack", &good, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_kernels_build(NULL, &good, NULL));
}

/* Each kernel that was built is listed, each once, and can be given to a build. */
static void the_list_of_what_was_built(void **state) {
    (void)state;
    char *list = NULL;
    assert_int_equal(kiln_kernels_list(&list, "cuda"), KILN_OK);
    assert_string_equal(list, "");
    kiln_free(list);
    unsetenv("KILN_KERNEL_PACK");
    in_a_process("-DGROUP=64", "");
    in_a_process("-DGROUP=32", "");
    in_a_process("-DGROUP=32", "");
    assert_int_equal(kiln_kernels_list(&list, "cuda"), KILN_OK);
    assert_string_equal(list, "rows f32 -DGROUP=32\nrows f32 -DGROUP=64\n");
    const kiln_pack_options options = {.programs = list, .architectures = "sm_90"};
    int64_t built = 0;
    assert_int_equal(kiln_kernels_build(path, &options, &built), KILN_OK);
    assert_int_equal(built, 2);
    kiln_free(list);
    assert_int_equal(kiln_kernels_list(&list, "opencl"), KILN_OK);
    assert_string_equal(list, "");
    kiln_free(list);
    assert_fails(KILN_ERR_ARGUMENT, kiln_kernels_list(NULL, "cuda"));
    assert_fails(KILN_ERR_ARGUMENT, kiln_kernels_list(&list, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_kernels_list(&list, "gpu"));
    assert_int_equal(setenv("KILN_CACHE_DIR", "relative", 1), 0);
    assert_fails(KILN_ERR_IO, kiln_kernels_list(&list, "cuda"));
}

int main(void) {
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, finish)
    const struct CMUnitTest tests[] = {TEST(what_a_pack_has_needs_no_compiler),
                                       TEST(architectures),
                                       TEST(same_bytes),
                                       TEST(damaged_packs_are_not_used),
                                       TEST(packs_of_others_are_not_used),
                                       TEST(the_cache_folder_may_hold_one),
                                       TEST(the_usual_pack_serves_any_shape),
                                       TEST(bad_lists),
                                       TEST(the_list_of_what_was_built)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
