/* kiln convert: one format in, another out. */
#include <string.h>
#include <strings.h>

#include "common.h"
#include "files.h"
#include "progress.h"
#include "verbs.h"

static int tell_json(struct run *run, const kiln_data *data) {
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.conversion/1");
    run_put_device(&result, run);
    run_put_shape(&result, kiln_data_X(data));
    PUT(&result, "input", TEXT(run->arguments[0]));
    PUT(&result, "input_format", TEXT(kiln_format_name(kiln_data_format(data))));
    PUT(&result, "output", TEXT(run->arguments[1]));
    PUT(&result, "bytes", COUNT(kiln_data_bytes(data)));
    run_put_seconds(&result, run, false);
    return result_print_json(&result);
}

static bool ends_with(const char *name, size_t length, const char *end) {
    size_t size = strlen(end);
    return length >= size && strncasecmp(name + length - size, end, size) == 0;
}

/* A format with a place for more than X; AUTO: any other. */
static kiln_file_format format_of(const char *name, kiln_file_format format) {
    static const struct {
        const char *ending;
        kiln_file_format format;
    } endings[] = {{".kiln-data", KILN_FILE_PACKED},
                   {".csv", KILN_FILE_CSV},
                   {".svm", KILN_FILE_LIBSVM},
                   {".libsvm", KILN_FILE_LIBSVM},
                   {".svmlight", KILN_FILE_LIBSVM}};
    size_t length = strlen(name);
    if (ends_with(name, length, ".gz")) length -= 3;
    for (size_t i = 0; format == KILN_FILE_AUTO && i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, length, endings[i].ending)) return endings[i].format;
    return format;
}

static bool holds_targets(kiln_file_format format) {
    return format == KILN_FILE_PACKED || format == KILN_FILE_CSV || format == KILN_FILE_LIBSVM;
}

static int write_targets(struct run *run, const kiln_matrix *y) {
    const char *path = run->settings->targets_to;
    kiln_matrix *copy = NULL;
    kiln_data *data = NULL;
    kiln_control control = talk_control("write", 0);
    kiln_status status = kiln_matrix_copy(&copy, run->device, KILN_TYPE_DEFAULT, y);
    if (status == KILN_OK) status = kiln_data_create(&data, copy, NULL);
    if (status != KILN_OK) kiln_matrix_free(copy);
    if (status == KILN_OK) status = kiln_data_write(data, path, KILN_FILE_AUTO, &control);
    kiln_data_free(data);
    return status == KILN_OK ? 0 : fail_library(WRITING);
}

/* Nothing is dropped without a word. */
static void warn_left(const struct run *run, const kiln_data *data, kiln_file_format format) {
    const bool packed = format == KILN_FILE_PACKED;
    static const char keeps[] = "a packed file keeps them: OUT.kiln-data";
    const struct {
        bool lost;
        const char *what, *hint;
    } left[] = {{kiln_data_y(data) && !run->settings->targets_to && !holds_targets(format), "targets",
                 "--targets-to y.npy writes them to a file of their own"},
                {kiln_data_weights(data) && !packed, "weights", keeps},
                {kiln_data_offset(data) && !packed, "offsets", keeps},
                {kiln_data_groups(data) && !packed, "groups", keeps}};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        if (!left[i].lost) continue;
        say_error("kiln: warning: the %s are not in %s: its format has no place for them", left[i].what,
                  run->arguments[1]);
        say_error("hint: %s", left[i].hint);
    }
}

/* X, and y where it is asked for. */
static int write_all(struct run *run, const kiln_data *data, const char *out, kiln_file_format format) {
    const kiln_matrix *y = kiln_data_y(data);
    const char *targets = run->settings->targets_to;
    kiln_control control = talk_control("write", 0);
    double start = clock_seconds();
    if (targets && !y)
        return fail_with(KILN_ERR_DATA, READING, "--target or --target-file says where they are",
                         "--targets-to: %s has no targets", run->arguments[0]);
    if (kiln_data_write(data, out, format, &control) != KILN_OK) return fail_library(WRITING);
    int code = targets ? write_targets(run, y) : 0;
    run->seconds.write = clock_seconds() - start;
    if (!code) warn_left(run, data, format_of(out, format));
    return code;
}

int verb_convert(struct run *run) {
    const char *out = run->arguments[1];
    kiln_file_format format = file_format_of(run->settings->to);
    int code = run_check_outputs(run);
    if (!code && strcmp(out, "-") == 0 && format == KILN_FILE_AUTO)
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "for example --to csv",
                         "standard output needs a format: --to");
    const struct settings *settings = run->settings;
    const kiln_file_format kind = format_of(out, format);
    if (!code && kind != KILN_FILE_PACKED && (settings->weights || settings->offset || settings->groups))
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "a packed file keeps them: OUT.kiln-data",
                         "%s has no place for weights, offset and groups", out);
    /* LIBSVM and files of targets have numbers alone. */
    run->text_targets = kind != KILN_FILE_LIBSVM && !settings->targets_to;
    if (!code) code = run_open_device(run, "cpu");
    kiln_data *data = NULL;
    if (!code) code = run_read(run, &data, run->arguments[0], type_of(run->settings->type), NULL);
    if (!code) code = write_all(run, data, out, format);
    progress_end();
    if (!code && strcmp(out, "-") != 0) say("wrote %s in %s", out, text_seconds(run->seconds.write));
    if (!code && talk_json()) code = tell_json(run, data);
    kiln_data_free(data);
    return code;
}
