/* kiln recommend --pairs and --test: a file's users are the model's own, found again by name. Also the lists
 * of items of --exclude and --only. */
#define _GNU_SOURCE /* getline */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "recommend.h"
#include "result.h"

/* ---------------------------------------------------------------------------------------------- names */

/* Names in order, to be found quickly; without names a name is a number from 1. */
struct name_index {
    struct name_place {
        const char *name;
        int64_t number;
    } * list; /* NULL: there are no names */
    int64_t count;
};
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct name_place *)a)->name, ((const struct name_place *)b)->name);
}

static int name_index_make(struct name_index *index, const json_t *names, int64_t count) {
    *index = (struct name_index){.count = count};
    if (!names) return 0;
    if (!(index->list = malloc((size_t)count * sizeof *index->list + 1)))
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s names", text_count(count));
    for (int64_t i = 0; i < count; i++)
        index->list[i] = (struct name_place){json_string_value(json_array_get(names, (size_t)i)), i};
    qsort(index->list, (size_t)count, sizeof *index->list, by_name);
    return 0;
}

/* -1: it is not there. */
static int64_t name_index_find(const struct name_index *index, const char *name) {
    if (index->list) {
        const struct name_place key = {name, 0};
        const struct name_place *found =
            bsearch(&key, index->list, (size_t)index->count, sizeof key, by_name);
        return found ? found->number : -1;
    }
    char *end;
    errno = 0;
    const int64_t number = strtoll(name, &end, 10);
    return *end == '\0' && end != name && !errno && number >= 1 && number <= index->count ? number - 1 : -1;
}

static void name_index_free(struct name_index *index) {
    free(index->list);
}

/* The first item of a list that the model does not know, and where it stands. */
struct unknown_items {
    int64_t count, line, known;
    char first[101];
};

/* Such items are recommended to nobody, listed or not; of a list of what may be, some have to be known. */
static int tell_unknown(const struct recommending *r, const char *path, const struct unknown_items *unknown) {
    const char *hint =
        r->columns ? "items are called as in the ratings" : "without names they are numbered from 1";
    if (!unknown->count) return 0;
    if (r->wanted->only && !unknown->known)
        return fail_with(KILN_ERR_DATA, READING, hint, "%s:%lld: the model has no item '%s', nor any other",
                         path, (long long)unknown->line, unknown->first);
    say_error("kiln: warning: %s: the model does not know %s, of which the first is '%s' in line %lld", path,
              text_plural(unknown->count, "item"), unknown->first, (long long)unknown->line);
    say_error("hint: %s", hint);
    return 0;
}

/* A line is an item; blank lines are none. */
static int take_lines(struct recommending *r, const char *path, FILE *file, const struct name_index *index,
                      unsigned char allowed) {
    char *line = NULL;
    size_t room = 0;
    struct unknown_items unknown = {0};
    for (int64_t number = 1; getline(&line, &room, file) >= 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        const int64_t item = name_index_find(index, line);
        if (item >= 0) {
            r->allowed[item] = allowed;
            unknown.known++;
        } else if (line[0] && unknown.count++ == 0) {
            unknown.line = number;
            snprintf(unknown.first, sizeof unknown.first, "%s", line);
        }
    }
    free(line);
    return ferror(file) ? fail_with(KILN_ERR_IO, READING, "", "%s cannot be read", path)
                        : tell_unknown(r, path, &unknown);
}

int recommend_take_items(struct recommending *r) {
    const char *path = r->wanted->only ? r->wanted->only : r->wanted->exclude;
    struct name_index index = {0};
    if (!path) return 0;
    FILE *file = fopen(path, "r");
    if (!file) return fail_with(KILN_ERR_IO, READING, "", "%s cannot be opened: %s", path, strerror(errno));
    int code = name_index_make(&index, r->columns, r->items);
    if (!code && !(r->allowed = malloc((size_t)r->items + 1)))
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s items", text_count(r->items));
    if (!code) memset(r->allowed, r->wanted->only ? 0 : 1, (size_t)r->items);
    if (!code) code = take_lines(r, path, file, &index, r->wanted->only ? 1 : 0);
    fclose(file);
    name_index_free(&index);
    return code;
}

/* ---------------------------------------------------------------------------------------------- pairs */

/* The file's entries whose users the model knows, ascending by its users. */
struct known {
    const struct recommending *r;
    int64_t count, users, unknown; /* users: different ones; unknown: that were left out */
    int64_t *user, *item;
    double *rating, *prediction;
    bool rated; /* the file has ratings */
};

static void known_free(struct known *k) {
    free(k->user);
    free(k->item);
    free(k->rating);
    free(k->prediction);
}

/* The model's number of the file's row, -1 if it does not know it. */
static int64_t user_of(const struct recommending *r, const struct name_index *index, int64_t row) {
    const char *name = kiln_data_row_name(r->data, row);
    if (name) return name_index_find(index, name);
    return row < index->count ? row : -1;
}

struct file {
    int64_t *start;
    int32_t *col;
    void *values;
};

static double value_of(const struct recommending *r, const struct file *file, int64_t e) {
    return r->type == KILN_F32 ? (double)((const float *)file->values)[e] : ((const double *)file->values)[e];
}

static void take_rows(struct known *k, const struct file *file, const struct name_index *index,
                      int64_t rows) {
    for (int64_t row = 0; row < rows; row++) {
        const int64_t user = user_of(k->r, index, row);
        if (user < 0)
            k->unknown++;
        else
            k->users++;
        for (int64_t e = file->start[row]; e < file->start[row + 1] && user >= 0; e++) {
            k->user[k->count] = user;
            k->item[k->count] = file->col[e];
            k->rating[k->count++] = value_of(k->r, file, e);
        }
    }
}

static int take_known(struct known *k, const struct recommending *r) {
    const kiln_matrix *X = kiln_data_X(r->data);
    const int64_t rows = kiln_matrix_rows(X), nnz = kiln_matrix_nnz(X);
    kiln_type type;
    int64_t users, width;
    struct name_index index = {0};
    const size_t room = (size_t)nnz + 1;
    struct file file = {malloc((size_t)(rows + 1) * sizeof(int64_t)), malloc(room * sizeof(int32_t)),
                        malloc(room * sizeof(double))};
    *k = (struct known){.r = r,
                        .user = malloc(room * sizeof *k->user),
                        .item = malloc(room * sizeof *k->item),
                        .rating = malloc(room * sizeof *k->rating),
                        .prediction = malloc(room * sizeof *k->prediction)};
    model_tensor_shape(r->model, "A", &type, &users, &width);
    int code = name_index_make(&index, r->rows, users);
    if (!file.start || !file.col || !file.values || !k->user || !k->item || !k->rating || !k->prediction)
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %s ratings", text_count(nnz));
    if (!code && kiln_matrix_get_csr(file.start, file.col, file.values, X) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) take_rows(k, &file, &index, rows);
    if (!code && k->unknown)
        say_error("kiln: warning: the model does not know %s of %s, whose ratings are left out",
                  text_plural(k->unknown, "user"), r->run->arguments[1]);
    if (!code && k->count == 0)
        code = fail_with(KILN_ERR_DATA, READING, "users and items are called as in the training's ratings",
                         "%s has no rating of a user and an item that the model knows", r->run->arguments[1]);
    for (int64_t p = 1; p < k->count; p++) k->rated |= k->rating[p] != k->rating[0];
    name_index_free(&index);
    free(file.start);
    free(file.col);
    free(file.values);
    return code;
}

static int predict(struct known *k) {
    return kiln_predict_pairs(k->prediction, k->r->model, k->count, k->user, k->item) == KILN_OK
               ? 0
               : fail_library(USING_MODEL);
}

/* Returns whether predictions are of ratings. */
static bool is_explicit(const struct recommending *r) {
    kiln_matrix *settings = NULL;
    double values[6] = {0};
    if (strcmp(kiln_model_text(r->model, "algorithm"), "als") != 0) return true;
    if (kiln_model_tensor(&settings, r->run->device, KILN_F64, r->model, "settings") == KILN_OK)
        kiln_matrix_get(values, settings);
    kiln_matrix_free(settings);
    return values[5] == 0;
}

/* ---------------------------------------------------------------------------------------------- telling */

static void put_errors(struct result *result, const struct known *k) {
    double squares = 0, sizes = 0;
    for (int64_t p = 0; p < k->count; p++) {
        const double e = k->prediction[p] - k->rating[p];
        squares += e * e;
        sizes += fabs(e);
    }
    PUT(result, "rmse", NUMBER(sqrt(squares / (double)k->count)), .label = "RMSE");
    PUT(result, "mae", NUMBER(sizes / (double)k->count), .label = "MAE");
}

static int write_pairs(const struct known *k) {
    struct output output;
    const struct recommending *r = k->r;
    char user[SHORTEST_ROOM];
    const int code = output_open(&output, r->run->settings->output);
    if (code) return code;
    fputs("user\titem\tprediction\n", output.file);
    for (int64_t p = 0; p < k->count && !ferror(output.file); p++)
        recommend_line(&output, r, recommend_name(r->rows, k->user[p], user), k->item[p], k->prediction[p]);
    return output_commit(&output);
}

static void put_pair(struct result *row, const void *of, int64_t p) {
    const struct known *k = of;
    char user[SHORTEST_ROOM], item[SHORTEST_ROOM];
    PUT(row, "user", TEXT(result_hold(row, recommend_name(k->r->rows, k->user[p], user), user)));
    PUT(row, "item", TEXT(result_hold(row, recommend_name(k->r->columns, k->item[p], item), item)));
    PUT(row, "prediction", NUMBER(k->prediction[p]));
}

static void begin(struct result *result, const struct known *k, const char *schema) {
    const struct recommending *r = k->r;
    result_begin(result);
    run_put(result, r->run, schema);
    PUT(result, "algorithm", TEXT(kiln_model_text(r->model, "algorithm")));
    run_put_device(result, r->run);
    PUT(result, "users", COUNT(k->users));
    PUT(result, "ratings", COUNT(k->count));
    PUT(result, "unknown_users", COUNT(k->unknown));
}

int recommend_pairs(struct recommending *r) {
    struct known k;
    struct result result;
    int code = take_known(&k, r);
    if (!code) code = predict(&k);
    if (!code && (r->run->settings->output || !talk_json())) code = write_pairs(&k);
    if (!code) {
        begin(&result, &k, "kiln.pairs/1");
        const bool judged = k.rated && is_explicit(r);
        if (judged) PUT_LINE(&result, "predicted %s:", text_plural(k.count, "pair"));
        result_open(&result, "metrics", false);
        if (judged) put_errors(&result, &k);
        result_close(&result);
        PUT(&result, "output", TEXT(r->run->settings->output));
        run_put_seconds(&result, r->run, false);
        if (!r->run->settings->output) PUT(&result, "pairs", TABLE(k.count, put_pair, &k), .hidden = true);
        code = talk_json() ? result_print_json(&result) : talk_quiet() ? 0 : result_print(&result, stderr);
        result_free(&result);
    }
    known_free(&k);
    return code;
}

/* ---------------------------------------------------------------------------------------------- ranking */

struct entry {
    int64_t user;
    int32_t item;
};

static int by_place(const void *a, const void *b) {
    const struct entry *left = a, *right = b;
    if (left->user != right->user) return left->user < right->user ? -1 : 1;
    return (left->item > right->item) - (left->item < right->item);
}

/* The entries as a matrix of the model's users and items. */
static int to_matrix(kiln_matrix **test, const struct known *k) {
    const struct recommending *r = k->r;
    kiln_type type;
    int64_t users, width;
    model_tensor_shape(r->model, "A", &type, &users, &width);
    struct entry *entries = malloc((size_t)k->count * sizeof *entries);
    int64_t *start = calloc((size_t)users + 1, sizeof *start);
    int32_t *col = malloc((size_t)k->count * sizeof *col);
    int code = entries && start && col ? 0
                                       : fail_with(KILN_ERR_NOMEM, WORKING, "",
                                                   "out of memory for %s ratings", text_count(k->count));
    if (!code) {
        for (int64_t p = 0; p < k->count; p++) entries[p] = (struct entry){k->user[p], (int32_t)k->item[p]};
        qsort(entries, (size_t)k->count, sizeof *entries, by_place);
        for (int64_t p = 0; p < k->count; p++) {
            start[entries[p].user + 1]++;
            col[p] = entries[p].item;
        }
        for (int64_t u = 0; u < users; u++) start[u + 1] += start[u];
        if (kiln_matrix_csr(test, r->run->device, r->type, users, r->items, start, col, NULL) != KILN_OK)
            code = fail_library(WORKING);
    }
    free(entries);
    free(start);
    free(col);
    return code;
}

static kiln_status rank(kiln_ranking *ranking, const struct recommending *r, const kiln_matrix *test) {
    kiln_matrix *A = NULL, *seen = NULL;
    kiln_type type;
    int64_t rows, cols;
    kiln_status status = kiln_model_tensor(&A, r->run->device, r->type, r->model, "A");
    if (status == KILN_OK && !r->wanted->include_seen &&
        model_tensor_shape(r->model, "seen_counts", &type, &rows, &cols))
        status = kiln_model_seen(&seen, r->model, A, 0, rows);
    if (status == KILN_OK) status = kiln_rank(ranking, r->wanted->top, r->model, A, seen, test);
    kiln_matrix_free(A);
    kiln_matrix_free(seen);
    return status;
}

static void put_ranking(struct result *result, const kiln_ranking *ranking) {
    PUT(result, "recall", NUMBER(ranking->recall), .label = "recall");
    PUT(result, "precision", NUMBER(ranking->precision), .label = "precision");
    PUT(result, "map", NUMBER(ranking->map), .label = "MAP");
    PUT(result, "ndcg", NUMBER(ranking->ndcg), .label = "NDCG");
    PUT(result, "auc", NUMBER(ranking->auc), .label = "AUC");
    PUT(result, "coverage", NUMBER(ranking->coverage), .label = "coverage");
}

int recommend_test(struct recommending *r) {
    struct known k;
    struct result result;
    kiln_matrix *test = NULL;
    kiln_ranking ranking = {.size = sizeof ranking};
    int code = take_known(&k, r);
    const double start = clock_seconds();
    if (!code) code = predict(&k);
    if (!code) code = to_matrix(&test, &k);
    if (!code && rank(&ranking, r, test) != KILN_OK) code = fail_library(USING_MODEL);
    r->run->seconds.measure = clock_seconds() - start;
    if (!code) {
        begin(&result, &k, "kiln.ranking_metrics/1");
        PUT(&result, "top", COUNT(r->wanted->top));
        PUT_LINE(&result, "the best %lld of %s and %s:", (long long)r->wanted->top,
                 text_plural(k.users, "user"), text_plural(k.count, "rating"));
        result_open(&result, "metrics", false);
        if (k.rated && is_explicit(r)) put_errors(&result, &k);
        put_ranking(&result, &ranking);
        result_close(&result);
        run_put_seconds(&result, r->run, true);
        code = run_tell(r->run, &result);
        result_free(&result);
    }
    kiln_matrix_free(test);
    known_free(&k);
    return code;
}
