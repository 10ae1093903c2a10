/* The first line of a CSV file: it names the columns, unless all its fields are numbers. */
#include <stdio.h>
#include <string.h>

#include "io/csv/csv.h"

/* A column without a name, or all of them in a file without header, is called by its number. name: room
 * for it, used again and again, as that of a ki_bytes is many times a short name's. */
static kiln_status name_column(char **named, struct ki_bytes *name, const char *file,
                               const struct ki_block *text, const struct ki_table_field *field, int64_t i,
                               bool header) {
    char numbered[32];
    name->size = 0;
    snprintf(numbered, sizeof numbered, "column%lld", (long long)i + 1);
    bool room = header && field->size > 0 ? ki_table_unquote(name, field)
                                          : ki_bytes_append(name, numbered, (int64_t)strlen(numbered));
    room = room && ki_bytes_append(name, "", 1);
    if (room && !ki_table_utf8(name->data, name->size - 1)) {
        struct ki_place place = ki_table_place(file, text, field->text);
        ki_fail_at(KILN_ERR_PARSE, &place, "the name of column %lld is not UTF-8 text", (long long)i + 1);
        return ki_hint("convert the file, for instance with iconv -f latin1 -t utf-8");
    }
    if (room) *named = ki_strdup(name->data);
    return *named ? KILN_OK : ki_fail_nomem((size_t)field->size, "a column's name");
}

static bool is_header(const struct ki_table_field *fields, int64_t count,
                      const struct ki_table_numbers *numbers) {
    bool any_number = false;
    for (int64_t i = 0; i < count; i++) {
        double value;
        enum ki_table_kind kind = ki_table_number(&fields[i], numbers, &value);
        if (kind == KI_TABLE_TEXT) return true;
        any_number |= kind == KI_TABLE_NUMBER;
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

/* Returns where the names begin, behind the # of a comment that names columns; and whether the rows have
 * names that the header has not. */
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
                              struct ki_table_field *fields, bool header) {
    size_t bytes = (size_t)count * sizeof **names;
    struct ki_bytes name = {0};
    kiln_status status = KILN_OK;
    *names = ki_calloc(bytes);
    if (!*names) return ki_fail_nomem(bytes, "the columns' names");
    for (int64_t i = 0; i < count; i++)
        TRY(name_column(&(*names)[i], &name, file, text, &fields[i], i, header));
    struct ki_place place = ki_table_place(file, text, fields[0].text);
    status = ki_table_check_names(*names, count, &place);
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
        place = ki_table_place(file, text, begin);
        ki_fail_at(KILN_ERR_PARSE, &place, "the first line names no column: its fields are empty");
        return ki_hint("remove the line: the first one names the columns, or is the first row of numbers");
    }
    if (!looks_like_libsvm(begin, end)) return KILN_OK;
    place = ki_table_place(file, text, begin);
    ki_fail_at(KILN_ERR_PARSE, &place, "this is LIBSVM, a label and INDEX:VALUE words, not CSV");
    return ki_hint("kiln_read_options.format libsvm, or a name that ends in .svm");
}

/* Columns, and the bytes of their names, are many times larger in memory than commas in a file. */
static kiln_status check_limits(int64_t fields, const kiln_read_options *options, const char *file,
                                const struct ki_block *text, const char *begin) {
    const int64_t most = options->max_columns ? options->max_columns : KI_TABLE_COLUMN_LIMIT;
    const struct ki_place place = ki_table_place(file, text, begin);
    if (fields > INT32_MAX / 4)
        return ki_fail_at(KILN_ERR_LIMIT, &place, "the file has 2^29 columns or more");
    if (fields <= most) return KILN_OK;
    ki_fail_at(KILN_ERR_LIMIT, &place, "the first line has %lld columns, more than %lld", (long long)fields,
               (long long)most);
    return ki_hint("if they are meant, kiln_read_options.max_columns %lld", (long long)fields);
}

/* A line of commas is no header, though a word stands in it. */
static kiln_status check_unnamed(const struct ki_table_field *fields, int64_t count, const char *file,
                                 const struct ki_block *text, const char *begin) {
    int64_t unnamed = 0;
    for (int64_t i = 0; i < count; i++) unnamed += fields[i].size == 0;
    if (unnamed <= KI_CSV_UNNAMED_LIMIT) return KILN_OK;
    const struct ki_place place = ki_table_place(file, text, begin);
    ki_fail_at(KILN_ERR_LIMIT, &place, "the first line has %lld columns without a name, more than %d",
               (long long)unnamed, KI_CSV_UNNAMED_LIMIT);
    return ki_hint("is it the header? if so, kiln_read_options.max_columns %lld", (long long)count);
}

static kiln_status check_name_sizes(const struct ki_table_field *fields, int64_t count,
                                    const kiln_read_options *options, const char *file,
                                    const struct ki_block *text) {
    const int64_t most = options->max_name ? options->max_name : KI_TABLE_NAME_LIMIT;
    for (int64_t i = 0; i < count; i++) {
        if (fields[i].size <= most) continue;
        const struct ki_place place = ki_table_place(file, text, fields[i].text);
        ki_fail_at(KILN_ERR_LIMIT, &place, "the name of column %lld has %lld bytes, more than %lld",
                   (long long)i + 1, (long long)fields[i].size, (long long)most);
        return ki_hint("is the first line a header? if so, kiln_read_options.max_name %lld",
                       (long long)fields[i].size);
    }
    return KILN_OK;
}

void ki_csv_header_free(struct ki_csv_header *header) {
    for (int64_t i = 0; header->names && i < header->fields; i++) ki_free(header->names[i]);
    ki_free(header->names);
}

kiln_status ki_csv_read_header(struct ki_csv_header *header, const struct ki_table_numbers *numbers,
                               const kiln_read_options *options, const char *file,
                               const struct ki_block *text) {
    kiln_status status = KILN_OK;
    struct ki_table_field *fields = NULL;
    struct ki_table_error error = {0};
    const char *end = text->text + text->size, *begin = ki_csv_skip_blank(text->text, end), *p = begin;
    TRY(check_first_line(file, text, begin, end));
    header->delimiter = choose_delimiter(file, begin, end);
    const char delimiter = header->delimiter, *first = begin_names(&header->delimiter, begin, end);
    p = first;
    int64_t count;
    error.fault = (int)ki_csv_split(&p, end, delimiter, NULL, 0, &count);
    error.at = p;
    if (error.fault) return ki_csv_fail(&error, 0, file, text);
    TRY(check_limits(count, options, file, text, begin));
    header->fields = count;
    fields = ki_alloc((size_t)count * sizeof *fields);
    if (!fields) return ki_fail_nomem((size_t)count * sizeof *fields, "the first line's fields");
    p = first;
    ki_csv_split(&p, end, delimiter, fields, count, &count);
    const bool named = is_header(fields, count, numbers);
    if (named && !options->max_columns) TRY(check_unnamed(fields, count, file, text, begin));
    TRY(check_name_sizes(fields, count, options, file, text));
    TRY(read_names(&header->names, count, file, text, fields, named));
    header->rest = named ? p : begin;
done:
    ki_free(fields);
    return status;
}

kiln_status ki_csv_names_columns(bool *named, const char *line, int64_t size, const char *file,
                                 const kiln_read_options *options) {
    const struct ki_table_numbers numbers = {NULL, options->decimal_comma, options->type == KILN_F32};
    /* An empty file has no line. */
    if (!line) line = "";
    const int64_t mark = size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a BOM */
    const struct ki_block text = {line + mark, (size_t)(size - mark), 1, mark};
    struct ki_csv_header header = {.rest = line};
    const kiln_status status = ki_csv_read_header(&header, &numbers, options, file, &text);
    ki_csv_header_free(&header);
    *named = status == KILN_OK && header.rest == line + size;
    return status;
}
