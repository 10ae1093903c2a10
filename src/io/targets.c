/* Targets in a file of their own: one row for each row of the data, those that were left out for a missing
 * value, too. */
#include "io/targets.h"

#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "io/detect.h"
#include "io/formats.h"

static kiln_status fail_rows(const struct ki_table *targets, const struct ki_table *table, const char *path) {
    const long long rows = table->rows, dropped = table->left_out_count;
    if (dropped == 0)
        return ki_fail(KILN_ERR_DATA, "%s has %lld rows, the data have %lld", path, (long long)targets->rows,
                       rows);
    ki_fail(KILN_ERR_DATA, "%s has %lld rows, the data have %lld, of which %lld are left out", path,
            (long long)targets->rows, rows + dropped, dropped);
    return ki_hint("a target for every row of the file, those with missing values, too");
}

/* Rows that were left out for a missing value lose their targets. */
static void drop_targets(struct ki_table *targets, bool labels, const struct ki_table *table,
                         kiln_type type) {
    const int64_t bytes = (labels ? targets->targets : targets->cols) * ki_type_bytes(type);
    char *values = labels ? targets->y : targets->values, *text = targets->label_text.data, *to = text;
    const char *from = text;
    int64_t kept = 0, next = 0;
    for (int64_t row = 0; row < targets->rows; row++) {
        const bool out = next < table->left_out_count && table->left_out[next] == row;
        const size_t size = from ? strlen(from) + 1 : 0;
        next += out;
        if (!out) memmove(values + kept++ * bytes, values + row * bytes, (size_t)bytes);
        if (!out && from) memmove(to, from, size);
        if (from) from += size;
        if (!out && from) to += size;
    }
    if (text) targets->label_text.size = to - text;
    targets->rows = kept;
}

/* A file with targets is a dense matrix, or text with one row of numbers separated by commas a line: to the
 * LIBSVM reader these are labels of rows without features. */
kiln_status ki_read_targets(struct ki_table *table, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    const char *path = options->target_file;
    kiln_read_options plain = *options;
    struct ki_table targets = {.rows = 0};
    kiln_file_format format = KILN_FILE_AUTO;
    struct ki_input *input = NULL;
    if (table->y) {
        ki_fail(KILN_ERR_ARGUMENT, "the data have targets of their own, %s would replace them", path);
        status = ki_hint("name targets only once");
        goto done;
    }
    plain.cols = 0;
    plain.model = NULL;
    plain.target = plain.weights = plain.offset = plain.groups = NULL;
    plain.map = 0;
    plain.vocabulary = NULL;
    plain.more_count = 0;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(ki_detect_format(&format, input));
    if (format != KILN_FILE_NPY && format != KILN_FILE_NPZ && format != KILN_FILE_MATRIX_MARKET)
        format = KILN_FILE_LIBSVM;
    status = ki_format(format)->read(&targets, input, &plain);
    if (status == KILN_ERR_PARSE && !*kiln_last_error()->hint)
        ki_hint("a file of targets holds numbers; labels that are text are a column of a CSV file");
    TRY(status);

    bool labels = format == KILN_FILE_LIBSVM;
    if (labels ? targets.nnz > 0 : targets.format != KILN_DENSE) {
        ki_fail(KILN_ERR_DATA, "%s holds a sparse matrix, targets are dense", path);
        status = ki_hint("targets come as .npy, as a Matrix Market array, or as text with one number a line");
        goto done;
    }
    if (targets.rows != table->rows + table->left_out_count) TRY(fail_rows(&targets, table, path));
    if (table->left_out_count > 0) drop_targets(&targets, labels, table, options->type);
    void **from = labels ? &targets.y : &targets.values;
    table->y = *from;
    table->targets = labels ? targets.targets : targets.cols;
    *from = NULL;
    ki_bytes_free(&table->label_text);
    table->label_text = targets.label_text;
    table->odd_labels = targets.odd_labels;
    targets.label_text = (struct ki_bytes){0};
done:
    ki_table_clear(&targets);
    ki_input_close(input);
    return status;
}
