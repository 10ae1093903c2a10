/* --warm-start of factor models. The model's rows and columns are found again by their names, or without
 * names by their numbers; those that it does not know are new users and items, and begin at random, as all do
 * without a start. */
#include <stdlib.h>
#include <string.h>

#include "factors.h"
#include "metrics.h"
#include "random.h"

#define SMALL 0.1 /* standard deviation of a new row's numbers */

/* The rows or the columns of the data, and what the model has of them. */
struct side {
    const char *tensor, *names;
    const char *(*name)(const kiln_data *data, int64_t i);
    int64_t count, known, theirs;
};

/* The model's number of each name, as a JSON object; NULL without names. */
static json_t *numbers_of(const kiln_model *model, const char *key) {
    const char *text = kiln_model_text(model, key);
    json_t *names = text ? json_loads(text, 0, NULL) : NULL, *numbers = names ? json_object() : NULL, *name;
    size_t i;
    json_array_foreach(names, i, name) {
        json_t *number = json_integer((json_int_t)i);
        if (json_is_string(name))
            json_object_set_new(numbers, json_string_value(name), number);
        else
            json_decref(number);
    }
    json_decref(names);
    return numbers;
}

/* mine, of r columns and random, gets the rows that the model knows; the others become small, without a
 * bias. */
static void fill_side(double *mine, struct side *side, const double *theirs, int64_t r, bool biases,
                      const struct solving *s) {
    json_t *numbers = numbers_of(s->warm, side->names);
    for (int64_t i = 0; i < side->count; i++) {
        const char *name = numbers ? side->name(s->data, i) : NULL;
        const json_t *number = name ? json_object_get(numbers, name) : NULL;
        const int64_t at = numbers ? (number ? (int64_t)json_integer_value(number) : side->theirs) : i;
        if (at < side->theirs) {
            memcpy(mine + i * r, theirs + at * r, (size_t)r * sizeof *mine);
            side->known++;
            continue;
        }
        for (int64_t c = 0; c < r; c++) mine[i * r + c] *= SMALL;
        if (biases) mine[i * r + r - 1] = 0;
    }
    json_decref(numbers);
}

static int take_side(kiln_matrix **A, struct side *side, struct solving *s, int64_t r, uint64_t stream) {
    const struct factors_state *state = s->state;
    kiln_matrix *theirs = NULL, *wide = NULL;
    double *old = NULL, *mine = NULL;
    int code = solve_take(&theirs, s, side->tensor);
    if (!code) old = values_of(theirs, &code);
    if (!code) code = solve_allocate(A, s, side->count, r);
    if (!code && kiln_fill_random(*A, KILN_NORMAL, (uint64_t)s->run->settings->seed, stream) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) mine = values_of(*A, &code);
    if (!code) fill_side(mine, side, old, r, state->biases, s);
    kiln_matrix_free(*A);
    *A = NULL;
    if (!code && (kiln_matrix_dense(&wide, s->run->device, KILN_F64, side->count, r, mine) != KILN_OK ||
                  kiln_matrix_copy(A, s->run->device, kiln_matrix_type(solving_X(s)), wide) != KILN_OK))
        code = fail_library(WORKING);
    kiln_matrix_free(theirs);
    kiln_matrix_free(wide);
    free(old);
    free(mine);
    return code;
}

static bool has_names(const struct side *side, const struct solving *s) {
    return side->count > 0 && side->name(s->data, 0);
}

/* A model with names is no start for data without, and the other way round: who is who is not known. */
static int check_names(const struct side *side, const struct solving *s) {
    const bool theirs = kiln_model_text(s->warm, side->names) != NULL;
    if (theirs == has_names(side, s)) return 0;
    return fail_with(KILN_ERR_MODEL, USING_MODEL,
                     "data with names and a model trained on such data go together",
                     theirs ? "%s has the names of its %s, and the data have none"
                            : "%s has no names of its %s, and the data have some",
                     s->run->settings->warm_start, side->names);
}

int factors_take_start(struct solving *s, int64_t r) {
    struct factors_state *state = s->state;
    const kiln_matrix *X = solving_X(s);
    struct side users = {"A", "rows", kiln_data_row_name, kiln_matrix_rows(X), 0, 0};
    struct side items = {"B", "columns", kiln_data_feature_name, kiln_matrix_cols(X), 0, 0};
    kiln_type type;
    int64_t width = 0, other = 0;
    if (!model_tensor_shape(s->warm, "A", &type, &users.theirs, &width) ||
        !model_tensor_shape(s->warm, "B", &type, &items.theirs, &other) || width != r || other != r)
        return fail_with(KILN_ERR_MODEL, USING_MODEL,
                         "the same --factors are needed, and biases or --no-biases as there",
                         "%s is no factor model of so many factors", s->run->settings->warm_start);
    int code = check_names(&users, s);
    if (!code) code = check_names(&items, s);
    if (!code) code = take_side(&state->A, &users, s, r, STREAM_NEW_USERS);
    if (!code) code = take_side(&state->B, &items, s, r, STREAM_NEW_USERS + 1);
    if (!code && users.known + items.known == 0)
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "a model of the same users and items is needed",
                         "%s knows none of the rows and columns of the data", s->run->settings->warm_start);
    if (!code && (users.known < users.count || items.known < items.count))
        say("--warm-start: %s of %s and %s of %s are the model's, the others are new",
            text_count(users.known), text_plural(users.count, "row"), text_count(items.known),
            text_plural(items.count, "column"));
    return code;
}
