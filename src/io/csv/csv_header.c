/* The first line of a CSV file: it names the columns, unless all its fields are numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/csv/csv_parse.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

kiln_status ki_csv_check_names(char **names, int64_t count, const struct ki_place *place) {
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

/* A column without a name, or all of them in a file without header, is called by its number. name: room
 * for it, used again and again, as that of a ki_bytes is many times a short name's. */
static kiln_status name_column(char **named, struct ki_bytes *name, const char *file,
                               const struct ki_block *text, const struct ki_csv_field *field, int64_t i,
                               bool header) {
    char numbered[32];
    name->size = 0;
    snprintf(numbered, sizeof numbered, "column%lld", (long long)i + 1);
    bool room = header && field->size > 0 ? ki_csv_unquote(name, field)
                                          : ki_bytes_append(name, numbered, (int64_t)strlen(numbered));
    room = room && ki_bytes_append(name, "", 1);
    if (room && !ki_csv_utf8(name->data, name->size - 1)) {
        struct ki_place place = ki_csv_place(file, text, field->text);
        ki_fail_at(KILN_ERR_PARSE, &place, "the name of column %lld is not UTF-8 text", (long long)i + 1);
        return ki_hint("convert the file, for instance with iconv -f latin1 -t utf-8");
    }
    if (room) *named = ki_strdup(name->data);
    return *named ? KILN_OK : ki_fail_nomem((size_t)field->size, "a column's name");
}

static bool is_header(const struct ki_csv_field *fields, int64_t count,
                      const struct ki_csv_numbers *numbers) {
    bool any_number = false;
    for (int64_t i = 0; i < count; i++) {
        double value;
        enum ki_csv_kind kind = ki_csv_number(&fields[i], numbers, &value);
        if (kind == KI_CSV_TEXT) return true;
        any_number |= kind == KI_CSV_NUMBER;
    }
    return !any_number;
}

/* "1 3:1 11:0.5", or of several labels "1,3 4:1": a label, then words of which each begins with a number
 * and a colon. */
static bool looks_like_libsvm(const char *p, const char *end) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    if (newline) end = newline;
    int entries = 0;
    while (p < end && strchr("+-.,0123456789eE", *p)) p++;
    while (p < end && (*p == ' ' || *p == '\t')) {
        while (p < end && (*p == ' ' || *p == '\t')) p++;
        const char *word = p;
        while (p < end && *p >= '0' && *p <= '9') p++;
        if (p == word) break;
        if (p == end || *p != ':') return false;
        while (p < end && *p != ' ' && *p != '\t' && *p != '\r') p++;
        entries++;
    }
    return entries > 0 && (p == end || *p == '\r' || *p == '#');
}

static char choose_delimiter(const char *file, const char *begin, const char *end) {
    const char *dot = strstr(file, ".tsv");
    bool tsv = dot && (!dot[4] || strcmp(dot + 4, ".gz") == 0 || strcmp(dot + 4, ".zst") == 0);
    return tsv ? '\t' : ki_csv_is_by_blanks(begin, end) ? KI_CSV_BLANKS : ki_csv_delimiter(begin, end);
}

/* Where the names begin, behind the # of a comment that names columns; and whether the rows have names
 * that the header has not. */
static const char *begin_names(char *delimiter, const char *begin, const char *end) {
    const char *p = begin;
    int64_t names, fields;
    if (*delimiter != KI_CSV_BLANKS || ki_csv_split(&p, end, *delimiter, NULL, 0, &names)) return begin;
    p = ki_csv_skip_blank(p, end);
    if (p == end) return begin + (*begin == '#');
    if (ki_csv_split(&p, end, *delimiter, NULL, 0, &fields)) return begin;
    if (fields == names + 1) *delimiter = KI_CSV_NAMED_ROWS;
    return fields == names - 1 && *begin == '#' ? begin + 1 : begin;
}

static kiln_status read_names(char ***names, int64_t count, const char *file, const struct ki_block *text,
                              struct ki_csv_field *fields, bool header) {
    size_t bytes = (size_t)count * sizeof **names;
    struct ki_bytes name = {0};
    kiln_status status = KILN_OK;
    *names = ki_calloc(bytes);
    if (!*names) return ki_fail_nomem(bytes, "the columns' names");
    for (int64_t i = 0; i < count; i++)
        TRY(name_column(&(*names)[i], &name, file, text, &fields[i], i, header));
    struct ki_place place = ki_csv_place(file, text, fields[0].text);
    status = ki_csv_check_names(*names, count, &place);
done:
    ki_bytes_free(&name);
    return status;
}

/* Commas and nothing between them, in the line of the names: an empty row above the table. */
static bool names_nothing(const char *p, const char *end) {
    while (p < end && *p && strchr(",;\t \"", *p)) p++;
    return p == end || *p == '\n' || *p == '\r';
}

static kiln_status check_first_line(const char *file, const struct ki_block *text, const char *begin,
                                    const char *end) {
    struct ki_place place = {file, 1, 1, 0};
    if (begin == end) {
        ki_fail_at(KILN_ERR_PARSE, &place, "the file has no lines");
        return ki_hint("a CSV file begins with a line of column names");
    }
    if (names_nothing(begin, end)) {
        place = ki_csv_place(file, text, begin);
        ki_fail_at(KILN_ERR_PARSE, &place, "the first line names no column: its fields are empty");
        return ki_hint("remove the line: the first one names the columns, or is the first row of numbers");
    }
    if (!looks_like_libsvm(begin, end)) return KILN_OK;
    place = ki_csv_place(file, text, begin);
    ki_fail_at(KILN_ERR_PARSE, &place, "this is LIBSVM, a label and INDEX:VALUE words, not CSV");
    return ki_hint("kiln_read_options.format libsvm, or a name that ends in .svm");
}

/* Columns, and the bytes of their names, are many times larger in memory than commas in a file. */
static kiln_status check_limits(const struct ki_csv_layout *layout, const kiln_read_options *options,
                                const char *file, const struct ki_block *text, const char *begin) {
    const int64_t most = options->max_columns ? options->max_columns : KI_CSV_COLUMN_LIMIT;
    const struct ki_place place = ki_csv_place(file, text, begin);
    if (layout->fields > INT32_MAX / 4)
        return ki_fail_at(KILN_ERR_LIMIT, &place, "the file has 2^29 columns or more");
    if (layout->fields <= most) return KILN_OK;
    ki_fail_at(KILN_ERR_LIMIT, &place, "the first line has %lld columns, more than %lld",
               (long long)layout->fields, (long long)most);
    return ki_hint("if they are meant, kiln_read_options.max_columns %lld", (long long)layout->fields);
}

/* A line of commas is no header, though a word stands in it. */
static kiln_status check_unnamed(const struct ki_csv_field *fields, int64_t count, const char *file,
                                 const struct ki_block *text, const char *begin) {
    int64_t unnamed = 0;
    for (int64_t i = 0; i < count; i++) unnamed += fields[i].size == 0;
    if (unnamed <= KI_CSV_UNNAMED_LIMIT) return KILN_OK;
    const struct ki_place place = ki_csv_place(file, text, begin);
    ki_fail_at(KILN_ERR_LIMIT, &place, "the first line has %lld columns without a name, more than %d",
               (long long)unnamed, KI_CSV_UNNAMED_LIMIT);
    return ki_hint("is it the header? if so, kiln_read_options.max_columns %lld", (long long)count);
}

static kiln_status check_name_sizes(const struct ki_csv_field *fields, int64_t count,
                                    const kiln_read_options *options, const char *file,
                                    const struct ki_block *text) {
    const int64_t most = options->max_name ? options->max_name : KI_CSV_NAME_LIMIT;
    for (int64_t i = 0; i < count; i++) {
        if (fields[i].size <= most) continue;
        const struct ki_place place = ki_csv_place(file, text, fields[i].text);
        ki_fail_at(KILN_ERR_LIMIT, &place, "the name of column %lld has %lld bytes, more than %lld",
                   (long long)i + 1, (long long)fields[i].size, (long long)most);
        return ki_hint("is the first line a header? if so, kiln_read_options.max_name %lld",
                       (long long)fields[i].size);
    }
    return KILN_OK;
}

kiln_status ki_csv_read_header(char ***names, struct ki_csv_layout *layout, const kiln_read_options *options,
                               const char *file, const struct ki_block *text, const char **rest) {
    kiln_status status = KILN_OK;
    struct ki_csv_field *fields = NULL;
    struct ki_csv_error error = {0};
    const char *end = text->text + text->size, *begin = ki_csv_skip_blank(text->text, end), *p = begin;
    TRY(check_first_line(file, text, begin, end));
    layout->delimiter = choose_delimiter(file, begin, end);
    const char delimiter = layout->delimiter, *first = begin_names(&layout->delimiter, begin, end);
    p = first;
    error.fault = ki_csv_split(&p, end, delimiter, NULL, 0, &layout->fields);
    error.at = p;
    if (error.fault) return ki_csv_fail(&error, layout, file, text);
    TRY(check_limits(layout, options, file, text, begin));
    fields = ki_alloc((size_t)layout->fields * sizeof *fields);
    if (!fields) return ki_fail_nomem((size_t)layout->fields * sizeof *fields, "the first line's fields");
    p = first;
    ki_csv_split(&p, end, delimiter, fields, layout->fields, &layout->fields);
    bool header = is_header(fields, layout->fields, &layout->numbers);
    if (header && !options->max_columns) TRY(check_unnamed(fields, layout->fields, file, text, begin));
    TRY(check_name_sizes(fields, layout->fields, options, file, text));
    TRY(read_names(names, layout->fields, file, text, fields, header));
    *rest = header ? p : begin;
done:
    ki_free(fields);
    return status;
}

kiln_status ki_csv_names_columns(bool *named, const char *line, int64_t size, const char *file,
                                 const kiln_read_options *options) {
    struct ki_csv_layout layout = {.numbers = {NULL, options->decimal_comma, options->type == KILN_F32}};
    const int64_t mark = size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a BOM */
    const struct ki_block text = {line + mark, (size_t)(size - mark), 1, mark};
    const char *rest = line;
    char **names = NULL;
    const kiln_status status = ki_csv_read_header(&names, &layout, options, file, &text, &rest);
    for (int64_t i = 0; names && i < layout.fields; i++) ki_free(names[i]);
    ki_free(names);
    *named = status == KILN_OK && rest == line + size;
    return status;
}
