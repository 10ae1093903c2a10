/* kiln info DATA.csv: a row for each column of the file. */
#include <math.h>

#include "info.h"

static const char *const roles[] = {
    [KILN_COLUMN_FEATURE] = "feature", [KILN_COLUMN_TARGET] = "target",   [KILN_COLUMN_WEIGHTS] = "weights",
    [KILN_COLUMN_OFFSET] = "offset",   [KILN_COLUMN_IGNORED] = "ignored", [KILN_COLUMN_GROUPS] = "groups"};

static const char *kind_of(const kiln_column *column) {
    return column->role == KILN_COLUMN_IGNORED ? "" : column->text ? "text" : "number";
}

json_t *info_column_json(const void *data, int64_t i) {
    const kiln_column *column = kiln_data_column(data, i);
    if (!column) return NULL;
    json_t *object = json_object();
    json_put_text(object, "name", column->name);
    json_put_text(object, "role", roles[column->role]);
    json_put_text(object, "kind", *kind_of(column) ? kind_of(column) : NULL);
    json_put(object, "levels", column->text ? json_integer(column->levels) : json_null());
    json_put_count(object, "missing", column->missing);
    json_put_number(object, "least", column->least);
    json_put_number(object, "most", column->most);
    json_put_number(object, "mean", column->mean);
    return object;
}

/* A row a column of the file. */
void info_print_columns(const kiln_data *data) {
    enum { SHOWN = 200 };
    const kiln_column *column;
    int64_t i = 0;
    printf("  %-8s %-7s %10s %12s %12s %12s %9s  %s\n", "role", "kind", "levels", "least", "most", "mean",
           "missing", "column");
    for (; (column = kiln_data_column(data, i)); i++) {
        const bool range = isfinite(column->least);
        if (i >= SHOWN) continue;
        printf("  %-8s %-7s %10s %12s %12s %12s %9s  ", roles[column->role], kind_of(column),
               column->text ? text_count(column->levels) : "", range ? text_number(column->least) : "",
               range ? text_number(column->most) : "", range ? text_number(column->mean) : "",
               column->missing ? text_count(column->missing) : "");
        text_put(stdout, column->name, 0);
        putchar('\n');
    }
    if (i > SHOWN) printf("  and %s more columns: --json has all\n", text_count(i - SHOWN));
}
