/* The conformance suite: every operation's problems in f32 and f64 on every device that opens, each against
 * the reference within its error bound (one_case.c), then the checks of another form. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "low_limits.h"
#include "suite.h"

#include "check_list.h"

#define DECLARE(name) extern const struct check check_##name;
CHECK_LIST(DECLARE)
#define ENTRY(name) &check_##name,
const struct check *const checks[] = {CHECK_LIST(ENTRY) NULL};

enum { ENTRIES_QUICK = 20000, ENTRIES_NORMAL = 4000000, TALLIES = 1024 };
enum { ALL_SKIPPED = 77 }; /* exit status of a run that tested nothing, as ctest and automake know it */

/* A line of the closing table. */
struct tally {
    char device[32];
    const char *operation;
    kiln_type type;
    int64_t cases, failed;
    double ratio,
        of_gate; /* the largest error in unit roundoffs of the gauge, and as a part of what is allowed */
};

struct suite {
    struct options options;
    struct tally tallies[TALLIES];
    int tally_count;
    int64_t passed, failed, skipped;
    char ran[1024]; /* " cpu opencl:0.0": the devices that were tested */
};

static bool on_cpu(const kiln_device_info *info) {
    return strncmp(info->name, "cpu", 3) == 0 && !strchr(info->name, ',');
}

/* "cpu*3", "cuda:0,1", "cpu,cuda:0", "cuda:all" */
static bool is_group(const char *name) {
    return strpbrk(name, "*,") || strstr(name, ":all");
}

static const char *type_name(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

/* ----------------------------------------------------------------------------------- one device */

static struct tally *new_tally(struct suite *suite, const char *device, const char *operation,
                               kiln_type type) {
    if (suite->tally_count == TALLIES) {
        fprintf(stderr, "conformance: more than %d lines in the table\n", TALLIES);
        exit(1);
    }
    struct tally *tally = &suite->tallies[suite->tally_count++];
    *tally = (struct tally){.operation = operation, .type = type};
    snprintf(tally->device, sizeof tally->device, "%s", device);
    return tally;
}

static void count(struct suite *suite, struct tally *tally, bool passed) {
    tally->cases++;
    tally->failed += !passed;
    suite->passed += passed;
    suite->failed += !passed;
}

void suite_report(struct suite *suite, struct tally *tally, bool passed, double ratio, double gate,
                  const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    count(suite, tally, passed);
    tally->ratio = fmax(tally->ratio, ratio);
    if (gate > 0) tally->of_gate = fmax(tally->of_gate, ratio / gate);
    if (!passed || suite->options.verbose) printf("%s %s\n", passed ? "pass" : "FAIL", text);
    fflush(stdout);
}

/* If kernels build slowly, f64 takes a sample: its kernels have the text of f32's, and the run with low
 * limits, which is one of f64, builds most of them once more. */
static struct problem_list list_problems(const struct options *options, const struct operation *operation,
                                         const kiln_device_info *info, kiln_type type) {
    struct problem_list list = {.entries_max = ENTRIES_NORMAL};
    if (options->quick) list.entries_max = ENTRIES_QUICK;
    if (options->large) list.entries_max = INT64_MAX;
    list.thin = !options->all && !info->is_gpu && !on_cpu(info);
    list.sampled = list.thin && type == KILN_F64 && !options->low_limits;
    operation->list(&list);
    return list;
}

static void run_operation(struct suite *suite, const struct operation *operation, kiln_device *device,
                          const kiln_device_info *info, kiln_type type) {
    struct tally *tally = new_tally(suite, info->name, operation->name, type);
    struct problem_list list = list_problems(&suite->options, operation, info, type);
    const bool atomics = operation->atomics && !on_cpu(info);
    for (int64_t i = 0; i < list.count; i++) {
        struct outcome outcome = run_case(operation, &list.problems[i], device, type, atomics);
        char text[512], bound[64];
        problem_describe(text, sizeof text, &list.problems[i]);
        snprintf(bound, sizeof bound, "%.3g of %.3g", outcome.ratio, outcome.gate);
        suite_report(suite, tally, outcome.passed, outcome.ratio, outcome.gate, "%s %s %s %s: %s",
                     operation->name, info->name, type_name(type), text,
                     outcome.passed ? bound : outcome.why);
    }
    free(list.problems);
}

static void skip(struct suite *suite, const char *name, const char *why) {
    printf("skip %s: %s\n", name, why);
    suite->skipped++;
}

static void run_check(struct suite *suite, const struct check *check, kiln_device *device,
                      const kiln_device_info *info, kiln_type type) {
    const char *why = check->only_cpu && !on_cpu(info)        ? check->only_cpu
                      : check->single && is_group(info->name) ? "its operations cannot be split"
                                                              : NULL;
    if (why) {
        if (suite->options.operation) skip(suite, info->name, why);
        return;
    }
    struct tally *tally = new_tally(suite, info->name, check->name, type);
    struct check_context context = {
        .device = device, .device_name = info->name, .type = type, .verbose = suite->options.verbose};
    check->run(&context);
    if (context.passed + context.failed == 0)
        check_report(&context, false, "%s checked nothing", check->name);
    tally->cases = context.passed + context.failed;
    tally->failed = context.failed;
    suite->passed += context.passed;
    suite->failed += context.failed;
}

static void run_type(struct suite *suite, kiln_device *device, const kiln_device_info *info, kiln_type type) {
    kiln_matrix *probe = NULL;
    kiln_status status = kiln_matrix_dense(&probe, device, type, 1, 1, NULL);
    kiln_matrix_free(probe);
    if (status == KILN_ERR_UNSUPPORTED) {
        char name[48];
        snprintf(name, sizeof name, "%s %s", info->name, type_name(type));
        skip(suite, name, kiln_last_error()->message);
        return;
    }
    if (suite->options.plans) {
        run_plans(suite, &suite->options, new_tally(suite, info->name, "plans", type), device, info->name,
                  type);
        return;
    }
    for (int i = 0; operations[i]; i++)
        if (wanted(suite->options.operation, operations[i]->name))
            run_operation(suite, operations[i], device, info, type);
    for (int i = 0; checks[i]; i++)
        if (wanted(suite->options.operation, checks[i]->name))
            run_check(suite, checks[i], device, info, type);
}

static void run_device(struct suite *suite, const kiln_device_info *info) {
    const char *name = info->name;
    kiln_device *device = NULL;
    kiln_device_options device_options = {.threads = suite->options.threads};
    if (kiln_device_open(&device, name, &device_options) != KILN_OK) {
        /* Listed as usable, or asked for by name: not opening is a failure, not a skip. */
        printf("FAIL %s: %s\n", name, kiln_last_error()->message);
        suite->failed++;
        return;
    }
    kiln_device_info group;
    if (is_group(name)) {
        group = (kiln_device_info){.size = sizeof group};
        kiln_device_get_info(device, &group);
        info = &group;
    }
    printf("device %s: %s\n", name, info->description);
    fflush(stdout);
    size_t used = strlen(suite->ran);
    snprintf(suite->ran + used, sizeof suite->ran - used, " %s", name);
    if (wanted(suite->options.type, "f32")) run_type(suite, device, info, KILN_F32);
    if (wanted(suite->options.type, "f64")) run_type(suite, device, info, KILN_F64);
    kiln_device_statistics statistics = {0};
    kiln_device_get_statistics(device, &statistics);
    printf("device %s: %lld kernels built, %lld from the cache, %.1f s\n", name,
           (long long)statistics.kernels_built, (long long)statistics.kernels_cached,
           statistics.build_seconds);
    kiln_device_close(device);
    if (suite->options.low_limits && !suite->options.operation && statistics.layout_seconds == 0) {
        printf("FAIL %s: low limits, but nothing was derived from any X\n", name);
        suite->failed++;
    }
}

/* "cpu", "opencl" and "opencl:0.1" all want the device "opencl:0.1". */
static bool device_matches(const char *wish, const char *name) {
    size_t length = strlen(wish);
    return strncmp(wish, name, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

static void run_devices(struct suite *suite) {
    kiln_device_info *infos = NULL;
    int64_t listed = 0;
    const char *wish = suite->options.device;
    int64_t matched = 0;
    if (wish && is_group(wish)) {
        kiln_device_info info = {.usable = 1};
        snprintf(info.name, sizeof info.name, "%s", wish);
        run_device(suite, &info);
        return;
    }
    if (kiln_device_list(&infos, &listed, sizeof *infos) != KILN_OK) {
        printf("FAIL kiln_device_list: %s\n", kiln_last_error()->message);
        suite->failed++;
        return;
    }
    for (int64_t i = 0; i < listed; i++) {
        if (wish && !device_matches(wish, infos[i].name)) continue;
        if (suite->options.except && device_matches(suite->options.except, infos[i].name)) continue;
        matched++;
        if (infos[i].usable)
            run_device(suite, &infos[i]);
        else
            skip(suite, infos[i].name, infos[i].reason);
    }
    if (wish && matched == 0) {
        printf("FAIL %s: no such device on this machine\n", wish);
        suite->failed++;
    }
    kiln_free(infos);
}

/* -------------------------------------------------------------------------------------- summary */

/* Every word of --require must be the name, or the backend, of a device that was tested. */
static void check_required(struct suite *suite) {
    char words[256];
    if (!suite->options.require) return;
    snprintf(words, sizeof words, "%s", suite->options.require);
    for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        char ran[sizeof suite->ran];
        bool found = false;
        for (const char *at = suite->ran; (at = strchr(at, ' ')); at++) {
            snprintf(ran, sizeof ran, "%s", at + 1);
            ran[strcspn(ran, " ")] = '\0';
            found = found || device_matches(word, ran);
        }
        if (found) continue;
        printf("FAIL %s was required and not tested\n", word);
        suite->failed++;
    }
}

static void print_table(const struct suite *suite) {
    printf("\n%-14s %-14s %-4s %6s %6s %10s %8s\n", "device", "operation", "type", "cases", "failed",
           "max ratio", "of gate");
    for (int i = 0; i < suite->tally_count; i++) {
        const struct tally *t = &suite->tallies[i];
        printf("%-14s %-14s %-4s %6lld %6lld %10.3g %7.1f%%\n", t->device, t->operation, type_name(t->type),
               (long long)t->cases, (long long)t->failed, t->ratio, 100 * t->of_gate);
    }
}

int main(int argc, char **argv) {
    static struct suite suite;
    if (!parse_options(&suite.options, argc, argv)) return 2;
    if (suite.options.low_limits) ki_limits = low_limits;
    run_devices(&suite);
    check_required(&suite);
    print_table(&suite);
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)suite.passed, (long long)suite.failed,
           (long long)suite.skipped);
    return suite.failed > 0 ? 1 : suite.passed > 0 ? 0 : ALL_SKIPPED;
}
