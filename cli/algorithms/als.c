/* kiln als: read a sparse matrix of ratings or counts, factor it, say what it is worth on entries held out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "solve.h"
#include "train.h"

enum { FACTORS = 16, RANKED = 10, TOP = 10 };

struct wanted {
    int64_t factors, top;
    double test_fraction;
    const char *recommendations;
};

struct factors {
    kiln_matrix *A, *B, *train, *test; /* train, test: NULL without --test-fraction */
    kiln_model *model;
    kiln_ranking ranking; /* of an implicit model with a test */
    int64_t *columns;     /* --recommendations: top for each row */
    double *scores;
};

static const kiln_als_options *given(const struct solving *s) {
    return s->options;
}

static int64_t top_of(const struct solving *s) {
    const int64_t top = ((const struct wanted *)s->own)->top;
    return top ? top : TOP;
}

static const kiln_matrix *training(const struct solving *s) {
    const struct factors *state = s->state;
    return state->train ? state->train : solving_X(s);
}

/* ------------------------------------------------------------------------------------------- the run */

static int check_sparse(struct solving *s) {
    if (kiln_matrix_format(solving_X(s)) == KILN_CSR) return 0;
    return fail_with(
        KILN_ERR_DATA, READING,
        "--format ratings reads lines of user, item and rating; Matrix Market, .npz and LIBSVM files "
        "hold what is there, and nothing where nothing is",
        "%s is a dense matrix, in which every entry is a rating", s->run->arguments[0]);
}

static int take_start(struct solving *s, int64_t columns) {
    struct factors *state = s->state;
    kiln_type type;
    int64_t rows = 0, cols = 0, r = 0, other = 0;
    if (!model_tensor_shape(s->warm, "A", &type, &rows, &r) ||
        !model_tensor_shape(s->warm, "B", &type, &cols, &other) || rows != kiln_matrix_rows(solving_X(s)) ||
        cols != kiln_matrix_cols(solving_X(s)) || r != columns)
        return fail_with(KILN_ERR_MODEL, USING_MODEL,
                         "the same rows, columns, --factors and --biases are needed",
                         "%s is no factor model of this shape", s->run->settings->warm_start);
    const int code = solve_take(&state->A, s, "A");
    return code ? code : solve_take(&state->B, s, "B");
}

static int prepare(struct solving *s) {
    struct factors *state = s->state;
    const struct wanted *wanted = s->own;
    const kiln_matrix *X = solving_X(s);
    const int64_t columns = (wanted->factors ? wanted->factors : FACTORS) + (given(s)->biases != 0);
    if (wanted->test_fraction > 0 && kiln_split_entries(&state->train, &state->test, X, wanted->test_fraction,
                                                        (uint64_t)s->run->settings->seed) != KILN_OK)
        return fail_library(WORKING);
    if (s->warm) return take_start(s, columns);
    const int code = solve_allocate(&state->A, s, kiln_matrix_rows(X), columns);
    return code ? code : solve_allocate(&state->B, s, kiln_matrix_cols(X), columns);
}

static kiln_status solve(struct solving *s, const kiln_control *control) {
    struct factors *state = s->state;
    kiln_als_options options = *given(s);
    options.warm_start = s->warm != NULL;
    options.seed = s->run->settings->seed;
    options.test = state->test;
    options.control = *control;
    kiln_status status = kiln_als(state->A, state->B, training(s), &options, &s->report);
    if (status == KILN_OK)
        status = kiln_als_model(&state->model, state->A, state->B, kiln_report_figure(&s->report, "mean"),
                                &options);
    return status;
}

static int recommend(struct solving *s) {
    struct factors *state = s->state;
    const size_t count = (size_t)(kiln_matrix_rows(state->A) * top_of(s));
    state->columns = malloc(count * sizeof *state->columns);
    state->scores = malloc(count * sizeof *state->scores);
    if (!state->columns || !state->scores)
        return fail_with(KILN_ERR_NOMEM, WORKING, "a smaller --top", "out of memory for the recommendations");
    return kiln_recommend(state->columns, state->scores, top_of(s), state->model, state->A, training(s)) ==
                   KILN_OK
               ? 0
               : fail_library(WORKING);
}

static int finish(struct solving *s) {
    struct factors *state = s->state;
    if (state->test && given(s)->implicit &&
        kiln_rank(&state->ranking, RANKED, state->model, state->A, training(s), state->test) != KILN_OK)
        return fail_library(WORKING);
    return ((const struct wanted *)s->own)->recommendations ? recommend(s) : 0;
}

static void free_factors(struct solving *s) {
    struct factors *state = s->state;
    kiln_matrix *const all[] = {state->A, state->B, state->train, state->test};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_model_free(state->model);
    free(state->columns);
    free(state->scores);
}

/* ---------------------------------------------------------------------------------------- results */

static kiln_status keep(kiln_model *model, const struct solving *s) {
    const struct factors *state = s->state;
    kiln_matrix *settings = NULL;
    kiln_status status = kiln_model_set_tensor(model, "A", state->A);
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "B", state->B);
    if (status == KILN_OK)
        status = kiln_model_tensor(&settings, s->run->device, KILN_F64, state->model, "settings");
    if (status == KILN_OK) status = kiln_model_set_tensor(model, "settings", settings);
    kiln_matrix_free(settings);
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
    const struct factors *state = s->state;
    const char *path = ((const struct wanted *)s->own)->recommendations;
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

static void put_json(json_t *object, const struct solving *s) {
    const struct factors *state = s->state;
    json_t *metrics = json_object();
    json_put_count(object, "factors", kiln_matrix_cols(state->A) - (given(s)->biases != 0));
    json_put_number(object, "mean", kiln_report_figure(&s->report, "mean"));
    json_put_count(object, "test_entries", state->test ? kiln_matrix_nnz(state->test) : 0);
    if (state->test && !given(s)->implicit)
        json_put_number(metrics, "test_rmse", kiln_report_figure(&s->report, "test_rmse"));
    if (state->test && given(s)->implicit) {
        json_put_number(metrics, "recall_at_10", state->ranking.recall);
        json_put_number(metrics, "precision_at_10", state->ranking.precision);
        json_put_number(metrics, "ndcg_at_10", state->ranking.ndcg);
    }
    json_put(object, "metrics", metrics);
    json_put_text(object, "recommendations", ((const struct wanted *)s->own)->recommendations);
}

static void print_head(FILE *file, const struct solving *s) {
    const struct factors *state = s->state;
    fprintf(file, "alternating least squares: %s x %s, %s, %s%s\n", text_count(kiln_matrix_rows(state->A)),
            text_count(kiln_matrix_rows(state->B)), text_plural(kiln_matrix_nnz(training(s)), "rating"),
            text_plural(kiln_matrix_cols(state->A) - (given(s)->biases != 0), "factor"),
            given(s)->biases     ? " and biases"
            : given(s)->implicit ? ", implicit"
                                 : "");
}

static void print_test(FILE *file, const struct solving *s) {
    const struct factors *state = s->state;
    if (!state->test) return;
    if (given(s)->implicit)
        fprintf(file, "  test        recall@10 %.4f, precision@10 %.4f, NDCG@10 %.4f, %s held out\n",
                state->ranking.recall, state->ranking.precision, state->ranking.ndcg,
                text_plural(kiln_matrix_nnz(state->test), "rating"));
    else
        fprintf(file, "  test        RMSE %.4f, %s held out\n", kiln_report_figure(&s->report, "test_rmse"),
                text_plural(kiln_matrix_nnz(state->test), "rating"));
}

/* ---------------------------------------------------------------------------------------- the verb */

static int run_als(struct run *run) {
    static const struct solver solver = {.schema = "kiln.factors/1",
                                         .objective = "objective",
                                         .bytes = sizeof(struct factors),
                                         .check = check_sparse,
                                         .prepare = prepare,
                                         .solve = solve,
                                         .finish = finish,
                                         .keep = keep,
                                         .write = write_recommendations,
                                         .json = put_json,
                                         .head = print_head,
                                         .print = print_test,
                                         .free = free_factors};
    run->tables = KILN_FILE_RATINGS;
    return solve_run(run, &solver);
}

static const struct option own[] = {
    {"factors", 0, OPTION_INTEGER, GROUP_MODEL, 0, "K", NULL, "16", 1, 511,
     "Numbers for each row and column.", .offset = offsetof(struct wanted, factors)},
    {"test-fraction", 0, OPTION_REAL, GROUP_MODEL, 0, "SHARE", NULL, "0", 0, 0.9,
     "Hold this share of the entries out, chosen by --seed, and tell the error there (with --implicit: how "
     "well "
     "they are ranked).",
     .offset = offsetof(struct wanted, test_fraction)},
    {"recommendations", 0, OPTION_OUTPUT, GROUP_OUTPUT, 0, "FILE", NULL, NULL, 0, 0,
     "Write the best new columns of each row: row, column and score, separated by tabs. - is standard "
     "output.",
     .offset = offsetof(struct wanted, recommendations)},
    {"top", 0, OPTION_INTEGER, GROUP_OUTPUT, 0, "N", NULL, "10", 1, 100000,
     "With --recommendations: so many for each row.", .offset = offsetof(struct wanted, top)},
};

const struct verb verb_of_als = {
    "als",
    "DATA",
    1,
    1,
    NULL,
    "Factor a matrix of ratings or counts by alternating least squares",
    "A rating r of row u for column i becomes a product of two short vectors, r = a_u . b_i, or with "
    "--biases "
    "mean + bias_u + bias_i + a_u . b_i. All a are least squares given all b, and all b given all a; the two "
    "take turns, and the objective never rises.\n\n"
    "With --implicit entries are counts of what was seen: every absent entry is a weak no, every entry a yes "
    "with confidence 1 + alpha |r| (Hu, Koren and Volinsky).\n\n"
    "DATA is a list of ratings (a user, an item and a rating a line, separated by ::, tabs, commas, "
    "semicolons, "
    "bars or blanks, with or without a header, any names), or a sparse matrix, rows users and columns items: "
    "Matrix Market, .npz, LIBSVM; plain or through gzip or zstd. Ratings of 0 are ratings.",
    "kiln als ratings.csv --biases --test-fraction 0.1 -o ratings.kiln\n"
    "kiln als plays.npz --implicit --factors 64 --recommendations best.tsv --top 5",
    .run = run_als,
    .kinds = VERB_BIT(ALGORITHM) | VERB_BIT(RANDOM),
    .own = own,
    .own_count = sizeof own / sizeof *own,
    .predict_instead = "kiln als --recommendations FILE writes every row's best columns",
};
