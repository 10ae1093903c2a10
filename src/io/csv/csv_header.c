/* The first line of a CSV file: it names the columns, unless all its fields are numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/csv/csv_parse.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

static kiln_status check_names(char **names, int64_t count, const struct ki_place *place) {
    size_t bytes = (size_t)count * sizeof(char **);
    char ***sorted = ki_alloc(bytes), shown[64];
    if (!sorted) return ki_fail_nomem(bytes, "the columns' names");
    for (int64_t i = 0; i < count; i++) sorted[i] = &names[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_names);
    const char *twice = NULL;
    for (int64_t i = 1; i < count; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0) twice = *sorted[i];
    ki_free(sorted);
    if (!twice) return KILN_OK;
    ki_csv_excerpt(shown, twice, (int64_t)strlen(twice));
    ki_fail_at(KILN_ERR_PARSE, place, "two columns are named '%s'", shown);
    return ki_hint("columns are told apart by name; rename one");
}

/* A column without a name, or all of them in a file without header, is called by its number. */
static kiln_status name_column(char **named, const char *file, const struct ki_block *text,
                               const struct ki_csv_field *field, int64_t i, bool header) {
    struct ki_bytes name = {0};
    char numbered[32];
    snprintf(numbered, sizeof numbered, "column%lld", (long long)i + 1);
    bool room = header && field->size > 0 ? ki_csv_unquote(&name, field)
                                          : ki_bytes_append(&name, numbered, (int64_t)strlen(numbered));
    room = room && ki_bytes_append(&name, "", 1);
    if (room && !ki_csv_utf8(name.data, name.size - 1)) {
        ki_bytes_free(&name);
        struct ki_place place = ki_csv_place(file, text, field->text);
        ki_fail_at(KILN_ERR_PARSE, &place, "the name of column %lld is not UTF-8 text", (long long)i + 1);
        return ki_hint("convert the file, for instance with iconv -f latin1 -t utf-8");
    }
    if (!room) {
        ki_bytes_free(&name);
        return ki_fail_nomem((size_t)field->size, "a column's name");
    }
    *named = name.data;
    return KILN_OK;
}

static bool is_header(const struct ki_csv_field *fields, int64_t count) {
    bool any_number = false;
    for (int64_t i = 0; i < count; i++) {
        double value;
        enum ki_csv_kind kind = ki_csv_number(&fields[i], &value);
        if (kind == KI_CSV_TEXT) return true;
        any_number |= kind == KI_CSV_NUMBER;
    }
    return !any_number;
}

static char choose_delimiter(const char *file, const char *begin, const char *end) {
    const char *dot = strstr(file, ".tsv");
    bool tsv = dot && (!dot[4] || strcmp(dot + 4, ".gz") == 0 || strcmp(dot + 4, ".zst") == 0);
    return tsv ? '\t' : ki_csv_delimiter(begin, end);
}

static kiln_status read_names(char ***names, int64_t count, const char *file, const struct ki_block *text,
                              struct ki_csv_field *fields, bool header) {
    size_t bytes = (size_t)count * sizeof **names;
    *names = ki_calloc(bytes);
    if (!*names) return ki_fail_nomem(bytes, "the columns' names");
    for (int64_t i = 0; i < count; i++) {
        kiln_status status = name_column(&(*names)[i], file, text, &fields[i], i, header);
        if (status != KILN_OK) return status;
    }
    struct ki_place place = ki_csv_place(file, text, fields[0].text);
    return check_names(*names, count, &place);
}

kiln_status ki_csv_read_header(char ***names, struct ki_csv_layout *layout, const char *file,
                               const struct ki_block *text, const char **rest) {
    kiln_status status = KILN_OK;
    struct ki_csv_field *fields = NULL;
    struct ki_csv_error error = {0};
    const char *end = text->text + text->size, *begin = ki_csv_skip_blank(text->text, end), *p = begin;
    if (begin == end) {
        struct ki_place place = {file, 1, 1, 0};
        ki_fail_at(KILN_ERR_PARSE, &place, "the file has no lines");
        return ki_hint("a CSV file begins with a line of column names");
    }
    layout->delimiter = choose_delimiter(file, begin, end);
    error.fault = ki_csv_split(&p, end, layout->delimiter, NULL, 0, &layout->fields);
    error.at = p;
    if (error.fault) return ki_csv_fail(&error, layout, file, text);
    if (layout->fields > INT32_MAX) return ki_fail(KILN_ERR_LIMIT, "the file has 2^31 columns or more");
    fields = ki_alloc((size_t)layout->fields * sizeof *fields);
    if (!fields) return ki_fail_nomem((size_t)layout->fields * sizeof *fields, "the first line's fields");
    p = begin;
    ki_csv_split(&p, end, layout->delimiter, fields, layout->fields, &layout->fields);
    bool header = is_header(fields, layout->fields);
    TRY(read_names(names, layout->fields, file, text, fields, header));
    *rest = header ? p : begin;
done:
    ki_free(fields);
    return status;
}
