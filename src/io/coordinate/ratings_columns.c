/* This file says which column of a list holds what. What an option says comes first: a whole number is a
 * place, anything else a name, and then the first line is a header. Then the words by which a header may call
 * a column; then, for an end of a link, the order. The weight is by the order the third column, or with
 * options the one that is left over, and of a header with names none without a name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/size.h"
#include "io/coordinate/ratings.h"
#include "io/number.h"
#include "io/table/table.h"

enum { USER = KI_RATING_USER, ITEM = KI_RATING_ITEM, VALUE = KI_RATING_VALUE, ROLES = KI_RATING_ROLES };

static const char *const roles[ROLES] = {"source", "target", "weight"};

bool ki_ratings_number(const struct ki_ratings_field *field) {
    const char *p = field->text;
    double value;
    return ki_parse_double(&p, field->text + field->size, &value) && p == field->text + field->size;
}

/* The fields of the first line, and which column has which role so far. */
struct columns {
    const struct ki_ratings_field *fields;
    int count;
    int *role; /* -1: not known */
    struct ki_fault *fault;
};

/* "'a', 'b' and 'c'", as far as they have room. */
static void list(char text[160], const struct columns *c) {
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < c->count; i++) {
        char name[64];
        ki_table_excerpt(name, c->fields[i].text, c->fields[i].size);
        if (used + strlen(name) + 12 > 160) {
            snprintf(text + used, 160 - used, ", ...");
            return;
        }
        used += (size_t)snprintf(text + used, 160 - used, "%s'%s'",
                                 i == 0             ? ""
                                 : i + 1 < c->count ? ", "
                                                    : " and ",
                                 name);
    }
}

static bool fail_columns(const struct columns *c, const char *hint, const char *what, const char *name) {
    char names[160];
    list(names, c);
    return ki_fault(c->fault, KILN_ERR_PARSE, c->fields[0].text, hint, "%s%.60s%s; the columns are %s", what,
                    name, *name ? "'" : "", names);
}

/* ------------------------------------------------------------------------------------------ options */

/* "" within quotes is one quote. */
static bool is_name(const struct ki_ratings_field *field, const char *name) {
    const char *p = field->text, *end = p + field->size;
    for (; p < end && *name; p++, name++) {
        if (*p != *name) return false;
        if (field->doubled && *p == '"') p++;
    }
    return p >= end && !*name;
}

/* The column that an option says, or -1: fault. */
static int told_column(const struct columns *c, int role, const char *told, bool *named) {
    char *rest;
    const long number = strtol(told, &rest, 10);
    int found = -1;
    if (*told && !*rest) {
        if (number != 0 && number >= -c->count && number <= c->count)
            return (int)(number > 0 ? number - 1 : c->count + number);
        ki_fault(c->fault, KILN_ERR_PARSE, c->fields[0].text,
                 "columns are numbered from 1 on, or from the end, -1 for the last",
                 "%s is column %.30s, but a line has %d", roles[role], told, c->count);
        return -1;
    }
    for (int i = 0; i < c->count; i++) {
        if (!is_name(&c->fields[i], told)) continue;
        if (found >= 0) {
            fail_columns(c, "say it by its number", "several columns are called '", told);
            return -1;
        }
        found = i;
    }
    *named = true;
    if (found < 0)
        fail_columns(c, "a name is written as in the header; a number counts columns from 1",
                     "no column is called '", told);
    return found;
}

static bool take_told(struct columns *c, bool *named, const kiln_read_options *options) {
    const char *const told[ROLES] = {options->source, options->target, options->weight};
    for (int r = 0; r < ROLES; r++) {
        if (!told[r]) continue;
        c->role[r] = told_column(c, r, told[r], named);
        if (c->role[r] < 0) return false;
        for (int other = 0; other < r; other++)
            if (c->role[other] == c->role[r])
                return ki_fault(c->fault, KILN_ERR_PARSE, c->fields[c->role[r]].text, NULL,
                                "%s and %s are the same column, '%.60s'", roles[other], roles[r], told[r]);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------ header, order */

static bool called(const struct ki_ratings_field *field, const char *const *words) {
    for (; *words; words++) {
        const int64_t size = (int64_t)strcspn(*words, "$");
        const bool whole = (*words)[size] == '$';
        if ((whole ? field->size == size : field->size >= size) &&
            strncasecmp(field->text, *words, (size_t)size) == 0)
            return true;
    }
    return false;
}

static bool is_free(const struct columns *c, int column) {
    for (int r = 0; r < ROLES; r++)
        if (c->role[r] == column) return false;
    return true;
}

/* The first free column; *count: how many there are. -1: none. */
static int free_column(const struct columns *c, int *count) {
    int first = -1;
    *count = 0;
    for (int i = 0; i < c->count; i++) {
        if (!is_free(c, i)) continue;
        if (first < 0) first = i;
        ++*count;
    }
    return first;
}

/* The first column that is called so and has no role yet, or -1. */
static int called_column(const struct columns *c, const char *const *words) {
    for (int i = 0; i < c->count; i++)
        if (is_free(c, i) && called(&c->fields[i], words)) return i;
    return -1;
}

/* Both ends by the order, or the one that is not known as the column that is left over. */
static bool take_ends(struct columns *c) {
    static const char *const which[] = {"it is not said which column is the source",
                                        "it is not said which column is the target"};
    static const char *const hints[] = {"--source says it", "--target says it"};
    const bool neither = c->role[USER] < 0 && c->role[ITEM] < 0;
    for (int r = USER; r <= ITEM; r++) {
        int count;
        const int column = free_column(c, &count);
        if (c->role[r] >= 0) continue;
        if (column < 0 || (!neither && count > 1)) return fail_columns(c, hints[r], which[r], "");
        c->role[r] = column;
    }
    return true;
}

bool ki_ratings_columns(struct ki_ratings_layout *layout, bool *header, struct ki_fault *fault,
                        const struct ki_ratings_field *fields, const struct ki_ratings_words *words,
                        const kiln_read_options *options) {
    struct columns c = {fields, layout->count, layout->role, fault};
    const bool told = ki_ratings_told(options);
    bool named = false;
    int count;
    for (int r = 0; r < ROLES; r++) c.role[r] = -1;
    if (told && !take_told(&c, &named, options)) return false;
    int by_word[ROLES];
    struct columns w = {fields, layout->count, by_word, fault};
    memcpy(by_word, c.role, sizeof by_word);
    for (int r = 0; r < ROLES; r++)
        if (by_word[r] < 0) by_word[r] = called_column(&w, words->role[r]);
    const bool both = by_word[USER] >= 0 && by_word[ITEM] >= 0;
    const bool worded = both && (by_word[USER] != c.role[USER] || by_word[ITEM] != c.role[ITEM]);
    if (named || worded) memcpy(c.role, by_word, sizeof by_word);
    *header = named || worded;
    layout->named = c.role[USER] >= 0 && c.role[ITEM] >= 0;
    if (!take_ends(&c)) return false;
    const int left = free_column(&c, &count);
    if (c.role[VALUE] < 0 && !*header && count > 0 && (!told || count == 1)) c.role[VALUE] = left;
    layout->unnamed_value = layout->named && c.role[VALUE] < 0 && count > 0;
    return true;
}
