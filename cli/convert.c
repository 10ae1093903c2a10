/* kiln convert: one format in, another out. */
#include <string.h>

#include "common.h"
#include "progress.h"
#include "verbs.h"

static int tell_json(struct run *run, const kiln_data *data) {
    json_t *object = run_json(run, "kiln.conversion/1");
    run_json_device(run, object);
    run_json_shape(object, kiln_data_X(data));
    json_put_text(object, "input", run->arguments[0]);
    json_put_text(object, "input_format", file_format_name(kiln_data_format(data)));
    json_put_text(object, "output", run->arguments[1]);
    json_put_count(object, "bytes", kiln_data_bytes(data));
    run_json_seconds(run, object);
    return json_print(object);
}

int verb_convert(struct run *run) {
    const char *out = run->arguments[1];
    kiln_file_format format = file_format_of(run->settings->to);
    int code = run_check_output(out);
    if (!code && strcmp(out, "-") == 0 && format == KILN_FILE_AUTO)
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, "for example --to csv",
                         "standard output needs a format: --to");
    if (!code) code = run_open_device(run, "cpu");
    kiln_data *data = NULL;
    if (!code) code = run_read(run, &data, run->arguments[0], type_of(run->settings->type), NULL);
    if (!code) {
        kiln_control control = talk_control(0);
        double start = clock_seconds();
        if (kiln_data_write(data, out, format, &control) != KILN_OK) code = fail_library(WRITING);
        run->seconds.write = clock_seconds() - start;
    }
    progress_clear();
    if (!code && strcmp(out, "-") != 0) say("wrote %s in %s", out, text_seconds(run->seconds.write));
    if (!code && talk_json()) code = tell_json(run, data);
    kiln_data_free(data);
    return code;
}
