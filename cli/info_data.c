/* kiln info DATA: shape, a histogram of row lengths in powers of two, statistics of the targets, speed of
 * reading. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "progress.h"

enum { BINS = 34, BAR = 32, TARGETS_SHOWN = 8 }; /* a row has fewer than 2^31 entries */

/* Bin 0 holds empty rows, bin b rows of 2^(b-1) .. 2^b - 1 entries. */
struct row_lengths {
    int64_t bins[BINS], least, most, empty_columns;
};

struct column_statistics {
    int64_t count, distinct; /* of finite values; distinct 0: more than `few` */
    double least, most, mean, deviation;
    double value[10];
    int64_t times[10];
};

static void count_rows(struct row_lengths *lengths, const int64_t *row_start, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = row_start[i + 1] - row_start[i];
        int bin = 0;
        while (length >> bin) bin++;
        lengths->bins[bin]++;
        if (i == 0 || length < lengths->least) lengths->least = length;
        if (length > lengths->most) lengths->most = length;
    }
}

static int by_number(const void *a, const void *b) {
    const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* With a mark a column, unless these would outweigh the entries, which are then sorted: a file of 21 bytes
 * may name column 2147483647. */
static int count_empty_columns(struct row_lengths *lengths, int32_t *col, int64_t nnz, int64_t cols) {
    int64_t used = 0;
    if (cols / 64 > nnz + 1000) {
        qsort(col, (size_t)nnz, sizeof *col, by_number);
        for (int64_t i = 0; i < nnz; i++) used += i == 0 || col[i] != col[i - 1];
    } else {
        char *mark = calloc((size_t)cols + 1, 1);
        if (!mark)
            return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld columns", (long long)cols);
        for (int64_t i = 0; i < nnz; i++) {
            used += !mark[col[i]];
            mark[col[i]] = 1;
        }
        free(mark);
    }
    lengths->empty_columns = cols - used;
    return 0;
}

static int measure_rows(struct row_lengths *lengths, const kiln_matrix *X) {
    int64_t rows = kiln_matrix_rows(X), nnz = kiln_matrix_nnz(X);
    if (kiln_matrix_format(X) != KILN_CSR) return 0;
    int64_t *row_start = malloc((size_t)(rows + 1) * sizeof *row_start);
    int32_t *col = malloc((size_t)nnz * sizeof *col + 1);
    int code = 0;
    if (!row_start || !col)
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld rows", (long long)rows);
    else if (kiln_matrix_get_csr(row_start, col, NULL, X) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) count_rows(lengths, row_start, rows);
    if (!code) code = count_empty_columns(lengths, col, nnz, kiln_matrix_cols(X));
    free(row_start);
    free(col);
    return code;
}

static void count_distinct(struct column_statistics *s, double value, bool *many) {
    enum { FEW = sizeof s->value / sizeof *s->value };
    int64_t at = 0;
    if (*many) return;
    while (at < s->distinct && s->value[at] != value) at++;
    if (at == FEW) {
        *many = true;
        s->distinct = 0;
        return;
    }
    if (at == s->distinct) {
        s->value[at] = value;
        s->distinct++;
    }
    s->times[at]++;
}

/* Mean and deviation by Welford's recurrence. */
static struct column_statistics measure_column(const double *values, int64_t rows, int64_t stride) {
    struct column_statistics s = {.least = NAN, .most = NAN, .mean = NAN, .deviation = NAN};
    double mean = 0, squares = 0;
    bool many = false;
    for (int64_t i = 0; i < rows; i++) {
        double value = values[i * stride];
        if (!isfinite(value)) continue;
        s.count++;
        s.least = fmin(s.least, value); /* fmin ignores the NaN at the beginning */
        s.most = fmax(s.most, value);
        double step = value - mean;
        mean += step / (double)s.count;
        squares += step * (value - mean);
        count_distinct(&s, value, &many);
    }
    if (s.count) s.mean = mean;
    if (s.count) s.deviation = sqrt(squares / (double)s.count);
    return s;
}

static int target_values(struct run *run, const kiln_matrix *y, double **values) {
    kiln_matrix *wide = NULL;
    int code = 0;
    *values = malloc((size_t)(kiln_matrix_rows(y) * kiln_matrix_cols(y)) * sizeof **values + 1);
    if (!*values) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the targets");
    if (kiln_matrix_copy(&wide, run->device, KILN_F64, y) != KILN_OK ||
        kiln_matrix_get(*values, wide) != KILN_OK)
        code = fail_library(WORKING);
    kiln_matrix_free(wide);
    return code;
}

static json_t *histogram_json(const struct row_lengths *lengths, const kiln_matrix *X) {
    if (kiln_matrix_format(X) != KILN_CSR) return json_null();
    json_t *object = json_object(), *bins = json_array();
    json_put_count(object, "least", lengths->least);
    json_put_count(object, "most", lengths->most);
    json_put_number(object, "mean", (double)kiln_matrix_nnz(X) / (double)kiln_matrix_rows(X));
    for (int b = 0; b < BINS; b++) {
        if (!lengths->bins[b]) continue;
        json_t *bin = json_object();
        json_put_count(bin, "from", b ? (int64_t)1 << (b - 1) : 0);
        json_put_count(bin, "to", ((int64_t)1 << b) - 1);
        json_put_count(bin, "rows", lengths->bins[b]);
        json_add(bins, bin);
    }
    json_put(object, "histogram", bins);
    json_put_count(object, "empty_columns", lengths->empty_columns);
    return object;
}

static json_t *targets_json(const kiln_data *data, const double *values) {
    const kiln_matrix *y = kiln_data_y(data);
    json_t *array = json_array();
    int64_t k = y && values ? kiln_matrix_cols(y) : 0;
    for (int64_t j = 0; j < k; j++) {
        struct column_statistics s = measure_column(values + j, kiln_matrix_rows(y), k);
        json_t *object = json_object();
        json_put_text(object, "name", kiln_data_target_name(data, j));
        json_put_count(object, "finite", s.count);
        json_put_number(object, "least", s.least);
        json_put_number(object, "most", s.most);
        json_put_number(object, "mean", s.mean);
        json_put_number(object, "deviation", s.deviation);
        json_put(object, "distinct", s.distinct ? json_integer(s.distinct) : json_null());
        json_add(array, object);
    }
    return array;
}

static double density(const kiln_matrix *X) {
    return (double)kiln_matrix_nnz(X) / ((double)kiln_matrix_rows(X) * (double)kiln_matrix_cols(X));
}

static double speed(const struct run *run, const kiln_data *data) {
    return (double)kiln_data_bytes(data) / fmax(run->seconds.read, 1e-6);
}

static json_t *feature_json(const void *data, int64_t i) {
    const char *name = kiln_data_feature_name(data, i);
    return name ? json_text(name) : NULL;
}

static int tell_json(struct run *run, const char *path, const kiln_data *data,
                     const struct row_lengths *lengths, const double *targets) {
    const kiln_matrix *X = kiln_data_X(data);
    json_t *object = run_json(run, "kiln.info/1");
    json_put_text(object, "kind", "data");
    json_put_text(object, "file", path);
    json_put_text(object, "format", kiln_format_name(kiln_data_format(data)));
    json_put_flag(object, "sparse", kiln_matrix_format(X) == KILN_CSR);
    run_json_shape(object, X);
    json_put_number(object, "density", density(X));
    json_put_count(object, "bytes", kiln_data_bytes(data));
    json_put_number(object, "megabytes_per_second", speed(run, data) / 1e6);
    run_json_seconds(run, object);
    json_put(object, "row_lengths", histogram_json(lengths, X));
    json_put(object, "targets", targets_json(data, targets));
    const struct json_list lists[] = {
        {"features", feature_json, kiln_data_feature_name(data, 0) ? data : NULL},
        {"columns_of_file", info_column_json, kiln_data_column(data, 0) ? data : NULL}};
    return json_print_lists(object, lists, 2);
}

static void print_histogram(const struct row_lengths *lengths, const kiln_matrix *X) {
    int64_t highest = 1;
    for (int b = 0; b < BINS; b++) highest = lengths->bins[b] > highest ? lengths->bins[b] : highest;
    printf("  row length    %s to %s, mean %s\n", text_count(lengths->least), text_count(lengths->most),
           text_number((double)kiln_matrix_nnz(X) / (double)kiln_matrix_rows(X)));
    for (int b = 0; b < BINS; b++) {
        if (!lengths->bins[b]) continue;
        char range[48], bar[BAR + 1];
        int length = (int)ceil((double)BAR * (double)lengths->bins[b] / (double)highest);
        memset(bar, '#', (size_t)length);
        bar[length] = '\0';
        int64_t from = b ? (int64_t)1 << (b - 1) : 0, to = ((int64_t)1 << b) - 1;
        if (from == to)
            snprintf(range, sizeof range, "%s", text_count(from));
        else
            snprintf(range, sizeof range, "%s - %s", text_count(from), text_count(to));
        printf("    %19s  %14s rows  %s\n", range, text_count(lengths->bins[b]), bar);
    }
    if (lengths->empty_columns) printf("  empty         %s\n", text_plural(lengths->empty_columns, "column"));
}

static void print_targets(const kiln_data *data, const double *values) {
    const kiln_matrix *y = kiln_data_y(data);
    int64_t k = y && values ? kiln_matrix_cols(y) : 0;
    if (!k) printf("  targets       none in the file\n");
    for (int64_t j = 0; j < k && j < TARGETS_SHOWN; j++) {
        struct column_statistics s = measure_column(values + j, kiln_matrix_rows(y), k);
        const char *name = kiln_data_target_name(data, j);
        printf("  target        ");
        text_put(stdout, name ? name : "", 0);
        printf("%s%s to %s, mean %s, deviation %s\n", name ? ": " : "", text_number(s.least),
               text_number(s.most), text_number(s.mean), text_number(s.deviation));
        for (int64_t i = 0; i < s.distinct; i++) {
            const char *class = kiln_data_class_name(data, j, (int64_t)s.value[i]);
            printf("    %s  %14s rows\n", text_cell(class ? class : text_number(s.value[i]), 19),
                   text_count(s.times[i]));
        }
    }
    if (k > TARGETS_SHOWN) printf("  and %s more targets: --json shows all\n", text_count(k - TARGETS_SHOWN));
}

static void print_features(const kiln_data *data) {
    int64_t cols = kiln_matrix_cols(kiln_data_X(data)), shown = cols < 12 ? cols : 12;
    if (!kiln_data_feature_name(data, 0)) return;
    printf("  columns       ");
    for (int64_t j = 0; j < shown; j++) {
        fputs(j ? ", " : "", stdout);
        text_put(stdout, kiln_data_feature_name(data, j), 0);
    }
    if (shown < cols) printf(", and %s more", text_count(cols - shown));
    putchar('\n');
}

static void tell_people(struct run *run, const char *path, const kiln_data *data,
                        const struct row_lengths *lengths, const double *targets) {
    const kiln_matrix *X = kiln_data_X(data);
    bool sparse = kiln_matrix_format(X) == KILN_CSR;
    printf("data %s\n", strcmp(path, "-") == 0 ? "standard input" : path);
    printf("  format        %s, %s\n", kiln_format_name(kiln_data_format(data)), sparse ? "sparse" : "dense");
    printf("  shape         %s x %s\n", text_plural(kiln_matrix_rows(X), "row"),
           text_plural(kiln_matrix_cols(X), "column"));
    if (sparse)
        printf("  entries       %s, density %s %%\n", text_count(kiln_matrix_nnz(X)),
               text_number(100 * density(X)));
    if (kiln_data_column(data, 0))
        info_print_columns(data);
    else
        print_features(data);
    if (sparse && kiln_matrix_rows(X)) print_histogram(lengths, X);
    print_targets(data, targets);
    printf("  read          %s in %s, %s/s\n", text_bytes((double)kiln_data_bytes(data)),
           text_seconds(run->seconds.read), text_bytes(speed(run, data)));
}

int info_data(struct run *run, const char *path) {
    kiln_data *data = NULL;
    struct row_lengths lengths = {.least = 0};
    double *targets = NULL;
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &data, path, type_of(run->settings->type), NULL);
    if (!code) code = measure_rows(&lengths, kiln_data_X(data));
    if (!code && kiln_data_y(data)) code = target_values(run, kiln_data_y(data), &targets);
    progress_end();
    if (!code && talk_json())
        code = tell_json(run, path, data, &lengths, targets);
    else if (!code)
        tell_people(run, path, data, &lengths, targets);
    free(targets);
    kiln_data_free(data);
    return code;
}
