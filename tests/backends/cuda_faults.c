/* Every call of the CUDA driver and of NVRTC fails once, with each kind of code, for once and for good: no
 * crash, the right status, and a lost device stays lost without the driver being called again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/check.h"
#include "backends/cuda_driver.h"
#include "backends/stub.h"
#include "core/group/group.h"

static struct stub *driver, *compiler;

/* Calls in one stage fail alike. */
enum stage { OPEN, USE, BUILD, LOAD };

struct run {
    enum stage failed; /* where status came from */
    kiln_status status;
    bool lost;
};

static kiln_status on(kiln_device *device, struct run *run, enum stage stage,
                      kiln_status (*work)(kiln_device *)) {
    kiln_status status = work(device);
    if (status != KILN_OK && run->status == KILN_OK) {
        run->status = status;
        run->failed = stage;
    }
    return status;
}

static struct ki_buffer buffer;
static char pinned[16];
static bool is_pinned;
static void *module, *function, *binary;
static size_t bytes;

static kiln_status use(kiln_device *device) {
    kiln_status status;
    char text[16] = "fifteen letters", back[16] = "";
    buffer = (struct ki_buffer){0};
    TRY(ki_device_alloc(device, &buffer, sizeof text));
    TRY(ki_device_upload(device, &buffer, 0, text, sizeof text));
    TRY(kiln_device_sync(device));
    TRY(ki_device_download(device, back, &buffer, 0, sizeof back));
    assert_string_equal(back, text);
    TRY(device->backend->pin(device, pinned, sizeof pinned));
    is_pinned = true;
    TRY(device->backend->upload_queue(device, &buffer, 0, text, sizeof text));
    TRY(device->backend->upload_wait(device));
done:
    return status;
}

static kiln_status build(kiln_device *device) {
    binary = NULL;
    return device->backend->build(device, &binary, &bytes, "source", "-DA=1  -DB=2");
}

static kiln_status load(kiln_device *device) {
    module = function = NULL;
    return device->backend->load(device, &module, &function, binary, bytes, "kernel", "");
}

static kiln_status launch(kiln_device *device) {
    const struct ki_arg arg = {.size = 8, .as.f64 = 2.5};
    int64_t groups = 0;
    kiln_status status = device->backend->resident(device, &groups, function, 64);
    if (status == KILN_OK) status = device->backend->resident_with(device, &groups, function, 64, 100000);
    if (status != KILN_OK) return status;
    return device->backend->launch(device, function, 7, 64, false, &arg, 1);
}

static struct run scenario(void) {
    struct run run = {.status = KILN_OK};
    kiln_device *device = NULL;
    run.status = kiln_device_open(&device, "cuda", NULL);
    if (run.status != KILN_OK) {
        assert_null(device);
        return run;
    }
    on(device, &run, USE, use);
    if (!device->lost && on(device, &run, BUILD, build) == KILN_OK) {
        if (!device->lost && on(device, &run, LOAD, load) == KILN_OK) on(device, &run, USE, launch);
    }
    if (device->lost) {
        int calls = driver->calls;
        assert_fails(KILN_ERR_DEVICE_LOST, kiln_device_sync(device));
        assert_fails(KILN_ERR_DEVICE_LOST, ki_device_alloc(device, &(struct ki_buffer){0}, 8));
        assert_int_equal(driver->calls, calls);
    }
    if (function && !device->lost) device->backend->unload(device, module, function);
    module = function = NULL;
    if (is_pinned && !device->lost) device->backend->unpin(device, pinned);
    is_pinned = false;
    ki_free(binary);
    binary = NULL;
    ki_device_release(device, &buffer);
    run.lost = device->lost;
    int calls = driver->calls;
    bool lost = device->lost;
    kiln_device_close(device);
    if (lost) assert_int_equal(driver->calls, calls);
    return run;
}

static void reset(void) {
    *driver = (struct stub){0};
    *compiler = (struct stub){0};
    bytes = 0;
    buffer = (struct ki_buffer){0};
}

static void test_no_fault(void **state) {
    (void)state;
    reset();
    struct run run = scenario();
    assert_int_equal(run.status, KILN_OK);
    assert_false(run.lost);
    assert_int_equal(driver->live, 0);
    assert_int_equal(compiler->live, 0);
    assert_int_equal(driver->groups, 7);
    assert_int_equal(driver->group_size, 64);
    assert_true(driver->first_argument == 2.5);
}

static kiln_status expected_of(enum stage stage, int code) {
    if (ki_cuda_classify(code) == KI_CUDA_NO_MEMORY) return KILN_ERR_DEVICE_NOMEM;
    if (stage == OPEN) return KILN_ERR_DEVICE;
    if (ki_cuda_classify(code) == KI_CUDA_FATAL) return KILN_ERR_DEVICE_LOST;
    return stage == LOAD ? KILN_ERR_BUILD : KILN_ERR_DEVICE;
}

static bool silent(const char *call) {
    static const char *const calls[] = {"cuMemFree_v2",        "cuModuleUnload",
                                        "cuStreamDestroy_v2",  "cuEventDestroy_v2",
                                        "cuMemHostUnregister", "cuDevicePrimaryCtxRelease_v2"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i], call) == 0) return true;
    return false;
}

/* Calls of the driver that fail while the device is freed have nobody to tell. */
static void check_driver_fault(int at, int code, int sticky, int last_told) {
    reset();
    driver->fail_at = at;
    driver->code = code;
    driver->sticky = sticky;
    struct run run = scenario();
    assert_non_null(driver->last_failed);
    if (at > last_told) {
        assert_int_equal(run.status, KILN_OK);
    } else {
        kiln_status want = expected_of(run.failed, code);
        /* The context is entered before each load; a refusal there is no fault of the binary. */
        if (want == KILN_ERR_BUILD && run.status == KILN_ERR_DEVICE) want = KILN_ERR_DEVICE;
        if (run.status != want)
            fail_msg("call %d (%s) with code %d: %s, not %s", at, driver->last_failed, code,
                     kiln_status_name(run.status), kiln_status_name(want));
    }
    if (run.status == KILN_ERR_DEVICE_LOST) assert_true(run.lost);
}

static void test_driver_faults(void **state) {
    (void)state;
    static const int codes[] = {1,   2,   4,   46,  100, 200, 214, 220, 226, 500, 700, 702,
                                710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999, 31337};
    reset();
    scenario();
    const int calls = driver->calls;
    assert_true(calls > 25);
    /* The launch is the last call that is told about; what follows frees. */
    int last_told = 0;
    for (int at = 1; at <= calls; at++) {
        reset();
        driver->fail_at = at;
        driver->code = 1;
        if (scenario().status != KILN_OK) last_told = at;
        assert_true(at <= last_told || silent(driver->last_failed) ||
                    !strcmp(driver->last_failed, "cuCtxSetCurrent"));
    }
    for (int at = 1; at <= calls; at++)
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            for (int sticky = 0; sticky < 2; sticky++) check_driver_fault(at, codes[c], sticky, last_told);
}

static void test_compiler_faults(void **state) {
    (void)state;
    static const int codes[] = {1, 2, 4, 5, 6, 7, 11, 17};
    reset();
    scenario();
    const int calls = compiler->calls;
    assert_true(calls >= 7);
    for (int at = 1; at <= calls; at++)
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            for (int sticky = 0; sticky < 2; sticky++) {
                reset();
                compiler->fail_at = at;
                compiler->code = codes[c];
                compiler->sticky = sticky;
                struct run run = scenario();
                if (at == calls) /* nvrtcDestroyProgram: the kernel is made */
                    assert_int_equal(run.status, KILN_OK);
                else if (run.status != KILN_ERR_BUILD && run.status != KILN_ERR_DEVICE &&
                         run.status != KILN_ERR_NOMEM)
                    fail_msg("%s with code %d: %s", compiler->last_failed, codes[c],
                             kiln_status_name(run.status));
                assert_false(run.lost);
                assert_int_equal(driver->live, 0);
                assert_int_equal(compiler->live, 0);
            }
}

static void test_out_of_memory_says_how_much(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda:1", NULL), KILN_OK);
    assert_string_equal(device->info.name, "cuda:1");
    assert_string_equal(device->info.description, "Stub 1, CUDA 13.0 driver, NVRTC 13.0");
    struct ki_buffer none = {0};
    driver->fail_at = driver->calls + 2; /* the first makes the context current */
    driver->code = 2;
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_device_alloc(device, &none, 4096));
    assert_contains(kiln_last_error()->message, "4096 bytes needed, 12345 of 1073741824 free");
    assert_string_equal(kiln_last_error()->subsystem, "cuda");
    assert_int_equal(kiln_last_error()->native_code, 2);
    assert_int_equal(none.handle, 0);
    assert_int_equal(ki_device_alloc(device, &none, 4096), KILN_OK);
    ki_device_release(device, &none);
    kiln_device_close(device);
}

static void test_build_log_and_bad_binary(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda", NULL), KILN_OK);
    assert_fails(KILN_ERR_BUILD, device->backend->build(device, &binary, &bytes, "#error", ""));
    assert_contains(kiln_last_error()->message, "#error directive: stub");
    assert_int_equal(kiln_last_error()->native_code, 6);
    assert_fails(KILN_ERR_BUILD,
                 device->backend->load(device, &module, &function, "garbage", 8, "kernel", ""));
    assert_fails(KILN_ERR_BUILD, device->backend->load(device, &module, &function, "CUBIN", 6, "absent", ""));
    assert_fails(KILN_ERR_LIMIT, device->backend->launch(device, NULL, (int64_t)1 << 31, 64, false, NULL, 0));
    kiln_device_close(device);
    assert_int_equal(driver->live, 0);
}

/* Groups that wait for each other are started together, or the launch is refused: the stub runs four units of
 * 2,048 threads. */
static void test_launch_together(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    const struct ki_arg arg = {.size = 8, .as.f64 = 2.5};
    assert_int_equal(kiln_device_open(&device, "cuda:1", NULL), KILN_OK);
    assert_int_equal(build(device), KILN_OK);
    assert_int_equal(load(device), KILN_OK);
    assert_int_equal(device->backend->launch(device, function, 16, 512, true, &arg, 1), KILN_OK);
    assert_int_equal(driver->together, 1);
    assert_int_equal(device->backend->launch(device, function, 17, 512, false, &arg, 1), KILN_OK);
    assert_int_equal(driver->together, 0);
    assert_fails(KILN_ERR_DEVICE, device->backend->launch(device, function, 17, 512, true, &arg, 1));
    assert_contains(kiln_last_error()->message, "17 work-groups of 512 threads wait for each other");
    assert_int_equal(kiln_last_error()->native_code, 720);
    assert_false(device->lost);
    device->backend->unload(device, module, function);
    ki_free(binary);
    kiln_device_close(device);
}

/* A pass over a group does this between its members: there and back, each after what the other has been
 * given. */
static kiln_status between_members(kiln_device *first) {
    const char text[16] = "fifteen letters";
    char back[16] = "";
    struct ki_buffer from = {0}, to = {0};
    kiln_device *second = first->group->member[1];
    kiln_status status;
    TRY(ki_device_alloc(first, &from, sizeof text));
    TRY(ki_device_alloc(second, &to, sizeof text));
    TRY(ki_device_upload(first, &from, 0, text, sizeof text));
    TRY(ki_device_after(second, first));
    TRY(ki_device_copy(second, second, &to, 8, first, &from, 0, 8));
    TRY(ki_device_copy(first, second, &to, 0, first, &from, 8, 8));
    TRY(ki_device_after(first, second));
    TRY(ki_device_copy(first, first, &from, 0, second, &to, 0, 16));
    TRY(ki_device_download(first, back, &from, 0, sizeof back));
    assert_memory_equal(back, "letters", 8);
    assert_memory_equal(back + 8, "fifteen ", 8);
done:
    ki_device_release(first, &from);
    ki_device_release(second, &to);
    return status;
}

static kiln_status group_scenario(const char *name, bool *lost) {
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, name, NULL);
    *lost = status == KILN_ERR_DEVICE_LOST;
    if (status != KILN_OK) return status;
    assert_string_equal(device->info.name, name);
    status = between_members(device);
    *lost = device->lost || device->group->member[1]->lost;
    if (*lost) assert_fails(KILN_ERR_DEVICE_LOST, ki_group_alive(device));
    kiln_device_close(device);
    return status;
}

static void test_group(void **state) {
    (void)state;
    static const char *const names[] = {"cuda:0,1", "cuda:all", "cuda:1*2"};
    static const int codes[] = {1, 2, 217, 700, 999};
    bool lost;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        reset();
        assert_int_equal(group_scenario(names[n], &lost), KILN_OK);
        assert_int_equal(driver->live, 0);
        const int calls = n == 1 ? 0 : driver->calls; /* the list of all is test_list's */
        for (int at = 1; at <= calls; at++)
            for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
                reset();
                driver->fail_at = at;
                driver->code = codes[c];
                const kiln_status status = group_scenario(names[n], &lost);
                const char *call = driver->last_failed;
                /* A refusal of direct reads leaves the way through the driver; who frees has nobody to
                 * tell. */
                const bool frees = silent(call) || !strcmp(call, "cuCtxSetCurrent");
                const bool refused = !strcmp(call, "cuCtxEnablePeerAccess") && codes[c] < 700;
                if (status == KILN_OK && !frees && !refused)
                    fail_msg("%s with code %d went unseen", call, codes[c]);
                if (!lost && !frees && driver->live != 0)
                    fail_msg("%s with code %d left %d things behind", call, codes[c], (int)driver->live);
            }
    }
}

static void test_names(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_fails(KILN_ERR_DEVICE, kiln_device_open(&device, "cuda:2", NULL));
    assert_contains(kiln_last_error()->message, "2 CUDA devices");
    assert_contains(kiln_last_error()->hint, "kiln devices");
    assert_fails(KILN_ERR_ARGUMENT, kiln_device_open(&device, "cuda:x", NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_device_open(&device, "cuda:-1", NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_device_open(&device, "cuda:1x", NULL));
}

static void test_list(void **state) {
    (void)state;
    reset();
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    assert_int_equal(ki_backend_cuda.list(&infos, &count), KILN_OK);
    assert_int_equal(count, 2);
    assert_string_equal(infos[1].name, "cuda:1");
    assert_true(infos[0].usable && infos[0].is_gpu && infos[0].memory == (int64_t)1 << 30 &&
                infos[0].threads == 4);
    kiln_free(infos);
    const int calls = driver->calls;
    for (int at = 1; at <= calls; at++) {
        reset();
        driver->fail_at = at;
        driver->code = 999;
        infos = NULL;
        count = 0;
        assert_int_equal(ki_backend_cuda.list(&infos, &count), KILN_OK);
        assert_true(count >= 1);
        int unusable = 0;
        for (int64_t i = 0; i < count; i++)
            if (!infos[i].usable) unusable += infos[i].reason[0] && infos[i].hint[0];
        assert_int_equal(unusable, 1);
        kiln_free(infos);
    }
}

/* cuInit and nvrtcVersion are called once in a process. */
static void test_first_calls(void **state) {
    (void)state;
    static const struct {
        int driver_code, compiler_code;
        kiln_status status;
    } cases[] = {{1, 0, KILN_ERR_DEVICE},   {2, 0, KILN_ERR_DEVICE_NOMEM}, {36, 0, KILN_ERR_DEVICE},
                 {100, 0, KILN_ERR_DEVICE}, {700, 0, KILN_ERR_DEVICE},     {803, 0, KILN_ERR_DEVICE},
                 {999, 0, KILN_ERR_DEVICE}, {0, 11, KILN_ERR_DEVICE},      {0, 0, KILN_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            kiln_device *device = NULL;
            reset();
            driver->fail_at = cases[i].driver_code != 0;
            driver->code = cases[i].driver_code;
            compiler->fail_at = cases[i].compiler_code != 0;
            compiler->code = cases[i].compiler_code;
            kiln_status first = kiln_device_open(&device, "cuda", NULL);
            kiln_device_close(device);
            device = NULL;
            /* It is remembered, and "auto" finds another. */
            kiln_status second = kiln_device_open(&device, "cuda", NULL);
            kiln_device_close(device);
            device = NULL;
            kiln_status other = kiln_device_open(&device, "auto", NULL);
            kiln_device_close(device);
            _exit(first == second && other == KILN_OK ? (int)first : 100);
        }
        int exit_status;
        assert_int_equal(waitpid(child, &exit_status, 0), child);
        assert_true(WIFEXITED(exit_status));
        assert_int_equal(WEXITSTATUS(exit_status), cases[i].status);
    }
}

/* Codes of cuda.h 13.0 that every reader of NVIDIA's documentation would sort this way. */
static void test_classes(void **state) {
    (void)state;
    static const int fatal[] = {226, 700, 702, 714, 715, 716, 717, 718,
                                719, 721, 810, 911, 710, 214, 220, 999};
    static const int configuration[] = {34,  36,  46,  100, 209, 221, 222, 800, 801,
                                        802, 803, 804, 805, 806, 807, 808, 809};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        assert_int_equal(ki_cuda_classify(fatal[i]), KI_CUDA_FATAL);
    for (size_t i = 0; i < sizeof configuration / sizeof *configuration; i++)
        assert_int_equal(ki_cuda_classify(configuration[i]), KI_CUDA_CONFIGURATION);
    assert_int_equal(ki_cuda_classify(1), KI_CUDA_REFUSED);
    assert_int_equal(ki_cuda_classify(2), KI_CUDA_NO_MEMORY);
    assert_int_equal(ki_cuda_classify(31337), KI_CUDA_FATAL);
}

int main(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW);
    driver = cuda ? dlsym(cuda, "stub_cuda") : NULL;
    compiler = nvrtc ? dlsym(nvrtc, "stub_nvrtc") : NULL;
    if (!driver || !compiler) {
        fprintf(stderr, "the stub libraries must come first on LD_LIBRARY_PATH\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_calls), /* forks before anything is loaded */
        cmocka_unit_test(test_no_fault),
        cmocka_unit_test(test_driver_faults),
        cmocka_unit_test(test_compiler_faults),
        cmocka_unit_test(test_out_of_memory_says_how_much),
        cmocka_unit_test(test_build_log_and_bad_binary),
        cmocka_unit_test(test_launch_together),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
