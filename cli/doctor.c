/* kiln doctor: what was found, what is missing and how to get it, and whether each device computes right.
 *
 * A driver that crashes or hangs must not take the report with it: each device is examined in a child
 * process (child.h), which writes into memory that it shares with this one. No driver is loaded here. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "device_list.h"
#include "selftest.h"
#include "verbs.h"
#include "wording.h"

/* Kernels are built for so many seconds, and what has been built is kept: the next run gets further. */
enum { PROBES_MOST = 64, BUILDING_SECONDS = 7 };

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
    struct child child;
    struct run *run;
    struct examination exams[DEVICES_MOST];
    int64_t count, number; /* the exam that is under way */
    kiln_probe probes[PROBES_MOST];
    int64_t probe_count;
};

static void note_problem(struct examination *exam) {
    if (!*exam->problem) wording(exam->problem, sizeof exam->problem, kiln_last_error()->message);
}

/* ----------------------------------------------------------------------------------- in a child */

static kiln_status probe_machine(void *shared) {
    struct findings *found = shared;
    kiln_probe *probes = NULL;
    int64_t count = 0;
    const kiln_status status = kiln_probe_machine(&probes, &count, sizeof *probes);
    for (int64_t i = 0; status == KILN_OK && i < count && i < PROBES_MOST; i++)
        found->probes[found->probe_count++] = probes[i];
    kiln_free(probes);
    return status;
}

static const char *format_name(kiln_format format) {
    return format == KILN_CSR ? "sparse" : "dense";
}

/* Whether kernels have been built for as long as they may. */
static bool built_enough(const struct findings *found, const kiln_device *device, double began) {
    const double given = found->run->settings->time_limit;
    kiln_device_statistics done = {0};
    kiln_device_get_statistics(device, &done);
    return done.kernels_built > 0 && clock_seconds() - began > (given > 0 ? given : BUILDING_SECONDS);
}

/* A device without f64 is not ill, as long as f32 is right. */
static void run_tests(struct findings *found, struct examination *exam, kiln_device *device) {
    const double began = clock_seconds();
    exam->healthy = true;
    talk_doing("examine the device");
    for (int i = 0; i < selftest_count() && !built_enough(found, device, began); i++) {
        struct selftest *test = &exam->tests[i];
        *test = selftest_named(i);
        child_step(&found->child, "%s %s %s was checked", test->says, type_name(test->type),
                   format_name(test->format));
        *test = selftest_run(device, i);
        exam->done++;
        if (test->status == KILN_ERR_UNSUPPORTED && test->type == KILN_F64) continue;
        if (test->status != KILN_OK) note_problem(exam);
        if (!selftest_passed(test)) exam->healthy = false;
    }
    child_step(&found->child, "its bandwidth was measured");
    if (kiln_device_bandwidth(&exam->bandwidth, device, 1) != KILN_OK) {
        note_problem(exam);
        exam->healthy = false;
    }
}

/* A device that does not open is an error where --device names it, else a finding. */
static kiln_status examine(void *shared) {
    struct findings *found = shared;
    struct examination *exam = &found->exams[found->number];
    const struct settings *settings = found->run->settings;
    const kiln_device_options options = {.threads = (int)settings->threads, .memory = settings->memory};
    kiln_device *device = NULL;
    child_step(&found->child, "it was opened");
    const kiln_status status = kiln_device_open(&device, exam->info.name, &options);
    if (status != KILN_OK) {
        note_problem(exam);
        return settings->device ? status : KILN_OK;
    }
    kiln_device_get_info(device, &exam->info);
    exam->info.usable = 1;
    run_tests(found, exam, device);
    child_step(&found->child, "it was closed");
    kiln_device_close(device);
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------ in parent */

/* A time limit that is not given is that of a step, which may have to build a kernel. */
static double seconds_of(const struct findings *found) {
    const double given = found->run->settings->time_limit;
    return given > 0 ? given : DRIVER_SECONDS;
}

static int examine_one(struct findings *found, int64_t number) {
    struct examination *exam = &found->exams[number];
    char fate[FATE_ROOM];
    exam->examined = true;
    found->number = number;
    say("examining %s by %d small problems; a kernel that is not built yet takes a driver some time ...",
        exam->info.name, selftest_count());
    if (!child_run(fate, &found->child, seconds_of(found), examine)) {
        snprintf(exam->problem, sizeof exam->problem, "%s", fate);
        exam->healthy = false;
        return 0;
    }
    if (found->child.status == KILN_OK) return 0;
    return fail_with(found->child.status, WORKING, found->child.hint, "%s", found->child.message);
}

static int list_devices(struct findings *found) {
    struct listing *listing = malloc(sizeof *listing);
    if (!listing) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    const int code = listing_make(found->run, listing);
    for (int64_t i = 0; !code && i < listing->count; i++) {
        found->exams[i].info = listing->rows[i].info;
        found->exams[i].examined = listing->rows[i].failed;
        found->count++;
    }
    free(listing);
    return code;
}

/* The device that --device names, or all of them. */
static int examine_devices(struct findings *found) {
    if (found->run->settings->device) {
        found->count = 1;
        snprintf(found->exams[0].info.name, sizeof found->exams[0].info.name, "%s",
                 found->run->settings->device);
        found->exams[0].info.usable = 1;
        return examine_one(found, 0);
    }
    int code = list_devices(found);
    for (int64_t i = 0; !code && i < found->count; i++)
        if (found->exams[i].info.usable) code = examine_one(found, i);
    return code;
}

static int look_for_libraries(struct findings *found) {
    char fate[FATE_ROOM];
    child_step(&found->child, "libraries were looked for");
    if (child_run(fate, &found->child, seconds_of(found), probe_machine)) {
        if (found->child.status == KILN_OK) return 0;
        return fail_with(found->child.status, WORKING, found->child.hint, "%s", found->child.message);
    }
    kiln_probe *row = &found->probes[0];
    found->probe_count = 1;
    *row = (kiln_probe){.what = "libraries"};
    snprintf(row->detail, sizeof row->detail, "%.250s", fate);
    return 0;
}

/* -------------------------------------------------------------------------------------- results */

static void put_probe(struct result *row, const void *of, int64_t i) {
    const kiln_probe *probe = &((const struct findings *)of)->probes[i];
    PUT(row, "found", FLAG(probe->found), .label = "", .before = "  ", .width = -8,
        .shown = probe->found ? "found" : "missing");
    PUT(row, "what", TEXT(probe->what), .label = "", .width = -18);
    PUT(row, "detail", TEXT(probe->detail), .label = "",
        .after = *probe->hint ? result_words(row, "\n  %27s hint: %s", "", probe->hint) : NULL);
    PUT(row, "hint", TEXT(*probe->hint ? probe->hint : NULL));
}

static const char *outcome(struct result *row, const struct selftest *test) {
    if (test->status == KILN_ERR_UNSUPPORTED) return "not supported by this device";
    if (test->status != KILN_OK) return result_words(row, "FAILED: %s", kiln_status_text(test->status));
    return result_words(row, "%s, error %.1e of %.1e that rounding may cause",
                        selftest_passed(test) ? "right" : "WRONG", test->error, test->allowed);
}

/* People see those that did not pass, or with --verbose each. */
static void put_test(struct result *row, const void *of, int64_t i) {
    const struct selftest *test = &((const struct examination *)of)->tests[i];
    const bool good = selftest_passed(test) || test->status == KILN_ERR_UNSUPPORTED;
    const char *label = talk_verbose() || !good ? "" : NULL;
    PUT(row, NULL, TEXT(test->says), .label = label, .before = "    ", .width = -12);
    PUT(row, "operation", TEXT(test->operation));
    PUT(row, "type", TEXT(type_name(test->type)), .label = label);
    PUT(row, "format", TEXT(format_name(test->format)), .label = label, .width = -6);
    PUT(row, "status", TEXT(kiln_status_name(test->status)), .label = label, .before = "  ",
        .shown = outcome(row, test));
    PUT(row, "passed", FLAG(selftest_passed(test)));
    PUT(row, "error", NUMBER(test->status == KILN_OK ? test->error : (double)NAN));
    PUT(row, "allowed", NUMBER(test->allowed));
}

static void put_counts(struct result *row, const struct examination *exam) {
    int right = 0, unsupported = 0;
    for (int i = 0; i < exam->done; i++) {
        right += selftest_passed(&exam->tests[i]);
        unsupported += exam->tests[i].status == KILN_ERR_UNSUPPORTED;
    }
    PUT_LINE(row, "    right     %d of %d small problems, one for each kind of kernel in f32 and f64", right,
             exam->done);
    if (exam->done < selftest_count() && !*exam->problem)
        PUT_LINE(row,
                 "    left      %d, whose kernels take longer to build: the next run goes on with them, with "
                 "--time-limit 600 this one",
                 selftest_count() - exam->done);
    if (unsupported) PUT_LINE(row, "    lacks     what %d of them need", unsupported);
}

static void put_examination(struct result *row, const void *of, int64_t i) {
    const struct examination *exam = &((const struct findings *)of)->exams[i];
    const kiln_device_info *info = &exam->info;
    const bool usable = info->usable, fast = exam->bandwidth > 0;
    if (usable)
        PUT_LINE(row, "  %s: %s, %s", info->name, info->description, text_bytes((double)info->memory));
    else
        PUT_LINE(row, "  %s: not usable: %s", info->name, *info->reason ? info->reason : info->description);
    PUT(row, "name", TEXT(info->name));
    PUT(row, "description", TEXT(info->description));
    PUT(row, "usable", FLAG(usable));
    PUT(row, "reason", TEXT(*info->reason ? info->reason : NULL));
    PUT(row, "hint", TEXT(*info->hint ? info->hint : NULL),
        .head = !usable && *info->hint ? "    hint: " : NULL);
    PUT(row, "tests", TABLE(exam->done, put_test, exam), .lines = true);
    if (usable) put_counts(row, exam);
    PUT(row, "bytes_per_second", NUMBER(fast ? exam->bandwidth : (double)NAN),
        .head = fast ? "    bandwidth " : NULL,
        .shown = result_words(row, "%s/s read", text_bytes(exam->bandwidth)));
    PUT(row, "healthy", .kind = exam->examined ? ROW_FLAG : ROW_NONE, .count = exam->healthy);
    PUT(row, "problem", TEXT(*exam->problem ? exam->problem : NULL),
        .head = usable && *exam->problem ? "    PROBLEM   " : NULL);
}

static int tell(struct run *run, const struct findings *found) {
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.doctor/1");
    PUT_LINE(&result, "kiln %s", kiln_version());
    PUT_LINE(&result, "%s", "");
    PUT(&result, "machine", TABLE(found->probe_count, put_probe, found),
        .head = "Looked for on this machine");
    PUT_LINE(&result, "%s", "");
    PUT(&result, "devices", TABLE(found->count, put_examination, found), .head = "Devices, best first");
    return run_tell(run, &result);
}

int verb_doctor(struct run *run) {
    struct findings *found = child_share(sizeof *found);
    if (!found) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    found->run = run;
    int code = examine_devices(found);
    if (!code) code = look_for_libraries(found);
    if (!code) code = tell(run, found);
    for (int64_t i = 0; !code && i < found->count; i++)
        if (found->exams[i].examined && !found->exams[i].healthy)
            code = exit_code(KILN_ERR_INTERNAL, WORKING);
    child_unshare(found, sizeof *found);
    return code;
}
