/* This file says which files a run reads and which it writes. An output that is an input, or another output,
 * under whatever name, is refused before anything is read: a file is its device and inode, so that ./x, links
 * of both kinds and x itself are one. */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "picture.h"

enum { OUTPUTS = 10, INPUTS = MAX_ARGUMENTS + 8 };

struct place {
    const char *path; /* NULL: not given */
    char what[40];    /* "the data", "-o" */
};

static bool is_standard(const char *path, bool output) {
    return strcmp(path, "-") == 0 || strcmp(path, output ? "/dev/stdout" : "/dev/stdin") == 0;
}

/* ----------------------------------------------------------------------------------------- which */

static void find_outputs(struct place outputs[OUTPUTS], const struct run *run) {
    const struct settings *settings = run->settings;
    int count = 0;
    for (int i = 0; i < OUTPUTS; i++) outputs[i] = (struct place){NULL, ""};
    if (run->verb->kinds & VERB_BIT(CONVERT))
        outputs[count++] = (struct place){run->arguments[1], "the output"};
    for (int i = 0; i < option_count && count < OUTPUTS - 1; i++) {
        const struct option *option = &option_table[i];
        if (option->kind != OPTION_OUTPUT || !option_applies(option, run->verb)) continue;
        const char *base = option->place == IN_OWN ? settings->own.bytes : (const char *)settings;
        outputs[count].path = *(const char *const *)(base + option->offset);
        snprintf(outputs[count++].what, sizeof outputs->what, "%s%s", option->letter ? "-" : "--",
                 option->letter ? (const char[]){option->letter, 0} : option->name);
    }
    outputs[OUTPUTS - 1] = (struct place){"-", "standard output"}; /* for tables and --json */
}

static void find_inputs(struct place inputs[INPUTS], const struct run *run) {
    const struct settings *settings = run->settings;
    const unsigned kinds = run->verb->kinds;
    const bool model_first = kinds & (VERB_BIT(PREDICT) | VERB_BIT(EVALUATE) | VERB_BIT(VERIFY) |
                                      VERB_BIT(STATISTICS) | VERB_BIT(COEFFICIENTS));
    int count = 0;
    for (int i = 0; i < run->count; i++) {
        const bool word = (kinds & (VERB_BIT(EXPLAIN) | VERB_BIT(TUNE) | VERB_BIT(KERNELS))) && i == 0;
        const bool output = (kinds & VERB_BIT(CONVERT)) && i == 1;
        inputs[count++] = (struct place){word || output ? NULL : run->arguments[i], "the data"};
        if (model_first && i == 0) strcpy(inputs[0].what, "the model");
    }
    inputs[count++] = (struct place){settings->target_file, "--target-file"};
    inputs[count++] = (struct place){settings->weights_file, "--weights-file"};
    inputs[count++] = (struct place){settings->offset_file, "--offset-file"};
    inputs[count++] = (struct place){settings->groups_file, "--groups-file"};
    inputs[count++] = (struct place){settings->warm_start, "--warm-start"};
    for (int i = 0; i < option_count && count < INPUTS; i++) {
        const struct option *option = &option_table[i];
        if (option->kind != OPTION_PATH || option->place != IN_OWN || !option_applies(option, run->verb))
            continue;
        inputs[count].path = *(const char *const *)(settings->own.bytes + option->offset);
        snprintf(inputs[count++].what, sizeof inputs->what, "--%s", option->name);
    }
    while (count < INPUTS) inputs[count++] = (struct place){NULL, ""};
}

/* ----------------------------------------------------------------------------------------- the same */

/* Only what can be lost counts: a regular file. False for all else, and for what does not exist. */
static bool identify(struct stat *status, const char *path, bool output) {
    const int result =
        is_standard(path, output) ? fstat(output ? STDOUT_FILENO : STDIN_FILENO, status) : stat(path, status);
    return result == 0 && S_ISREG(status->st_mode);
}

static bool same_inode(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static const char *folder_of(char folder[4096], const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strcpy(folder, ".");
    snprintf(folder, 4096, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return folder;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Two files that are yet to be made are one if they have one name in one folder. */
static bool same_new(const char *a, const char *b) {
    char folder[4096];
    struct stat one, other;
    if (strcmp(base_of(a), base_of(b)) != 0) return false;
    return stat(folder_of(folder, a), &one) == 0 && stat(folder_of(folder, b), &other) == 0 &&
           same_inode(&one, &other);
}

static bool same_output(const char *a, const char *b) {
    struct stat one, other;
    const bool first = is_standard(a, true), second = is_standard(b, true);
    if (first && second) return true;
    const bool old = identify(&one, a, true), other_old = identify(&other, b, true);
    if (old && other_old) return same_inode(&one, &other);
    return !first && !second && access(a, F_OK) != 0 && access(b, F_OK) != 0 && same_new(a, b);
}

/* ----------------------------------------------------------------------------------------- checks */

static int check_writable(const char *path) {
    if (is_standard(path, true)) {
        if (!talk_json()) return 0;
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "name a file",
                         "%s: --json needs standard output for its object", path);
    }
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return fail_with(KILN_ERR_IO, WRITING, "", "cannot write %s: it is a folder", path);
    char folder[4096];
    if (access(folder_of(folder, path), W_OK | X_OK) == 0) return 0;
    return fail_with(KILN_ERR_IO, WRITING, "", "cannot write %s: folder %s: %s", path, folder,
                     strerror(errno));
}

static int check_inputs(const struct place *output, const struct place inputs[INPUTS]) {
    struct stat own, other;
    if (!identify(&own, output->path, true)) return 0;
    for (int i = 0; i < INPUTS; i++) {
        if (!inputs[i].path || !identify(&other, inputs[i].path, false) || !same_inode(&own, &other))
            continue;
        /* The error's object would be written into the data. */
        if (is_standard(output->path, true)) talk_begin(talk_quiet(), talk_verbose(), false);
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "name another file for the output",
                         "%s: it is the same file as %s (%s), which %s would overwrite", output->path,
                         inputs[i].path, inputs[i].what, output->what);
    }
    return 0;
}

/* The earlier outputs. Standard output may be one of them: tables then go to standard error. */
static int check_others(const struct place outputs[OUTPUTS], int i) {
    const bool standard = i == OUTPUTS - 1;
    for (int j = 0; j < i; j++) {
        if (!outputs[j].path || !same_output(outputs[i].path, outputs[j].path)) continue;
        if (standard && is_standard(outputs[j].path, true)) continue;
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give each a file of its own",
                         "%s: two outputs would be written to it, %s and %s", outputs[j].path,
                         outputs[j].what, outputs[i].what);
    }
    return 0;
}

int run_check_outputs(const struct run *run) {
    struct place outputs[OUTPUTS], inputs[INPUTS];
    int code = 0;
    find_outputs(outputs, run);
    find_inputs(inputs, run);
    for (int i = 0; !code && i < OUTPUTS; i++) {
        if (!outputs[i].path) continue;
        if (i < OUTPUTS - 1) code = check_writable(outputs[i].path);
        if (!code) code = check_inputs(&outputs[i], inputs);
        if (!code) code = check_others(outputs, i);
        if (!code && strcmp(outputs[i].what, "--plot") == 0) code = picture_check(outputs[i].path);
    }
    return code;
}

FILE *run_tables(const struct run *run) {
    struct place outputs[OUTPUTS];
    find_outputs(outputs, run);
    for (int i = 0; i < OUTPUTS - 1; i++)
        if (outputs[i].path && is_standard(outputs[i].path, true)) return stderr;
    return stdout;
}
