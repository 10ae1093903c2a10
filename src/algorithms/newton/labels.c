/* Class labels: the distinct values of y in ascending order, found by insertion into a short sorted list.
 * Rows look their class up by bisection, after a guess: that it is the class of the row before. */
#include "algorithms/newton/labels.h"

/* By default no more classes: a y with more values is no label, nor is one with more than a few that are
 * not all whole numbers, as the prices of houses. */
enum { CLASSES = 65536, FRACTIONS = 64 };

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
static kiln_status distinct(double **values, int64_t *count, const double *y, int64_t rows, int64_t limit) {
    const bool usual = limit == 0;
    limit = ki_min(usual ? CLASSES : limit, ki_max(rows, 1));
    double *list = ki_alloc((size_t)(limit + 1) * sizeof *list);
    int64_t length = 0;
    bool found;
    if (!list) return ki_fail_nomem((size_t)(limit + 1) * sizeof *list, "the classes");
    for (int64_t i = 0; i < rows && length <= limit; i++) {
        if (i > 0 && y[i] == y[i - 1]) continue;
        if (!isfinite(y[i])) {
            ki_free(list);
            return ki_fail(KILN_ERR_DATA, "row %lld of y is %g, which is no class label (rows count from 0)",
                           (long long)i, y[i]);
        }
        const int64_t at = place_of(list, length, y[i], &found);
        if (found) continue;
        if (usual && y[i] != floor(y[i])) limit = ki_min(limit, FRACTIONS);
        memmove(list + at + 1, list + at, (size_t)(length - at) * sizeof *list);
        list[at] = y[i] + 0.0; /* one zero, not two */
        length++;
    }
    if (length > limit) {
        ki_free(list);
        ki_fail(KILN_ERR_DATA, "y has more than %lld different values%s", (long long)limit,
                usual && limit == FRACTIONS ? ", not all of them whole numbers" : "");
        return ki_hint("these look like quantities, not like class labels: is it a regression?");
    }
    *values = list;
    *count = length;
    return KILN_OK;
}

static kiln_status values_of(double **values, const kiln_matrix *A) {
    int64_t bytes;
    double *made = ki_mul(kiln_matrix_nnz(A), sizeof *made, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    if (!made) return ki_fail_nomem((size_t)kiln_matrix_nnz(A) * sizeof *made, "the labels");
    const kiln_status status = ki_vector_get(made, A);
    if (status == KILN_OK)
        *values = made;
    else
        ki_free(made);
    return status;
}

void ki_labels_free(struct ki_labels *labels) {
    ki_free(labels->values);
    ki_free(labels->of);
    kiln_matrix_free(labels->weights);
    *labels = (struct ki_labels){0};
}

static kiln_status look_up(struct ki_labels *labels, const double *y) {
    bool found;
    labels->of = ki_alloc((size_t)labels->rows * sizeof *labels->of);
    if (!labels->of)
        return ki_fail_nomem((size_t)labels->rows * sizeof *labels->of, "the classes of the rows");
    for (int64_t i = 0; i < labels->rows; i++)
        labels->of[i] = i > 0 && y[i] == y[i - 1]
                            ? labels->of[i - 1]
                            : (int32_t)place_of(labels->values, labels->count, y[i], &found);
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

/* Multiplies the rows' weights in s by their classes'. */
static kiln_status weigh(const struct ki_labels *labels, const struct ki_label_options *options, double *s) {
    double *class = ki_calloc((size_t)labels->count * sizeof *class), total = 0;
    if (!class) return ki_fail_nomem((size_t)labels->count * sizeof *class, "the classes' weights");
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
    ki_free(class);
    return KILN_OK;
}

static kiln_status weights_new(struct ki_labels *labels, const kiln_matrix *y,
                               const struct ki_label_options *options) {
    kiln_status status = KILN_OK;
    double *s = NULL;
    if (!options->weights && !options->class_weights && !options->balanced) return KILN_OK;
    if (options->weights) {
        TRY(values_of(&s, options->weights));
    } else {
        s = ki_alloc((size_t)labels->rows * sizeof *s);
        if (!s) return ki_fail_nomem((size_t)labels->rows * sizeof *s, "the weights");
        for (int64_t i = 0; i < labels->rows; i++) s[i] = 1;
    }
    if (options->class_weights || options->balanced) TRY(weigh(labels, options, s));
    TRY(ki_vector_new(&labels->weights, kiln_matrix_device(y), kiln_matrix_type(y), labels->rows, s));
done:
    ki_free(s);
    return status;
}

/* The usual labels of two classes are told where they lie: fetching and looking up tens of millions of
 * them takes longer than the training does on a GPU. labels stays as it is if y is none of that. */
static kiln_status tell_pair(struct ki_labels *labels, const kiln_matrix *y) {
    kiln_status status;
    double ones;
    bool signs;
    TRY(ki_reduce_outcomes(&ones, &signs, y));
    if (!(ones > 0 && ones < (double)labels->rows)) goto done;
    labels->values = ki_alloc(2 * sizeof *labels->values);
    if (!labels->values) TRY(ki_fail_nomem(2 * sizeof *labels->values, "the classes"));
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
    kiln_status status = KILN_OK;
    double *labels = NULL;
    struct ki_labels pair = {0};
    if (!values || !count || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (kiln_matrix_format(y) != KILN_DENSE || kiln_matrix_cols(y) != 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: y must be dense, with one column", call);
    if (limit < 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: limit is %lld", call, (long long)limit);
    pair.rows = kiln_matrix_rows(y);
    if (limit != 1) TRY(tell_pair(&pair, y));
    if (pair.pair) {
        *values = pair.values;
        *count = pair.count;
        pair.values = NULL;
        goto done;
    }
    TRY(values_of(&labels, y));
    TRY(distinct(values, count, labels, kiln_matrix_rows(y), limit));
done:
    ki_labels_free(&pair);
    ki_free(labels);
    return status;
}

kiln_status ki_labels_new(struct ki_labels *labels, const char *call, const kiln_matrix *y,
                          const struct ki_label_options *options) {
    kiln_status status;
    double *values = NULL;
    struct ki_labels made = {.rows = kiln_matrix_rows(y)};
    if (!options->class_weights && !options->balanced) TRY(tell_pair(&made, y));
    if (made.pair) {
        TRY(weights_new(&made, y, options));
        *labels = made;
        return KILN_OK;
    }
    TRY(ki_check_finite(call, "y", y, false));
    TRY(values_of(&values, y));
    TRY(distinct(&made.values, &made.count, values, made.rows, 0));
    if (made.count < 2)
        TRY((ki_fail(KILN_ERR_DATA, "%s: every row has the label %g: there is nothing to tell apart", call,
                     made.values[0]),
             ki_hint("y must have two classes or more")));
    TRY(look_up(&made, values));
    TRY(check_class_weights(&made, call, options));
    TRY(weights_new(&made, y, options));
    *labels = made;
    made = (struct ki_labels){0};
done:
    ki_labels_free(&made);
    ki_free(values);
    return status;
}

/* no + (yes - no) times what tells the second class. */
static kiln_status column_of_pair(kiln_matrix **column, const struct ki_labels *labels, double yes,
                                  double no) {
    kiln_status status;
    const kiln_matrix *y = labels->pair;
    const double step = labels->signs ? 0.5 * (yes - no) : yes - no, one = 1;
    const double zero = labels->signs ? 0.5 * (yes + no) : no; /* where y is, or would be, 0 */
    kiln_matrix *made = NULL;
    TRY(kiln_matrix_dense(&made, kiln_matrix_device(y), kiln_matrix_type(y), labels->rows, 1, NULL));
    if (zero != 0) TRY(kiln_fill(made, zero));
    TRY(kiln_combine(made, &step, y, zero != 0 ? &one : NULL, zero != 0 ? made : NULL));
    *column = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

kiln_status ki_labels_column(kiln_matrix **column, const struct ki_labels *labels, const kiln_matrix *y,
                             int64_t c, double yes, double no) {
    if (labels->pair) return column_of_pair(column, labels, yes, no);
    double *values = ki_alloc((size_t)labels->rows * sizeof *values);
    if (!values) return ki_fail_nomem((size_t)labels->rows * sizeof *values, "the targets");
    for (int64_t i = 0; i < labels->rows; i++)
        values[i] = c < 0 ? (double)labels->of[i] : (labels->of[i] == c ? yes : no);
    const kiln_status status =
        ki_vector_new(column, kiln_matrix_device(y), kiln_matrix_type(y), labels->rows, values);
    ki_free(values);
    return status;
}

static kiln_status sums_of_pair(double sums[2], const struct ki_labels *labels, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    kiln_matrix *second = NULL;
    double total = (double)labels->rows;
    sums[1] = labels->ones;
    if (labels->weights) {
        TRY(ki_labels_column(&second, labels, y, 1, 1, 0));
        TRY(kiln_dot(&sums[1], second, labels->weights));
        TRY(kiln_norm(&total, labels->weights, KILN_NORM_1));
    }
    sums[0] = total - sums[1];
done:
    kiln_matrix_free(second);
    return status;
}

kiln_status ki_labels_sums(double *sums, const struct ki_labels *labels, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    double *s = NULL;
    if (labels->pair) return sums_of_pair(sums, labels, y);
    if (labels->weights) TRY(values_of(&s, labels->weights));
    for (int64_t c = 0; c < labels->count; c++) sums[c] = 0;
    for (int64_t i = 0; i < labels->rows; i++) sums[labels->of[i]] += s ? s[i] : 1;
done:
    ki_free(s);
    return status;
}
