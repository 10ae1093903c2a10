/* The conformance suite: every operation's problems in f32 and f64 on every device that opens, each against
 * the reference within its error bound.
 *
 * Besides the values it checks that every element of the destination was written (it starts as NaN), that
 * operands which are only read keep their bits, that numbers are not written past the last result, and that a
 * second run gives the same bits where kiln.h promises that. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

extern const struct check check_philox, check_matrix, check_refusals, check_properties, check_cg,
    check_determinism, check_repeats;
const struct check *const checks[] = {&check_philox, &check_matrix,      &check_refusals, &check_properties,
                                      &check_cg,     &check_determinism, &check_repeats,  NULL};

enum { ENTRIES_QUICK = 20000, ENTRIES_NORMAL = 4000000, TALLIES = 1024 };
static const double CANARY = 4711;

struct options {
    const char *device, *operation, *type, *require;
    bool verbose, quick, large, all;
    int threads;
};

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

static const char *type_name(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

/* -------------------------------------------------------------------------------------- one case */

struct outcome {
    bool passed;
    double ratio, gate;
    char why[400];
};

static void fail(struct outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct outcome *outcome, const char *format, ...) {
    va_list args;
    if (!outcome->passed) return;
    outcome->passed = false;
    va_start(args, format);
    vsnprintf(outcome->why, sizeof outcome->why, format, args);
    va_end(args);
}

static bool succeeded(struct outcome *outcome, kiln_status status, const char *what) {
    if (status != KILN_OK)
        fail(outcome, "%s: %s: %s", what, kiln_status_name(status), kiln_last_error()->message);
    return status == KILN_OK;
}

static size_t value_bytes(const struct host_matrix *h) {
    return (size_t)h->nnz * (h->type == KILN_F32 ? 4 : 8);
}

/* The values of every result of one run, in the type of its matrix, or double for the scalars. */
struct results {
    void *values[RESULTS];
    size_t bytes[RESULTS]; /* 0 = no such result */
};

static void results_new(struct results *results, struct work *work, const struct expected *expected) {
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        results->bytes[r] = A && A->matrix                ? value_bytes(&A->host)
                            : !A && expected[r].count > 0 ? sizeof work->scalars
                                                          : 0;
        results->values[r] = calloc(1, results->bytes[r] + 1);
    }
}

static void results_free(struct results *results) {
    for (int r = 0; r < RESULTS; r++) free(results->values[r]);
}

/* Runs the operation once from the same start and hands out what it computed. */
static bool run_once(struct outcome *outcome, const struct operation *operation, struct work *work,
                     struct results *results) {
    for (int c = 0; c <= MOST_COLUMNS; c++) work->scalars[c] = CANARY;
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        if (A && A->matrix && !succeeded(outcome, kiln_matrix_set(A->matrix, A->host.values), "reset"))
            return false;
    }
    if (!succeeded(outcome, operation->run(work), "run")) return false;
    if (!succeeded(outcome, kiln_device_sync(work->device), "sync")) return false;
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        if (A && A->matrix && !succeeded(outcome, kiln_matrix_get(results->values[r], A->matrix), "get"))
            return false;
        if (!A && results->bytes[r]) memcpy(results->values[r], work->scalars, sizeof work->scalars);
    }
    return true;
}

/* One result against what was expected of it; the worst of several stays in the outcome. */
static void compare(struct outcome *outcome, const struct expected *expected, enum result result,
                    kiln_type type, const void *got) {
    static const char *const names[RESULTS] = {"", "sums: ", "curvature: ", "number: "};
    struct host_matrix values = {.type = type, .values = (void *)(uintptr_t)got};
    int64_t worst;
    double ratio = error_ratio(&worst, expected, type, got);
    if (!(ratio <= expected->gate))
        fail(outcome, "%selement %lld is %.17g, not %.17g: error ratio %.4g, allowed %.4g", names[result],
             (long long)worst, host_get(&values, worst), (double)expected->value[worst], ratio,
             expected->gate);
    if (outcome->gate == 0 || ratio * outcome->gate > outcome->ratio * expected->gate) {
        outcome->ratio = ratio;
        outcome->gate = expected->gate;
    }
    for (int64_t c = expected->count; result == RESULT_SCALARS && c <= MOST_COLUMNS; c++)
        if (((const double *)got)[c] != CANARY)
            fail(outcome, "wrote past the last result, at %lld", (long long)c);
}

static void compare_results(struct outcome *outcome, const struct expected *expected, struct work *work,
                            const struct results *got) {
    for (int r = 0; r < RESULTS; r++) {
        if ((got->bytes[r] > 0) != (expected[r].count > 0))
            fail(outcome, "the case expects %lld elements of a result of %zu bytes",
                 (long long)expected[r].count, got->bytes[r]);
        else if (got->bytes[r] > 0)
            compare(outcome, &expected[r], (enum result)r, r == RESULT_SCALARS ? KILN_F64 : work->type,
                    got->values[r]);
    }
}

static void compare_operand(struct outcome *outcome, const struct operand *A, const char *name) {
    if (!A->matrix || A->alias || !A->host.values) return;
    size_t bytes = value_bytes(&A->host);
    void *now = calloc(1, bytes + 1);
    kiln_status status =
        A->host.row_start ? kiln_matrix_get_csr(NULL, NULL, now, A->matrix) : kiln_matrix_get(now, A->matrix);
    if (succeeded(outcome, status, name) && memcmp(now, A->host.values, bytes) != 0)
        fail(outcome, "the operand %s was changed", name);
    free(now);
}

static void repeat(struct outcome *outcome, const struct operation *operation, struct work *work,
                   const struct expected *expected, const struct results *first) {
    struct results second;
    results_new(&second, work, expected);
    if (run_once(outcome, operation, work, &second))
        for (int r = 0; r < RESULTS; r++)
            if (memcmp(first->values[r], second.values[r], first->bytes[r]) != 0)
                fail(outcome, "a second run gave other bits");
    results_free(&second);
}

static struct outcome run_case(const struct operation *operation, const struct problem *problem,
                               kiln_device *device, kiln_type type, bool atomics) {
    struct work work = {.problem = problem, .device = device, .type = type};
    struct outcome outcome = {.passed = true};
    struct expected expected[RESULTS] = {{0}};
    struct results got = {{NULL}, {0}};
    if (!succeeded(&outcome, operation->prepare(&work), "prepare")) goto done;
    if (!succeeded(&outcome, work_fetch(&work), "fetch")) goto done;
    operation->expect(expected, &work);
    results_new(&got, &work, expected);
    if (!run_once(&outcome, operation, &work, &got)) goto done;
    compare_results(&outcome, expected, &work, &got);
    const struct {
        const struct operand *A;
        const char *name;
    } read[] = {{&work.X, "X"},           {&work.v, "v"},           {&work.y, "y"},
                {&work.z, "z"},           {&work.target, "target"}, {&work.weights, "weights"},
                {&work.offset, "offset"}, {&work.shift, "shift"}};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        compare_operand(&outcome, read[i].A, read[i].name);
    if (!(atomics && problem->format == KILN_CSR)) repeat(&outcome, operation, &work, expected, &got);
done:
    for (int r = 0; r < RESULTS; r++) expected_free(&expected[r]);
    results_free(&got);
    work_free(&work);
    return outcome;
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

static struct problem_list list_problems(const struct options *options, const struct operation *operation,
                                         const kiln_device_info *info) {
    struct problem_list list = {.entries_max = ENTRIES_NORMAL};
    if (options->quick) list.entries_max = ENTRIES_QUICK;
    if (options->large) list.entries_max = INT64_MAX;
    list.thin = !options->all && !info->is_gpu && strcmp(info->name, "cpu") != 0;
    operation->list(&list);
    return list;
}

static void run_operation(struct suite *suite, const struct operation *operation, kiln_device *device,
                          const kiln_device_info *info, kiln_type type) {
    struct tally *tally = new_tally(suite, info->name, operation->name, type);
    struct problem_list list = list_problems(&suite->options, operation, info);
    bool atomics = operation->atomics && strcmp(info->name, "cpu") != 0;
    for (int64_t i = 0; i < list.count; i++) {
        struct outcome outcome = run_case(operation, &list.problems[i], device, type, atomics);
        char text[512];
        problem_describe(text, sizeof text, &list.problems[i]);
        count(suite, tally, outcome.passed);
        tally->ratio = fmax(tally->ratio, outcome.ratio);
        if (outcome.gate > 0) tally->of_gate = fmax(tally->of_gate, outcome.ratio / outcome.gate);
        if (!outcome.passed)
            printf("FAIL %s %s %s %s: %s\n", operation->name, info->name, type_name(type), text, outcome.why);
        else if (suite->options.verbose)
            printf("pass %s %s %s %s: %.3g of %.3g\n", operation->name, info->name, type_name(type), text,
                   outcome.ratio, outcome.gate);
        fflush(stdout);
    }
    free(list.problems);
}

void check_report(struct check_context *context, bool passed, const char *format, ...) {
    char text[512];
    va_list args;
    context->passed += passed;
    context->failed += !passed;
    if (passed && !context->verbose) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%s %s %s %s\n", passed ? "pass" : "FAIL", context->device_name, type_name(context->type), text);
}

static void run_check(struct suite *suite, const struct check *check, kiln_device *device,
                      const kiln_device_info *info, kiln_type type) {
    struct tally *tally = new_tally(suite, info->name, check->name, type);
    struct check_context context = {
        .device = device, .device_name = info->name, .type = type, .verbose = suite->options.verbose};
    check->run(&context);
    tally->cases = context.passed + context.failed;
    tally->failed = context.failed;
    suite->passed += context.passed;
    suite->failed += context.failed;
}

static void skip(struct suite *suite, const char *name, const char *why) {
    printf("skip %s: %s\n", name, why);
    suite->skipped++;
}

static bool wanted(const char *option, const char *name) {
    return !option || strcmp(option, name) == 0;
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
    printf("device %s: %s\n", name, info->description);
    fflush(stdout);
    size_t used = strlen(suite->ran);
    snprintf(suite->ran + used, sizeof suite->ran - used, " %s", name);
    if (wanted(suite->options.type, "f32")) run_type(suite, device, info, KILN_F32);
    if (wanted(suite->options.type, "f64")) run_type(suite, device, info, KILN_F64);
    kiln_device_statistics statistics;
    kiln_device_get_statistics(device, &statistics);
    printf("device %s: %lld kernels built, %lld from the cache, %.1f s\n", name,
           (long long)statistics.kernels_built, (long long)statistics.kernels_cached,
           statistics.build_seconds);
    kiln_device_close(device);
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
    if (kiln_device_list(&infos, &listed) != KILN_OK) {
        printf("FAIL kiln_device_list: %s\n", kiln_last_error()->message);
        suite->failed++;
        return;
    }
    for (int64_t i = 0; i < listed; i++) {
        if (wish && !device_matches(wish, infos[i].name)) continue;
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

static const char usage[] =
    "usage: conformance [--device NAME] [--op NAME] [--type f32|f64] [--require NAME,...] [--threads N]\n"
    "                   [--quick] [--large] [--all] [-v]\n"
    "  --device   only this device, or all of a backend: cpu, opencl, opencl:0.1, cuda\n"
    "  --op       only this operation or check\n"
    "  --require  fail if one of these was not tested\n"
    "  --quick    small problems only, for slow tools\n"
    "  --all      every width also on OpenCL processors, whose compiler is slow\n"
    "  --large    also a matrix of 30 million columns\n"
    "  -v         a line for each case\n";

static bool parse(struct options *options, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const struct {
            const char *name, **to;
        } named[] = {{"--device", &options->device},
                     {"--op", &options->operation},
                     {"--type", &options->type},
                     {"--require", &options->require}};
        bool known = true;
        if (!strcmp(argv[i], "-v"))
            options->verbose = true;
        else if (!strcmp(argv[i], "--quick"))
            options->quick = true;
        else if (!strcmp(argv[i], "--all"))
            options->all = true;
        else if (!strcmp(argv[i], "--large"))
            options->large = true;
        else if (!strcmp(argv[i], "--threads") && value)
            options->threads = atoi(argv[++i]);
        else
            known = false;
        for (size_t n = 0; !known && value && n < sizeof named / sizeof *named; n++)
            if (!strcmp(argv[i], named[n].name)) {
                *named[n].to = value;
                known = true;
                i++;
            }
        if (!known) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static struct suite suite;
    if (!parse(&suite.options, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    run_devices(&suite);
    check_required(&suite);
    if (suite.passed + suite.failed == 0) {
        printf("FAIL nothing was tested\n");
        suite.failed++;
    }
    print_table(&suite);
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)suite.passed, (long long)suite.failed,
           (long long)suite.skipped);
    return suite.failed != 0;
}
