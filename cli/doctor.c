/* kiln doctor: what was found, what is missing and how to get it, and whether each device computes right. */
#include <stdlib.h>

#include "common.h"
#include "selftest.h"
#include "verbs.h"
#include "wording.h"

struct examination {
    kiln_device_info info;
    struct selftest tests[SELFTESTS];
    double bandwidth;  /* bytes per second; 0 = not measured */
    char problem[400]; /* why the device did not open, or what failed */
    bool examined, healthy;
};

static void note_problem(struct examination *exam) {
    if (!*exam->problem) wording(exam->problem, sizeof exam->problem, kiln_last_error()->message);
}

/* A device without f64 is not ill, as long as f32 is right. */
static void examine(struct examination *exam, kiln_device *device) {
    exam->examined = exam->healthy = true;
    for (int i = 0; i < SELFTESTS; i++) {
        struct selftest *test = &exam->tests[i];
        *test = selftest_run(device, i);
        if (test->status == KILN_ERR_UNSUPPORTED && test->type == KILN_F64) continue;
        if (test->status != KILN_OK) note_problem(exam);
        if (!selftest_passed(test)) exam->healthy = false;
    }
    if (kiln_device_bandwidth(&exam->bandwidth, device, 1) != KILN_OK) {
        note_problem(exam);
        exam->healthy = false;
    }
}

/* Every usable device of the machine, each opened by its name. */
static void examine_all(struct run *run, struct examination *exams, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!exams[i].info.usable) continue;
        kiln_device *device = NULL;
        const kiln_device_options options = {.threads = (int)run->settings->threads,
                                             .memory = run->settings->memory};
        say("examining %s ...", exams[i].info.name);
        if (kiln_device_open(&device, exams[i].info.name, &options) != KILN_OK) {
            note_problem(&exams[i]);
            exams[i].examined = true;
            continue;
        }
        examine(&exams[i], device);
        kiln_device_close(device);
    }
}

static void print_probe(const kiln_probe *probe) {
    printf("  %-8s %-18s %s\n", probe->found ? "found" : "missing", probe->what, probe->detail);
    if (*probe->hint) printf("  %27s hint: %s\n", "", probe->hint);
}

static void print_test(const struct selftest *test) {
    printf("    %-9s %s %-6s  ", test->says, type_name(test->type),
           test->format == KILN_CSR ? "sparse" : "dense");
    if (test->status == KILN_ERR_UNSUPPORTED)
        printf("not supported by this device\n");
    else if (test->status != KILN_OK)
        printf("FAILED: %s\n", kiln_status_text(test->status));
    else
        printf("%s, error %.1e of %.1e that rounding may cause\n", selftest_passed(test) ? "right" : "WRONG",
               test->error, test->allowed);
}

static void print_examination(const struct examination *exam) {
    const kiln_device_info *info = &exam->info;
    if (!info->usable) {
        printf("  %s: not usable: %s\n", info->name, *info->reason ? info->reason : info->description);
        if (*info->hint) printf("    hint: %s\n", info->hint);
        return;
    }
    printf("  %s: %s, %s\n", info->name, info->description, text_bytes((double)info->memory));
    for (int i = 0; i < SELFTESTS && exam->tests[i].type; i++) print_test(&exam->tests[i]);
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
    for (int i = 0; i < SELFTESTS && exam->tests[i].type; i++) {
        const struct selftest *test = &exam->tests[i];
        json_t *row = json_object();
        json_put_text(row, "operation", test->operation);
        json_put_text(row, "type", type_name(test->type));
        json_put_text(row, "format", test->format == KILN_CSR ? "sparse" : "dense");
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

static int tell(struct run *run, const kiln_probe *probes, int64_t probe_count,
                const struct examination *exams, int64_t count) {
    if (talk_json()) {
        json_t *object = run_json(run, "kiln.doctor/1"), *machine = json_array(), *devices = json_array();
        for (int64_t i = 0; i < probe_count; i++) json_add(machine, probe_json(&probes[i]));
        for (int64_t i = 0; i < count; i++) json_add(devices, examination_json(&exams[i]));
        json_put(object, "machine", machine);
        json_put(object, "devices", devices);
        return json_print(object);
    }
    printf("kiln %s\n\nLooked for on this machine\n", kiln_version());
    for (int64_t i = 0; i < probe_count; i++) print_probe(&probes[i]);
    printf("\nDevices, best first\n");
    for (int64_t i = 0; i < count; i++) print_examination(&exams[i]);
    return EXIT_DONE;
}

/* The one that --device names, or all: *exams to free. */
static int examine_devices(struct run *run, struct examination **exams, int64_t *count) {
    kiln_device_info *infos = NULL;
    int code = 0;
    *count = 1;
    if (run->settings->device && (code = run_open_device(run, "auto"))) return code;
    if (!run->settings->device && kiln_device_list(&infos, count, sizeof *infos) != KILN_OK)
        return fail_library(WORKING);
    *exams = calloc((size_t)*count + 1, sizeof **exams);
    if (!*exams) code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the list of devices");
    if (!code && run->settings->device) {
        (*exams)[0].info = run->device_info;
        (*exams)[0].info.usable = 1;
        examine(*exams, run->device);
    } else if (!code) {
        for (int64_t i = 0; i < *count; i++) (*exams)[i].info = infos[i];
        examine_all(run, *exams, *count);
    }
    kiln_free(infos);
    return code;
}

int verb_doctor(struct run *run) {
    kiln_probe *probes = NULL;
    struct examination *exams = NULL;
    int64_t probe_count = 0, count = 0;
    int code =
        kiln_probe_machine(&probes, &probe_count, sizeof *probes) == KILN_OK ? 0 : fail_library(WORKING);
    if (!code) code = examine_devices(run, &exams, &count);
    if (!code) code = tell(run, probes, probe_count, exams, count);
    for (int64_t i = 0; !code && i < count; i++)
        if (exams[i].examined && !exams[i].healthy) code = exit_code(KILN_ERR_INTERNAL, WORKING);
    free(exams);
    kiln_free(probes);
    return code;
}
