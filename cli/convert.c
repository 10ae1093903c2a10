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

static bool is_packed(const char *name, kiln_file_format format) {
    size_t length = strlen(name);
    if (format != KILN_FILE_AUTO) return format == KILN_FILE_PACKED;
    if (ends_with(name, length, ".gz")) length -= 3;
    return ends_with(name, length, ".kiln-data");
}

/* LIBSVM, CSV and packed files have a place for targets. */
static bool holds_targets(const char *name, kiln_file_format format) {
    size_t length = strlen(name);
    if (is_packed(name, format)) return true;
    if (format != KILN_FILE_AUTO) return format == KILN_FILE_LIBSVM || format == KILN_FILE_CSV;
    if (ends_with(name, length, ".gz")) length -= 3;
    return ends_with(name, length, ".svm") || ends_with(name, length, ".libsvm") ||
           ends_with(name, length, ".csv") || ends_with(name, length, ".tsv");
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

/* X, and y where it is asked for; y is never dropped without a word. */
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
    if (!code && y && !targets && !holds_targets(out, format)) {
        say_error("kiln: warning: the targets are not in %s: its format has no place for them", out);
        say_error("hint: --targets-to y.npy writes them to a file of their own");
    }
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
    if (!code && !is_packed(out, format) && (settings->weights || settings->offset || settings->groups))
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "a packed file keeps them: OUT.kiln-data",
                         "%s has no place for weights, offset and groups", out);
    run->text_targets =
        is_packed(out, format); /* with the classes' names, which other formats have no place for */
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
