/* kiln doctor: what was found, what is missing and how to get it, and whether each device computes right.
 *
 * A driver that crashes must not take the report with it: devices are listed in one child process and each
 * is examined in one of its own, which writes into memory that it shares with this one. They are forked
 * before any driver is loaded here. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"
#include "selftest.h"
#include "verbs.h"
#include "wording.h"

enum { DEVICES_MOST = 256, PROBES_MOST = 64 };

struct examination {
    kiln_device_info info;
    struct selftest tests[SELFTESTS_MOST];
    int done;          /* tests */
    double bandwidth;  /* bytes per second; 0 = not measured */
    char problem[400]; /* why the device did not open, or what failed */
    bool examined, healthy;
};

/* Children write this. */
struct findings {
    struct examination exams[DEVICES_MOST];
    int64_t count;
    kiln_probe probes[PROBES_MOST];
    int64_t probe_count;
    char doing[120]; /* what a child is about, for "while %s" */
    bool finished;   /* the child came to its end */
};

static void note_problem(struct examination *exam) {
    if (!*exam->problem) wording(exam->problem, sizeof exam->problem, kiln_last_error()->message);
}

/* ----------------------------------------------------------------------------------- in a child */

static int list_devices(struct run *run, struct findings *found, int64_t number) {
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    (void)run;
    (void)number;
    if (kiln_device_list(&infos, &count, sizeof *infos) != KILN_OK) return fail_library(WORKING);
    if (count > DEVICES_MOST)
        return fail_with(KILN_ERR_LIMIT, WORKING, "--device examines one of them",
                         "%lld devices, but doctor examines %d at most", (long long)count, DEVICES_MOST);
    for (int64_t i = 0; i < count; i++) found->exams[i].info = infos[i];
    found->count = count;
    kiln_free(infos);
    return EXIT_DONE;
}

static int probe_machine(struct run *run, struct findings *found, int64_t number) {
    kiln_probe *probes = NULL;
    int64_t count = 0;
    (void)run;
    (void)number;
    if (kiln_probe_machine(&probes, &count, sizeof *probes) != KILN_OK) return fail_library(WORKING);
    for (int64_t i = 0; i < count && i < PROBES_MOST; i++) found->probes[found->probe_count++] = probes[i];
    kiln_free(probes);
    return EXIT_DONE;
}

static const char *format_name(kiln_format format) {
    return format == KILN_CSR ? "sparse" : "dense";
}

/* A device without f64 is not ill, as long as f32 is right. */
static void examine(struct findings *found, struct examination *exam, kiln_device *device) {
    exam->healthy = true;
    talk_doing("examine the device");
    for (int i = 0; i < selftest_count(); i++) {
        struct selftest *test = &exam->tests[i];
        *test = selftest_named(i);
        snprintf(found->doing, sizeof found->doing, "%s %s %s was checked", test->says, type_name(test->type),
                 format_name(test->format));
        *test = selftest_run(device, i);
        exam->done++;
        if (test->status == KILN_ERR_UNSUPPORTED && test->type == KILN_F64) continue;
        if (test->status != KILN_OK) note_problem(exam);
        if (!selftest_passed(test)) exam->healthy = false;
    }
    snprintf(found->doing, sizeof found->doing, "its bandwidth was measured");
    if (kiln_device_bandwidth(&exam->bandwidth, device, 1) != KILN_OK) {
        note_problem(exam);
        exam->healthy = false;
    }
}

/* The device that --device names: that it does not open is an error, not a finding. */
static int examine_named(struct run *run, struct findings *found, int64_t number) {
    struct examination *exam = &found->exams[number];
    snprintf(found->doing, sizeof found->doing, "it was opened");
    const int code = run_open_device(run, "auto");
    if (code) return code;
    exam->info = run->device_info;
    exam->info.usable = 1;
    examine(found, exam, run->device);
    snprintf(found->doing, sizeof found->doing, "it was closed");
    kiln_device_close(run->device);
    return EXIT_DONE;
}

static int examine_listed(struct run *run, struct findings *found, int64_t number) {
    struct examination *exam = &found->exams[number];
    kiln_device *device = NULL;
    const kiln_device_options options = {.threads = (int)run->settings->threads,
                                         .memory = run->settings->memory};
    say("examining %s ...", exam->info.name);
    snprintf(found->doing, sizeof found->doing, "it was opened");
    if (kiln_device_open(&device, exam->info.name, &options) != KILN_OK) {
        note_problem(exam);
        return EXIT_DONE;
    }
    kiln_device_get_info(device, &exam->info);
    exam->info.usable = 1;
    examine(found, exam, device);
    snprintf(found->doing, sizeof found->doing, "it was closed");
    kiln_device_close(device);
    return EXIT_DONE;
}

/* ------------------------------------------------------------------------------------ in parent */

/* Work in a child of its own: its exit code, or 0 with `fate`, how it ended, where it did not come to its
 * end. */
static int in_child(struct run *run, struct findings *found, int64_t number,
                    int (*work)(struct run *run, struct findings *found, int64_t number), char *fate,
                    size_t room) {
    int state = 0;
    *fate = '\0';
    found->finished = false;
    fflush(NULL);
    const pid_t parent = getpid(), child = fork();
    if (child < 0)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "cannot start a process: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(EXIT_INTERRUPTED);
        dup2(STDERR_FILENO, STDOUT_FILENO); /* what a driver prints is no part of the result */
        const int code = work(run, found, number);
        found->finished = true;
        fflush(NULL);
        _exit(code);
    }
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (found->finished && WIFEXITED(state)) return WEXITSTATUS(state);
    if (WIFEXITED(state) && WEXITSTATUS(state) == EXIT_INTERRUPTED) return EXIT_INTERRUPTED;
    if (WIFSIGNALED(state))
        snprintf(fate, room, "its driver aborted (signal %d, %s) while %s", WTERMSIG(state),
                 strsignal(WTERMSIG(state)), found->doing);
    else
        snprintf(fate, room, "its driver ended the process (exit code %d) while %s", WEXITSTATUS(state),
                 found->doing);
    return 0;
}

static int examine_one(struct run *run, struct findings *found, int64_t number) {
    struct examination *exam = &found->exams[number];
    char fate[400];
    exam->examined = true;
    const int code = in_child(run, found, number, run->settings->device ? examine_named : examine_listed,
                              fate, sizeof fate);
    if (!*fate) return code;
    snprintf(exam->problem, sizeof exam->problem, "%s", fate);
    exam->healthy = false;
    return 0;
}

/* The processor is there, whatever ends the search for others, of which one row tells. */
static void list_processor(struct findings *found, const char *fate) {
    kiln_device_info *cpu = &found->exams[0].info, *others = &found->exams[1].info;
    found->count = 2;
    snprintf(cpu->name, sizeof cpu->name, "cpu");
    cpu->usable = 1;
    *others = (kiln_device_info){.name = "others", .hint = "--device examines one device without the others"};
    snprintf(others->reason, sizeof others->reason, "%s", fate);
    found->exams[1].examined = true;
}

/* The device that --device names, or all of them. */
static int examine_devices(struct run *run, struct findings *found) {
    int code = 0;
    char fate[400];
    if (run->settings->device) {
        found->count = 1;
        snprintf(found->exams[0].info.name, sizeof found->exams[0].info.name, "%s", run->settings->device);
        found->exams[0].info.usable = 1;
        return examine_one(run, found, 0);
    }
    snprintf(found->doing, sizeof found->doing, "devices were listed");
    code = in_child(run, found, 0, list_devices, fate, sizeof fate);
    if (*fate) list_processor(found, fate);
    for (int64_t i = 0; !code && i < found->count; i++)
        if (found->exams[i].info.usable) code = examine_one(run, found, i);
    return code;
}

static int look_for_libraries(struct run *run, struct findings *found) {
    char fate[400];
    snprintf(found->doing, sizeof found->doing, "libraries were looked for");
    const int code = in_child(run, found, 0, probe_machine, fate, sizeof fate);
    if (!*fate) return code;
    kiln_probe *row = &found->probes[0];
    found->probe_count = 1;
    *row = (kiln_probe){.what = "libraries"};
    snprintf(row->detail, sizeof row->detail, "%.250s", fate);
    return 0;
}

/* -------------------------------------------------------------------------------------- results */

static void print_probe(const kiln_probe *probe) {
    printf("  %-8s %-18s %s\n", probe->found ? "found" : "missing", probe->what, probe->detail);
    if (*probe->hint) printf("  %27s hint: %s\n", "", probe->hint);
}

static void print_test(const struct selftest *test) {
    printf("    %-12s %s %-6s  ", test->says, type_name(test->type), format_name(test->format));
    if (test->status == KILN_ERR_UNSUPPORTED)
        printf("not supported by this device\n");
    else if (test->status != KILN_OK)
        printf("FAILED: %s\n", kiln_status_text(test->status));
    else
        printf("%s, error %.1e of %.1e that rounding may cause\n", selftest_passed(test) ? "right" : "WRONG",
               test->error, test->allowed);
}

/* Each test that did not pass, or with --verbose each; and how many did. */
static void print_tests(const struct examination *exam) {
    int right = 0, unsupported = 0;
    for (int i = 0; i < exam->done; i++) {
        const struct selftest *test = &exam->tests[i];
        const bool passed = selftest_passed(test), lacks = test->status == KILN_ERR_UNSUPPORTED;
        right += passed;
        unsupported += lacks;
        if (talk_verbose() || !(passed || lacks)) print_test(test);
    }
    printf("    right     %d of %d small problems, one for each kind of kernel in f32 and f64\n", right,
           selftest_count());
    if (unsupported) printf("    lacks     what %d of them need\n", unsupported);
}

static void print_examination(const struct examination *exam) {
    const kiln_device_info *info = &exam->info;
    if (!info->usable) {
        printf("  %s: not usable: %s\n", info->name, *info->reason ? info->reason : info->description);
        if (*info->hint) printf("    hint: %s\n", info->hint);
        return;
    }
    printf("  %s: %s, %s\n", info->name, info->description, text_bytes((double)info->memory));
    print_tests(exam);
    if (exam->bandwidth > 0) printf("    bandwidth %s/s read\n", text_bytes(exam->bandwidth));
    if (*exam->problem) printf("    PROBLEM   %s\n", exam->problem);
}

static json_t *probe_json(const kiln_probe *probe) {
    json_t *object = json_object();
    json_put_text(object, "what", probe->what);
    json_put_flag(object, "found", probe->found);
    json_put_text(object, "detail", probe->detail);
    json_put_text(object, "hint", *probe->hint ? probe->hint : NULL);
    return object;
}

static json_t *examination_json(const struct examination *exam) {
    json_t *object = json_object(), *tests = json_array();
    json_put_text(object, "name", exam->info.name);
    json_put_text(object, "description", exam->info.description);
    json_put_flag(object, "usable", exam->info.usable);
    json_put_text(object, "reason", *exam->info.reason ? exam->info.reason : NULL);
    json_put_text(object, "hint", *exam->info.hint ? exam->info.hint : NULL);
    for (int i = 0; i < exam->done; i++) {
        const struct selftest *test = &exam->tests[i];
        json_t *row = json_object();
        json_put_text(row, "operation", test->operation);
        json_put_text(row, "type", type_name(test->type));
        json_put_text(row, "format", format_name(test->format));
        json_put_text(row, "status", kiln_status_name(test->status));
        json_put_flag(row, "passed", selftest_passed(test));
        json_put(row, "error", test->status == KILN_OK ? json_number_or_null(test->error) : json_null());
        json_put_number(row, "allowed", test->allowed);
        json_add(tests, row);
    }
    json_put(object, "tests", tests);
    json_put(object, "bytes_per_second", exam->bandwidth > 0 ? json_real(exam->bandwidth) : json_null());
    json_put(object, "healthy", exam->examined ? json_boolean(exam->healthy) : json_null());
    json_put_text(object, "problem", *exam->problem ? exam->problem : NULL);
    return object;
}

static int tell(struct run *run, const struct findings *found) {
    if (talk_json()) {
        json_t *object = run_json(run, "kiln.doctor/1"), *machine = json_array(), *devices = json_array();
        for (int64_t i = 0; i < found->probe_count; i++) json_add(machine, probe_json(&found->probes[i]));
        for (int64_t i = 0; i < found->count; i++) json_add(devices, examination_json(&found->exams[i]));
        json_put(object, "machine", machine);
        json_put(object, "devices", devices);
        return json_print(object);
    }
    printf("kiln %s\n\nLooked for on this machine\n", kiln_version());
    for (int64_t i = 0; i < found->probe_count; i++) print_probe(&found->probes[i]);
    printf("\nDevices, best first\n");
    for (int64_t i = 0; i < found->count; i++) print_examination(&found->exams[i]);
    return EXIT_DONE;
}

int verb_doctor(struct run *run) {
    struct findings *found =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    int code = examine_devices(run, found);
    if (!code) code = look_for_libraries(run, found);
    if (!code) code = tell(run, found);
    for (int64_t i = 0; !code && i < found->count; i++)
        if (found->exams[i].examined && !found->exams[i].healthy)
            code = exit_code(KILN_ERR_INTERNAL, WORKING);
    munmap(found, sizeof *found);
    return code;
}
