/* File -> reader -> table of host arrays -> matrices on the device. Readers know nothing of devices. */
#include "io/data.h"

#include <string.h>

#include "core/matrix.h"
#include "core/narrow/narrow.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "io/arrow/arrow.h"
#include "io/collapsed.h"
#include "io/detect.h"
#include "io/formats.h"
#include "io/windows/in_file.h"
#include "io/labels.h"
#include "io/table/append.h"
#include "io/targets.h"
#include "io/vocabulary.h"

static void free_names(char **names, int64_t count) {
    for (int64_t i = 0; names && i < count; i++) ki_free(names[i]);
    ki_free(names);
}

static void free_classes(char ***names, int64_t *count, int64_t targets) {
    for (int64_t j = 0; names && count && j < targets; j++) free_names(names[j], count[j]);
    ki_free(names);
    ki_free(count);
}

void ki_table_clear(struct ki_table *table) {
    free_names(table->feature_names, table->name_text ? 0 : table->cols);
    free_names(table->target_names, table->targets);
    for (int i = 0; i < KI_TABLE_ROLES; i++) ki_free(table->role_names[i]);
    free_classes(table->class_names, table->class_count, table->targets);
    ki_free(table->name_text);
    ki_free(table->row_names);
    ki_free(table->row_name_text);
    ki_file_close(table->file);
    ki_free(table->values);
    ki_free(table->row_start);
    ki_free(table->col);
    ki_free(table->categories);
    ki_free(table->filled);
    ki_free(table->left_out);
    ki_free(table->y);
    ki_bytes_free(&table->label_text);
    ki_free(table->weights);
    ki_free(table->offset);
    ki_free(table->groups);
    ki_free(table->schema);
    ki_bytes_free(&table->warnings.text);
    ki_free(table->columns);
    ki_free(table->column_names);
    memset(table, 0, sizeof *table);
}

kiln_status ki_check_model_format(kiln_file_format format, const char *path, const kiln_read_options *options,
                                  struct ki_warnings *warnings) {
    const char *schema = options->model ? kiln_model_text(options->model, "schema") : NULL;
    const struct ki_place place = {.file = path, .offset = -1};
    if (schema && *schema && !ki_format(format)->names_columns) {
        ki_fail_at(KILN_ERR_MODEL, &place,
                   "the model was trained on a CSV file, whose columns have names, this is %s",
                   ki_format(format)->title);
        return ki_hint("give it CSV with the columns that the training data had");
    }
    if (!options->model || (schema && *schema) || format != KILN_FILE_CSV) return KILN_OK;
    return ki_warn(
        warnings, &place, "see to it that the columns are those of training, in the same order",
        "the model was trained on data without column names, so that columns are taken by their place");
}

/* Reads the first file into a table; its format goes to *format, its size is added to *bytes. */
static kiln_status read_one(struct ki_table *table, kiln_file_format *format, int64_t *bytes,
                            const char *path, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_input *input = NULL;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    ki_input_use_threads(input, options->threads);
    TRY(ki_detect_data(format, input, options));
    TRY(ki_check_model_format(*format, ki_input_name(input), options, &table->warnings));
    TRY(ki_format(*format)->read(table, input, options));
    TRY(ki_input_check(input));
    *bytes += ki_input_offset(input) + table->more_bytes;
done:
    ki_input_close(input);
    return status;
}

static kiln_status read_more(struct ki_table *table, kiln_file_format first, int64_t *bytes,
                             const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_table more = {.rows = 0};
    struct ki_input *input = NULL;
    for (int64_t i = 0; i < options->more_count && !ki_format(first)->reads_all; i++) {
        TRY(ki_open_further(&input, i, first, options));
        TRY(ki_format(first)->read(&more, input, options));
        TRY(ki_input_check(input));
        *bytes += ki_input_offset(input);
        ki_input_close(input);
        input = NULL;
        TRY(ki_table_append(table, &more, options->type, options->more[i]));
        ki_table_clear(&more);
    }
done:
    ki_input_close(input);
    ki_table_clear(&more);
    return status;
}

kiln_status ki_table_read(struct ki_table *table, kiln_file_format *format, int64_t *bytes, const char *path,
                          const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    TRY(read_one(table, format, bytes, path, options));
    TRY(read_more(table, *format, bytes, options));
done:
    return status;
}

/* Names of columns: from the file that was asked for, or from the one that stands beside a bag of words. */
static kiln_status name_columns(struct ki_table *table, kiln_file_format format, const char *path,
                                const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    char *found = NULL;
    if (!options->vocabulary && format == KILN_FILE_BAG_OF_WORDS) TRY(ki_find_vocabulary(&found, path));
    if (options->vocabulary && strcmp(options->vocabulary, "-") == 0 && strcmp(path, "-") == 0)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "standard input cannot hold both the data and their vocabulary"));
    if (options->vocabulary || found)
        TRY(ki_read_vocabulary(table, options->vocabulary ? options->vocabulary : found, options));
done:
    ki_free(found);
    return status;
}

int64_t ki_model_columns(const kiln_model *model) {
    const char *name;
    int64_t rows = 0, cols;
    kiln_type type;
    for (int64_t i = 0; model && (name = kiln_model_tensor_info(model, i, &type, &rows, &cols)); i++)
        if (strcmp(name, "W") == 0 || strcmp(name, "B") == 0) return rows;
    return 0;
}

/* Formats that do not say how many columns there are get as many as was asked for or the model knows, and no
 * more than the model knows. */
static kiln_status fit_columns(struct ki_table *table, const char *path, const kiln_read_options *options) {
    if (table->format == KILN_DENSE) {
        if (table->cols >= options->cols) return KILN_OK;
        return ki_fail(KILN_ERR_DATA, "the data have %lld dense columns, at least %lld were asked for",
                       (long long)table->cols, (long long)options->cols);
    }
    const int64_t known = ki_model_columns(options->model), least = ki_max(options->cols, known);
    if (table->feature_names) return KILN_OK;
    table->cols = ki_max(table->cols, least);
    struct ki_narrowed narrowed = {.rows = 0};
    kiln_status status = KILN_OK;
    if (known == 0) return KILN_OK;
    TRY(ki_table_narrow(&narrowed, table, options->type, known, options->extra_columns, path));
    TRY(ki_warn_narrowed(&table->warnings, &narrowed, known, options->extra_columns, path));
done:
    return status;
}

/* The sparse X of a table: text columns become codes where the device keeps such and they are smaller than
 * entries. */
static kiln_status convert_sparse(kiln_matrix **X, kiln_device *device, struct ki_table *table,
                                  kiln_type type) {
    kiln_status status = KILN_OK;
    struct ki_codes *codes = NULL;
    if (table->categories && ki_codes_fit(device))
        TRY(ki_codes_pack(&codes, device, type, table->rows, table->cols, table->row_start, table->col,
                          table->values, table->categories, table->category_count));
    if (!codes) {
        TRY(ki_matrix_adopt_entries(X, device, type, table->rows, table->cols, table->nnz, table->row_start,
                                    table->col, table->values));
        table->row_start = NULL;
        table->col = NULL;
        table->values = NULL;
    } else {
        TRY(ki_matrix_adopt_codes(X, device, type, table->rows, table->cols, codes));
        codes = NULL;
    }
done:
    ki_codes_free(codes);
    return status;
}

/* Hands the table's arrays over to matrices, its names to the data. */
static kiln_status convert(struct kiln_data *data, kiln_device *device, struct ki_table *table,
                           kiln_type type) {
    kiln_status status = KILN_OK;
    if (data->X) { /* its rows lie in several processes */
    } else if (table->file) {
        TRY(ki_matrix_adopt_file(&data->X, device, type, table->rows, table->cols, table->nnz,
                                 table->row_start, table->file));
        table->file = NULL;
        table->row_start = NULL;
    } else if (table->format == KILN_CSR) {
        TRY(convert_sparse(&data->X, device, table, type));
    } else {
        TRY(ki_matrix_adopt_read(&data->X, device, type, table->rows, table->cols, table->values));
        table->values = NULL;
    }
    data->X->filled = table->filled;
    data->X->filled_count = table->filled_count;
    table->filled = NULL;
    if (table->y) {
        TRY(ki_matrix_adopt_dense(&data->y, device, type, table->rows, table->targets, table->y));
        table->y = NULL;
    }
    if (table->weights)
        TRY(ki_matrix_adopt_dense(&data->weights, device, type, table->rows, 1, table->weights));
    table->weights = NULL;
    if (table->offset) TRY(ki_matrix_adopt_dense(&data->offset, device, type, table->rows, 1, table->offset));
    table->offset = NULL;
    data->groups = table->groups;
    table->groups = NULL;
    data->feature_names = table->feature_names;
    data->target_names = table->target_names;
    data->name_text = table->name_text;
    data->row_names = table->row_names;
    data->row_name_text = table->row_name_text;
    memcpy(data->role_names, table->role_names, sizeof data->role_names);
    memset(table->role_names, 0, sizeof table->role_names);
    data->class_names = table->class_names;
    data->class_count = table->class_count;
    data->schema = table->schema;
    data->warnings = table->warnings;
    data->categories = table->categories;
    data->category_count = table->category_count;
    table->categories = NULL;
    data->left_out = table->left_out;
    data->left_out_count = table->left_out_count;
    table->left_out = NULL;
    data->columns = table->columns;
    data->column_count = table->column_count;
    data->column_names = table->column_names;
    table->feature_names = table->target_names = table->row_names = NULL;
    table->name_text = table->schema = table->column_names = table->row_name_text = NULL;
    table->warnings = (struct ki_warnings){.count = 0};
    table->columns = NULL;
    table->class_names = NULL;
    table->class_count = NULL;
done:
    return status;
}

static kiln_status check_options(const kiln_read_options *options) {
    if (!ki_format(options->format)->name || !ki_format(options->tables)->name)
        return ki_fail(KILN_ERR_ARGUMENT, "unknown file format %d or %d", (int)options->format,
                       (int)options->tables);
    if (options->type != KILN_F32 && options->type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "unknown element type %d", (int)options->type);
    if (options->cols < 0 || options->cols > INT32_MAX)
        return ki_fail(KILN_ERR_ARGUMENT, "%lld columns: 0 to 2147483647 are possible",
                       (long long)options->cols);
    if ((unsigned)options->missing > KILN_MISSING_INDICATOR ||
        (unsigned)options->unseen > KILN_UNSEEN_REFERENCE ||
        (unsigned)options->extra_columns > KILN_EXTRA_ERROR)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "unknown way with missing values, unseen levels or further columns");
    if (options->max_columns < 0 || options->max_levels < 0 || options->max_name < 0 ||
        options->more_count < 0 || options->limit < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "a negative limit or number of files");
    return KILN_OK;
}

/* Each process its part, where there are several and the data allow it; *X is NULL otherwise. */
static kiln_status read_shared(kiln_matrix **X, struct ki_table *table, kiln_file_format *format,
                               int64_t *bytes, kiln_device *device, const char *path,
                               const kiln_read_options *options) {
    if (!device->processes) return KILN_OK;
    kiln_read_options least = *options;
    least.cols = ki_max(options->cols, ki_model_columns(options->model));
    return device->processes->read(X, table, format, bytes, device, path, &least);
}

/* Options as they stand, with their defaults, and an empty object. */
static kiln_status begin_read(struct kiln_data **made, kiln_read_options *full, const kiln_device *device,
                              const kiln_read_options *options) {
    kiln_status status = KI_TAKE(kiln_read_options, full, options);
    if (status != KILN_OK) return status;
    if (full->type == KILN_TYPE_DEFAULT) full->type = KILN_F64;
    if (full->threads <= 0) full->threads = device->threads > 0 ? device->threads : 1;
    status = check_options(full);
    if (status != KILN_OK) return status;
    *made = ki_calloc(sizeof **made);
    return *made ? KILN_OK : ki_fail_nomem(sizeof **made, "the data");
}

kiln_status kiln_data_read(kiln_data **data, kiln_device *device, const char *path,
                           const kiln_read_options *options) {
    if (!data || !device || !path)
        return ki_fail(KILN_ERR_ARGUMENT, "data, device and path must not be NULL");
    kiln_read_options full;
    struct ki_table table = {.rows = 0};
    struct kiln_data *made = NULL;
    kiln_status status;
    TRY(begin_read(&made, &full, device, options));
    if (full.target_file && strcmp(full.target_file, "-") == 0 && strcmp(path, "-") == 0)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "standard input cannot hold both the data and their targets"));
    made->format = full.format;
    TRY(read_shared(&made->X, &table, &made->format, &made->bytes, device, path, &full));
    if (!made->X && full.map) {
        TRY(ki_table_in_file(&table, &made->format, &made->bytes, device, path, &full));
    } else if (!made->X) {
        TRY(ki_table_read(&table, &made->format, &made->bytes, path, &full));
        TRY(ki_take_named(&table, made->format, path, &full));
    }
    TRY(name_columns(&table, made->format, path, &full));
    if (!made->X) TRY(ki_collapsed_tell(&table, made->format, made->bytes, path, &full));
    if (full.target_file) TRY(ki_read_targets(&table, &full));
    TRY(ki_labels_settle(&table, &full));
    TRY(fit_columns(&table, path, &full));
    TRY(convert(made, device, &table, full.type));
    *data = made;
done:
    ki_table_clear(&table);
    if (status != KILN_OK) kiln_data_free(made);
    return status;
}

kiln_status kiln_data_from_arrow(kiln_data **data, kiln_device *device, struct ArrowArrayStream *stream,
                                 const kiln_read_options *options) {
    if (!data || !device || !stream)
        return ki_fail(KILN_ERR_ARGUMENT, "data, device and stream must not be NULL");
    kiln_read_options full;
    struct ki_table table = {.rows = 0};
    struct kiln_data *made = NULL;
    kiln_status status;
    TRY(begin_read(&made, &full, device, options));
    if (full.target_file || full.more_count > 0 || full.map || full.vocabulary)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "a table in memory takes no target_file, no further files, no map and "
                                       "no vocabulary"));
    TRY(ki_read_arrow(&table, stream, &full));
    TRY(ki_collapsed_tell(&table, KILN_FILE_CSV, 0, NULL, &full));
    TRY(fit_columns(&table, "(table)", &full));
    TRY(convert(made, device, &table, full.type));
    *data = made;
done:
    if (stream->release) stream->release(stream);
    ki_table_clear(&table);
    if (status != KILN_OK) kiln_data_free(made);
    return status;
}

kiln_status kiln_data_create(kiln_data **data, kiln_matrix *X, kiln_matrix *y) {
    if (!data || !X) return ki_fail(KILN_ERR_ARGUMENT, "data and X must not be NULL");
    if (X == y) return ki_fail(KILN_ERR_ARGUMENT, "X and y are one matrix, which would be freed twice");
    if (y && (y->format != KILN_DENSE || y->rows != X->rows || y->device != X->device || y->type != X->type))
        return ki_fail(KILN_ERR_ARGUMENT, "y must be dense, of X's type, on X's device, with X's %lld rows",
                       (long long)X->rows);
    struct kiln_data *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "the data");
    made->X = X;
    made->y = y;
    *data = made;
    return KILN_OK;
}

kiln_status kiln_data_move(kiln_data *data, kiln_device *device) {
    if (!data || !device) return ki_fail(KILN_ERR_ARGUMENT, "kiln_data_move: data or device is NULL");
    kiln_device *former = data->X->device;
    kiln_matrix *all[] = {data->X, data->y, data->weights, data->offset};
    const int count = sizeof all / sizeof *all;
    kiln_status status = KILN_OK;
    int moved = 0;
    for (; moved < count && status == KILN_OK; moved++)
        if (all[moved]) status = ki_matrix_move(all[moved], device);
    if (status == KILN_OK) return KILN_OK;
    for (moved--; moved-- > 0;)
        if (all[moved] && ki_matrix_move(all[moved], former) != KILN_OK)
            return ki_hint("the data could not be moved back either: they are torn apart");
    return status;
}

void kiln_data_free(kiln_data *data) {
    if (!data) return;
    free_names(data->feature_names, data->X && !data->name_text ? data->X->cols : 0);
    free_names(data->target_names, data->y ? data->y->cols : 0);
    for (int i = 0; i < KI_TABLE_ROLES; i++) ki_free(data->role_names[i]);
    free_classes(data->class_names, data->class_count, data->y ? data->y->cols : 0);
    ki_free(data->name_text);
    ki_free(data->row_names);
    ki_free(data->row_name_text);
    kiln_matrix_free(data->X);
    kiln_matrix_free(data->y);
    kiln_matrix_free(data->weights);
    kiln_matrix_free(data->offset);
    ki_free(data->groups);
    ki_free(data->left_out);
    ki_free(data->categories);
    ki_free(data->schema);
    ki_bytes_free(&data->warnings.text);
    ki_free(data->columns);
    ki_free(data->column_names);
    ki_free(data);
}

const kiln_matrix *kiln_data_X(const kiln_data *data) {
    return data ? data->X : NULL;
}

const kiln_matrix *kiln_data_y(const kiln_data *data) {
    return data ? data->y : NULL;
}

const kiln_matrix *kiln_data_weights(const kiln_data *data) {
    return data ? data->weights : NULL;
}

const int64_t *kiln_data_groups(const kiln_data *data) {
    return data ? data->groups : NULL;
}

const int64_t *kiln_data_left_out(const kiln_data *data, int64_t *count) {
    *count = data ? data->left_out_count : 0;
    return *count > 0 ? data->left_out : NULL;
}

const kiln_matrix *kiln_data_offset(const kiln_data *data) {
    return data ? data->offset : NULL;
}

const char *kiln_data_feature_name(const kiln_data *data, int64_t j) {
    return data && data->feature_names && j >= 0 && j < data->X->cols ? data->feature_names[j] : NULL;
}

const char *kiln_data_row_name(const kiln_data *data, int64_t i) {
    return data && data->row_names && i >= 0 && i < data->X->rows ? data->row_names[i] : NULL;
}

const char *kiln_data_target_name(const kiln_data *data, int64_t j) {
    return data && data->target_names && j >= 0 && j < data->y->cols ? data->target_names[j] : NULL;
}

const char *kiln_data_role_name(const kiln_data *data, kiln_column_role role) {
    if (!data) return NULL;
    switch (role) {
    case KILN_COLUMN_WEIGHTS: return data->role_names[KI_TABLE_WEIGHTS];
    case KILN_COLUMN_OFFSET: return data->role_names[KI_TABLE_OFFSET];
    case KILN_COLUMN_GROUPS: return data->role_names[KI_TABLE_GROUPS];
    default: return NULL;
    }
}

const char *kiln_data_class_name(const kiln_data *data, int64_t j, int64_t number) {
    if (!data || !data->class_names || j < 0 || j >= data->y->cols || !data->class_names[j]) return NULL;
    return number >= 0 && number < data->class_count[j] ? data->class_names[j][number] : NULL;
}

kiln_file_format kiln_data_format(const kiln_data *data) {
    return data ? data->format : KILN_FILE_AUTO;
}

int64_t kiln_data_bytes(const kiln_data *data) {
    return data ? data->bytes : 0;
}

const char *kiln_data_schema(const kiln_data *data) {
    return data && data->schema ? data->schema : "";
}

const char *kiln_data_warning(const kiln_data *data, int64_t i, const char **hint) {
    if (!data || i < 0 || i >= data->warnings.count) return NULL;
    const char *text = data->warnings.text.data;
    for (int64_t k = 0; k < 2 * i; k++) text += strlen(text) + 1;
    if (hint) *hint = text + strlen(text) + 1;
    return text;
}

const kiln_column *kiln_data_column(const kiln_data *data, int64_t i) {
    return data && i >= 0 && i < data->column_count ? &data->columns[i] : NULL;
}
