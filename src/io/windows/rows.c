/* A slice has as many rows as have ENTRIES entries, or one that has more. */
#include "io/windows/rows.h"

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"

enum { ENTRIES = 1 << 16 };

static int64_t start_of(const struct ki_table *table, int64_t row) {
    return table->row_start ? table->row_start[row] : row * table->cols;
}

static int64_t end_of(const struct ki_table *table, int64_t first) {
    int64_t end = ki_min(first + 1, table->rows);
    while (end < ki_min(table->rows, first + ENTRIES) &&
           start_of(table, end + 1) - start_of(table, first) <= ENTRIES)
        end++;
    return end;
}

static kiln_status make_room(struct ki_rows *rows, const struct ki_table *table, int64_t entries,
                             kiln_type type) {
    struct ki_table *part = &rows->part;
    if (part->values && entries <= rows->room) return KILN_OK;
    ki_rows_free(rows);
    rows->room = ki_max(entries, ENTRIES);
    part->values = ki_alloc((size_t)(rows->room * ki_type_bytes(type)));
    part->col = table->row_start ? ki_alloc((size_t)rows->room * sizeof *part->col) : NULL;
    part->row_start = table->row_start ? ki_alloc((ENTRIES + 1) * sizeof *part->row_start) : NULL;
    if (part->values && (!table->row_start || (part->col && part->row_start))) return KILN_OK;
    return ki_fail_nomem((size_t)rows->room * sizeof(double), "rows to write");
}

/* Who prints trusts columns. */
static kiln_status check_columns(const struct ki_table *part, const struct ki_file *file) {
    for (int64_t e = 0; e < part->nnz; e++) {
        if (part->col[e] >= 0 && part->col[e] < part->cols) continue;
        const kiln_status status = ki_file_check(file);
        return status == KILN_OK
                   ? ki_fail(KILN_ERR_DATA, "%s: its columns changed while they were read", file->name)
                   : status;
    }
    return KILN_OK;
}

kiln_status ki_rows_next(struct ki_rows *rows, const struct ki_table *table, kiln_type type) {
    const int64_t first = rows->first + rows->part.rows, end = end_of(table, first),
                  begin = start_of(table, first), nnz = start_of(table, end) - begin,
                  element = ki_type_bytes(type);
    struct ki_table *part = &rows->part;
    kiln_status status;
    TRY(make_room(rows, table, nnz, type));
    *part = (struct ki_table){.format = table->format,
                              .rows = end - first,
                              .cols = table->cols,
                              .nnz = nnz,
                              .values = part->values,
                              .row_start = part->row_start,
                              .col = part->col,
                              .y = table->y ? (char *)table->y + first * table->targets * element : NULL,
                              .targets = table->targets,
                              .class_names = table->class_names};
    rows->first = first;
    for (int64_t i = 0; part->row_start && i <= part->rows; i++)
        part->row_start[i] = start_of(table, first + i) - begin;
    TRY(ki_file_elements(part->values, table->file, KI_VALUES, type, begin, nnz));
    if (!part->col) goto done;
    TRY(ki_file_elements(part->col, table->file, KI_COL, type, begin, nnz));
    TRY(check_columns(part, table->file));
done:
    return status;
}

void ki_rows_free(struct ki_rows *rows) {
    ki_free(rows->part.values);
    ki_free(rows->part.row_start);
    ki_free(rows->part.col);
    rows->part.values = NULL;
    rows->part.row_start = NULL;
    rows->part.col = NULL;
}
