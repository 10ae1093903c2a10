/* kiln kernels: packs of kernels, which are built ahead of time, and what this machine has built so far. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "output.h"
#include "verbs.h"

/* settings.own */
struct wanted {
    const char *architectures, *programs, *backend;
};

/* clang-format off */
const struct option kernels_options[KERNELS_OPTIONS] = {
    {.name = "arch", .kind = OPTION_TEXT, .group = GROUP_DEVICE, .value = "LIST",
     .standard = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120,compute_75",
     .offset = offsetof(struct wanted, architectures),
     .help = "build: the GPUs' architectures, sm_90 for compute capability 9.0, compute_90 for PTX that "
             "this one and later ones take, separated by commas."},
    {.name = "programs", .kind = OPTION_PATH, .group = GROUP_DATA, .value = "FILE",
     .offset = offsetof(struct wanted, programs),
     .help = "build: what to build, as kiln kernels list writes it; a line 'usual' stands for what serves "
             "most work, which is built without this option."},
    {.name = "backend", .kind = OPTION_CHOICE, .group = GROUP_DEVICE, .value = "NAME",
     .choices = "cuda|opencl", .standard = "cuda", .offset = offsetof(struct wanted, backend),
     .help = "list: of which backend."},
};
/* clang-format on */

/* The file's text, for free. */
static int read_programs(char **text, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t used = 0, room = 1 << 16, got = 0;
    char *made = file ? malloc(room) : NULL;
    while (made && (got = fread(made + used, 1, room - used - 1, file)) > 0) {
        used += got;
        if (room - used > 1) continue;
        char *grown = realloc(made, room *= 2);
        if (!grown) free(made);
        made = grown;
    }
    const int trouble = !file || ferror(file) ? errno : 0;
    if (file) fclose(file);
    if (!trouble && made) {
        made[used] = '\0';
        *text = made;
        return 0;
    }
    free(made);
    if (!trouble) return fail_with(KILN_ERR_NOMEM, READING, "", "no memory for the list of programs");
    return fail_with(KILN_ERR_IO, READING, "", "%s: %s", path, strerror(trouble));
}

static int tell_built(struct run *run, int64_t built) {
    struct result result;
    result_begin(&result);
    run_put(&result, run, "kiln.kernels/1");
    PUT(&result, "output", TEXT(run->settings->output), .head = "", .after = ": ");
    PUT(&result, "kernels", COUNT(built), .before = "", .unit = "kernel");
    PUT(&result, NULL, SECONDS(clock_seconds() - run->started), .before = " in ");
    return run_tell(run, &result);
}

static int build(struct run *run, const struct wanted *wanted) {
    kiln_pack_options options = {.size = sizeof options,
                                 .architectures = wanted->architectures,
                                 .threads = (int)run->settings->threads};
    char *from_file = NULL;
    int64_t built = 0;
    if (!run->settings->output)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "kiln kernels build -o kiln-kernels.pack",
                         "build needs -o, the file to write");
    int code = wanted->programs ? read_programs(&from_file, wanted->programs) : 0;
    options.programs = from_file;
    if (!code && kiln_kernels_build(run->settings->output, &options, &built) != KILN_OK)
        code = fail_library(WRITING);
    free(from_file);
    return code ? code : tell_built(run, built);
}

static int list_json(struct run *run, const char *programs) {
    struct result result;
    json_t *array = json_array();
    for (const char *at = programs; *at; at += strcspn(at, "\n"), at += *at == '\n')
        json_add(array, json_stringn(at, strcspn(at, "\n")));
    result_begin(&result);
    run_put(&result, run, "kiln.kernels/1");
    PUT(&result, "programs", JSON(array));
    const int code = result_print_json(&result);
    result_free(&result);
    return code;
}

static int list(struct run *run, const struct wanted *wanted) {
    struct output output;
    char *programs = NULL;
    if (kiln_kernels_list(&programs, wanted->backend ? wanted->backend : "cuda") != KILN_OK)
        return fail_library(WORKING);
    int code = 0;
    if (talk_json() && !run->settings->output) {
        code = list_json(run, programs);
    } else if (!(code = output_open(&output, run->settings->output))) {
        fputs(programs, output.file);
        code = output_commit(&output);
    }
    kiln_free(programs);
    return code;
}

int verb_kernels(struct run *run) {
    const struct wanted *wanted = (const void *)run->settings->own.bytes;
    if (strcmp(run->arguments[0], "build") == 0) return build(run, wanted);
    if (strcmp(run->arguments[0], "list") == 0) return list(run, wanted);
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "kiln kernels build or kiln kernels list",
                     "'%.40s' is neither build nor list", run->arguments[0]);
}
