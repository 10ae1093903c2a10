/* kiln hits: read a graph, rank its vertices, show the strongest. */
#include "hits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "files.h"
#include "metrics.h"
#include "output.h"
#include "progress.h"
#include "train.h"
#include "verbs.h"

enum { TOP = 10, NAMES_MOST = 8 << 20 }; /* bytes of names that fit well within a model's header */

struct ranking {
    kiln_data *data;
    kiln_model *warm;
    kiln_matrix *hubs, *authorities;
    double *hub, *authority; /* on the host */
    kiln_report report;
};

/* The vertex's name, or its number from 1 as in Matrix Market. */
static const char *vertex_name(const kiln_data *data, int64_t vertex, char *buffer) {
    const char *name = kiln_data_feature_name(data, vertex);
    if (name && kiln_matrix_rows(kiln_data_X(data)) == kiln_matrix_cols(kiln_data_X(data))) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)vertex + 1);
    return buffer;
}

static json_t *names_json(const kiln_data *data) {
    size_t bytes = 0;
    if (!kiln_data_feature_name(data, 0)) return json_null();
    const int64_t count = kiln_matrix_cols(kiln_data_X(data));
    for (int64_t i = 0; i < count; i++) bytes += strlen(kiln_data_feature_name(data, i)) + 3;
    if (bytes > NAMES_MOST) {
        say("the names of %s vertices are too long for a model and are left out; --scores writes them",
            text_count(count));
        return json_null();
    }
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) json_add(array, json_text(kiln_data_feature_name(data, i)));
    return array;
}

bool hits_same_vertices(const kiln_model *model, const kiln_data *data) {
    const char *text = kiln_model_text(model, "vertices");
    json_t *names = text ? json_loads(text, 0, NULL) : NULL;
    bool same = true;
    for (size_t i = 0; same && kiln_data_feature_name(data, 0) && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        same = name && strcmp(name, kiln_data_feature_name(data, (int64_t)i)) == 0;
    }
    json_decref(names);
    return same;
}

static int warm_start(struct run *run, struct ranking *job) {
    const char *path = run->settings->warm_start;
    const kiln_matrix *A = kiln_data_X(job->data);
    kiln_type type;
    int64_t rows = 0, cols = 0;
    if (!model_tensor_shape(job->warm, "authorities", &type, &rows, &cols) || rows != kiln_matrix_cols(A) ||
        !hits_same_vertices(job->warm, job->data))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the same vertices in the same order are needed",
                         "%s is no ranking of this graph's vertices", path);
    if (kiln_model_tensor(&job->authorities, run->device, kiln_matrix_type(A), job->warm, "authorities") !=
        KILN_OK)
        return fail_library(USING_MODEL);
    return 0;
}

/* A list of links with one odd line, or with commas, is told for rows of a matrix, and ranking those would be nonsense. */
static int check_format(const struct run *run, const kiln_data *data) {
    const kiln_file_format format = kiln_data_format(data);
    const char *given = run->settings->format;
    if ((format != KILN_FILE_CSV && format != KILN_FILE_LIBSVM) || (given && strcmp(given, "auto") != 0))
        return 0;
    return fail_with(
        KILN_ERR_DATA, READING,
        "--format edges for lines of two vertices and perhaps a weight; --format csv or libsvm if "
        "each line is the row of a matrix",
        "%s does not look like a list of links, but like rows of numbers",
        strcmp(run->arguments[0], "-") == 0 ? "standard input" : run->arguments[0]);
}

static int read_graph(struct run *run, struct ranking *job) {
    const struct settings *settings = run->settings;
    int code = 0;
    if (settings->warm_start && (code = run_load_model(&job->warm, settings->warm_start))) return code;
    if ((code = choose_reader(run))) return code;
    if ((code = run_read(run, &job->data, run->arguments[0], type_of(settings->type), NULL))) return code;
    if ((code = check_format(run, job->data))) return code;
    const int64_t passes = choose_passes(run->verb, settings, kiln_matrix_cols(kiln_data_X(job->data)));
    const kiln_work work = choose_work(job->data, 1, passes);
    if ((code = choose_device(run, job->data, &work))) return code;
    const kiln_matrix *A = kiln_data_X(job->data);
    const kiln_type type = kiln_matrix_type(A);
    if (job->warm && (code = warm_start(run, job))) return code;
    if (!job->authorities &&
        kiln_matrix_dense(&job->authorities, run->device, type, kiln_matrix_cols(A), 1, NULL) != KILN_OK)
        return fail_library(WORKING);
    if (kiln_matrix_dense(&job->hubs, run->device, type, kiln_matrix_rows(A), 1, NULL) != KILN_OK)
        return fail_library(WORKING);
    return 0;
}

static int solve(struct run *run, struct ranking *job) {
    const struct settings *settings = run->settings;
    const kiln_matrix *A = kiln_data_X(job->data);
    const double tolerance = kiln_matrix_type(A) == KILN_F32 ? 1e-5 : 1e-10;
    const kiln_hits_options options = {
        .norm = (int)settings->norm,
        .unweighted = settings->unweighted,
        .warm_start = job->warm != NULL,
        .tolerance = settings->tolerance,
        .max_iterations = settings->max_iterations,
        .control = talk_control(settings->tolerance > 0 ? settings->tolerance : tolerance)};
    kiln_device_statistics before = {0};
    int code = 0;
    kiln_device_get_statistics(run->device, &before);
    double start = clock_seconds();
    if (kiln_hits(job->hubs, job->authorities, A, &options, &job->report) != KILN_OK)
        return fail_library(READING);
    run->seconds.solve = run_account(run, &before, clock_seconds() - start);
    if ((job->hub = values_of(job->hubs, &code))) job->authority = values_of(job->authorities, &code);
    return code;
}

/* ---------------------------------------------------------------------------------------- results */

static json_t *options_json(const struct run *run, const struct ranking *job) {
    const struct settings *settings = run->settings;
    json_t *object = json_object();
    json_put_count(object, "norm", settings->norm ? settings->norm : 1);
    json_put_flag(object, "unweighted", settings->unweighted);
    json_put_number(object, "tolerance", job->report.tolerance);
    json_put_count(object, "max_iterations", settings->max_iterations ? settings->max_iterations : 1000);
    json_put_text(object, "warm_start", settings->warm_start);
    return object;
}

static kiln_status fill_model(kiln_model *model, const struct run *run, const struct ranking *job) {
    json_t *report = json_object();
    json_put_count(report, "iterations", job->report.iterations);
    json_put_flag(report, "converged", job->report.converged);
    json_put_number(report, "residual", job->report.residual);
    json_put_number(report, "eigenvalue", job->report.objective);
    kiln_status status = kiln_model_set_tensor(model, "hubs", job->hubs);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "authorities", job->authorities);
    if (status == KILN_OK) status = kiln_model_set_text(model, "device", run->device_info.name);
    if (status == KILN_OK) status = train_set_json(model, "options", options_json(run, job));
    if (status == KILN_OK) status = train_set_json(model, "vertices", names_json(job->data));
    if (status == KILN_OK) return train_set_json(model, "report", report);
    json_decref(report);
    return status;
}

static int save_model(struct run *run, const struct ranking *job) {
    kiln_model *model = NULL;
    kiln_status status = kiln_model_create(&model, "hits");
    if (status == KILN_OK) status = fill_model(model, run, job);
    if (status == KILN_OK) status = kiln_model_save(model, run->settings->output);
    int code = status == KILN_OK ? 0 : fail_library(WRITING);
    kiln_model_free(model);
    return code;
}

static int write_scores(const struct run *run, const struct ranking *job) {
    struct output output;
    const kiln_matrix *A = kiln_data_X(job->data);
    const int single = kiln_matrix_type(A) == KILN_F32;
    const int64_t rows = kiln_matrix_rows(A), cols = kiln_matrix_cols(A);
    char name[SHORTEST_ROOM], text[SHORTEST_ROOM];
    int code = output_open(&output, run->settings->scores);
    if (code) return code;
    for (int64_t i = 0; i < (rows > cols ? rows : cols) && !ferror(output.file) && !talk_interrupted(); i++) {
        text_shortest(text, i < rows ? job->hub[i] : NAN, single);
        fprintf(output.file, "%s\t%s\t", vertex_name(job->data, i, name), text);
        text_shortest(text, i < cols ? job->authority[i] : NAN, single);
        fprintf(output.file, "%s\n", text);
    }
    if (!talk_interrupted() || job->report.stopped_by == KILN_STOP_CANCELLED) return output_commit(&output);
    output_abandon(&output);
    return fail_with(KILN_ERR_CANCELLED, WRITING, "", "interrupted; no scores were written");
}

/* Numbers of the `top` largest values, largest first, ties by number; how many there are. By insertion: top
 * is small. */
static int64_t find_top(int64_t *found, const double *values, int64_t count, int64_t top) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (kept == top && !(values[i] > values[found[top - 1]])) continue;
        int64_t at = kept < top ? kept++ : top - 1;
        for (; at > 0 && values[found[at - 1]] < values[i]; at--) found[at] = found[at - 1];
        found[at] = i;
    }
    return kept;
}

static json_t *top_json(const struct ranking *job, const double *values, const int64_t *found,
                        int64_t count) {
    json_t *array = json_array();
    char name[SHORTEST_ROOM];
    for (int64_t i = 0; i < count; i++) {
        json_t *object = json_object();
        json_put_text(object, "vertex", vertex_name(job->data, found[i], name));
        json_put_number(object, "value", values[found[i]]);
        json_add(array, object);
    }
    return array;
}

struct top {
    int64_t *hubs, *authorities, hub_count, authority_count;
};

static int tell_json(struct run *run, const struct ranking *job, const struct top *top) {
    const kiln_report *report = &job->report;
    json_t *object = run_json(run, "kiln.ranking/1");
    json_put_text(object, "algorithm", "hits");
    run_json_device(run, object);
    choose_json(run, object);
    run_json_shape(object, kiln_data_X(job->data));
    json_put_count(object, "iterations", report->iterations);
    json_put_flag(object, "converged", report->converged);
    json_put_text(object, "stopped_by", kiln_stop_name(report->stopped_by));
    json_put_number(object, "residual", report->residual);
    json_put_number(object, "tolerance", report->tolerance);
    json_put_number(object, "eigenvalue", report->objective);
    json_put(object, "options", options_json(run, job));
    json_put_text(object, "model", run->settings->output);
    json_put_text(object, "scores", run->settings->scores);
    json_put(object, "authorities", top_json(job, job->authority, top->authorities, top->authority_count));
    json_put(object, "hubs", top_json(job, job->hub, top->hubs, top->hub_count));
    run_json_seconds(run, object);
    json_put(object, "trace", train_trace_json(report));
    return json_print(object);
}

static void tell_people(const struct run *run, const struct ranking *job, const struct top *top, FILE *file) {
    const kiln_report *report = &job->report;
    const kiln_matrix *A = kiln_data_X(job->data);
    const struct seconds *seconds = &run->seconds;
    char name[SHORTEST_ROOM];
    fprintf(file, "hubs and authorities: %s x %s, %s\n", text_count(kiln_matrix_rows(A)),
            text_count(kiln_matrix_cols(A)), text_plural(kiln_matrix_nnz(A), "link"));
    fprintf(file, "  converged   %s, %s; change %.1e, tolerance %.1e\n", report->converged ? "yes" : "no",
            text_plural(report->iterations, "iteration"), report->residual, report->tolerance);
    fprintf(file, "  eigenvalue  %s\n", text_number(report->objective));
    fprintf(file, "  time        %s: read %s, transfer %s, build %s, solve %s\n",
            text_seconds(clock_seconds() - run->started), text_seconds(seconds->read),
            text_seconds(seconds->transfer), text_seconds(seconds->build), text_seconds(seconds->solve));
    fprintf(file, "authorities\n");
    for (int64_t i = 0; i < top->authority_count; i++)
        fprintf(file, "  %13.6g  %s\n", job->authority[top->authorities[i]],
                vertex_name(job->data, top->authorities[i], name));
    fprintf(file, "hubs\n");
    for (int64_t i = 0; i < top->hub_count; i++)
        fprintf(file, "  %13.6g  %s\n", job->hub[top->hubs[i]], vertex_name(job->data, top->hubs[i], name));
}

static int tell(struct run *run, const struct ranking *job) {
    const struct settings *settings = run->settings;
    const kiln_matrix *A = kiln_data_X(job->data);
    const int64_t most = settings->top ? settings->top : TOP;
    struct top top = {malloc((size_t)most * sizeof(int64_t)), malloc((size_t)most * sizeof(int64_t)), 0, 0};
    int code = 0;
    if (!top.hubs || !top.authorities)
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld vertices", (long long)most);
    progress_clear();
    if (!code) {
        top.hub_count = find_top(top.hubs, job->hub, kiln_matrix_rows(A), most);
        top.authority_count = find_top(top.authorities, job->authority, kiln_matrix_cols(A), most);
        if (talk_verbose()) train_tell_device(run);
        if (talk_json())
            code = tell_json(run, job, &top);
        else
            tell_people(run, job, &top, run_tables(run));
    }
    free(top.hubs);
    free(top.authorities);
    return code ? code : train_end(run, &job->report, kiln_matrix_type(A));
}

int verb_hits(struct run *run) {
    struct ranking job = {0};
    int code = run_check_outputs(run);
    if (!code) code = read_graph(run, &job);
    if (!code) code = solve(run, &job);
    double start = clock_seconds();
    if (!code && run->settings->output) code = save_model(run, &job);
    if (!code && run->settings->scores) code = write_scores(run, &job);
    run->seconds.write = clock_seconds() - start;
    if (!code) code = tell(run, &job);
    free(job.hub);
    free(job.authority);
    kiln_report_free(&job.report);
    kiln_matrix_free(job.hubs);
    kiln_matrix_free(job.authorities);
    kiln_data_free(job.data);
    kiln_model_free(job.warm);
    return code;
}
