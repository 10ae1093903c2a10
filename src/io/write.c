/* Data -> table of host arrays -> writer -> file. The mirror image of data.c. */
#define _DEFAULT_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/home.h"
#include "core/seams.h"
#include "io/formats.h"
#include "io/output.h"

static kiln_status choose(kiln_file_format *format, bool *gzip, const char *path) {
    *gzip = ki_ends_with(path, strlen(path), ".gz");
    if (ki_ends_with(path, strlen(path) - (*gzip ? 3 : 0), ".zst")) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s: Kiln reads zstd and writes gzip", path);
        return ki_hint("name the file .gz");
    }
    if (*format == KILN_FILE_AUTO) *format = ki_format_by_path(path, true);
    if (*format != KILN_FILE_AUTO) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "the name %s does not say what format to write", path);
    return ki_hint("end the name in .svm, .mtx, .csv, .npy, .npz or .kiln-data, or --to FORMAT says it");
}

struct entry {
    int32_t col;
    double value;
};

static int by_column(const void *a, const void *b) {
    int32_t left = ((const struct entry *)a)->col, right = ((const struct entry *)b)->col;
    return (left > right) - (left < right);
}

static void sort_row(struct ki_table *table, kiln_type type, struct entry *entries, int64_t begin,
                     int64_t end) {
    for (int64_t e = begin; e < end; e++) {
        double value = type == KILN_F32 ? (double)((float *)table->values)[e] : ((double *)table->values)[e];
        entries[e - begin] = (struct entry){table->col[e], value};
    }
    qsort(entries, (size_t)(end - begin), sizeof *entries, by_column);
    for (int64_t e = begin; e < end; e++) {
        table->col[e] = entries[e - begin].col;
        if (type == KILN_F32)
            ((float *)table->values)[e] = (float)entries[e - begin].value;
        else
            ((double *)table->values)[e] = entries[e - begin].value;
    }
}

/* A row's entries may be in any order on the device; in files they ascend. Nearly all rows do already. */
static kiln_status sort_rows(struct ki_table *table, kiln_type type) {
    kiln_status status = KILN_OK;
    struct entry *entries = NULL;
    int64_t capacity = 0;
    for (int64_t i = 0; i < table->rows; i++) {
        int64_t begin = table->row_start[i], end = table->row_start[i + 1], e = begin + 1;
        while (e < end && table->col[e - 1] < table->col[e]) e++;
        if (e >= end) continue;
        if (!entries || end - begin > capacity) {
            size_t bytes = (size_t)(end - begin) * sizeof *entries;
            struct entry *grown = ki_resize(entries, bytes);
            if (!grown) {
                status = ki_fail_nomem(bytes, "sorting a row");
                goto done;
            }
            entries = grown;
            capacity = end - begin;
        }
        sort_row(table, type, entries, begin, end);
    }
done:
    ki_free(entries);
    return status;
}

/* Dense values of X as they lie in this process's memory, which writers only read; NULL where they have to
 * be copied, as narrow ones for who does not write such. */
static void *in_place(const kiln_matrix *X, bool narrow) {
    if (X->format != KILN_DENSE || X->here || (X->element && !narrow)) return NULL;
    if (!ki_matrix_resident(X)) return ki_matrix_host(X, KI_VALUES);
    return ki_on_cpu(X->device) ? ki_host(&X->values) : NULL;
}

/* Returns whether X is read from its file while it is written. */
static bool in_file(const kiln_matrix *X) {
    return X->file && !X->here && !ki_matrix_resident(X);
}

static kiln_status download_targets(struct ki_table *table, const kiln_matrix *y) {
    if (!y) return KILN_OK;
    const size_t bytes = (size_t)(y->nnz * ki_type_bytes(y->type));
    if (!(table->y = ki_alloc(bytes))) return ki_fail_nomem(bytes, "targets to write");
    table->targets = y->cols;
    return kiln_matrix_get(table->y, y);
}

/* Fills the table's arrays from X and y; values that are taken in place stay X's. */
static kiln_status download(struct ki_table *table, const kiln_matrix *X, const kiln_matrix *y, bool narrow) {
    kiln_status status;
    TRY(ki_matrix_home(X)); /* what lies with processes or members is not where in_place looks */
    table->format = X->format;
    table->rows = X->rows;
    table->cols = X->cols;
    table->nnz = X->nnz;
    if (in_file(X)) {
        table->file = X->file;
        table->row_start = ki_matrix_host(X, KI_ROW_START);
        return download_targets(table, y);
    }
    table->values = in_place(X, narrow);
    if (table->values) table->element = X->element;
    if (!table->values && !(table->values = ki_alloc((size_t)(X->nnz * ki_type_bytes(X->type))))) goto nomem;
    if (X->format == KILN_CSR) {
        if (!(table->row_start = ki_alloc((size_t)ki_matrix_part_bytes(X, KI_ROW_START)))) goto nomem;
        if (!(table->col = ki_alloc((size_t)ki_matrix_part_bytes(X, KI_COL)))) goto nomem;
        TRY(kiln_matrix_get_csr(table->row_start, table->col, table->values, X));
        TRY(sort_rows(table, X->type));
    } else if (!in_place(X, narrow)) {
        TRY(kiln_matrix_get(table->values, X));
    }
    TRY(download_targets(table, y));
done:
    return status;
nomem:
    return ki_fail_nomem((size_t)(X->nnz * ki_type_bytes(X->type)), "a copy of the data to write");
}

/* A vector beside X, copied. */
static kiln_status download_vector(void **to, const kiln_matrix *vector) {
    if (!vector) return KILN_OK;
    const size_t bytes = (size_t)(vector->nnz * ki_type_bytes(vector->type));
    if (!(*to = ki_alloc(bytes))) return ki_fail_nomem(bytes, "weights to write");
    return kiln_matrix_get(*to, vector);
}

/* All of the data as a writer sees them: what is `own` is copied, all else the data's. */
static kiln_status gather(struct ki_table *table, struct ki_table *own, const kiln_data *data, bool narrow) {
    kiln_status status;
    TRY(download(own, data->X, data->y, narrow));
    TRY(download_vector(&own->weights, data->weights));
    TRY(download_vector(&own->offset, data->offset));
    *table = *own;
    table->groups = data->groups;
    table->filled = data->X->filled;
    table->filled_count = data->X->filled_count;
    table->left_out = data->left_out;
    table->left_out_count = data->left_out_count;
    table->categories = data->categories;
    table->category_count = data->category_count;
    table->feature_names = data->feature_names;
    table->row_names = data->row_names;
    memcpy(table->role_names, data->role_names, sizeof table->role_names);
    table->target_names = data->target_names;
    table->class_names = data->class_names;
    table->class_count = data->class_count;
    table->schema = data->schema;
done:
    return status;
}

kiln_status kiln_data_write(const kiln_data *data, const char *path, kiln_file_format format,
                            const kiln_control *control) {
    if (!data || !path) return ki_fail(KILN_ERR_ARGUMENT, "kiln_data_write: an argument is NULL");
    if (!ki_format(format)->name) return ki_fail(KILN_ERR_ARGUMENT, "unknown file format %d", (int)format);
    if (ki_format(format)->plural) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s are read, not written", ki_format(format)->plural);
        return ki_hint("Matrix Market (.mtx) and .npz hold their matrix");
    }
    struct ki_table table, own = {.rows = 0};
    struct ki_output *output = NULL;
    bool gzip;
    kiln_status status;
    TRY(choose(&format, &gzip, path));
    const bool narrow = format == KILN_FILE_PACKED;
    TRY(gather(&table, &own, data, narrow));
    TRY(ki_output_open(&output, path, gzip, control));
    TRY(ki_format(format)->write(output, &table, data->X->type, data->X->device->threads));
    if (own.file) TRY(ki_file_check(own.file));
    status = ki_output_commit(output);
    output = NULL;
done:
    ki_output_abandon(output);
    if (own.values == in_place(data->X, true)) own.values = NULL; /* X's, as what lies in a file is */
    if (own.file) own.row_start = NULL;
    own.file = NULL;
    ki_table_clear(&own);
    return status;
}
