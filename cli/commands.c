/* The tables of verbs and options, put together: an algorithm's verb is the file of its name in cli/algorithms (the build lists
 * these), and an option that the registry tells needs no row here. Where the tool has an option of that name for the verb, that
 * row counts, as a path of penalties is more than a number. */
#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algorithm_verbs.h" /* ALGORITHM_VERBS(X): X(hits) ... */

struct option option_table[OPTIONS_MOST];
int option_count;
struct verb verb_table[VERBS_MOST];
int verb_count;

#define DECLARE(name) extern const struct verb verb_of_##name;
#define LIST(name) &verb_of_##name,
ALGORITHM_VERBS(DECLARE)
static const struct verb *const algorithm_verbs[] = {ALGORITHM_VERBS(LIST)};

/* ------------------------------------------------------------------------------------------------ verbs */

/* "a|b|c" of the verbs from `first` on. */
static void join(char *text, size_t room, const char *begin, int end) {
    size_t used = (size_t)snprintf(text, room, "%s", begin);
    for (int v = 0; v < end && used < room; v++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "|" : "", verb_table[v].name);
}

static const struct verb *find_verb(const char *name) {
    for (size_t i = 0; i < sizeof algorithm_verbs / sizeof *algorithm_verbs; i++)
        if (strcmp(algorithm_verbs[i]->name, name) == 0) return algorithm_verbs[i];
    for (int i = 0; i < tool_verb_count; i++)
        if (strcmp(tool_verbs[i].name, name) == 0) return &tool_verbs[i];
    return NULL;
}

/* Algorithms first, in the registry's order. */
static void collect_verbs(void) {
    static char explained[500], all[1000];
    const kiln_algorithm *algorithm;
    for (int64_t i = 0; (algorithm = kiln_algorithm_at(i)); i++) {
        const struct verb *verb = find_verb(algorithm->name);
        if (verb) verb_table[verb_count++] = *verb;
    }
    join(explained, sizeof explained, "mmchain", verb_count);
    for (int i = 0; i < tool_verb_count; i++)
        if (!kiln_algorithm_named(tool_verbs[i].name)) verb_table[verb_count++] = tool_verbs[i];
    join(all, sizeof all, "", verb_count);
    for (int v = 0; v < verb_count; v++) {
        if (verb_table[v].kinds & VERB_BIT(EXPLAIN)) verb_table[v].choices = explained;
        if (verb_table[v].kinds & (VERB_BIT(MAN) | VERB_BIT(HELP))) verb_table[v].choices = all;
    }
}

/* ---------------------------------------------------------------------------------------------- options */

const kiln_option *algorithm_option(const char *algorithm, const char *name) {
    const kiln_algorithm *found = kiln_algorithm_named(algorithm);
    for (int64_t i = 0; found && i < found->option_count; i++) {
        const char *field = found->options[i].name, *at = name;
        while (*field && (*field == *at || (*field == '_' && *at == '-'))) field++, at++;
        if (!*field && !*at) return &found->options[i];
    }
    return NULL;
}

double algorithm_standard(const char *algorithm, const char *name, kiln_type type) {
    const kiln_option *option = algorithm_option(algorithm, name);
    return !option ? 0 : type == KILN_F32 ? option->standard_f32 : option->standard;
}

static bool has_option(const struct verb *verb, const char *name) {
    for (int i = 0; i < option_count; i++)
        if (strcmp(option_table[i].name, name) == 0 && option_applies(&option_table[i], verb)) return true;
    return false;
}

static const char *name_of_field(const char *field) {
    static char names[OPTIONS_MOST][32];
    char *name = names[option_count];
    snprintf(name, sizeof names[0], "%s", field);
    for (char *at = name; *at; at++)
        if (*at == '_') *at = '-';
    return name;
}

static void add_told(const struct verb *verb, const kiln_option *told) {
    static const enum option_kind kinds[] = {
        [KILN_OPTION_FLAG] = OPTION_FLAG,         [KILN_OPTION_INT] = OPTION_INTEGER,
        [KILN_OPTION_INTEGER] = OPTION_INTEGER,   [KILN_OPTION_REAL] = OPTION_REAL,
        [KILN_OPTION_POSITIVE] = OPTION_POSITIVE, [KILN_OPTION_CHOICE] = OPTION_CHOICE};
    const bool whole = told->kind == KILN_OPTION_INT || told->kind == KILN_OPTION_INTEGER;
    const char *name = name_of_field(told->name);
    if (has_option(verb, name) || (verb->otherwise && strstr(verb->otherwise, name))) return;
    option_table[option_count++] = (struct option){.name = name,
                                                   .kind = kinds[told->kind],
                                                   .group = GROUP_MODEL,
                                                   .value = told->kind == KILN_OPTION_FLAG ? NULL
                                                            : told->choices                ? "NAME"
                                                            : whole                        ? "N"
                                                                                           : "NUMBER",
                                                   .choices = told->choices,
                                                   .least = told->least,
                                                   .most = told->most,
                                                   .help = told->help,
                                                   .offset = told->offset,
                                                   .place = IN_ALGORITHM,
                                                   .only = verb,
                                                   .narrow = told->kind != KILN_OPTION_INTEGER};
}

static void collect_options(void) {
    memcpy(option_table, tool_options, (size_t)tool_option_count * sizeof *option_table);
    option_count = tool_option_count;
    for (int v = 0; v < verb_count; v++) {
        const struct verb *verb = &verb_table[v];
        const kiln_algorithm *algorithm = kiln_algorithm_named(verb->name);
        for (int i = 0; i < verb->own_count; i++) {
            option_table[option_count] = verb->own[i];
            option_table[option_count].place = IN_OWN;
            option_table[option_count++].only = verb;
        }
        for (int64_t i = 0; algorithm && i < algorithm->option_count; i++)
            add_told(verb, &algorithm->options[i]);
    }
}

void commands_begin(void) {
    if (verb_count) return;
    collect_verbs();
    collect_options();
}
