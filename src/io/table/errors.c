/* This file says what is wrong with the values of a table, in words: what a thread noted, with its place. The
 * line is counted only now. */
#include <math.h>
#include <stdio.h>

#include "core/range.h"
#include "io/table/convert.h"
#include "io/decimal.h"

static int64_t count_lines(const char *text, const char *end) {
    int64_t lines = 0;
    while ((text = memchr(text, '\n', (size_t)(end - text)))) {
        lines++;
        text++;
    }
    return lines;
}

struct ki_place ki_table_place(const char *name, const struct ki_block *text, const char *at) {
    const char *line = at;
    while (line > text->text && line[-1] != '\n') line--;
    return (struct ki_place){name, text->line + count_lines(text->text, at), at - line + 1,
                             text->offset + (at - text->text)};
}

int64_t ki_table_line_move(struct ki_table_line *line, const char *at) {
    line->line += at < line->at ? -count_lines(at, line->at) : count_lines(line->at, at);
    line->at = at;
    return line->line;
}

struct ki_place ki_table_record_place(const char *name, const struct ki_block *text, const char *at,
                                      int64_t row) {
    return text->text ? ki_table_place(name, text, at) : (struct ki_place){name, row, 0, -1};
}

const char *ki_table_error_excerpt(char out[KI_TABLE_VALUE], const struct ki_table_error *error) {
    if (error->with.text) {
        char first[64], second[64];
        snprintf(out, KI_TABLE_VALUE, "%s' with '%s",
                 ki_table_excerpt(first, error->field.text, error->field.size),
                 ki_table_excerpt(second, error->with.text, error->with.size));
        return out;
    }
    if (error->field.text || !error->column)
        return ki_table_excerpt(out, error->field.text, error->field.size);
    if (isnan(error->value)) return strcpy(out, "");
    *ki_print_real(out, error->value, KILN_F64) = '\0';
    return out;
}

static kiln_status fail_range(const char *value, const char *name, const kiln_range *range,
                              const struct ki_place *place) {
    char wanted[KI_RANGE_WORDS];
    const kiln_status status = ki_fail_at(KILN_ERR_DATA, place, "value '%s' in column '%s' must be %s", value,
                                          name, ki_range_words(wanted, range));
    return range->hint ? ki_hint("%s", range->hint) : status;
}

static kiln_status fail_word(const struct ki_table_found *found, const char *name) {
    const struct ki_table_field field = {.text = found->value, .size = (int64_t)strlen(found->value)};
    ki_fail_at(KILN_ERR_PARSE, &found->place, "value '%s' in numeric column '%s': expected a number",
               found->value, name);
    if (ki_table_has_comma(&field)) return ki_hint(KI_TABLE_COMMA_HINT);
    if (found->column->target)
        return ki_hint("a target is a number here; kiln logreg and kiln svm take classes by name "
                       "(kiln_read_options.text_targets)");
    if (found->column->forced)
        return ki_hint("kiln_read_options.numeric says so; correct the value or remove the row");
    return ki_hint("the column is read as numbers; correct the value or remove the row; "
                   "kiln_read_options.missing_words takes such a word for a missing value, "
                   "kiln_read_options.categorical the column for text");
}

static kiln_status fail_missing(const struct ki_table_found *found, const char *name) {
    const bool target = found->column->target;
    ki_fail_at(KILN_ERR_PARSE, &found->place, "value '%s' in %s '%s': missing", found->value,
               target                ? "target"
               : found->column->text ? "text column"
                                     : "numeric column",
               name);
    if (found->column->text)
        return ki_hint(
            target
                ? "remove the row; kiln_read_options.missing drop leaves such rows out, and "
                  "kiln_read_options.categorical '%s' takes words for what they say"
                : "kiln_read_options.missing drop leaves such rows out, mean|indicator makes them a level; "
                  "kiln_read_options.categorical '%s' takes words for what they say",
            name);
    return ki_hint(
        target ? "remove the row or fill the value; kiln_read_options.missing drop leaves such rows out"
               : "remove the row or fill the value; kiln_read_options.missing drop|mean|indicator does it");
}

static kiln_status fail_value(const struct ki_table_found *found, const struct ki_table_layout *layout) {
    char name[64];
    ki_table_excerpt(name, found->column->name, (int64_t)strlen(found->column->name));
    switch (found->fault) {
    case KI_TABLE_MISSING: return fail_missing(found, name);
    case KI_TABLE_NONFINITE:
        ki_fail_at(KILN_ERR_PARSE, &found->place, "value '%s' in column '%s' is not a finite %s",
                   found->value, name, layout->type == KILN_F32 ? "f32" : "f64");
        return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
    case KI_TABLE_RANGE:
        return fail_range(found->value, name, ki_table_range(layout, found->column), &found->place);
    case KI_TABLE_UNSEEN:
        ki_fail_at(KILN_ERR_MODEL, &found->place, "level '%s' of column '%s' was not seen in training",
                   found->value, name);
        return ki_hint(
            "kiln_read_options.unseen zero|reference takes it for no level, or for the reference level");
    case KI_TABLE_CODE:
        ki_fail_at(KILN_ERR_PARSE, &found->place, "value '%s' in target '%s': a number would rewrite it",
                   found->value, name);
        return ki_hint(
            "the first rows are numbers; kiln_read_options.categorical '%s' takes the target for text, "
            "kiln_read_options.numeric for numbers",
            name);
    case KI_TABLE_AMBIGUOUS:
        ki_fail_at(KILN_ERR_DATA, &found->place,
                   "level '%s' cannot be in the pair '%s': two pairs could have one name", found->value,
                   name);
        return ki_hint("rename the level, or pair the columns the other way round");
    default: return fail_word(found, name);
    }
}

/* -------------------------------------------------------------------------------- all of one kind */

void ki_table_report_add(struct ki_table_report *report, const struct ki_table_problems *problems,
                         const char *name, const struct ki_block *text) {
    for (int i = 0; i < KI_TABLE_FAULTS; i++) report->count[i] += problems->count[i];
    for (int i = 0; i < problems->used && report->used < KI_TABLE_KEPT; i++) {
        const struct ki_table_error *error = &problems->kept[i];
        if (report->used > 0 && error->fault != (int)report->kept[0].fault) continue;
        struct ki_table_found *found = &report->kept[report->used++];
        found->fault = (enum ki_table_fault)error->fault;
        found->column = error->column;
        found->place = ki_table_record_place(name, text, error->at, error->row);
        ki_table_error_excerpt(found->value, error);
    }
}

/* "...; 177 such values, the next: line 19 'deck', line 20 'deck'" */
static kiln_status add_others(const struct ki_table_report *report) {
    struct ki_error_copy first;
    char others[400] = "";
    size_t used = 0;
    ki_error_keep(&first);
    for (int i = 1; i < report->used; i++) {
        char name[64];
        const struct ki_table_found *found = &report->kept[i];
        ki_table_excerpt(name, found->column->name, (int64_t)strlen(found->column->name));
        used += (size_t)snprintf(others + used, sizeof others - used, "%s line %lld '%s'", i > 1 ? "," : "",
                                 (long long)found->place.line, name);
        if (used >= sizeof others) break;
    }
    ki_fail_at(first.error.status, &report->kept[0].place, "%s; %lld such values, the next:%s", first.message,
               (long long)report->count[report->kept[0].fault], others);
    return *first.hint ? ki_hint("%s", first.hint) : first.error.status;
}

kiln_status ki_table_report_fail(const struct ki_table_report *report, const struct ki_table_layout *layout) {
    if (report->used == 0) return KILN_OK;
    const kiln_status status = fail_value(&report->kept[0], layout);
    return report->count[report->kept[0].fault] > 1 ? add_others(report) : status;
}
