/* kiln info DATA.csv: a row for each column of the file. */
#include <math.h>

#include "info.h"

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

void info_put_columns(struct result *result, const kiln_data *data) {
    enum { SHOWN = 200 };
    int64_t count = 0;
    while (kiln_data_column(data, count)) count++;
    PUT(result, "columns_of_file", TABLE(count, count ? put_column : NULL, data), .most = SHOWN,
        .rest = " columns: --json has all");
}
