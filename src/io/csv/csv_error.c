/* What is wrong with a CSV file, in words: a fault that a thread noted, with its place. The line is counted
 * only now. */
#include "core/range.h"
#include "io/csv/csv_parse.h"

static int64_t count_lines(const char *text, const char *end) {
    int64_t lines = 0;
    while ((text = memchr(text, '\n', (size_t)(end - text)))) {
        lines++;
        text++;
    }
    return lines;
}

struct ki_place ki_csv_place(const char *name, const struct ki_block *text, const char *at) {
    const char *line = at;
    while (line > text->text && line[-1] != '\n') line--;
    return (struct ki_place){name, text->line + count_lines(text->text, at), at - line + 1,
                             text->offset + (at - text->text)};
}

static kiln_status fail_range(const char *value, const char *name, const kiln_range *range,
                              const struct ki_place *place) {
    char wanted[KI_RANGE_WORDS];
    const kiln_status status = ki_fail_at(KILN_ERR_DATA, place, "value '%s' in column '%s' must be %s", value,
                                          name, ki_range_words(wanted, range));
    return range->hint ? ki_hint("%s", range->hint) : status;
}

static kiln_status fail_value(const struct ki_csv_error *error, const struct ki_csv_layout *layout,
                              const struct ki_place *place) {
    char value[64], name[64];
    ki_csv_excerpt(value, error->field.text, error->field.size);
    ki_csv_excerpt(name, error->column->name, (int64_t)strlen(error->column->name));
    switch (error->fault) {
    case KI_CSV_MISSING:
        ki_fail_at(KILN_ERR_PARSE, place, "value '%s' in %s '%s': missing", value,
                   error->column->text ? "target" : "numeric column", name);
        return ki_hint("remove the row or fill the value");
    case KI_CSV_NONFINITE:
        ki_fail_at(KILN_ERR_PARSE, place, "value '%s' in column '%s' is not a finite %s", value, name,
                   layout->type == KILN_F32 ? "f32" : "f64");
        return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
    case KI_CSV_RANGE: return fail_range(value, name, ki_csv_range(layout, error->column), place);
    default:
        ki_fail_at(KILN_ERR_PARSE, place, "value '%s' in numeric column '%s': expected a number", value,
                   name);
        return error->column->target
                   ? ki_hint("a target is a number here; kiln logreg and kiln svm take classes by name "
                             "(kiln_read_options.text_targets)")
                   : ki_hint("the column's first rows are numbers; correct the value or remove the row");
    }
}

kiln_status ki_csv_fail(const struct ki_csv_error *error, const struct ki_csv_layout *layout,
                        const char *name, const struct ki_block *text) {
    if (error->fault == KI_CSV_NOMEM)
        return ki_fail(KILN_ERR_NOMEM, "out of memory: the parsed part of the file");
    struct ki_place place = ki_csv_place(name, text, error->at);
    switch (error->fault) {
    case KI_CSV_BARE_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "a quote inside a field that does not begin with one");
        return ki_hint("put the whole field in quotes and double the quotes in it: \"5\"\" pipe\"");
    case KI_CSV_AFTER_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "text behind the closing quote of a field");
        return ki_hint("double the quotes within a quoted field");
    case KI_CSV_OPEN_QUOTE:
        ki_fail_at(KILN_ERR_PARSE, &place, "the quote that opens this field is not closed within %s",
                   text->size < KI_CSV_LARGEST_RECORD ? "the file" : "64 MiB");
        return ki_hint("close the quote, or remove it");
    case KI_CSV_LONE_CR:
        ki_fail_at(KILN_ERR_PARSE, &place, "a carriage return without line feed");
        return ki_hint("convert the line ends, or quote the field");
    case KI_CSV_FIELDS:
        ki_fail_at(KILN_ERR_PARSE, &place, "the row has %lld fields, the first line has %lld",
                   (long long)error->count, (long long)layout->fields);
        return ki_hint("a delimiter within a field needs quotes around the field");
    default: return fail_value(error, layout, &place);
    }
}
