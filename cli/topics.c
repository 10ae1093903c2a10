/* Topics for people and programs: those with the largest share of all words first, each with its most
 * probable words. */
#include "commands.h"
#include "topics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "output.h"
#include "picture.h"

static const struct topics_wanted *wanted_of(const struct solving *s) {
    return s->own;
}

int64_t topics_width(const struct settings *settings) {
    return ((const struct topics_wanted *)(const void *)settings->own.bytes)->topics;
}

int topics_check(struct solving *s) {
    if (kiln_matrix_format(solving_X(s)) == KILN_CSR) return 0;
    return fail_with(
        KILN_ERR_DATA, READING,
        "docword, Matrix Market, .npz and LIBSVM files hold the words that are there, and nothing "
        "for others",
        "%s is a dense matrix", s->run->arguments[0]);
}

static int take_start(struct solving *s, int64_t k) {
    struct topics *state = s->state;
    const int64_t m = kiln_matrix_rows(solving_X(s)), n = kiln_matrix_cols(solving_X(s));
    kiln_type type;
    int64_t rows = 0, cols = 0, theirs = 0;
    if (!model_tensor_shape(s->warm, "A", &type, &rows, &theirs) ||
        !model_tensor_shape(s->warm, "B", &type, &cols, &theirs) || rows != m || cols != n || theirs != k)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the same documents, words and --topics are needed",
                         "%s is no topic model of this shape", s->run->settings->warm_start);
    const int code = solve_take(&state->A, s, "A");
    return code ? code : solve_take(&state->B, s, "B");
}

int topics_prepare(struct solving *s) {
    struct topics *state = s->state;
    const struct topics_wanted *wanted = wanted_of(s);
    if (picture_check(wanted->plot)) return picture_check(wanted->plot);
    const kiln_matrix *X = solving_X(s);
    state->k = wanted->topics;
    state->top = wanted->top;
    if (state->top > kiln_matrix_cols(X)) state->top = kiln_matrix_cols(X);
    if (wanted->test_fraction > 0 && kiln_split_entries(&state->train, &state->test, X, wanted->test_fraction,
                                                        (uint64_t)s->run->settings->seed) != KILN_OK)
        return fail_library(WORKING);
    if (s->warm) return take_start(s, state->k);
    const int code = solve_allocate(&state->A, s, kiln_matrix_rows(X), state->k);
    return code ? code : solve_allocate(&state->B, s, kiln_matrix_cols(X), state->k);
}

const kiln_matrix *topics_training(const struct solving *s) {
    const struct topics *state = s->state;
    return state->train ? state->train : solving_X(s);
}

/* ---------------------------------------------------------------------------------------- the table */

/* column[j] = B_jc divided by the column's sum, which is returned. */
static double take_column(double *column, const double *B, int64_t n, int64_t k, int64_t c) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += B[j * k + c];
    for (int64_t j = 0; j < n; j++) column[j] = sum > 0 ? B[j * k + c] / sum : 0;
    return sum;
}

static void find_words(struct topics *state, const double *column, int64_t n, int64_t c) {
    int64_t *word = state->word + c * state->top;
    const int64_t found = solve_find_top(word, column, n, state->top);
    for (int64_t t = 0; t < state->top; t++) {
        if (t >= found || column[word[t]] <= 0) word[t] = -1;
        state->weight[c * state->top + t] = word[t] >= 0 ? column[word[t]] : 0;
    }
}

/* A topic's words: those of the documents, each shared out by its mixture of topics. */
static int add_shares(struct solving *s) {
    struct topics *state = s->state;
    const kiln_matrix *X = topics_training(s);
    const int64_t m = kiln_matrix_rows(X);
    kiln_matrix *words = NULL, *ones = NULL;
    int code = solve_allocate(&ones, s, kiln_matrix_cols(X), 1);
    if (!code) code = solve_allocate(&words, s, m, 1);
    if (!code &&
        (kiln_fill(ones, 1) != KILN_OK || kiln_multiply(words, 1, KILN_PLAIN, X, ones, 0, NULL) != KILN_OK))
        code = fail_library(WORKING);
    double *length = code ? NULL : values_of(words, &code), *A = code ? NULL : values_of(state->A, &code);
    double all = 0, longest = 0; /* lengths count as shares of the longest, whose sum cannot overflow */
    for (int64_t i = 0; !code && i < m; i++) longest = fmax(longest, length[i]);
    for (int64_t i = 0; !code && i < m; i++) {
        double total = 0;
        for (int64_t c = 0; c < state->k; c++) total += A[i * state->k + c] * state->weight[c];
        for (int64_t c = 0; total > 0 && c < state->k; c++)
            state->share[c] += length[i] / longest * (A[i * state->k + c] * state->weight[c] / total);
        all += total > 0 ? length[i] / longest : 0;
    }
    for (int64_t c = 0; c < state->k && all > 0; c++) state->share[c] /= all;
    free(length);
    free(A);
    kiln_matrix_free(words);
    kiln_matrix_free(ones);
    return code;
}

int topics_finish(struct solving *s) {
    struct topics *state = s->state;
    const int64_t n = kiln_matrix_rows(state->B), k = state->k;
    const size_t cells = (size_t)(k * (state->top > 0 ? state->top : 1));
    int code = 0;
    double *B = values_of(state->B, &code), *column = malloc(((size_t)n + 1) * sizeof *column);
    state->order = malloc((size_t)k * sizeof *state->order);
    state->share = calloc((size_t)k, sizeof *state->share);
    state->word = malloc(cells * sizeof *state->word);
    state->weight = malloc((cells + (size_t)k) * sizeof *state->weight);
    if (!code && (!column || !state->order || !state->share || !state->word || !state->weight))
        code = fail_with(KILN_ERR_NOMEM, WORKING, "a smaller --top", "out of memory for the table of topics");
    /* A document's weight of a topic stands for so many words (gap), or for a share of them (lda). */
    const bool rates = !code && strcmp(s->run->verb->name, "gap") == 0;
    for (int64_t c = 0; !code && c < k; c++) {
        const double sum = take_column(column, B, n, k, c);
        state->weight[c] = rates ? sum : 1;
    }
    if (!code) code = add_shares(s);
    for (int64_t c = 0; !code && c < k; c++) {
        take_column(column, B, n, k, c);
        find_words(state, column, n, c);
    }
    if (!code) solve_find_top(state->order, state->share, k, k);
    free(B);
    free(column);
    return code;
}

/* The column's name, or in the buffer its number from 1 as in files. */
static const char *topics_word(const struct solving *s, int64_t word, char *buffer) {
    const char *name = kiln_data_feature_name(s->data, word);
    if (name) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)word + 1);
    return buffer;
}

/* ------------------------------------------------------------------------------------------ the picture */

/* Topics stand side by side, the largest first, each with its words and a bar as long as the word is probable
 * there. */
enum {
    PANELS = 12,
    ACROSS = 2,
    WORDS = 8,
    WIDE = 260,
    LINE = 19,
    EDGE = 20,
    TOP = 34,
    NAME = 110,
    LETTERS = 13
};

static void draw_topic(struct picture *picture, const struct solving *s, int64_t place, double longest,
                       int top) {
    const struct topics *state = s->state;
    const int64_t c = state->order[place];
    const int x = EDGE + (int)(place % ACROSS) * WIDE;
    const int y = top + (int)(place / ACROSS) * (WORDS + 2) * LINE;
    char text[SHORTEST_ROOM];
    snprintf(text, sizeof text, "%lld: %.1f %%", (long long)place + 1, 100 * state->share[c]);
    picture_text(picture, x, y, "start", 0, text);
    for (int64_t t = 0; t < WORDS && t < state->top && state->word[c * state->top + t] >= 0; t++) {
        const int64_t at = c * state->top + t;
        const int line = y + (int)(t + 1) * LINE;
        picture_text(picture, x + NAME, line, "end", LETTERS, topics_word(s, state->word[at], text));
        fprintf(picture->file, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\" fill=\"%s\"/>\n",
                x + NAME + 6, line - 10, (WIDE - NAME - 24) * state->weight[at] / longest,
                picture_palette[place % PICTURE_COLOURS]);
    }
}

static int plot_topics(const char *path, const struct solving *s, const char *title) {
    const struct topics *state = s->state;
    const int64_t shown = state->k < PANELS ? state->k : PANELS;
    const int across = (int)(shown < ACROSS ? shown : ACROSS), down = (int)((shown + ACROSS - 1) / ACROSS);
    struct picture picture;
    double longest = 1e-300;
    for (int64_t e = 0; e < state->k * state->top; e++) longest = fmax(longest, state->weight[e]);
    const int width = 2 * EDGE + across * WIDE, top = picture_title_height(width, title) + TOP;
    const int code = picture_open(&picture, path, width, top + down * (WORDS + 2) * LINE);
    if (code) return code;
    picture_title(&picture, title);
    for (int64_t place = 0; place < shown; place++) draw_topic(&picture, s, place, longest, top);
    return picture_close(&picture);
}

int topics_write(const struct solving *s) {
    const struct topics *state = s->state;
    const char *path = wanted_of(s)->words;
    const int single = kiln_matrix_type(state->B) == KILN_F32;
    struct output output;
    char name[SHORTEST_ROOM], text[SHORTEST_ROOM], title[160];
    int code = 0;
    if (wanted_of(s)->plot) {
        snprintf(title, sizeof title, "%s: %s in %s; bars: each word's share of its topic",
                 s->run->verb->name, text_plural(state->k, "topic"),
                 text_plural(kiln_matrix_rows(state->A), "document"));
        code = plot_topics(wanted_of(s)->plot, s, title);
    }
    if (!code) code = solve_write_npz(s, wanted_of(s)->factors_out);
    if (!code && path) code = output_open(&output, path);
    if (code || !path) return code;
    for (int64_t i = 0; i < state->k && !ferror(output.file); i++)
        for (int64_t t = 0; t < state->top; t++) {
            const int64_t at = state->order[i] * state->top + t;
            if (state->word[at] < 0) break;
            text_shortest(text, state->weight[at], single);
            fprintf(output.file, "%lld\t%s\t%s\n", (long long)i + 1, topics_word(s, state->word[at], name),
                    text);
        }
    return output_commit(&output);
}

static void put_word(struct result *row, const void *of, int64_t at) {
    const struct solving *s = of;
    const struct topics *state = s->state;
    char buffer[SHORTEST_ROOM];
    PUT(row, "word", TEXT(result_hold(row, topics_word(s, state->word[at], buffer), buffer)), .label = "");
    PUT(row, "weight", NUMBER(state->weight[at]));
}

static void put_topic(struct result *row, const void *of, int64_t i) {
    const struct topics *state = ((const struct solving *)of)->state;
    const int64_t c = state->order[i], *word = state->word + c * state->top;
    int64_t words = 0;
    while (words < state->top && word[words] >= 0) words++;
    PUT(row, NULL, COUNT(i + 1), .label = "topic", .before = "  ", .width = 5);
    PUT(row, NULL, NUMBER(100 * state->share[c]), .format = "%.1f%%", .label = "share", .width = 6);
    PUT(row, "share", NUMBER(state->share[c]));
    PUT(row, "column", COUNT(c));
    PUT(row, "words", TABLE(words, put_word, of), .first = c * state->top, .label = "words", .before = "  ");
}

void topics_size(struct result *result, const struct solving *s) {
    const struct topics *state = s->state;
    PUT(result, NULL, COUNT(kiln_matrix_rows(state->A)), .before = "", .unit = "document");
    PUT(result, NULL, COUNT(kiln_matrix_rows(state->B)), .before = ", ", .unit = "word");
    PUT(result, NULL, COUNT(kiln_matrix_nnz(topics_training(s))), .before = ", ", .unit = "count");
    PUT(result, NULL, COUNT(state->k), .before = ", ", .unit = "topic");
}

void topics_put(struct result *result, const struct solving *s) {
    const struct topics *state = s->state;
    const struct topics_wanted *wanted = wanted_of(s);
    result_open(result, "metrics", false);
    if (state->test)
        PUT(result, "test_perplexity", NUMBER(kiln_report_figure(&s->report, "test_perplexity")),
            .label = "test", .before = "perplexity ");
    result_close(result);
    PUT(result, "test_entries", COUNT(state->test ? kiln_matrix_nnz(state->test) : 0), .unit = "count",
        .before = state->test ? ", " : NULL, .after = " held out");
    PUT(result, "topics", TABLE(state->k, put_topic, s));
    PUT(result, "words", TEXT(wanted->words));
    PUT(result, "factors_out", TEXT(wanted->factors_out));
    PUT(result, "plot", TEXT(wanted->plot));
}

/* ---------------------------------------------------------------------------------------- the model */

kiln_status topics_keep(kiln_model *model, const struct solving *s) {
    const struct topics *state = s->state;
    kiln_status status = solve_keep_tensors(model, s, state->model);
    if (status == KILN_OK && state->test)
        status = verify_keep_split(model, wanted_of(s)->test_fraction, s->run->settings->seed);
    if (status == KILN_OK)
        status = solve_keep_names(model, "columns", s, kiln_matrix_rows(state->B), kiln_data_feature_name);
    return status;
}

void topics_free(struct solving *s) {
    struct topics *state = s->state;
    kiln_matrix *const all[] = {state->A, state->B, state->train, state->test};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_model_free(state->model);
    free(state->order);
    free(state->share);
    free(state->word);
    free(state->weight);
}
