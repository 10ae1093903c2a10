/* This file says what the options say of columns: lists of names, which may hold commas themselves. A list is
 * read from the left; at each place the longest name of a column that fits is taken. */
#include <stdio.h>
#include <stdlib.h>

#include "io/table/table.h"

/* The column whose name stands at `text` in front of an `end` ("," or "="), or at the very end: the longest;
 * -1: none. */
static int64_t column_at(const char *text, char *const *names, int64_t count, char end, size_t *length) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        const size_t size = strlen(names[i]);
        if ((best >= 0 && size <= *length) || strncmp(text, names[i], size) != 0) continue;
        if (text[size] != end && (end == '=' || text[size] != '\0')) continue;
        best = i;
        *length = size;
    }
    return best;
}

static kiln_status unknown_at(const char *what, const char *text, char end, char *const *names, int64_t count,
                              const struct ki_place *place) {
    const char ends[] = {end, '\0'};
    const size_t size = strcspn(text, ends);
    char *name = ki_alloc(size + 1);
    if (!name) return ki_fail_nomem(size, "a column's name");
    memcpy(name, text, size);
    name[size] = '\0';
    const kiln_status status = ki_table_unknown_column(what, name, names, count, place);
    ki_free(name);
    return status;
}

static kiln_status mark(unsigned char *bits, unsigned char bit, const char *what, const char *list,
                        char *const *names, int64_t count, const struct ki_place *place) {
    for (const char *at = list; at && *at;) {
        size_t length = 0;
        const int64_t i = column_at(at, names, count, ',', &length);
        if (i < 0) return unknown_at(what, at, ',', names, count, place);
        bits[i] |= bit;
        at += length + (at[length] == ',');
    }
    return KILN_OK;
}

static kiln_status check_both(const unsigned char *bits, char *const *names, int64_t count,
                              const struct ki_place *place) {
    static const struct {
        unsigned char both;
        const char *words;
    } clashes[] = {{KI_TABLE_FEATURE | KI_TABLE_IGNORE, "a feature and ignored"},
                   {KI_TABLE_CATEGORICAL | KI_TABLE_NUMERIC, "categorical and numeric"}};
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof clashes / sizeof *clashes; k++)
            if ((bits[i] & clashes[k].both) == clashes[k].both)
                return ki_fail_at(KILN_ERR_ARGUMENT, place, "column '%s' cannot be both %s", names[i],
                                  clashes[k].words);
    return KILN_OK;
}

kiln_status ki_table_choices(unsigned char **bits, char *const *names, int64_t count,
                             const kiln_read_options *options, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    unsigned char *made = ki_calloc((size_t)count);
    if (!made) return ki_fail_nomem((size_t)count, "the columns' choices");
    TRY(mark(made, KI_TABLE_FEATURE, "feature", options->features, names, count, place));
    TRY(mark(made, KI_TABLE_IGNORE, "ignored column", options->ignore, names, count, place));
    TRY(mark(made, KI_TABLE_CATEGORICAL, "categorical column", options->categorical, names, count, place));
    TRY(mark(made, KI_TABLE_NUMERIC, "numeric column", options->numeric, names, count, place));
    TRY(check_both(made, names, count, place));
    *bits = made;
    made = NULL;
done:
    ki_free(made);
    return status;
}

/* -------------------------------------------------------------------------------------------- pairs */

/* Finds the column at *text, in front of `end` or at the very end, and goes past it. */
static kiln_status take_part(int32_t *of, const char **text, char end, char *const *names, int64_t count,
                             const struct ki_place *place) {
    size_t length = 0;
    const int64_t i = column_at(*text, names, count, end, &length);
    if (i < 0) return unknown_at("interaction", *text, end, names, count, place);
    *of = (int32_t)i;
    *text += length;
    return KILN_OK;
}

static kiln_status add_pair(struct ki_table_schema *schema, const char **text, char *const *names,
                            int64_t count, const struct ki_place *place) {
    struct ki_table_column *pair = &schema->columns[schema->count], *const all = schema->columns;
    kiln_status status;
    TRY(take_part(&pair->of[0], text, ':', names, count, place));
    if (**text != ':')
        TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "interaction '%s' is of one column, not A:B",
                       names[pair->of[0]]));
    ++*text;
    TRY(take_part(&pair->of[1], text, ',', names, count, place));
    const char *const parts[] = {names[pair->of[0]], names[pair->of[1]]};
    const size_t size = strlen(parts[0]) + strlen(parts[1]) + 2;
    pair->name = ki_alloc(size);
    if (!pair->name) TRY(ki_fail_nomem(size, "a pair's name"));
    snprintf(pair->name, size, "%s:%s", parts[0], parts[1]);
    schema->count++;
    pair->pair = pair->text = pair->forced = true;
    pair->field = all[pair->of[0]].field;
    pair->with = all[pair->of[1]].field;
    if (pair->of[0] == pair->of[1])
        TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "interaction '%s' is of one column", pair->name));
    for (int64_t i = 0; i + 1 < schema->count; i++) {
        if (strcmp(all[i].name, pair->name) == 0)
            TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "two columns would be named '%s'", pair->name));
        if (all[i].pair && all[i].of[0] == pair->of[1] && all[i].of[1] == pair->of[0])
            TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "interactions '%s' and '%s' are of the same columns",
                           all[i].name, pair->name));
    }
done:
    return status;
}

kiln_status ki_table_choose_pairs(struct ki_table_schema *schema, const char *text,
                                  const struct ki_place *place) {
    kiln_status status = KILN_OK;
    const int64_t count = schema->count;
    if (!text) return KILN_OK;
    char **names = ki_alloc((size_t)count * sizeof *names);
    if (!names) return ki_fail_nomem((size_t)count * sizeof *names, "the columns' names");
    for (int64_t i = 0; i < count; i++) names[i] = schema->columns[i].name;
    for (const char *at = text; *at; at += *at == ',') TRY(add_pair(schema, &at, names, count, place));
done:
    ki_free(names);
    return status;
}

kiln_status ki_table_check_pairs(const struct ki_table_schema *schema, const struct ki_place *place) {
    for (int64_t i = 0; i < schema->count; i++)
        for (int k = 0; schema->columns[i].pair && k < 2; k++) {
            const struct ki_table_column *part = &schema->columns[schema->columns[i].of[k]];
            if (part->text) continue;
            ki_fail_at(KILN_ERR_ARGUMENT, place, "interaction '%s': column '%s' is numeric",
                       schema->columns[i].name, part->name);
            return ki_hint("kiln_read_options.categorical '%s' takes its numbers for levels", part->name);
        }
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------- reference levels */

static kiln_status set_reference(struct ki_table_column *column, const char *level, size_t size) {
    char *copy = ki_alloc(size + 1);
    if (!copy) return ki_fail_nomem(size, "a reference level");
    memcpy(copy, level, size);
    copy[size] = '\0';
    ki_free(column->reference_level);
    column->reference_level = copy;
    return KILN_OK;
}

/* Up to the comma behind which another COLUMN= begins, as levels may hold commas. */
static size_t level_length(const char *text, char *const *names, int64_t count) {
    size_t ignored = 0;
    for (const char *p = text; (p = strchr(p, ',')); p++)
        if (column_at(p + 1, names, count, '=', &ignored) >= 0) return (size_t)(p - text);
    return strlen(text);
}

kiln_status ki_table_choose_references(struct ki_table_schema *schema, const char *text,
                                       const struct ki_place *place) {
    kiln_status status = KILN_OK;
    if (!text || schema->count == 0) return KILN_OK;
    char **names = ki_alloc((size_t)schema->count * sizeof *names);
    if (!names) return ki_fail_nomem((size_t)schema->count * sizeof *names, "the columns' names");
    for (int64_t i = 0; i < schema->count; i++) names[i] = schema->columns[i].name;
    for (const char *at = text; *at;) {
        size_t length = 0;
        const int64_t i = column_at(at, names, schema->count, '=', &length);
        if (i < 0) TRY(unknown_at("reference", at, '=', names, schema->count, place));
        at += length + 1;
        const size_t size = level_length(at, names, schema->count);
        TRY(set_reference(&schema->columns[i], at, size));
        at += size + (at[size] == ',');
    }
done:
    ki_free(names);
    return status;
}

kiln_status ki_table_find_references(struct ki_table_schema *schema, const struct ki_table_levels *levels,
                                     const struct ki_place *place) {
    for (int64_t i = 0; i < schema->count; i++) {
        struct ki_table_column *column = &schema->columns[i];
        if (!column->reference_level) continue;
        if (!column->text) {
            ki_fail_at(KILN_ERR_ARGUMENT, place, "column '%s' is numeric and has no reference level '%s'",
                       column->name, column->reference_level);
            return ki_hint("kiln_read_options.categorical '%s' takes its numbers for levels", column->name);
        }
        column->reference = ki_table_levels_find(levels, (int32_t)i, column->reference_level,
                                                 (int64_t)strlen(column->reference_level));
        if (column->reference >= 0) continue;
        ki_fail_at(KILN_ERR_ARGUMENT, place, "column '%s' has no level '%s' to be its reference",
                   column->name, column->reference_level);
        return ki_hint("kiln info lists the levels; they differ in capital letters and blanks, too");
    }
    return KILN_OK;
}
