/* This file has what the verbs of factor models share: hold entries out, solve, keep the factors with the
 * names and what was rated, say what the model is worth on the entries held out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "factors.h"
#include "output.h"
#include "plot.h"

enum { RANKED = 10 };

static int64_t top_of(const struct solving *s) {
    return ((const struct factors_wanted *)s->own)->top;
}

const kiln_matrix *factors_training(const struct solving *s) {
    const struct factors_state *state = s->state;
    return state->train ? state->train : solving_X(s);
}

int64_t factors_width(const struct settings *settings) {
    return ((const struct factors_wanted *)(const void *)settings->own.bytes)->factors;
}

/* ------------------------------------------------------------------------------------------- the run */

int factors_check(struct solving *s) {
    if (kiln_matrix_format(solving_X(s)) == KILN_CSR) return 0;
    return fail_with(
        KILN_ERR_DATA, READING,
        "--format ratings reads lines of user, item and rating; Matrix Market, .npz and LIBSVM files "
        "hold what is there, and nothing where nothing is",
        "%s is a dense matrix, in which every entry is a rating", s->run->arguments[0]);
}

int factors_prepare(struct solving *s) {
    struct factors_state *state = s->state;
    const struct factors_wanted *wanted = s->own;
    const kiln_matrix *X = solving_X(s);
    const int64_t columns = wanted->factors + state->biases;
    if (wanted->test_fraction > 0 && kiln_split_entries(&state->train, &state->test, X, wanted->test_fraction,
                                                        (uint64_t)s->run->settings->seed) != KILN_OK)
        return fail_library(WORKING);
    if (s->warm) return factors_take_start(s, columns);
    const int code = solve_allocate(&state->A, s, kiln_matrix_rows(X), columns);
    return code ? code : solve_allocate(&state->B, s, kiln_matrix_cols(X), columns);
}

double factors_penalty(const struct solving *s) {
    return kiln_report_figure(&s->report, "l2");
}

static int recommend(struct solving *s) {
    struct factors_state *state = s->state;
    const size_t count = (size_t)(kiln_matrix_rows(state->A) * top_of(s));
    state->columns = malloc(count * sizeof *state->columns);
    state->scores = malloc(count * sizeof *state->scores);
    if (!state->columns || !state->scores)
        return fail_with(KILN_ERR_NOMEM, WORKING, "a smaller --top", "out of memory for the recommendations");
    return kiln_recommend(state->columns, state->scores, top_of(s), state->model, state->A, solving_X(s)) ==
                   KILN_OK
               ? 0
               : fail_library(WORKING);
}

int factors_finish(struct solving *s) {
    struct factors_state *state = s->state;
    state->ranking.size = sizeof state->ranking;
    if (state->test && state->implicit &&
        kiln_rank(&state->ranking, RANKED, state->model, state->A, factors_training(s), state->test) !=
            KILN_OK)
        return fail_library(WORKING);
    return ((const struct factors_wanted *)s->own)->recommendations ? recommend(s) : 0;
}

void factors_free(struct solving *s) {
    struct factors_state *state = s->state;
    kiln_matrix *const all[] = {state->A, state->B, state->train, state->test};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_model_free(state->model);
    free(state->columns);
    free(state->scores);
}

/* ---------------------------------------------------------------------------------------- results */

/* Keeps what the rows were seen with, but of data that stay in their file and may not fit into memory. */
static kiln_status keep_seen(kiln_model *model, const struct solving *s) {
    enum { AN_ENTRY = 32, SHARE = 4 }; /* bytes while it is made; of the budget */
    const kiln_matrix *X = solving_X(s);
    if (!s->run->settings->map || kiln_matrix_nnz(X) <= s->run->device_info.memory / SHARE / AN_ENTRY)
        return kiln_model_keep_seen(model, X);
    say("what each row has entries for is too much for the model and is left out: kiln recommend will not "
        "leave it out of its lists");
    return KILN_OK;
}

kiln_status factors_keep(kiln_model *model, const struct solving *s) {
    const struct factors_state *state = s->state;
    kiln_status status = kiln_model_set_tensor(model, "A", state->A);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "B", state->B);
    if (status == KILN_OK) status = solve_keep_tensors(model, s, state->model);
    if (status == KILN_OK) status = keep_seen(model, s);
    if (status == KILN_OK && state->test)
        status = verify_keep_split(model, ((const struct factors_wanted *)s->own)->test_fraction,
                                   s->run->settings->seed);
    if (status == KILN_OK)
        status = solve_keep_names(model, "rows", s, kiln_matrix_rows(state->A), kiln_data_row_name);
    if (status == KILN_OK)
        status = solve_keep_names(model, "columns", s, kiln_matrix_rows(state->B), kiln_data_feature_name);
    return status;
}

/* The row's name, or its number from 1. */
static const char *row_name(const struct solving *s, int64_t row, char *buffer) {
    const char *name = kiln_data_row_name(s->data, row);
    if (name) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)row + 1);
    return buffer;
}

/* The column's name, or its number from 1 as in Matrix Market. */
static const char *column_name(const struct solving *s, int64_t column, char *buffer) {
    const char *name = kiln_data_feature_name(s->data, column);
    if (name) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)column + 1);
    return buffer;
}

static int write_recommendations(const struct solving *s) {
    const struct factors_state *state = s->state;
    const char *path = ((const struct factors_wanted *)s->own)->recommendations;
    const int64_t top = top_of(s), rows = kiln_matrix_rows(state->A);
    const int single = kiln_matrix_type(state->A) == KILN_F32;
    struct output output;
    char row[SHORTEST_ROOM], name[SHORTEST_ROOM], text[SHORTEST_ROOM];
    const int code = path ? output_open(&output, path) : 0;
    if (code || !path) return code;
    for (int64_t u = 0; u < rows && !ferror(output.file); u++)
        for (int64_t t = u * top; t < (u + 1) * top && state->columns[t] >= 0; t++) {
            text_shortest(text, state->scores[t], single);
            output_text(&output, row_name(s, u, row), "");
            fputc('\t', output.file);
            output_text(&output, column_name(s, state->columns[t], name), "");
            fprintf(output.file, "\t%s\n", text);
        }
    return output_commit(&output);
}

/* The objective, and beside it the error on what is held out, by iteration. */
static int draw(const struct solving *s) {
    const char *path = ((const struct factors_wanted *)s->own)->plot;
    const struct factors_state *state = s->state;
    const int64_t count = s->report.trace_count;
    if (!path) return 0;
    double *values = malloc((size_t)(3 * count) * sizeof *values + 1);
    if (!values) return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for the picture");
    for (int64_t i = 0; i < count; i++) {
        const kiln_trace_row *row = &s->report.trace[i];
        values[i] = (double)row->iteration;
        values[count + i] = row->objective;
        values[2 * count + i] = row->test;
    }
    const struct series fit = {
        .x = values, .y = values + count, .count = count, .look = LOOK_LINE | LOOK_POINTS};
    const struct series test = {
        .x = values, .y = values + 2 * count, .count = count, .look = LOOK_LINE | LOOK_POINTS, .number = 1};
    const struct panel panels[] = {
        {.title = "on the ratings",
         .x_title = "iteration",
         .y_title = "objective",
         .series = &fit,
         .count = 1},
        {.title = "held out", .x_title = "iteration", .y_title = "RMSE", .series = &test, .count = 1}};
    const int code = plot_panels(path, state->title, panels, state->test && !state->implicit ? 2 : 1);
    free(values);
    return code;
}

int factors_write(const struct solving *s) {
    int code = write_recommendations(s);
    if (!code) code = solve_write_npz(s, ((const struct factors_wanted *)s->own)->factors_out);
    return code ? code : draw(s);
}

void factors_put(struct result *result, const struct solving *s) {
    const struct factors_state *state = s->state;
    const struct factors_wanted *wanted = s->own;
    const kiln_ranking *ranking = &state->ranking;
    PUT(result, "factors", COUNT(kiln_matrix_cols(state->A) - state->biases));
    PUT(result, "mean", NUMBER(kiln_report_figure(&s->report, "mean")));
    PUT(result, "zero_factors", FLAG(kiln_report_figure(&s->report, "zero_factors") == 1));
    result_open(result, "metrics", false);
    if (state->test && !state->implicit)
        PUT(result, "test_rmse", NUMBER(kiln_report_figure(&s->report, "test_rmse")), .label = "test",
            .before = "RMSE ", .format = "%.4f");
    if (state->test && state->implicit) {
        PUT(result, "recall_at_10", NUMBER(ranking->recall), .label = "test", .before = "recall@10 ",
            .format = "%.4f");
        PUT(result, "precision_at_10", NUMBER(ranking->precision), .before = ", precision@10 ",
            .format = "%.4f");
        PUT(result, "ndcg_at_10", NUMBER(ranking->ndcg), .before = ", NDCG@10 ", .format = "%.4f");
        PUT(result, "map_at_10", NUMBER(ranking->map), .before = ", MAP@10 ", .format = "%.4f");
    }
    result_close(result);
    PUT(result, "test_entries", COUNT(state->test ? kiln_matrix_nnz(state->test) : 0), .unit = "rating",
        .before = state->test ? ", " : NULL, .after = " held out");
    PUT(result, "recommendations", TEXT(wanted->recommendations));
    PUT(result, "factors_out", TEXT(wanted->factors_out));
    PUT(result, "plot", TEXT(wanted->plot));
}

void factors_head(struct result *result, const struct solving *s) {
    const struct factors_state *state = s->state;
    PUT_LINE(result, "%s: %s x %s, %s, %s%s", state->title, text_count(kiln_matrix_rows(state->A)),
             text_count(kiln_matrix_rows(state->B)),
             text_plural(kiln_matrix_nnz(factors_training(s)), "rating"),
             text_plural(kiln_matrix_cols(state->A) - state->biases, "factor"),
             state->biases     ? " and biases"
             : state->implicit ? ", implicit"
                               : "");
}
