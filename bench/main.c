/* Times one operation at one shape: the median over repeated batches, wall clock from an idle device to an
 * idle device, and what that is as a fraction of the device's measured read bandwidth. The result is checked
 * against the reference first, because a wrong answer has no speed. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cases.h"

struct options {
    const char *operation, *device, *type, *skew, *json, *commit;
    int64_t rows, cols, nnz, k;
    double seconds;
    bool transposed, no_check;
};

struct timing {
    double median, fastest; /* seconds of one call */
    int samples, batch;     /* batches timed, calls in each */
};

struct report {
    struct timing timing;
    double flops, bytes, bandwidth;
    double error_ratio, error_allowed; /* -1: not checked */
};

static const char usage[] =
    "usage: kiln_bench [--op NAME] [--device NAME] [--type f32|f64] [--rows N] [--cols N] [--nnz N]\n"
    "                  [--skew uniform|zipf] [--k N] [--transposed] [--seconds S] [--no-check]\n"
    "                  [--json FILE] [--commit TEXT]\n"
    "  --op       mmchain (default), or one of those listed below\n"
    "  --nnz      stored entries of a CSR matrix, spread over its rows; default: dense\n"
    "  --skew     columns of a CSR matrix equally likely (default), or popular in inverse proportion to "
    "their number\n"
    "  --k        columns of y and w\n"
    "  --seconds  time to spend on repeats (default 1)\n"
    "  --json     append the result to FILE, one JSON object a line\n"
    "  --commit   what was built, as git describe says it; goes into the JSON\n";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static bool parse(struct options *options, int argc, char **argv) {
    const struct {
        const char *name, **text;
        int64_t *number;
    } known[] = {{"--op", &options->operation, NULL}, {"--device", &options->device, NULL},
                 {"--type", &options->type, NULL},    {"--skew", &options->skew, NULL},
                 {"--json", &options->json, NULL},    {"--commit", &options->commit, NULL},
                 {"--rows", NULL, &options->rows},    {"--cols", NULL, &options->cols},
                 {"--nnz", NULL, &options->nnz},      {"--k", NULL, &options->k}};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool found = false;
        if (!strcmp(argv[i], "--transposed")) found = options->transposed = true;
        if (!strcmp(argv[i], "--no-check")) found = options->no_check = true;
        if (!strcmp(argv[i], "--seconds") && value) {
            options->seconds = strtod(argv[++i], NULL);
            continue;
        }
        for (size_t n = 0; !found && value && n < sizeof known / sizeof *known; n++) {
            if (strcmp(argv[i], known[n].name) != 0) continue;
            if (known[n].text) *known[n].text = value;
            if (known[n].number) *known[n].number = strtoll(value, NULL, 10);
            found = true;
            i++;
        }
        if (!found) return false;
    }
    return options->rows > 0 && options->cols > 0 && options->nnz >= 0 && options->k >= 0;
}

static const struct operation *find_operation(const char *name) {
    for (int i = 0; operations[i]; i++)
        if (strcmp(operations[i]->name, name) == 0) return operations[i];
    return NULL;
}

/* The operation's own benchmark problem with the shape filled in; false if it cannot take that shape. */
static bool make_problem(struct problem *problem, const struct operation *operation,
                         const struct options *options) {
    *problem = operation->benchmark;
    bool elementwise = problem->k == 0;
    problem->format = options->nnz ? KILN_CSR : KILN_DENSE;
    problem->pattern = !options->nnz                    ? PATTERN_DENSE
                       : !strcmp(options->skew, "zipf") ? PATTERN_ZIPF
                                                        : PATTERN_UNIFORM;
    problem->rows = options->rows;
    problem->cols = options->cols;
    problem->per_row = (options->nnz + options->rows / 2) / options->rows;
    if (options->nnz && problem->per_row < 1) problem->per_row = 1;
    problem->k = elementwise ? options->cols : options->k ? options->k : problem->k;
    if (options->transposed) problem->flags |= WITH_TRANSPOSED;
    if (problem->k > MOST_COLUMNS || (elementwise && options->nnz)) {
        fprintf(stderr, "kiln_bench: %s takes dense operands of at most %d columns\n", operation->name,
                MOST_COLUMNS);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------- measure */

static kiln_status run_batch(double *seconds, const struct operation *operation, struct work *work,
                             int batch) {
    CHECK_OK(kiln_device_sync(work->device));
    double start = now();
    for (int i = 0; i < batch; i++) CHECK_OK(operation->run(work));
    CHECK_OK(kiln_device_sync(work->device));
    *seconds = (now() - start) / batch;
    return KILN_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls shorter than two milliseconds are timed in batches, so that waiting for the device does not count. */
static kiln_status measure(struct timing *timing, const struct operation *operation, struct work *work,
                           double seconds) {
    enum { SAMPLES_MIN = 5, SAMPLES_MAX = 200, WARM_UP = 3 };
    double sample[SAMPLES_MAX], once;
    for (int i = 0; i < WARM_UP; i++) CHECK_OK(run_batch(&once, operation, work, 1));
    double batch = 0.002 / (once > 1e-7 ? once : 1e-7);
    *timing = (struct timing){.batch = batch < 1 ? 1 : (int)batch};
    double start = now();
    while (timing->samples < SAMPLES_MAX && (timing->samples < SAMPLES_MIN || now() - start < seconds)) {
        CHECK_OK(run_batch(&sample[timing->samples], operation, work, timing->batch));
        timing->samples++;
    }
    qsort(sample, (size_t)timing->samples, sizeof *sample, by_size);
    timing->median = sample[timing->samples / 2];
    timing->fastest = sample[0];
    return KILN_OK;
}

static kiln_status check(struct report *report, const struct operation *operation, struct work *work) {
    struct expected expected[RESULTS] = {{0}};
    const struct expected *checked = &expected[work->w.matrix ? RESULT_W : RESULT_SCALARS];
    void *got = NULL;
    int64_t worst;
    CHECK_OK(work_fetch(work));
    if (work->w.matrix) {
        got = calloc((size_t)work->w.host.nnz + 1, sizeof(double));
        if (!got) return KILN_ERR_NOMEM;
    }
    kiln_status status = operation->run(work);
    if (status == KILN_OK && got) status = kiln_matrix_get(got, work->w.matrix);
    if (status == KILN_OK) {
        operation->expect(expected, work);
        report->error_ratio =
            error_ratio(&worst, checked, got ? work->type : KILN_F64, got ? got : work->scalars);
        report->error_allowed = checked->gate;
    }
    for (int r = 0; r < RESULTS; r++) expected_free(&expected[r]);
    free(got);
    return status;
}

static kiln_status benchmark(struct report *report, const struct operation *operation, struct work *work,
                             const struct options *options) {
    *report = (struct report){.error_ratio = -1, .error_allowed = -1};
    CHECK_OK(operation->prepare(work));
    CHECK_OK(kiln_device_bandwidth(&report->bandwidth, work->device, 1));
    if (!options->no_check) CHECK_OK(check(report, operation, work));
    CHECK_OK(measure(&report->timing, operation, work, options->seconds));
    report->flops = operation->flops(work);
    report->bytes = operation->bytes(work);
    return KILN_OK;
}

/* ----------------------------------------------------------------------------------------- report */

static void print(const struct report *r, const char *name, const struct work *work,
                  const kiln_device_info *info) {
    char text[512];
    double rate = r->bytes / r->timing.median;
    problem_describe(text, sizeof text, work->problem);
    printf("%s %s %s %s: %.4f ms, %.1f GB/s, %.1f %% of %.0f GB/s read bandwidth, %.1f Gflop/s", name,
           info->name, work->type == KILN_F32 ? "f32" : "f64", text, 1e3 * r->timing.median, 1e-9 * rate,
           100 * rate / r->bandwidth, 1e-9 * r->bandwidth, 1e-9 * r->flops / r->timing.median);
    if (r->error_ratio >= 0)
        printf(", error ratio %.3g of %.3g allowed\n", r->error_ratio, r->error_allowed);
    else
        printf(", not checked\n");
}

static void write_text(FILE *file, const char *key, const char *text) {
    fprintf(file, "\"%s\": \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        if ((unsigned char)*text >= ' ') fputc(*text, file);
    }
    fprintf(file, "\", ");
}

/* JSON has no infinities; an error beyond all measure is null. */
static void write_number(FILE *file, const char *key, double number) {
    if (isfinite(number))
        fprintf(file, "\"%s\": %.6g, ", key, number);
    else
        fprintf(file, "\"%s\": null, ", key);
}

static bool write_json(const struct report *r, const char *name, const struct work *work,
                       const kiln_device_info *info, const struct options *options) {
    const struct problem *p = work->problem;
    char date[32], text[512];
    time_t at = time(NULL);
    struct tm utc;
    FILE *file = fopen(options->json, "a");
    if (!file) return false;
    problem_describe(text, sizeof text, p);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &utc));
    fputc('{', file);
    write_text(file, "kiln", kiln_version());
    write_text(file, "commit", options->commit);
    write_text(file, "date", date);
    write_text(file, "device", info->name);
    write_text(file, "description", info->description);
    write_text(file, "operation", name);
    write_text(file, "problem", text);
    write_text(file, "type", work->type == KILN_F32 ? "f32" : "f64");
    write_text(file, "format", p->format == KILN_CSR ? "csr" : "dense");
    fprintf(file, "\"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"k\": %" PRId64 ", ", p->rows, p->cols,
            p->k);
    fprintf(file, "\"nnz\": %" PRId64 ", ", work->X.host.nnz);
    write_number(file, "milliseconds", 1e3 * r->timing.median);
    write_number(file, "milliseconds_fastest", 1e3 * r->timing.fastest);
    fprintf(file, "\"samples\": %d, \"batch\": %d, ", r->timing.samples, r->timing.batch);
    write_number(file, "bytes", r->bytes);
    write_number(file, "flops", r->flops);
    write_number(file, "gb_per_second", 1e-9 * r->bytes / r->timing.median);
    write_number(file, "read_bandwidth_gb_per_second", 1e-9 * r->bandwidth);
    write_number(file, "fraction_of_bandwidth", r->bytes / r->timing.median / r->bandwidth);
    write_number(file, "error_ratio", r->error_ratio < 0 ? (double)NAN : r->error_ratio);
    fprintf(file, "\"error_allowed\": %.6g}\n", r->error_allowed);
    bool written = !ferror(file);
    return fclose(file) == 0 && written;
}

static void say(void *user, const char *text) {
    (void)user;
    fprintf(stderr, "%s\n", text);
}

static int run(const struct operation *operation, const struct options *options) {
    struct problem problem;
    struct work work = {.problem = &problem, .type = strcmp(options->type, "f32") ? KILN_F64 : KILN_F32};
    kiln_device_options device_options = {.message = say};
    kiln_device_info info = {0};
    struct report report;
    int code = 1;
    if (!make_problem(&problem, operation, options)) return 2;
    kiln_status status = kiln_device_open(&work.device, options->device, &device_options);
    if (status == KILN_OK) status = kiln_device_get_info(work.device, &info);
    if (status == KILN_OK) status = benchmark(&report, operation, &work, options);
    if (status != KILN_OK) {
        fprintf(stderr, "kiln_bench: %s: %s\n", kiln_status_name(status), kiln_last_error()->message);
    } else {
        print(&report, operation->name, &work, &info);
        code = report.error_ratio <= report.error_allowed ? 0 : 1;
        if (code) fprintf(stderr, "kiln_bench: the result is wrong\n");
        if (options->json && !write_json(&report, operation->name, &work, &info, options)) {
            fprintf(stderr, "kiln_bench: cannot write %s\n", options->json);
            code = 1;
        }
    }
    work_free(&work);
    kiln_device_close(work.device);
    return code;
}

int main(int argc, char **argv) {
    struct options options = {.operation = "mmchain",
                              .device = "auto",
                              .type = "f64",
                              .skew = "uniform",
                              .commit = "",
                              .rows = 100000,
                              .cols = 64,
                              .seconds = 1};
    const struct operation *operation =
        parse(&options, argc, argv) ? find_operation(options.operation) : NULL;
    if (!operation || (strcmp(options.type, "f32") && strcmp(options.type, "f64")) ||
        (strcmp(options.skew, "uniform") && strcmp(options.skew, "zipf"))) {
        fputs(usage, stderr);
        for (int i = 0; operations[i]; i++)
            fprintf(stderr, "%s%s", i ? ", " : "operations: ", operations[i]->name);
        fputc('\n', stderr);
        return 2;
    }
    return run(operation, &options);
}
