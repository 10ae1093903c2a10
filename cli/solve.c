/* This file has what the verbs of all algorithms share: one run, from the options to what is told. */
#include "solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "choose.h"
#include "commands.h"
#include "files.h"
#include "metrics.h"
#include "progress.h"
#include "report.h"

enum { NAMES_MOST = 8 << 20 }; /* bytes of names that fit well within a model's header */

static const char *name_of(const struct solving *s) {
    return s->run->verb->name;
}

int solve_allocate(kiln_matrix **A, const struct solving *s, int64_t rows, int64_t cols) {
    const kiln_type type = kiln_matrix_type(solving_X(s));
    return kiln_matrix_dense(A, s->run->device, type, rows, cols, NULL) == KILN_OK ? 0
                                                                                   : fail_library(WORKING);
}

int solve_take(kiln_matrix **A, const struct solving *s, const char *tensor) {
    const kiln_type type = kiln_matrix_type(solving_X(s));
    return kiln_model_tensor(A, s->run->device, type, s->warm, tensor) == KILN_OK ? 0
                                                                                  : fail_library(USING_MODEL);
}

static int load_start(struct solving *s) {
    const char *path = s->run->settings->warm_start;
    if (!path) return 0;
    const int code = run_load_model(&s->warm, path);
    const char *theirs = code ? "" : kiln_model_text(s->warm, "algorithm");
    if (code || s->solver->any_start || strcmp(theirs, name_of(s)) == 0) return code;
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "a model of the same algorithm is needed",
                     "--warm-start %s: a model of %s is no start for %s", path, theirs, name_of(s));
}

/* Columns of graphs and ratings are no features, which a model would name. */
static int read_data(struct solving *s) {
    struct run *run = s->run;
    const bool columns = s->solver->any_start || run->verb->kinds & VERB_BIT(ROWS);
    int code = load_start(s);
    if (!code) code = choose_reader(run);
    if (!code)
        code = run_read(run, &s->data, run->arguments[0], type_of(run->settings->type),
                        columns ? s->warm : NULL);
    if (!code && !run_has_option(run, "weights")) code = run_read_columns(run, s->data, NULL, NULL, NULL);
    return !code && s->solver->check ? s->solver->check(s) : code;
}

int solve_begin(struct solving *s, struct run *run, const struct solver *solver) {
    *s = (struct solving){.run = run,
                          .solver = solver,
                          .report.size = sizeof s->report,
                          .state = calloc(1, solver->bytes),
                          .options = run->settings->algorithm.bytes,
                          .own = run->settings->own.bytes};
    result_begin(&s->result);
    if (!s->state) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory");
    const int code = solver->begin ? solver->begin(s) : 0;
    return code ? code : read_data(s);
}

kiln_work solve_work(const struct solving *s) {
    const struct run *run = s->run;
    if (s->solver->work) return s->solver->work(s);
    const int64_t passes = choose_passes(run->verb, run->settings, kiln_matrix_cols(solving_X(s)));
    kiln_work work = choose_work(run->verb, s->data, choose_width(run->verb, run->settings), passes);
    work.steps = (int64_t)algorithm_value(run->verb->name, run->settings, "steps");
    return work;
}

static int choose(struct solving *s) {
    const kiln_work work = solve_work(s);
    return choose_device(s->run, s->data, &work);
}

static int solve(struct solving *s) {
    struct run *run = s->run;
    const kiln_type type = kiln_matrix_type(solving_X(s));
    const double tolerance = kiln_option_value(name_of(s), s->options, "tolerance", type);
    const kiln_control control = checkpoint_control(run, talk_control("solve", tolerance));
    kiln_device_statistics before = {0};
    kiln_device_get_statistics(run->device, &before);
    const double start = clock_seconds();
    if (!s->noted) talk_unpolled();
    if (s->solver->solve(s, &control) != KILN_OK)
        return s->solver->fail ? s->solver->fail(s) : fail_library(READING);
    run->seconds.solve += run_account(run, &before, clock_seconds() - start);
    if (s->report.stopped_by == KILN_STOP_DIVERGED) return report_fail_diverged(run, &s->report, type);
    return s->solver->finish ? s->solver->finish(s) : 0;
}

/* ---------------------------------------------------------------------------------------- results */

/* A choice by its name; null where it is left to the library. */
static void put_choice(struct result *result, const kiln_option *option, int64_t number) {
    char name[STANDARD_ROOM];
    if (number > 0) option_choice(name, option->choices, number);
    PUT(result, option->name, TEXT(number > 0 ? result_words(result, "%s", name) : NULL));
}

/* Every option that the registry tells, with the value that held. */
static void put_option(struct result *result, const struct solving *s, const kiln_option *option) {
    const double value =
        kiln_option_value(name_of(s), s->options, option->name, kiln_matrix_type(solving_X(s)));
    switch (option->kind) {
    case KILN_OPTION_FLAG: PUT(result, option->name, FLAG(value)); break;
    case KILN_OPTION_CHOICE: put_choice(result, option, (int64_t)value); break;
    case KILN_OPTION_INT:
    case KILN_OPTION_INTEGER: PUT(result, option->name, COUNT((int64_t)value)); break;
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: PUT(result, option->name, NUMBER(value)); break;
    }
}

static void put_options(struct result *result, const struct solving *s) {
    const kiln_algorithm *algorithm = kiln_algorithm_named(name_of(s));
    const struct settings *settings = s->run->settings;
    result_open(result, "options", true);
    for (int64_t i = 0; i < algorithm->option_count; i++) put_option(result, s, &algorithm->options[i]);
    PUT(result, "warm_start", TEXT(settings->warm_start));
    const bool links = s->run->verb->kinds & VERB_BIT(LINKS); /* and a target is one of its columns */
    if (settings->source) PUT(result, "source", TEXT(settings->source));
    if (settings->target && links) PUT(result, "target", TEXT(settings->target));
    if (settings->weight) PUT(result, "weight", TEXT(settings->weight));
    if (settings->undirected) PUT(result, "undirected", FLAG(true));
    if (s->run->verb->kinds & VERB_BIT(ROWS)) {
        PUT(result, "missing", TEXT(settings->missing));
        const bool weighs = run_has_option(s->run, "weights");
        PUT(result, "weights", TEXT(weighs ? kiln_data_role_name(s->data, KILN_COLUMN_WEIGHTS) : NULL));
        PUT(result, "weights_file", TEXT(settings->weights_file));
    }
    result_close(result);
}

/* Tells what the library reports of this algorithm alone, which a model keeps where there are no metrics. */
static void put_figures(struct result *result, const kiln_report *report) {
    const char *name;
    for (int64_t i = 0; (name = kiln_report_figure_name(report, i)); i++)
        if (!result_has(result, name))
            PUT(result, name, NUMBER(kiln_report_figure(report, name)), .only_kept = true);
}

/* All that the model keeps is there before it is written; times are not. */
static void put_results(struct solving *s) {
    const struct solver *solver = s->solver;
    struct result *result = &s->result;
    run_put(result, s->run, solver->schema);
    PUT(result, "algorithm", TEXT(name_of(s)));
    run_put_device(result, s->run);
    run_put_shape(result, solving_X(s));
    if (solver->head) solver->head(result, s);
    report_put_end(result, &s->report, &solver->words);
    if (solver->metrics) solver->metrics(result, s);
    report_put_objective(result, &s->report, &solver->words);
    if (!solver->metrics) put_figures(result, &s->report);
    PUT(result, "warnings",
        JSON(report_add_warning(report_warnings_json(&s->report, s->data), "unconverged-models",
                                s->unconverged)));
    (solver->options ? solver->options : put_options)(result, s);
}

static kiln_status fill_model(kiln_model *model, const struct solving *s) {
    kiln_status status = s->solver->keep(model, s);
    if (status == KILN_OK && *kiln_data_schema(s->data))
        status = kiln_model_set_text(model, "schema", kiln_data_schema(s->data));
    if (status == KILN_OK) status = kiln_model_set_text(model, "device", s->run->device_info.name);
    return status == KILN_OK ? result_keep(model, &s->result) : status;
}

kiln_status solve_set_json(kiln_model *model, const char *key, json_t *value) {
    char *text = json_is_null(value) ? NULL : json_compact(value);
    const kiln_status status = text ? kiln_model_set_text(model, key, text) : KILN_OK;
    free(text);
    json_decref(value);
    return status;
}

kiln_status solve_keep_tensors(kiln_model *model, const struct solving *s, const kiln_model *made) {
    kiln_status status = KILN_OK;
    kiln_type type;
    int64_t rows, cols;
    const char *name;
    for (int64_t i = 0; status == KILN_OK && (name = kiln_model_tensor_info(made, i, &type, &rows, &cols));
         i++) {
        kiln_matrix *A = NULL;
        if (model_tensor_shape(model, name, &type, &rows, &cols)) continue;
        status = kiln_model_tensor(&A, s->run->device, KILN_TYPE_DEFAULT, made, name);
        if (status == KILN_OK) status = kiln_model_set_tensor(model, name, A);
        kiln_matrix_free(A);
    }
    return status;
}

kiln_status solve_keep_names(kiln_model *model, const char *key, const struct solving *s, int64_t count,
                             const char *(*name)(const kiln_data *data, int64_t i)) {
    size_t bytes = 0;
    if (count == 0 || !name(s->data, 0)) return KILN_OK;
    for (int64_t i = 0; i < count; i++) bytes += strlen(name(s->data, i)) + 3;
    if (bytes > NAMES_MOST) {
        say("the names of %s %s are too long for a model and are left out", text_count(count), key);
        return KILN_OK;
    }
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) json_add(array, json_text(name(s->data, i)));
    return solve_set_json(model, key, array);
}

static int save_model(const struct solving *s) {
    kiln_model *model = NULL;
    kiln_status status = kiln_model_create(&model, name_of(s));
    if (status == KILN_OK) status = fill_model(model, s);
    if (status == KILN_OK) status = kiln_model_save(model, s->run->settings->output);
    const int code = status == KILN_OK ? 0 : fail_library(WRITING);
    kiln_model_free(model);
    return code;
}

int solve_write_npz(const struct solving *s, const char *path) {
    kiln_model *model = NULL;
    if (!path) return 0;
    kiln_status status = kiln_model_create(&model, name_of(s));
    if (status == KILN_OK) status = s->solver->keep(model, s);
    if (status == KILN_OK) status = kiln_model_write_npz(model, path);
    const int code = status == KILN_OK ? 0 : fail_library(WRITING);
    kiln_model_free(model);
    return code;
}

/* Says what would shorten a command that took a while, by what took most of it. */
static void tell_what_took_long(const struct solving *s) {
    enum { A_WHILE = 1 };
    const struct run *run = s->run;
    const double read = run->seconds.read, solve = run->seconds.solve, write = run->seconds.write,
                 all =
                     read + run->seconds.transfer + run->seconds.build + solve + run->seconds.measure + write;
    const kiln_file_format format = kiln_data_format(s->data);
    const bool text = format != KILN_FILE_NPY && format != KILN_FILE_NPZ && format != KILN_FILE_PACKED;
    if (all < A_WHILE) return;
    if (read > all / 2 && text)
        say("most of the time was reading: kiln convert makes a .kiln-data file of it, which is read at "
            "memory's speed");
    else if (run->seconds.build > all / 2)
        say("most of the time was building kernels, which are kept: the next command has them");
    else if (run->seconds.transfer > all / 2)
        say("most of the time was moving X: more --memory keeps it on the device");
    else if (solve > all / 2 && kiln_matrix_type(solving_X(s)) == KILN_F64)
        say("most of the time was solving: --type f32 halves what a pass reads, a larger --tolerance ends "
            "sooner");
}

/* --verbose adds this. */
static void tell_device(const struct run *run) {
    kiln_device_statistics s = {0};
    kiln_device_get_statistics(run->device, &s);
    say("device %s: peak memory %s; %s up, %s down; %lld kernels built, %lld from the cache",
        run->device_info.name, text_bytes((double)s.memory_peak), text_bytes((double)s.bytes_up),
        text_bytes((double)s.bytes_down), (long long)s.kernels_built, (long long)s.kernels_cached);
    if (s.layout_seconds > 0)
        say("  derived from X to make passes fast: %s in %s", text_bytes((double)s.layout_bytes),
            text_seconds(s.layout_seconds));
    if (s.evictions) say("  too little memory: matrices made room %s", text_plural(s.evictions, "time"));
    if (s.panels)
        say("  X in %s: %s at %s/s, %.0f %% of the time waiting for panels", text_plural(s.panels, "panel"),
            text_bytes((double)s.panel_bytes),
            text_bytes((double)s.panel_bytes / fmax(s.panel_seconds, 1e-9)),
            100 * s.panel_wait_seconds / fmax(s.panel_seconds, 1e-9));
}

static int tell(struct solving *s) {
    struct run *run = s->run;
    struct result *result = &s->result;
    progress_end();
    if (talk_verbose()) tell_device(run);
    choose_put(result, run);
    PUT(result, "model", TEXT(run->settings->output));
    checkpoint_put(result, run);
    run_put_seconds(result, run, true);
    if (s->solver->put) s->solver->put(result, s);
    report_put_trace(result, &s->report);
    int code = run_tell(run, result);
    if (!code && talk_verbose()) tell_what_took_long(s);
    if (!code) code = report_end(run, &s->report, s->data);
    return !code && *s->unconverged && run->settings->strict ? EXIT_NOT_CONVERGED : code;
}

int64_t solve_find_top(int64_t *found, const double *values, int64_t count, int64_t top) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (kept == top && !(values[i] > values[found[top - 1]])) continue;
        int64_t at = kept < top ? kept++ : top - 1;
        for (; at > 0 && values[found[at - 1]] < values[i]; at--) found[at] = found[at - 1];
        found[at] = i;
    }
    return kept;
}

/* The model and other files, and what is told. */
static int write_all(struct solving *s) {
    const double start = clock_seconds();
    int code = s->run->settings->output ? save_model(s) : 0;
    if (!code && s->solver->write) code = s->solver->write(s);
    s->run->seconds.write = clock_seconds() - start;
    return code;
}

void solve_end(struct solving *s) {
    if (s->state && s->solver->free) s->solver->free(s);
    free(s->state);
    result_free(&s->result);
    kiln_report_free(&s->report);
    kiln_data_free(s->data);
    kiln_model_free(s->warm);
}

static int run_with(struct run *run) {
    const struct solver *solver = run->verb->solver;
    struct solving s = {.solver = solver};
    int code = run_check_outputs(run);
    if (!code) code = checkpoint_open(run);
    if (code) return code;
    code = solve_begin(&s, run, solver);
    if (!code) code = choose(&s);
    if (!code) run_say_memory(run, solving_X(&s));
    if (!code) code = solver->prepare(&s);
    if (!code && !s.done) {
        code = solve(&s);
        if (!code) put_results(&s);
        if (!code) code = write_all(&s);
        if (!code) code = tell(&s);
    }
    if (!code || code == EXIT_NOT_CONVERGED) {
        const int over = run_check_memory(run);
        if (over) code = over;
    }
    solve_end(&s);
    return code;
}

int solve_run(struct run *run) {
    const struct solver *solver = run->verb->solver;
    const struct settings *const given = run->settings;
    struct settings settings = *given;
    int code = solver->take ? solver->take(run, &settings) : 0;
    run->settings = &settings;
    if (!code) code = run_with(run);
    run->settings = given;
    return code;
}
