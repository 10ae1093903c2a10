/* Class labels: the distinct values of y in ascending order, found by insertion into a short sorted list.
 * Rows look their class up by bisection, after a guess: that it is the class of the row before. Small whole
 * numbers, as most labels are, go by a table: no processor guesses the way of a bisection, which is slow. */
#include "algorithms/newton/labels.h"

#include "ops/vectors/reduce.h"

/* By default no more classes: a y with more values is no label, nor is one with more than a few that are
 * not all whole numbers, as the prices of houses. */
enum { CLASSES = 65536, FRACTIONS = 64, CODES = 4096 };

/* A label's place in a table of CODES, -1 where it has none. */
static inline int code_of(double value) {
    const int code = value >= 0 && value < CODES ? (int)value : -1;
    return code == value ? code : -1;
}

/* The place of value among the ascending ones; *found tells whether it is there. */
static int64_t place_of(const double *values, int64_t count, double value, bool *found) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < count && values[low] == value;
    return low;
}

/* The classes of y's `rows` values; `limit` as kiln_classes'. */
static kiln_status labels_distinct(double **values, int64_t *count, struct ki_arena *arena, const double *y,
                                   int64_t rows, int64_t limit) {
    const bool usual = limit == 0;
    limit = ki_min(usual ? CLASSES : limit, ki_max(rows, 1));
    double *list = ki_arena_doubles(arena, limit + 1);
    int64_t length = 0;
    bool found, known[CODES] = {false};
    if (!list) return arena->status;
    for (int64_t i = 0; i < rows && length <= limit; i++) {
        const int code = code_of(y[i]);
        if (code >= 0 ? known[code] : i > 0 && y[i] == y[i - 1]) continue;
        if (code >= 0) known[code] = true;
        if (!isfinite(y[i]))
            return ki_fail(KILN_ERR_DATA, "row %lld of y is %g, which is no class label (rows count from 0)",
                           (long long)i, y[i]);
        const int64_t at = place_of(list, length, y[i], &found);
        if (found) continue;
        if (usual && y[i] != floor(y[i])) limit = ki_min(limit, FRACTIONS);
        memmove(list + at + 1, list + at, (size_t)(length - at) * sizeof *list);
        list[at] = y[i] + 0.0; /* one zero, not two */
        length++;
    }
    if (length > limit) {
        ki_fail(KILN_ERR_DATA, "y has more than %lld different values%s", (long long)limit,
                usual && limit == FRACTIONS ? ", not all of them whole numbers" : "");
        return ki_hint("these look like quantities, not like class labels: is it a regression?");
    }
    *values = list;
    *count = length;
    return KILN_OK;
}

static kiln_status labels_get(double **values, struct ki_arena *arena, const kiln_matrix *A) {
    *values = ki_arena_doubles(arena, kiln_matrix_nnz(A));
    return *values ? ki_vector_get(*values, A) : arena->status;
}

static kiln_status labels_look_up(struct ki_labels *labels, struct ki_arena *arena, const double *y) {
    bool found;
    int32_t places[CODES] = {0};
    labels->of = ki_arena_room(arena, labels->rows, sizeof *labels->of);
    if (!labels->of) return arena->status;
    for (int64_t c = 0; c < labels->count; c++)
        if (code_of(labels->values[c]) >= 0) places[code_of(labels->values[c])] = (int32_t)c;
    for (int64_t i = 0; i < labels->rows; i++) {
        const int code = code_of(y[i]);
        labels->of[i] = code >= 0 ? places[code]
                        : i > 0 && y[i] == y[i - 1]
                            ? labels->of[i - 1]
                            : (int32_t)place_of(labels->values, labels->count, y[i], &found);
    }
    return KILN_OK;
}

static kiln_status check_class_weights(const struct ki_labels *labels, const char *call,
                                       const struct ki_label_options *options) {
    if (!options->class_weights) return KILN_OK;
    if (options->balanced)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: class weights are given and `balanced` asks for others", call);
    for (int64_t c = 0; c < labels->count; c++)
        if (!(options->class_weights[c] >= 0) || isinf(options->class_weights[c]))
            return ki_fail(KILN_ERR_ARGUMENT, "%s: class weight %lld is %g, but must be a number >= 0", call,
                           (long long)c, options->class_weights[c]);
    return KILN_OK;
}

/* Multiplies the rows' weights in s by their classes'; class: `count` zeros. */
static void labels_weigh(const struct ki_labels *labels, const struct ki_label_options *options, double *s,
                         double *class) {
    double total = 0;
    for (int64_t i = 0; options->balanced && i < labels->rows; i++) {
        class[labels->of[i]] += s[i];
        total += s[i];
    }
    for (int64_t c = 0; c < labels->count; c++) {
        if (options->balanced)
            class[c] = class[c] > 0 ? total / ((double)labels->count * class[c]) : 0;
        else
            class[c] = options->class_weights[c];
    }
    for (int64_t i = 0; i < labels->rows; i++) s[i] *= class[labels->of[i]];
}

static kiln_status weights_new(struct ki_labels *labels, struct ki_arena *arena, const kiln_matrix *y,
                               const struct ki_label_options *options) {
    kiln_status status;
    struct ki_arena own = {0};
    if (!options->weights && !options->class_weights && !options->balanced) return KILN_OK;
    double *s = ki_arena_doubles(&own, labels->rows), *class = ki_arena_reals(&own, labels->count);
    TRY(own.status);
    for (int64_t i = 0; i < labels->rows; i++) s[i] = 1;
    if (options->weights) TRY(ki_vector_get(s, options->weights));
    if (options->class_weights || options->balanced) labels_weigh(labels, options, s, class);
    labels->weights = ki_arena_vector(arena, y, labels->rows, s);
    TRY(arena->status);
done:
    return ki_arena_free(&own, status);
}

/* The usual labels of two classes are told where they lie: fetching and looking up tens of millions of
 * them takes longer than the training does on a GPU. labels stays as it is if y is none of that. */
static kiln_status tell_pair(struct ki_labels *labels, struct ki_arena *arena, const kiln_matrix *y) {
    kiln_status status;
    double ones;
    bool signs;
    TRY(ki_reduce_outcomes(&ones, &signs, y));
    if (!(ones > 0 && ones < (double)labels->rows)) goto done;
    labels->values = ki_arena_doubles(arena, 2);
    TRY(arena->status);
    labels->values[0] = signs ? -1 : 0;
    labels->values[1] = 1;
    labels->count = 2;
    labels->pair = y;
    labels->signs = signs;
    labels->ones = ones;
done:
    return status;
}

kiln_status kiln_classes(double **values, int64_t *count, const kiln_matrix *y, int64_t limit) {
    static const char call[] = "kiln_classes";
    kiln_status status;
    struct ki_arena arena = {0};
    double *labels = NULL;
    struct ki_labels found = {0};
    if (!values || !count || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (kiln_matrix_format(y) != KILN_DENSE || kiln_matrix_cols(y) != 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: y must be dense, with one column", call);
    if (limit < 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: limit is %lld", call, (long long)limit);
    found.rows = kiln_matrix_rows(y);
    if (limit != 1) TRY(tell_pair(&found, &arena, y));
    if (!found.pair) {
        TRY(labels_get(&labels, &arena, y));
        TRY(labels_distinct(&found.values, &found.count, &arena, labels, found.rows, limit));
    }
    *values = ki_arena_give(&arena, found.values);
    *count = found.count;
    status = KILN_OK;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_labels_new(struct ki_labels *labels, struct ki_arena *arena, const char *call,
                          const kiln_matrix *y, const struct ki_label_options *options) {
    kiln_status status = KILN_OK;
    struct ki_arena own = {0};
    double *values = NULL;
    struct ki_labels made = {.rows = kiln_matrix_rows(y)};
    if (!options->class_weights && !options->balanced) TRY(tell_pair(&made, arena, y));
    if (!made.pair) {
        TRY(ki_check_finite(call, "y", y, false));
        TRY(labels_get(&values, &own, y));
        TRY(labels_distinct(&made.values, &made.count, arena, values, made.rows, 0));
        if (made.count < 2)
            TRY((ki_fail(KILN_ERR_DATA, "%s: every row has the label %g: there is nothing to tell apart",
                         call, made.values[0]),
                 ki_hint("y must have two classes or more")));
        TRY(labels_look_up(&made, arena, values));
        TRY(check_class_weights(&made, call, options));
    }
    TRY(weights_new(&made, arena, y, options));
    *labels = made;
done:
    return ki_arena_free(&own, status);
}

/* no + (yes - no) times what tells the second class. */
static kiln_status column_of_pair(kiln_matrix *column, const struct ki_labels *labels, double yes,
                                  double no) {
    kiln_status status = KILN_OK;
    const double step = labels->signs ? 0.5 * (yes - no) : yes - no, one = 1;
    const double zero = labels->signs ? 0.5 * (yes + no) : no; /* where y is, or would be, 0 */
    if (zero != 0) TRY(kiln_fill(column, zero));
    TRY(kiln_combine(column, &step, labels->pair, zero != 0 ? &one : NULL, zero != 0 ? column : NULL));
done:
    return status;
}

kiln_status ki_labels_column(kiln_matrix **column, struct ki_arena *arena, const struct ki_labels *labels,
                             const kiln_matrix *y, int64_t c, double yes, double no) {
    kiln_status status;
    struct ki_arena own = {0};
    if (labels->pair) {
        *column = ki_arena_rows(arena, labels->pair, 1);
        return *column ? column_of_pair(*column, labels, yes, no) : arena->status;
    }
    double *values = ki_arena_doubles(&own, labels->rows);
    TRY(own.status);
    for (int64_t i = 0; i < labels->rows; i++)
        values[i] = c < 0 ? (double)labels->of[i] : (labels->of[i] == c ? yes : no);
    *column = ki_arena_vector(arena, y, labels->rows, values);
    TRY(arena->status);
done:
    return ki_arena_free(&own, status);
}

static kiln_status sums_of_pair(double sums[2], const struct ki_labels *labels, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    struct ki_arena arena = {0};
    kiln_matrix *second = NULL;
    double total = (double)labels->rows;
    sums[1] = labels->ones;
    if (labels->weights) {
        TRY(ki_labels_column(&second, &arena, labels, y, 1, 1, 0));
        TRY(kiln_dot(&sums[1], second, labels->weights));
        TRY(kiln_norm(&total, labels->weights, KILN_NORM_1));
    }
    sums[0] = total - sums[1];
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_labels_sums(double *sums, const struct ki_labels *labels, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    struct ki_arena arena = {0};
    double *s = NULL;
    if (labels->pair) return sums_of_pair(sums, labels, y);
    if (labels->weights) TRY(labels_get(&s, &arena, labels->weights));
    for (int64_t c = 0; c < labels->count; c++) sums[c] = 0;
    for (int64_t i = 0; i < labels->rows; i++) sums[labels->of[i]] += s ? s[i] : 1;
done:
    return ki_arena_free(&arena, status);
}
