/* What the verbs of algorithms share that are no linear models. */
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
#include "train.h"

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
    if (code || strcmp(theirs, name_of(s)) == 0) return code;
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "a model of the same algorithm is needed",
                     "--warm-start %s: a model of %s is no start for %s", path, theirs, name_of(s));
}

static int read_data(struct solving *s) {
    struct run *run = s->run;
    int code = load_start(s);
    if (!code) code = choose_reader(run);
    const kiln_model *model =
        run->verb->kinds & VERB_BIT(ROWS) ? s->warm : NULL; /* whose columns are meant */
    if (!code) code = run_read(run, &s->data, run->arguments[0], type_of(run->settings->type), model);
    if (!code && s->solver->check) code = s->solver->check(s);
    if (code) return code;
    const int64_t passes = choose_passes(run->verb, run->settings, kiln_matrix_cols(solving_X(s)));
    const int64_t width = s->solver->width ? s->solver->width(s) : choose_width(run->verb, run->settings);
    const kiln_work work = choose_work(run->verb, s->data, width, passes);
    return choose_device(run, s->data, &work);
}

static int solve(struct solving *s) {
    struct run *run = s->run;
    const double tolerance =
        kiln_option_value(name_of(s), s->options, "tolerance", kiln_matrix_type(solving_X(s)));
    const kiln_control control = checkpoint_control(run, talk_control("solve", tolerance));
    kiln_device_statistics before = {0};
    kiln_device_get_statistics(run->device, &before);
    const double start = clock_seconds();
    talk_unpolled();
    if (s->solver->solve(s, &control) != KILN_OK) return fail_library(READING);
    run->seconds.solve = run_account(run, &before, clock_seconds() - start);
    return s->solver->finish ? s->solver->finish(s) : 0;
}

/* ---------------------------------------------------------------------------------------- results */

/* Every option that the registry tells, with the value that held. */
static void put_option(json_t *object, const struct solving *s, const kiln_option *option) {
    const double value =
        kiln_option_value(name_of(s), s->options, option->name, kiln_matrix_type(solving_X(s)));
    switch (option->kind) {
    case KILN_OPTION_FLAG: json_put_flag(object, option->name, value != 0); break;
    case KILN_OPTION_INT:
    case KILN_OPTION_CHOICE:
    case KILN_OPTION_INTEGER: json_put_count(object, option->name, (int64_t)value); break;
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: json_put_number(object, option->name, value); break;
    }
}

static json_t *options_json(const struct solving *s) {
    const kiln_algorithm *algorithm = kiln_algorithm_named(name_of(s));
    json_t *object = json_object();
    for (int64_t i = 0; i < algorithm->option_count; i++) put_option(object, s, &algorithm->options[i]);
    const struct settings *settings = s->run->settings;
    json_put_text(object, "warm_start", settings->warm_start);
    if (!(s->run->verb->kinds & VERB_BIT(ROWS))) return object;
    json_put_text(object, "missing", settings->missing);
    json_put_text(object, "weights", settings->weights);
    json_put_text(object, "weights_file", settings->weights_file);
    return object;
}

static json_t *report_json(const struct solving *s) {
    json_t *report = json_object();
    json_put_count(report, "iterations", s->report.iterations);
    json_put_flag(report, "converged", s->report.converged);
    json_put_text(report, "stopped_by", kiln_stop_name(s->report.stopped_by));
    json_put_number(report, "residual", s->report.residual);
    json_put_number(report, s->solver->objective, s->report.objective);
    if (!s->solver->ranks) train_put_certificate(report, &s->report);
    for (int64_t i = 0; kiln_report_figure_name(&s->report, i); i++) {
        const char *name = kiln_report_figure_name(&s->report, i);
        if (!json_object_get(report, name))
            json_put_number(report, name, kiln_report_figure(&s->report, name));
    }
    return report;
}

static kiln_status fill_model(kiln_model *model, const struct solving *s) {
    kiln_status status = s->solver->keep(model, s);
    if (status == KILN_OK && *kiln_data_schema(s->data))
        status = kiln_model_set_text(model, "schema", kiln_data_schema(s->data));
    if (status == KILN_OK) status = kiln_model_set_text(model, "device", s->run->device_info.name);
    if (status == KILN_OK) status = train_set_json(model, "options", options_json(s));
    return status == KILN_OK ? train_set_json(model, "report", report_json(s)) : status;
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
    return train_set_json(model, key, array);
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

static int tell_json(const struct solving *s) {
    struct run *run = s->run;
    const kiln_report *report = &s->report;
    json_t *object = run_json(run, s->solver->schema);
    json_put_text(object, "algorithm", name_of(s));
    run_json_device(run, object);
    choose_json(run, object);
    run_json_shape(object, solving_X(s));
    json_put_count(object, "iterations", report->iterations);
    json_put_flag(object, "converged", report->converged);
    json_put_text(object, "stopped_by", kiln_stop_name(report->stopped_by));
    if (report->solver) json_put_text(object, "solver", report->solver);
    json_put_number(object, "residual", report->residual);
    json_put_number(object, "tolerance", report->tolerance);
    json_put_number(object, s->solver->objective, report->objective);
    if (!s->solver->ranks) train_put_certificate(object, report);
    json_put(object, "warnings", train_warnings_json(report, NULL));
    json_put(object, "options", options_json(s));
    json_put_text(object, "model", run->settings->output);
    checkpoint_json(run, object);
    if (s->solver->json) s->solver->json(object, s);
    run_json_seconds(run, object);
    json_put(object, "trace", train_trace_json(report));
    return json_print(object);
}

static void tell_people(const struct solving *s) {
    const kiln_report *report = &s->report;
    FILE *file = run_tables(s->run);
    if (s->solver->head) s->solver->head(file, s);
    if (report->converged && isinf(report->tolerance))
        fprintf(file, "  done        %s, as asked; change %.1e\n",
                text_plural(report->iterations, "iteration"), report->residual);
    else
        fprintf(file, "  converged   %s, %s%s%s; change %.1e, tolerance %.1e\n",
                report->converged ? "yes" : "no", text_plural(report->iterations, "iteration"),
                report->solver ? " of " : "", report->solver ? report->solver : "", report->residual,
                report->tolerance);
    fprintf(file, "  %-11s %s\n", s->solver->objective,
            isinf(report->objective) ? "no bound" : text_number(report->objective));
    train_print_certificate(file, report);
    run_print_seconds(file, s->run);
    if (s->solver->print) s->solver->print(file, s);
}

static int tell(const struct solving *s) {
    int code = 0;
    progress_end();
    if (talk_verbose()) train_tell_device(s->run);
    if (talk_json())
        code = tell_json(s);
    else
        tell_people(s);
    return code ? code : train_end(s->run, &s->report, s->data);
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

int solve_run(struct run *run, const struct solver *solver) {
    struct solving s = {.run = run,
                        .solver = solver,
                        .report.size = sizeof s.report,
                        .state = calloc(1, solver->bytes),
                        .options = run->settings->algorithm.bytes,
                        .own = run->settings->own.bytes};
    int code = s.state ? run_check_outputs(run) : fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory");
    if (!code) code = checkpoint_open(run);
    if (!code) code = read_data(&s);
    if (!code) code = solver->prepare(&s);
    if (!code) code = solve(&s);
    const double start = clock_seconds();
    if (!code && run->settings->output) code = save_model(&s);
    if (!code && solver->write) code = solver->write(&s);
    run->seconds.write = clock_seconds() - start;
    if (!code) code = tell(&s);
    if (s.state && solver->free) solver->free(&s);
    free(s.state);
    kiln_report_free(&s.report);
    kiln_data_free(s.data);
    kiln_model_free(s.warm);
    return code;
}
