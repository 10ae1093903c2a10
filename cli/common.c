/* This file has what the verbs share. */
#define _GNU_SOURCE
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "guard.h"
#include "metrics.h"
#include "wording.h"

double clock_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

kiln_type type_of(const char *name) {
    if (!name) return KILN_TYPE_DEFAULT;
    return strcmp(name, "f32") == 0 ? KILN_F32 : KILN_F64;
}

const char *type_name(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

kiln_file_format file_format_of(const char *name) {
    const char *other;
    for (int i = 0; name && (other = kiln_format_name((kiln_file_format)i)); i++)
        if (strcmp(other, name) == 0) return (kiln_file_format)i;
    return KILN_FILE_AUTO;
}

static void on_message(void *user, const char *text) {
    char words[1024];
    (void)user;
    say("%s", wording(words, sizeof words, text));
}

int run_open_device(struct run *run, const char *standard) {
    const char *name = run->settings->device ? run->settings->device : standard;
    const kiln_device_options options = {.threads = (int)run->settings->threads,
                                         .memory = run->settings->memory,
                                         .deterministic = run->settings->deterministic,
                                         .message = on_message};
    talk_doing("start the device");
    const char *each = strcmp(name, "auto") == 0 ? "cpu" : name; /* of processes */
    guard_begin();
    const kiln_status status = run->processes
                                   ? kiln_processes_open(&run->device, run->processes, each, &options)
                                   : kiln_device_open(&run->device, name, &options);
    guard_end();
    if (status != KILN_OK) return fail_library(WORKING);
    run->memory = held_begin(run->settings->strict);
    if (kiln_device_get_info(run->device, &run->device_info) != KILN_OK) return fail_library(WORKING);
    /* "auto" has announced its choice and the reason itself. */
    if (strcmp(name, "auto") != 0 && (run->settings->device || talk_verbose()))
        say("device %s: %s", run->device_info.name, run->device_info.description);
    return 0;
}

double run_account(struct run *run, const kiln_device_statistics *before, double wall) {
    kiln_device_statistics after = {0};
    kiln_device_get_statistics(run->device, &after);
    double transfer = after.transfer_seconds - before->transfer_seconds;
    double build = after.build_seconds - before->build_seconds;
    run->seconds.transfer += transfer;
    run->seconds.build += build;
    kiln_device_sharing(&run->sharing, run->device);
    return fmax(wall - transfer - build, 0);
}

json_t *model_options(const kiln_model *model) {
    const char *text = kiln_model_text(model, "options");
    return text ? json_loads(text, 0, NULL) : NULL;
}

int run_load_model(kiln_model **model, const char *path) {
    if (strcmp(path, "-") == 0)
        return fail_with(KILN_ERR_ARGUMENT, USING_MODEL, "name the model's file; the data may be -",
                         "-: a model is not read from standard input");
    return kiln_model_load(model, path) == KILN_OK ? 0 : fail_library(USING_MODEL);
}

/* A file of bare numbers is one column of X; with a label in front, as LIBSVM has it, it is y. */
static const kiln_matrix *only_column(const kiln_data *data) {
    const kiln_matrix *X = kiln_data_X(data), *y = kiln_data_y(data);
    if (y && kiln_matrix_nnz(X) == 0 && kiln_matrix_cols(y) == 1) return y;
    return kiln_matrix_cols(X) == 1 && kiln_matrix_format(X) == KILN_DENSE ? X : NULL;
}

/* While the file's name is known. */
static int check_weights(const kiln_matrix *weights, const char *path) {
    int code = 0;
    double *values = values_of(weights, &code);
    for (int64_t i = 0; !code && i < kiln_matrix_rows(weights); i++)
        if (!(values[i] >= 0))
            code = fail_with(
                KILN_ERR_DATA, READING, "repair the file, or remove the row from it and the data",
                "%s: number %lld is %g, but weights must not be negative", path, (long long)i + 1, values[i]);
    free(values);
    return code;
}

/* The numbers of the rows of `table` that were not left out, to be freed; NULL where there is no memory. */
static int64_t *kept_rows(const kiln_data *table) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(table));
    int64_t count, next = 0, *kept = malloc((size_t)rows * sizeof *kept + 1);
    const int64_t *out = kiln_data_left_out(table, &count);
    for (int64_t i = 0, row = 0; kept && i < rows; row++) {
        if (next < count && out[next] == row)
            next++;
        else
            kept[i++] = row;
    }
    return kept;
}

/* The numbers of the rows that `table` has. */
static int take_kept(struct run *run, kiln_matrix **column, const kiln_matrix *found,
                     const kiln_data *table) {
    int64_t count;
    if (!kiln_data_left_out(table, &count))
        return kiln_matrix_copy(column, run->device, KILN_TYPE_DEFAULT, found) == KILN_OK
                   ? 0
                   : fail_library(READING);
    int64_t *kept = kept_rows(table);
    if (!kept) return fail_with(KILN_ERR_NOMEM, READING, "", "out of memory for the rows that are kept");
    kiln_status status = kiln_matrix_dense(column, run->device, kiln_matrix_type(found),
                                           kiln_matrix_rows(kiln_data_X(table)), 1, NULL);
    if (status == KILN_OK) status = kiln_rows(*column, found, kept);
    free(kept);
    return status == KILN_OK ? 0 : fail_library(READING);
}

static int fail_rows(const kiln_matrix *found, const kiln_data *table, const char *path, const char *what) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(table));
    int64_t dropped;
    kiln_data_left_out(table, &dropped);
    if (!dropped)
        return fail_with(KILN_ERR_DATA, READING, "one number for each row of the data",
                         "--%s-file %s has %s, the data have %s", what, path,
                         text_plural(kiln_matrix_rows(found), "row"), text_plural(rows, "row"));
    return fail_with(
        KILN_ERR_DATA, READING, "one number for each row of the table, those with missing values, too",
        "--%s-file %s has %s, the data have %s, of which --missing drop leaves %s out", what, path,
        text_plural(kiln_matrix_rows(found), "row"), text_plural(rows + dropped, "row"), text_count(dropped));
}

int run_read_column_file(struct run *run, kiln_matrix **column, const char *path, kiln_type type,
                         const char *what, const kiln_data *table) {
    kiln_data *data = NULL;
    int64_t dropped;
    int code = 0;
    const kiln_read_options options = {
        .type = type, .threads = (int)run->settings->threads, .control = talk_control("read", 0)};
    if (kiln_data_read(&data, run->device, path, &options) != KILN_OK) return fail_library(READING);
    const kiln_matrix *found = only_column(data);
    kiln_data_left_out(table, &dropped);
    if (!found)
        code = fail_with(KILN_ERR_DATA, READING, "a file with one number a line",
                         "%s: the %s must be one dense column, this has %lld columns", path, what,
                         (long long)kiln_matrix_cols(kiln_data_X(data)));
    else if (kiln_matrix_rows(found) != kiln_matrix_rows(kiln_data_X(table)) + dropped)
        code = fail_rows(found, table, path, what);
    else if (strcmp(what, "weights") == 0)
        code = check_weights(found, path);
    if (!code) code = take_kept(run, column, found, table);
    kiln_data_free(data);
    return code;
}

bool run_has_option(const struct run *run, const char *name) {
    bool has = false;
    for (int i = 0; i < option_count; i++)
        has |= strcmp(option_table[i].name, name) == 0 && option_applies(&option_table[i], run->verb);
    return has;
}

/* A packed file has a column unasked. It counts for a verb that has an option for it; an offset, and what
 * verify and statistics take, if the model was trained with it. */
static bool is_taken(const struct run *run, const kiln_model *model, const char *what, const char *asked) {
    const unsigned judges = VERB_BIT(VERIFY) | VERB_BIT(STATISTICS);
    const bool taken = asked || run_has_option(run, what);
    if (!taken || asked || !model || (strcmp(what, "offset") != 0 && !(run->verb->kinds & judges)))
        return taken;
    json_t *used = model_options(model);
    const bool trained = json_is_string(json_object_get(used, what));
    json_decref(used);
    return trained;
}

static int take_column(struct run *run, kiln_matrix **column, const kiln_matrix *found, const char *path,
                       const char *what, const kiln_data *table) {
    if (found && path)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give one of them", "--%s and --%s-file together", what,
                         what);
    if (path)
        return run_read_column_file(run, column, path, kiln_matrix_type(kiln_data_X(table)), what, table);
    if (found && kiln_matrix_copy(column, run->device, KILN_TYPE_DEFAULT, found) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

int run_read_columns(struct run *run, const kiln_data *data, const kiln_model *model, kiln_matrix **weights,
                     kiln_matrix **offset) {
    const struct settings *settings = run->settings;
    const struct {
        kiln_matrix **column;
        const kiln_matrix *found;
        const char *what, *name, *asked, *path;
    } roles[] = {{weights, kiln_data_weights(data), "weights", kiln_data_role_name(data, KILN_COLUMN_WEIGHTS),
                  settings->weights, settings->weights_file},
                 {offset, kiln_data_offset(data), "offset", kiln_data_role_name(data, KILN_COLUMN_OFFSET),
                  settings->offset, settings->offset_file}};
    int code = 0;
    for (size_t i = 0; !code && i < sizeof roles / sizeof *roles; i++) {
        const bool taken =
            roles[i].found && roles[i].column && is_taken(run, model, roles[i].what, roles[i].asked);
        if (roles[i].found && !taken)
            say_error("kiln: warning: the column of the file's %s, '%s', is not used", roles[i].what,
                      roles[i].name);
        if (roles[i].column)
            code = take_column(run, roles[i].column, taken ? roles[i].found : NULL, roles[i].path,
                               roles[i].what, data);
    }
    return code;
}

bool model_tensor_shape(const kiln_model *model, const char *name, kiln_type *type, int64_t *rows,
                        int64_t *cols) {
    const char *found;
    for (int64_t i = 0; (found = kiln_model_tensor_info(model, i, type, rows, cols)); i++)
        if (strcmp(found, name) == 0) return true;
    return false;
}

void run_put(struct result *result, const struct run *run, const char *schema) {
    PUT(result, "schema", TEXT(schema));
    PUT(result, "kiln_version", TEXT(kiln_version()));
    PUT(result, "verb", TEXT(run->verb->name));
}

void run_put_device(struct result *result, const struct run *run) {
    PUT(result, "device", TEXT(run->device_info.name));
    PUT(result, "device_description", TEXT(run->device_info.description));
}

void run_put_shape(struct result *result, const kiln_matrix *X) {
    PUT(result, "type", TEXT(type_name(kiln_matrix_type(X))));
    PUT(result, "rows", COUNT(kiln_matrix_rows(X)));
    PUT(result, "columns", COUNT(kiln_matrix_cols(X)));
    PUT(result, "nnz", COUNT(kiln_matrix_nnz(X)));
}

/* A budget is about a device's memory, on the CPU about the whole process. A list lies on another device than
 * the CPU. */
static bool bounds_process(const struct run *run) {
    const char *name = run->device_info.name;
    return strncmp(name, "cpu", 3) == 0 && !strchr(name, ',');
}

/* The most that was held of what the budget is about, of which a 20th more is allowed. What a run tells in
 * several places is of one moment. */
static bool over_budget(struct run *run, const kiln_device_statistics *s, int64_t process) {
    enum { OVER = 20 };
    const int64_t budget = run->device_info.memory, counted = bounds_process(run) ? process : 0;
    if (run->held == 0) run->held = counted > s->memory_peak ? counted : s->memory_peak;
    return run->held > budget + budget / OVER;
}

/* A run has held too much: this is the error of --strict, else a warning's words. */
static kiln_error held_too_much(char *message, size_t room, const struct run *run) {
    const bool cpu = bounds_process(run), mapped = run->settings->map;
    snprintf(message, room, "%s held %s, more than 5 %% over the budget of %s",
             cpu ? "the process" : "the device", text_bytes((double)run->held),
             text_bytes((double)run->device_info.memory));
    return (kiln_error){.status = cpu ? KILN_ERR_NOMEM : KILN_ERR_DEVICE_NOMEM,
                        .message = message,
                        .hint = mapped ? "a larger --memory, or a file of f32"
                                       : "a larger --memory, --type f32, or --map where the verb takes it",
                        .file = "",
                        .offset = -1};
}

/* Returns whether that was more than the budget. */
static bool put_memory(struct result *result, struct run *run) {
    const bool shown = run->settings->memory > 0 || run->settings->map;
    kiln_device_statistics s = {0};
    int64_t process, own;
    kiln_device_get_statistics(run->device, &s);
    held_most(&process, &own, &run->memory);
    const char *budget = text_bytes((double)run->device_info.memory), *name = run->device_info.name;
    result_open(result, "memory", false);
    PUT(result, "budget", COUNT(run->device_info.memory));
    PUT(result, "peak", COUNT(s.memory_peak), .label = shown ? "memory" : NULL,
        .shown = result_words(result, "%s of %s on %s", text_bytes((double)s.memory_peak), budget, name));
    PUT(result, "process_peak", COUNT(process), .before = shown ? ", " : NULL,
        .shown = result_words(result, "%s in the process", text_bytes((double)process)));
    PUT(result, "process_held", COUNT(own), .before = shown ? ", " : NULL,
        .shown = result_words(result, "%s of it since the device was opened", text_bytes((double)own)));
    PUT(result, "bytes_up", COUNT(s.bytes_up));
    PUT(result, "bytes_down", COUNT(s.bytes_down));
    PUT(result, "evictions", COUNT(s.evictions));
    PUT(result, "layout_bytes", COUNT(s.layout_bytes));
    PUT(result, "layout_seconds", SECONDS(s.layout_seconds));
    PUT(result, "panels", COUNT(s.panels));
    PUT(result, "panel_bytes", COUNT(s.panel_bytes));
    PUT(result, "panel_seconds", SECONDS(s.panel_seconds));
    PUT(result, "panel_wait_seconds", SECONDS(s.panel_wait_seconds));
    const bool over = over_budget(run, &s, own);
    PUT(result, "over_budget", FLAG(over));
    result_close(result);
    return over;
}

/* Counts what has been timed, and so not measuring and writing. */
static void put_sharing(struct result *result, const struct run *run) {
    result_open(result, "sharing", false);
    PUT(result, "operations", COUNT(run->sharing.operations));
    PUT(result, "rows_home_bytes", COUNT(run->sharing.rows_home_bytes));
    result_close(result);
}

void run_say_memory(struct run *run, const kiln_matrix *X) {
    const bool sparse = kiln_matrix_format(X) == KILN_CSR, mapped = run->settings->map;
    const int64_t element = (kiln_matrix_type(X) == KILN_F32 ? 4 : 8) + (sparse ? 4 : 0);
    const double bytes =
        (double)kiln_matrix_nnz(X) * (double)element + (sparse ? 8 * (double)(kiln_matrix_rows(X) + 1) : 0);
    const bool cpu = bounds_process(run),
               passes = mapped || (!cpu && bytes > (double)run->device_info.memory);
    run->bounded = true;
    if (run->settings->memory == 0 && !mapped) return;
    say("memory: X, %s, stays %s%s; the budget of %s is %s", text_bytes(bytes),
        mapped          ? "in its file"
        : cpu || passes ? "in the machine's memory"
                        : "on the device",
        passes ? " and goes by in panels" : "", cpu ? "the process" : run->device_info.name,
        text_bytes((double)run->device_info.memory));
}

/* In JSON a run that ends so has its results, and the error beside them. */
static void put_held(struct result *result, const struct run *run, bool over) {
    char message[200];
    if (!over || !run->bounded || !run->settings->strict) return;
    const kiln_error error = held_too_much(message, sizeof message, run);
    PUT(result, "error", JSON(error_json(&error)));
}

int run_check_memory(struct run *run) {
    kiln_device_statistics s = {0};
    int64_t process, own;
    char message[200];
    if (kiln_device_get_statistics(run->device, &s) != KILN_OK) return EXIT_DONE;
    held_most(&process, &own, &run->memory);
    if (!over_budget(run, &s, own)) return EXIT_DONE;
    const kiln_error error = held_too_much(message, sizeof message, run);
    const bool strict = run->settings->strict;
    say_error("kiln: %s%s", strict ? "" : "warning: ", message);
    say_error("hint: %s%s", error.hint, strict ? ", or leave --strict out" : "");
    return strict ? exit_code(error.status, WORKING) : EXIT_DONE;
}

static void add_up(struct run *run) {
    struct seconds *seconds = &run->seconds;
    seconds->total = clock_seconds() - run->started;
    seconds->other = fmax(seconds->total - seconds->read - seconds->transfer - seconds->build -
                              seconds->solve - seconds->measure - seconds->write,
                          0);
}

void run_put_seconds(struct result *result, struct run *run, bool shown) {
    const struct seconds *seconds = &run->seconds;
    add_up(run);
    result_open(result, "seconds", false);
    PUT(result, "total", SECONDS(seconds->total), .label = shown ? "time" : NULL);
    PUT(result, "read", SECONDS(seconds->read), .before = shown ? ": read " : NULL);
    PUT(result, "transfer", SECONDS(seconds->transfer), .before = shown ? ", transfer " : NULL);
    PUT(result, "build", SECONDS(seconds->build), .before = shown ? ", build " : NULL);
    PUT(result, "solve", SECONDS(seconds->solve), .before = shown ? ", solve " : NULL);
    PUT(result, "measure", SECONDS(seconds->measure), .before = shown ? ", measure " : NULL);
    PUT(result, "write", SECONDS(seconds->write), .before = shown ? ", write " : NULL);
    PUT(result, "other", SECONDS(seconds->other), .before = shown ? ", other " : NULL);
    result_close(result);
    put_held(result, run, put_memory(result, run));
    put_sharing(result, run);
}

int run_tell(const struct run *run, const struct result *result) {
    return talk_json() ? result_print_json(result) : result_print(result, run_tables(run));
}
