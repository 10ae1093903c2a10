/* The tables of verbs and options, put together: an algorithm's verb is the file of its name in
 * cli/algorithms (the build lists these), and an option that the registry tells needs no row here: its text,
 * its default and its range are those of the verb's algorithm. tool_paths has those that also take a path. */
#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

enum { PATHS_MOST = 16 };
#define FULL "more options than OPTIONS_MOST (cli/options.h)"

/* The sizes of these tables are the tool's own: what does not fit is a mistake of whoever added it. */
static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "kiln: internal error: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------------------------ verbs */

/* "a|b|c" of the verbs from `first` on. */
static void join(char *text, size_t room, const char *begin, int end) {
    size_t used = (size_t)snprintf(text, room, "%s", begin);
    for (int v = 0; v < end && used < room; v++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "|" : "", verb_table[v].name);
    require(used < room, "the names of the verbs are too long together");
}

static const struct verb *find_algorithm(const char *name) {
    for (size_t i = 0; i < sizeof algorithm_verbs / sizeof *algorithm_verbs; i++)
        if (strcmp(algorithm_verbs[i]->name, name) == 0) return algorithm_verbs[i];
    return NULL;
}

static void add_verb(const struct verb *verb) {
    require(verb_count < VERBS_MOST, "more verbs than VERBS_MOST (cli/options.h)");
    verb_table[verb_count++] = *verb;
}

/* Algorithms first, in the registry's order. */
static void collect_verbs(void) {
    static char explained[500], all[1000];
    const kiln_algorithm *algorithm;
    for (int64_t i = 0; (algorithm = kiln_algorithm_at(i)); i++) {
        const struct verb *verb = find_algorithm(algorithm->name);
        if (verb) add_verb(verb);
    }
    join(explained, sizeof explained, "mmchain|sddmm|batch", verb_count);
    for (int i = 0; i < tool_verb_count; i++) add_verb(&tool_verbs[i]);
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

double algorithm_value(const char *algorithm, const struct settings *settings, const char *name) {
    const double value = kiln_option_value(algorithm, settings->algorithm.bytes, name, KILN_F64);
    return isnan(value) ? 0 : value;
}

static struct option *add_option(const struct option *option) {
    require(option_count < OPTIONS_MOST, FULL);
    option_table[option_count] = *option;
    return &option_table[option_count++];
}

static const struct option *find_option(const struct option *table, int count, const char *name,
                                        const struct verb *verb) {
    for (int i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0 && option_applies(&table[i], verb)) return &table[i];
    return NULL;
}

/* "max-iterations" of the field max_iterations. */
static const char *name_of_field(const char *field) {
    static char names[OPTIONS_MOST][32];
    char *name = names[option_count];
    require(strlen(field) < sizeof names[0], "the name of an option is too long");
    for (size_t i = 0; i <= strlen(field); i++) name[i] = field[i] == '_' ? '-' : field[i];
    return name;
}

/* The option of the registry of which the tool also takes a path. */
static void add_path(const struct verb *verb, const kiln_option *told, const struct option *path) {
    static char texts[PATHS_MOST][400];
    static int used;
    require(used < PATHS_MOST, "more paths than cli/commands.c has room for");
    const int length = snprintf(texts[used], sizeof texts[0], "%s %s", told->help, path->help);
    require(length < (int)sizeof texts[0], "the help of a path is too long");
    struct option *option = add_option(path);
    option->least = told->least;
    option->most = told->most;
    option->help = texts[used++];
    option->only = verb;
}

/* Returns whether `word` is one of "a|b|c". */
static bool listed(const char *word, const char *words) {
    const size_t size = strlen(word);
    while (words) {
        if (strncmp(words, word, size) == 0 && (!words[size] || words[size] == '|')) return true;
        words = strchr(words, '|');
        if (words) words++;
    }
    return false;
}

static void add_told(const struct verb *verb, const kiln_option *told) {
    static const enum option_kind kinds[] = {
        [KILN_OPTION_FLAG] = OPTION_FLAG,         [KILN_OPTION_INT] = OPTION_INTEGER,
        [KILN_OPTION_INTEGER] = OPTION_INTEGER,   [KILN_OPTION_REAL] = OPTION_REAL,
        [KILN_OPTION_POSITIVE] = OPTION_POSITIVE, [KILN_OPTION_CHOICE] = OPTION_CHOICE};
    const bool whole = told->kind == KILN_OPTION_INT || told->kind == KILN_OPTION_INTEGER;
    if (listed(told->name, verb->otherwise)) return;
    require(option_count < OPTIONS_MOST, FULL);
    const char *name = name_of_field(told->name);
    const struct option *path = find_option(tool_paths, tool_path_count, name, verb);
    require(!find_option(tool_options, tool_option_count, name, verb),
            "the tool has an option that the registry has, too");
    if (path) {
        add_path(verb, told, path);
        return;
    }
    add_option(&(struct option){.name = name,
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
                                .narrow = told->kind != KILN_OPTION_INTEGER});
}

const char standard_components[] = "";

/* The registry's number as text. */
static const char *components_of(const struct verb *verb) {
    static char texts[VERBS_MOST][8];
    char *text = texts[verb - verb_table];
    snprintf(text, sizeof texts[0], "%d", (int)(kiln_algorithm_named(verb->name)->components % 1000000));
    return text;
}

static void add_own(const struct verb *verb, const struct option *own) {
    require(own->offset + (own->kind == OPTION_RANGE ? sizeof(struct range) : sizeof(int64_t)) <=
                sizeof((struct settings *)0)->own,
            "a verb's own options exceed settings.own");
    struct option *option = add_option(own);
    option->place = IN_OWN;
    option->only = verb;
    if (own->standard == standard_components) option->standard = components_of(verb);
}

char formats_read[FORMATS_ROOM];

static void collect_formats(void) {
    const char *name;
    size_t used = 0;
    for (kiln_file_format format = KILN_FILE_AUTO; (name = kiln_format_name(format)); format++) {
        used += (size_t)snprintf(formats_read + used, FORMATS_ROOM - used, "%s%s", used ? "|" : "", name);
        require(used < FORMATS_ROOM, "the names of the formats are too long together");
    }
}

/* Those of the algorithms first, as they say most of what a verb does. */
static void collect_options(void) {
    for (int v = 0; v < verb_count; v++) {
        const struct verb *verb = &verb_table[v];
        const kiln_algorithm *algorithm = kiln_algorithm_named(verb->name);
        require(!algorithm || algorithm->options_bytes <= sizeof((struct settings *)0)->algorithm,
                "an algorithm's options exceed settings.algorithm");
        for (int64_t i = 0; algorithm && i < algorithm->option_count; i++)
            add_told(verb, &algorithm->options[i]);
        struct option told;
        for (int i = 0; verb->own_told && verb->own_told(&told, i); i++)
            if (told.name) add_own(verb, &told);
        for (int i = 0; i < verb->own_count; i++) add_own(verb, &verb->own[i]);
    }
    for (int i = 0; i < tool_option_count; i++) add_option(&tool_options[i]);
}

void commands_begin(void) {
    if (verb_count) return;
    collect_verbs();
    collect_formats();
    collect_options();
}
