/* kiln recommend: the best items for a user that a factor model knows, for users whose ratings are in a
 * file, or items like one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "help.h"
#include "progress.h"
#include "recommend.h"
#include "verbs.h"

/* ------------------------------------------------------------------------------------------- names */

const char *recommend_name(const json_t *names, int64_t i, char *buffer) {
    const char *name = json_string_value(json_array_get(names, (size_t)i));
    if (name) return name;
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)i + 1);
    return buffer;
}

static const char *user_name(const struct recommending *r, int64_t user, char *buffer) {
    const char *name = r->data ? kiln_data_row_name(r->data, user) : NULL;
    return name ? name : recommend_name(r->data ? NULL : r->rows, user, buffer);
}

/* The number of a user or an item, by name, or where there are no names by number from 1. */
static int find(int64_t *found, const struct recommending *r, const char *what, const char *wanted,
                int64_t count, bool user) {
    struct suggestion suggestion = {wanted, NULL, 0};
    const json_t *names = user ? r->data ? NULL : r->rows : r->columns;
    const bool named = names || (user && r->data && kiln_data_row_name(r->data, 0));
    char buffer[SHORTEST_ROOM], hint[200];
    for (int64_t i = 0; named && i < count; i++) {
        const char *name = user ? user_name(r, i, buffer) : recommend_name(names, i, buffer);
        *found = i;
        if (strcmp(name, wanted) == 0) return 0;
        suggest_consider(&suggestion, name);
    }
    if (named) {
        snprintf(hint, sizeof hint, suggestion.best ? "is it '%.100s'?" : "%s",
                 suggestion.best ? suggestion.best : "names are as in the ratings");
        return fail_with(KILN_ERR_ARGUMENT, WORKING, hint, "there is no %s '%s' among %s", what, wanted,
                         text_count(count));
    }
    char *end;
    errno = 0;
    const int64_t number = strtoll(wanted, &end, 10);
    *found = number >= 1 ? number - 1 : 0;
    if (*end == '\0' && end != wanted && !errno && number >= 1 && number <= count) return 0;
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "without names they are numbered from 1",
                     "there is no %s '%s', only 1 to %s", what, wanted, text_count(count));
}

/* ----------------------------------------------------------------------------------------- reading */

static json_t *names_of(const kiln_model *model, const char *key) {
    const char *text = kiln_model_text(model, key);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static int take_model(struct recommending *r) {
    const struct run *run = r->run;
    int64_t width;
    int code = run_load_model(&r->model, run->arguments[0]);
    if (code) return code;
    if (!model_tensor_shape(r->model, "A", &r->type, &r->users, &width) ||
        !model_tensor_shape(r->model, "B", &r->type, &r->items, &width))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "a factor model does, of als for instance",
                         "a model of %s recommends nothing", kiln_model_text(r->model, "algorithm"));
    r->rows = names_of(r->model, "rows");
    r->columns = names_of(r->model, "columns");
    return 0;
}

static int check_wanted(const struct recommending *r) {
    const struct recommend_wanted *wanted = r->wanted;
    if (wanted->item && (wanted->user || r->run->count > 1))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "ask for them one after the other",
                         "--item asks for items like it, and leaves no place for users");
    if ((wanted->pairs || wanted->test) && (wanted->user || wanted->item || r->run->count == 1))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "kiln recommend MODEL FILE --pairs, or --test",
                         "--%s is about the ratings of a file, and of all of its users",
                         wanted->pairs ? "pairs" : "test");
    if (wanted->pairs && wanted->test)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "ask for them one after the other",
                         "--pairs and --test");
    if ((wanted->exclude || wanted->only) && (wanted->item || wanted->pairs || wanted->test))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "",
                         "--exclude and --only are for users' lists of items");
    if (wanted->exclude && wanted->only)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave out one of them", "--exclude and --only");
    if (!wanted->item && !wanted->user && r->run->count == 1)
        return fail_with(KILN_ERR_ARGUMENT, WORKING,
                         "--user ID, or a file with the ratings of new users; --item ID finds items like it",
                         "recommend what to whom?");
    return 0;
}

static int take_data(struct recommending *r) {
    struct run *run = r->run;
    int code = run_open_device(run, "cpu");
    if (code || run->count == 1) return code;
    code = run_read(run, &r->data, run->arguments[1], r->type, r->model);
    if (!code) code = run_read_columns(run, r->data, r->model, NULL, NULL);
    if (!code && kiln_matrix_format(kiln_data_X(r->data)) != KILN_CSR)
        code = fail_with(KILN_ERR_DATA, READING, "--format ratings reads lines of user, item and rating",
                         "%s is a dense matrix, in which every entry is a rating", run->arguments[1]);
    if (!code) r->users = kiln_matrix_rows(kiln_data_X(r->data));
    return code;
}

/* ------------------------------------------------------------------------------------ recommending */

/* The factors of the users told, and what they have seen, which stays NULL where it is not known. */
static kiln_status take_users(kiln_matrix **A, kiln_matrix **seen, const struct recommending *r,
                              int64_t *numbers) {
    kiln_matrix *all = NULL;
    kiln_status status;
    int64_t rows, cols;
    kiln_type type;
    for (int64_t i = 0; i < r->count; i++) numbers[i] = r->first + i;
    status = r->data ? kiln_transform(&all, r->model, kiln_data_X(r->data))
                     : kiln_model_tensor(&all, r->run->device, r->type, r->model, "A");
    if (status == KILN_OK)
        status = kiln_matrix_dense(A, r->run->device, r->type, r->count, kiln_matrix_cols(all), NULL);
    if (status == KILN_OK) status = kiln_rows(*A, all, numbers);
    if (status == KILN_OK && !r->data && !r->wanted->include_seen) {
        if (model_tensor_shape(r->model, "seen_counts", &type, &rows, &cols))
            status = kiln_model_seen(seen, r->model, *A, r->first, r->count);
        else
            say("the model does not keep what users have seen, so that it may be among these");
    }
    kiln_matrix_free(all);
    return status;
}

/* A user of the file has seen all ratings of the file's, of which kiln_rows makes no sparse ones: so all
 * users are told. */
static int recommend(struct recommending *r) {
    kiln_matrix *A = NULL, *seen = NULL;
    int64_t *numbers = malloc((size_t)r->count * sizeof *numbers); /* of the users */
    if (!numbers)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld users", (long long)r->count);
    kiln_status status = take_users(&A, &seen, r, numbers);
    free(numbers);
    const kiln_matrix *known = r->data && !r->wanted->include_seen ? kiln_data_X(r->data) : seen;
    if (status == KILN_OK)
        status = kiln_recommend_among(r->best, r->scores, r->top, r->model, A, known, r->allowed);
    kiln_matrix_free(A);
    kiln_matrix_free(seen);
    return status == KILN_OK ? 0 : fail_library(USING_MODEL);
}

static int work(struct recommending *r) {
    const struct recommend_wanted *wanted = r->wanted;
    int64_t chosen = 0;
    int code = take_model(r);
    if (!code) code = check_wanted(r);
    if (!code) code = take_data(r);
    if (code || wanted->pairs || wanted->test) return code;
    code = recommend_take_items(r);
    if (!code && wanted->user) code = find(&chosen, r, "user", wanted->user, r->users, true);
    if (!code && wanted->item) code = find(&chosen, r, "item", wanted->item, r->items, false);
    if (code) return code;
    r->top = wanted->top;
    r->first = r->data || !wanted->user ? 0 : chosen;
    r->count = r->data ? r->users : 1;
    const size_t room = (size_t)(r->count * r->top);
    r->best = malloc(room * sizeof *r->best);
    r->scores = malloc(room * sizeof *r->scores);
    if (!r->best || !r->scores)
        return fail_with(KILN_ERR_NOMEM, WORKING, "a smaller --top", "out of memory for the recommendations");
    const double start = clock_seconds();
    if (wanted->item) {
        r->cosine = true;
        r->first = chosen;
        if (kiln_similar(r->best, r->scores, r->top, r->model, chosen) != KILN_OK)
            return fail_library(USING_MODEL);
    } else {
        code = recommend(r);
    }
    if (!code && r->data && wanted->user) { /* of all users in the file only this one is told */
        memmove(r->best, r->best + chosen * r->top, (size_t)r->top * sizeof *r->best);
        memmove(r->scores, r->scores + chosen * r->top, (size_t)r->top * sizeof *r->scores);
        r->first = chosen;
        r->count = 1;
    }
    r->run->seconds.solve = clock_seconds() - start;
    return code;
}

/* --------------------------------------------------------------------------------------- telling */

static const char *of_name(const struct recommending *r, int64_t i, char *buffer) {
    return r->cosine ? recommend_name(r->columns, r->first + i, buffer) : user_name(r, r->first + i, buffer);
}

void recommend_line(struct output *output, const struct recommending *r, const char *who, int64_t item,
                    double value) {
    char name[SHORTEST_ROOM], text[SHORTEST_ROOM];
    text_shortest(text, value, r->type == KILN_F32);
    output_text(output, who, "");
    fputc('\t', output->file);
    output_text(output, recommend_name(r->columns, item, name), "");
    fprintf(output->file, "\t%s\n", text);
}

static int write_lines(const struct recommending *r) {
    struct output output;
    char of[SHORTEST_ROOM];
    const int code = output_open(&output, r->run->settings->output);
    if (code) return code;
    fprintf(output.file, "%s\titem\tscore\n", r->cosine ? "like" : "user");
    for (int64_t i = 0; i < r->count * r->top && !ferror(output.file); i++) {
        if (r->best[i] < 0) continue;
        recommend_line(&output, r, of_name(r, i / r->top, of), r->best[i], r->scores[i]);
    }
    return output_commit(&output);
}

static void put_item(struct result *row, const void *of, int64_t at) {
    const struct recommending *r = of;
    char buffer[SHORTEST_ROOM];
    PUT(row, "item", TEXT(result_hold(row, recommend_name(r->columns, r->best[at], buffer), buffer)));
    PUT(row, "score", NUMBER(r->scores[at]));
}

static void put_list(struct result *row, const void *of, int64_t i) {
    const struct recommending *r = of;
    char buffer[SHORTEST_ROOM];
    int64_t found = 0;
    while (found < r->top && r->best[i * r->top + found] >= 0) found++;
    PUT(row, r->cosine ? "like" : "user", TEXT(result_hold(row, of_name(r, i, buffer), buffer)));
    PUT(row, "items", TABLE(found, put_item, r), .first = i * r->top);
}

/* The same for people, all lists behind each other. */
static void put_line(struct result *row, const void *of, int64_t at) {
    const struct recommending *r = of;
    char user[SHORTEST_ROOM], item[SHORTEST_ROOM];
    if (at % r->top == 0)
        PUT(row, NULL, TEXT(result_hold(row, of_name(r, at / r->top, user), user)),
            .head = r->cosine ? "items like " : "best for ");
    if (r->best[at] < 0) return;
    PUT(row, NULL, COUNT(at % r->top + 1), .label = "", .before = "  ", .width = 4);
    PUT(row, NULL, NUMBER(r->scores[at]), .label = "", .before = "  ", .width = 10, .format = "%.4g");
    PUT(row, NULL, TEXT(result_hold(row, recommend_name(r->columns, r->best[at], item), item)), .label = "",
        .before = "  ");
}

static int tell(const struct recommending *r) {
    struct result result;
    result_begin(&result);
    run_put(&result, r->run, "kiln.recommendations/1");
    PUT(&result, "algorithm", TEXT(kiln_model_text(r->model, "algorithm")));
    run_put_device(&result, r->run);
    PUT(&result, "score", TEXT(r->cosine ? "cosine" : "prediction"));
    PUT(&result, "recommendations", TABLE(r->count, put_list, r), .hidden = true);
    PUT(&result, NULL, TABLE(r->count * r->top, put_line, r));
    run_put_seconds(&result, r->run, false);
    const int code = run_tell(r->run, &result);
    result_free(&result);
    return code;
}

int verb_recommend(struct run *run) {
    struct recommending r = {.run = run, .wanted = (const void *)run->settings->own.bytes};
    int code = run_check_outputs(run);
    if (!code) code = work(&r);
    progress_end();
    const bool known = r.wanted->pairs || r.wanted->test;
    if (!code && known) code = r.wanted->pairs ? recommend_pairs(&r) : recommend_test(&r);
    if (!code && !known && run->settings->output) code = write_lines(&r);
    if (!code && !known && (talk_json() || !run->settings->output)) code = tell(&r);
    free(r.allowed);
    free(r.best);
    free(r.scores);
    json_decref(r.rows);
    json_decref(r.columns);
    kiln_data_free(r.data);
    kiln_model_free(r.model);
    return code;
}

/* clang-format off */
const struct option recommend_options[RECOMMEND_OPTIONS] = {
    {.name = "user", .kind = OPTION_TEXT, .group = GROUP_MODEL, .value = "ID",
     .offset = offsetof(struct recommend_wanted, user),
     .help = "The user, as the ratings call them; without names the row's number from 1."},
    {.name = "item", .kind = OPTION_TEXT, .group = GROUP_MODEL, .value = "ID",
     .offset = offsetof(struct recommend_wanted, item),
     .help = "Find the items that are most like this one: those whose factors point its way."},
    {.name = "exclude", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct recommend_wanted, exclude),
     .help = "Leave these items out for all users: one on each line, as the ratings call them."},
    {.name = "only", .kind = OPTION_PATH, .group = GROUP_MODEL, .value = "FILE",
     .offset = offsetof(struct recommend_wanted, only),
     .help = "Choose among these items alone: one on each line."},
    {.name = "pairs", .kind = OPTION_FLAG, .group = GROUP_MODEL,
     .offset = offsetof(struct recommend_wanted, pairs),
     .help = "RATINGS are pairs of users and items that the model knows, with or without ratings: predict "
             "each, and where there are ratings say how far off the predictions are."},
    {.name = "test", .kind = OPTION_FLAG, .group = GROUP_MODEL,
     .offset = offsetof(struct recommend_wanted, test),
     .help = "RATINGS are new ones of users that the model knows: say how well the best --top items "
             "foretell them, by recall, precision, MAP, NDCG, AUC and coverage."},
    {.name = "include-seen", .kind = OPTION_FLAG, .group = GROUP_MODEL,
     .offset = offsetof(struct recommend_wanted, include_seen),
     .help = "Recommend also what the user has rated."},
    {.name = "top", .kind = OPTION_INTEGER, .group = GROUP_OUTPUT, .value = "N", .standard = "10", .least = 1,
     .most = 100000, .offset = offsetof(struct recommend_wanted, top),
     .help = "The number of items for each user."},
};
/* clang-format on */
