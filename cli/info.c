#define _GNU_SOURCE
/* kiln info FILE: data or a model (info_model.c), told apart by the first bytes. Data have a shape, a
 * histogram of row lengths in powers of two, statistics of the targets, the columns of a table, and a speed
 * of reading. */
#include "info.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/codes.h>

#include "progress.h"
#include "verbs.h"

enum { BINS = 34, BAR = 32, TARGETS_SHOWN = 8, VALUES_MOST = 10 }; /* a row has fewer than 2^31 entries */

/* Bin 0 holds empty rows, bin b rows of 2^(b-1) .. 2^b - 1 entries. */
struct row_lengths {
    int64_t bins[BINS], least, most, empty_columns;
};

struct column_statistics {
    int64_t count, distinct; /* of finite values; distinct 0: more than `few` */
    double least, most, mean, deviation;
    double value[VALUES_MOST];
    int64_t times[VALUES_MOST];
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

struct described {
    const kiln_data *data;
    struct row_lengths lengths;
    double *values; /* of the targets */
    int64_t targets;
    struct column_statistics *statistics;
};

static int measure_targets(struct run *run, struct described *d) {
    const kiln_matrix *y = kiln_data_y(d->data);
    if (!y) return 0;
    const int code = target_values(run, y, &d->values);
    if (code) return code;
    d->targets = kiln_matrix_cols(y);
    d->statistics = malloc((size_t)d->targets * sizeof *d->statistics + 1);
    if (!d->statistics) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the targets");
    for (int64_t j = 0; j < d->targets; j++)
        d->statistics[j] = measure_column(d->values + j, kiln_matrix_rows(y), d->targets);
    return 0;
}

/* The i-th of those bins that hold rows. */
static void put_bin(struct result *row, const void *of, int64_t i) {
    static const char bars[] = "################################";
    const struct row_lengths *lengths = of;
    int64_t highest = 1;
    int bin = 0;
    for (int b = 0; b < BINS; b++) highest = lengths->bins[b] > highest ? lengths->bins[b] : highest;
    for (int64_t left = i;; bin++)
        if (lengths->bins[bin] && left-- == 0) break;
    const int64_t from = bin ? (int64_t)1 << (bin - 1) : 0, to = ((int64_t)1 << bin) - 1;
    const int length = (int)ceil((double)BAR * (double)lengths->bins[bin] / (double)highest);
    PUT(row, NULL, .kind = ROW_NONE, .label = "", .before = "    ", .width = 19,
        .shown = from == to ? result_words(row, "%s", text_count(from))
                            : result_words(row, "%s - %s", text_count(from), text_count(to)));
    PUT(row, "from", COUNT(from));
    PUT(row, "to", COUNT(to));
    PUT(row, "rows", COUNT(lengths->bins[bin]), .label = "", .before = "  ", .width = 14, .after = " rows");
    PUT(row, NULL, TEXT(bars + BAR - length), .label = "", .before = "  ");
}

static void put_lengths(struct result *result, const struct described *d) {
    const kiln_matrix *X = kiln_data_X(d->data);
    const struct row_lengths *lengths = &d->lengths;
    const bool any = kiln_matrix_rows(X) > 0;
    int64_t bins = 0;
    if (kiln_matrix_format(X) != KILN_CSR) {
        PUT(result, "row_lengths", .kind = ROW_NONE);
        return;
    }
    for (int b = 0; b < BINS; b++) bins += lengths->bins[b] > 0;
    result_open(result, "row_lengths", false);
    PUT(result, "least", COUNT(lengths->least), .label = any ? "row length" : NULL);
    PUT(result, "most", COUNT(lengths->most), .before = any ? " to " : NULL);
    PUT(result, "mean", NUMBER((double)kiln_matrix_nnz(X) / (double)kiln_matrix_rows(X)),
        .before = any ? ", mean " : NULL);
    PUT(result, "histogram", TABLE(bins, put_bin, lengths), .hidden = !any);
    PUT(result, "empty_columns", COUNT(lengths->empty_columns), .unit = "column",
        .label = any && lengths->empty_columns ? "empty" : NULL);
    result_close(result);
}

static void put_target(struct result *row, const void *of, int64_t j) {
    const struct described *d = of;
    const struct column_statistics *s = &d->statistics[j];
    PUT(row, "name", TEXT(kiln_data_target_name(d->data, j)));
    PUT(row, "finite", COUNT(s->count));
    PUT(row, "least", NUMBER(s->least));
    PUT(row, "most", NUMBER(s->most));
    PUT(row, "mean", NUMBER(s->mean));
    PUT(row, "deviation", NUMBER(s->deviation));
    PUT(row, "distinct", .kind = s->distinct ? ROW_COUNT : ROW_NONE, .count = s->distinct);
}

/* The i-th value of target j, at VALUES_MOST j + i. */
static void put_value(struct result *row, const void *of, int64_t at) {
    const struct described *d = of;
    const int64_t j = at / VALUES_MOST, i = at % VALUES_MOST;
    const struct column_statistics *s = &d->statistics[j];
    const char *class = kiln_data_class_name(d->data, j, (int64_t)s->value[i]);
    PUT(row, NULL, TEXT(class ? class : result_words(row, "%s", text_number(s->value[i]))), .label = "",
        .before = "    ", .width = 19);
    PUT(row, NULL, COUNT(s->times[i]), .label = "", .before = "  ", .width = 14, .after = " rows");
}

/* JSON has the same of all. */
static void put_targets(struct result *result, const struct described *d) {
    PUT(result, "targets", TABLE(d->targets, put_target, d), .hidden = true);
    if (!d->targets) PUT(result, NULL, .kind = ROW_NONE, .label = "targets", .shown = "none in the file");
    for (int64_t j = 0; j < d->targets && j < TARGETS_SHOWN; j++) {
        const struct column_statistics *s = &d->statistics[j];
        const char *name = kiln_data_target_name(d->data, j);
        PUT(result, NULL, TEXT(name), .label = "target", .after = name ? ": " : NULL);
        PUT(result, NULL, NUMBER(s->least), .before = "");
        PUT(result, NULL, NUMBER(s->most), .before = " to ");
        PUT(result, NULL, NUMBER(s->mean), .before = ", mean ");
        PUT(result, NULL, NUMBER(s->deviation), .before = ", deviation ");
        PUT(result, NULL, TABLE(s->distinct, put_value, d), .first = j * VALUES_MOST);
    }
    if (d->targets > TARGETS_SHOWN)
        PUT_LINE(result, "  and %s more targets: --json shows all", text_count(d->targets - TARGETS_SHOWN));
}

static void put_feature(struct result *row, const void *data, int64_t j) {
    PUT(row, "", TEXT(kiln_data_feature_name(data, j)), .label = "");
}

/* The first few for people, where no table of the columns says more. */
static void put_features(struct result *result, const kiln_data *data) {
    const int64_t cols = kiln_matrix_cols(kiln_data_X(data)), shown = cols < 12 ? cols : 12;
    const bool named = kiln_data_feature_name(data, 0) != NULL;
    PUT(result, "features", TABLE(cols, named ? put_feature : NULL, data), .hidden = true);
    if (!named || kiln_data_column(data, 0)) return;
    for (int64_t j = 0; j < shown; j++)
        PUT(result, NULL, TEXT(kiln_data_feature_name(data, j)), .label = j ? NULL : "columns",
            .before = j ? ", " : NULL);
    if (shown < cols) PUT(result, NULL, COUNT(cols - shown), .before = ", and ", .after = " more");
}

/* X takes so much as it is kept, and would take so much with all of its numbers in f64. */
static void put_storage(struct result *result, const kiln_matrix *X, const kiln_storage *storage) {
    const double dense = 8 * (double)kiln_matrix_rows(X) * (double)kiln_matrix_cols(X);
    static const char *const elements[] = {
        [KILN_ELEMENT_U8] = "u8",   [KILN_ELEMENT_I8] = "i8",    [KILN_ELEMENT_U16] = "u16",
        [KILN_ELEMENT_I16] = "i16", [KILN_ELEMENT_F16] = "f16",  [KILN_ELEMENT_BF16] = "bf16",
        [KILN_ELEMENT_F32] = "f32", [KILN_ELEMENT_SAME] = "same"};
    const bool same = storage->element == KILN_ELEMENT_SAME;
    const char *element = storage->element ? elements[storage->element] : type_name(kiln_matrix_type(X));
    const bool codes = storage->categories > 0;
    PUT(result, "stored_bytes", COUNT(storage->bytes), .label = "takes",
        .shown = result_words(result, "%s", text_bytes((double)storage->bytes)));
    PUT(result, "stored_numbers", COUNT(storage->numbers), .before = codes ? ", " : NULL,
        .shown = result_words(result, "%s of numbers", text_plural(storage->numbers, "column")));
    PUT(result, "stored_categories", COUNT(storage->categories), .before = codes ? " and " : NULL,
        .shown = result_words(result, "%s of codes", text_plural(storage->categories, "column")));
    PUT(result, "stored_values", TEXT(element), .before = storage->element ? ", " : NULL,
        .shown = same               ? result_words(result, "all entries are %.9g, kept once", storage->same)
                 : storage->element ? result_words(result, "each number as %s", element)
                                    : NULL);
    PUT(result, "dense_bytes", NUMBER(dense), .before = "; dense in f64 ",
        .shown = result_words(result, "%s", text_bytes(dense)));
}

static const char *const roles[] = {
    [KILN_COLUMN_FEATURE] = "feature", [KILN_COLUMN_TARGET] = "target",   [KILN_COLUMN_WEIGHTS] = "weights",
    [KILN_COLUMN_OFFSET] = "offset",   [KILN_COLUMN_IGNORED] = "ignored", [KILN_COLUMN_GROUPS] = "groups"};

static const char *kind_of(const kiln_column *column) {
    return column->role == KILN_COLUMN_IGNORED ? "" : column->text ? "text" : "number";
}

static void put_column(struct result *row, const void *data, int64_t i) {
    const kiln_column *column = kiln_data_column(data, i);
    const char *kind = kind_of(column), *range = isfinite(column->least) ? NULL : "";
    PUT(row, "role", TEXT(roles[column->role]), .label = "role", .before = "  ", .width = -8);
    PUT(row, "kind", TEXT(*kind ? kind : NULL), .label = "kind", .width = -7);
    PUT(row, "levels", .kind = column->text ? ROW_COUNT : ROW_NONE, .count = column->levels,
        .label = "levels", .width = 10);
    PUT(row, "least", NUMBER(column->least), .label = "least", .width = 12, .shown = range);
    PUT(row, "most", NUMBER(column->most), .label = "most", .width = 12, .shown = range);
    PUT(row, "mean", NUMBER(column->mean), .label = "mean", .width = 12, .shown = range);
    PUT(row, "missing", COUNT(column->missing), .label = "missing", .width = 9,
        .shown = column->missing ? NULL : "");
    PUT(row, "name", TEXT(column->name), .label = "column", .before = "  ");
}

static void put_columns(struct result *result, const kiln_data *data) {
    enum { SHOWN = 200 };
    int64_t count = 0;
    while (kiln_data_column(data, count)) count++;
    for (kiln_column_role role = KILN_COLUMN_WEIGHTS; role <= KILN_COLUMN_GROUPS; role++) {
        const char *name = kiln_data_role_name(data, role);
        if (role == KILN_COLUMN_IGNORED) continue;
        PUT(result, roles[role], TEXT(name), .label = name && !count ? roles[role] : NULL);
    }
    PUT(result, "columns_of_file", TABLE(count, count ? put_column : NULL, data), .most = SHOWN,
        .rest = " columns: --json has all");
}

static int tell(struct run *run, const char *path, const struct described *d) {
    const kiln_matrix *X = kiln_data_X(d->data);
    kiln_storage storage = {.size = sizeof storage};
    const bool sparse = kiln_matrix_format(X) == KILN_CSR;
    const double density =
        (double)kiln_matrix_nnz(X) / ((double)kiln_matrix_rows(X) * (double)kiln_matrix_cols(X));
    const double bytes = (double)kiln_data_bytes(d->data), speed = bytes / fmax(run->seconds.read, 1e-6);
    struct result result;
    if (kiln_matrix_get_storage(&storage, X) != KILN_OK) return fail_library(WORKING);
    result_begin(&result);
    result.margin = 13;
    run_put(&result, run, "kiln.info/1");
    PUT(&result, "kind", TEXT("data"));
    PUT(&result, "file", TEXT(path), .head = "data ",
        .shown = strcmp(path, "-") == 0 ? "standard input" : NULL);
    PUT(&result, "format", TEXT(kiln_format_name(kiln_data_format(d->data))), .label = "format");
    PUT(&result, "sparse", FLAG(sparse), .before = ", ", .shown = sparse ? "sparse" : "dense");
    PUT(&result, "type", TEXT(type_name(kiln_matrix_type(X))));
    PUT(&result, "rows", COUNT(kiln_matrix_rows(X)), .label = "shape", .unit = "row");
    PUT(&result, "columns", COUNT(kiln_matrix_cols(X)), .before = " x ", .unit = "column");
    PUT(&result, "nnz", COUNT(kiln_matrix_nnz(X)), .label = sparse ? "entries" : NULL);
    if (sparse) PUT(&result, NULL, NUMBER(100 * density), .before = ", density ", .after = " %");
    PUT(&result, "density", NUMBER(density));
    put_storage(&result, X, &storage);
    put_features(&result, d->data);
    put_columns(&result, d->data);
    put_lengths(&result, d);
    put_targets(&result, d);
    PUT(&result, "bytes", COUNT(kiln_data_bytes(d->data)), .label = "read",
        .shown = result_words(&result, "%s", text_bytes(bytes)));
    PUT(&result, NULL, SECONDS(run->seconds.read), .before = " in ");
    PUT(&result, "megabytes_per_second", NUMBER(speed / 1e6), .before = ", ",
        .shown = result_words(&result, "%s/s", text_bytes(speed)));
    run_put_seconds(&result, run, false);
    return run_tell(run, &result);
}

static int info_data(struct run *run, const char *path) {
    kiln_data *data = NULL;
    struct described described = {.values = NULL};
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &data, path, type_of(run->settings->type), NULL);
    described.data = data;
    if (!code) code = measure_rows(&described.lengths, kiln_data_X(data));
    if (!code) code = measure_targets(run, &described);
    progress_end();
    if (!code) code = tell(run, path, &described);
    free(described.values);
    free(described.statistics);
    kiln_data_free(data);
    return code;
}

/* A safetensors file begins with the length of its header, 8 bytes, little endian and at most 100 MB (so the
 * last four are 0), and the header with '{', in a packed file with its format. No text does. Standard input
 * and pipes are read once, so they are not looked at: to open a FIFO and close it again would break its
 * writer's pipe. */
static bool looks_like_model(const char *path) {
    static const char packed[] = "{\"__metadata__\":{\"format\":\"kiln data ";
    unsigned char start[8 + sizeof packed - 1];
    struct stat about;
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const ssize_t got = pread(fd, start, sizeof start, 0);
    bool model = got > 8 && start[8] == '{' && !(start[4] | start[5] | start[6] | start[7]);
    if (got == (ssize_t)sizeof start && memcmp(start + 8, packed, sizeof packed - 1) == 0) model = false;
    close(fd);
    return model;
}

int verb_info(struct run *run) {
    const char *path = run->arguments[0];
    return looks_like_model(path) ? info_model(run, path) : info_data(run, path);
}
