/* Parsing by the option table: --name value, --name=value, -n value, -nvalue, -qv; anything else is a verb or
 * an argument. Options are checked against the verb only at the end, so that they may stand before it. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "help.h"
#include "parts.h"

struct parser {
    struct command *command;
    struct usage_problem *problem;
    const char *verb_name;
    const char *given[OPTIONS_MOST]; /* the value of option_table[i], for a flag its name; NULL: not given */
};

static bool complain(struct usage_problem *problem, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(problem->message, sizeof problem->message, format, args);
    va_end(args);
    return false;
}

static bool hint(struct usage_problem *problem, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(problem->hint, sizeof problem->hint, format, args);
    va_end(args);
    return false;
}

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (const char *at = choices; *at;) {
        size_t here = strcspn(at, "|");
        if (here == length && strncmp(at, text, length) == 0) return true;
        at += here + (at[here] == '|');
    }
    return false;
}

/* "1.5G" as a number; the suffix may be followed by B or iB. */
static bool parse_bytes(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    if (end == text) return false;
    static const char suffixes[] = "KMGT";
    char letter = *end >= 'a' && *end <= 'z' ? (char)(*end - 'a' + 'A') : *end;
    const char *found = letter ? strchr(suffixes, letter) : NULL;
    if (found) {
        *value = ldexp(*value, 10 * (int)(found - suffixes + 1));
        end++;
    }
    return *end == '\0' || strcmp(end, "B") == 0 || (found && strcmp(end, "iB") == 0);
}

/* "1e-4:1e2:10", behind the first number: from, to, how many. Both ends are above 0, as the steps are
 * factors. */
static bool parse_path(const char *at, const char **rest, struct range *range) {
    char *end;
    range->to = strtod(at, &end);
    if (end == at || *end != ':' || !isfinite(range->to)) return false;
    at = end + 1;
    range->count = strtoll(at, &end, 10);
    *rest = end;
    if (end == at || range->count < 2 || range->count > 10000) return false;
    return range->from > 0 && range->to > 0 && range->from != range->to;
}

/* "0,0.1,1", from its beginning: values that are all different. */
static bool parse_list(const char *at, const char **rest, struct range *range) {
    range->listed = true;
    for (range->count = 0; range->count < LIST_MOST;) {
        char *end;
        const double value = strtod(at, &end);
        if (end == at || !isfinite(value)) return false;
        for (int64_t i = 0; i < range->count; i++)
            if (range->list[i] == value) return false;
        range->list[range->count++] = value;
        range->from = fmin(range->from, value);
        range->to = fmax(range->to, value);
        *rest = end;
        if (*end != ',') return true;
        at = end + 1;
    }
    return false;
}

static bool parse_range(const struct option *option, const char *text, struct range *range) {
    char *end;
    const char *rest;
    range->from = range->to = strtod(text, &end);
    range->count = 1;
    if (end == text || !isfinite(range->from)) return false;
    rest = end;
    if (*end == ':' && !parse_path(end + 1, &rest, range)) return false;
    if (*end == ',' && !parse_list(text, &rest, range)) return false;
    const double least = fmin(range->from, range->to), most = fmax(range->from, range->to);
    return *rest == '\0' && least >= option->least && most <= option->most;
}

static bool bad_value(struct parser *parser, const struct option *option, const char *text) {
    char above[60] = "a number above 0";
    if (isfinite(option->most))
        snprintf(above, sizeof above, "a number above 0 and at most %g", option->most);
    complain(parser->problem, "--%s: '%s' is not %s", option->name, text,
             option->kind == OPTION_INTEGER    ? "a whole number in range"
             : option->kind == OPTION_BYTES    ? "a number of bytes"
             : option->kind == OPTION_REAL     ? "a number in range"
             : option->kind == OPTION_POSITIVE ? above
             : option->kind == OPTION_RANGE    ? "a number or a path in range"
                                               : "one of its values");
    if (option->kind == OPTION_CHOICE) return hint(parser->problem, "one of %s", option->choices);
    if (option->kind == OPTION_BYTES) return hint(parser->problem, "for example 800M or 1.5G");
    if (option->kind == OPTION_RANGE)
        return hint(
            parser->problem,
            "a number from %g, FROM:TO:COUNT with FROM and TO above 0, as in 1e-4:1e2:10, or up to %d "
            "different numbers, as in 0.1,1,10",
            option->least, LIST_MOST);
    char standard[STANDARD_ROOM];
    option_standard(standard, option, parser->command->verb);
    if (option->kind == OPTION_POSITIVE && *standard)
        return hint(parser->problem, "leave it out for the default: %s", standard);
    if (option->kind == OPTION_POSITIVE) return hint(parser->problem, "for example 1.5");
    if (isinf(option->least)) return hint(parser->problem, "a finite number");
    if (isinf(option->most)) return hint(parser->problem, "a number that is at least %g", option->least);
    if (option->most > 1e9) return hint(parser->problem, "a whole number that is at least %g", option->least);
    return hint(parser->problem, "from %g to %g", option->least, option->most);
}

/* The number that an algorithm's enum gives a name: its place in the list, from 1. */
static int number_of_choice(const char *choices, const char *text) {
    int number = 1;
    for (const char *at = choices; strncmp(at, text, strlen(text)) != 0 || !strchr("|", at[strlen(text)]);
         number++)
        at += strcspn(at, "|") + 1;
    return number;
}

static void *field_of(const struct parser *parser, const struct option *option) {
    struct settings *settings = &parser->command->settings;
    char *const places[] = {[IN_SETTINGS] = (char *)settings,
                            [IN_ALGORITHM] = settings->algorithm.bytes,
                            [IN_OWN] = settings->own.bytes};
    return places[option->place] + option->offset;
}

static bool set_value(struct parser *parser, const struct option *option, const char *text) {
    void *field = field_of(parser, option);
    const bool algorithms = option->place == IN_ALGORITHM;
    char *end = NULL;
    double real = 0;
    long long integer = 0;
    errno = 0;
    switch (option->kind) {
    case OPTION_FLAG:
        if (algorithms)
            *(int *)field = 1;
        else
            *(bool *)field = true;
        return true;
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_OUTPUT:
        if (!*text) return complain(parser->problem, "--%s: the value is empty", option->name);
        *(const char **)field = text;
        return true;
    case OPTION_CHOICE:
        if (!is_choice(option->choices, text)) return bad_value(parser, option, text);
        if (algorithms)
            *(int *)field = number_of_choice(option->choices, text);
        else
            *(const char **)field = text;
        return true;
    case OPTION_INTEGER:
        integer = strtoll(text, &end, 10);
        if (end == text || *end || errno || (double)integer < option->least || (double)integer > option->most)
            return bad_value(parser, option, text);
        if (algorithms && option->narrow)
            *(int *)field = (int)integer;
        else
            *(int64_t *)field = integer;
        return true;
    case OPTION_REAL:
    case OPTION_POSITIVE:
        real = strtod(text, &end);
        if (end == text || *end || !isfinite(real) || real < option->least || real > option->most ||
            (option->kind == OPTION_POSITIVE && !(real > 0)))
            return bad_value(parser, option, text);
        *(double *)field = real;
        return true;
    case OPTION_RANGE:
        if (!parse_range(option, text, field)) return bad_value(parser, option, text);
        return true;
    case OPTION_BYTES:
        if (!parse_bytes(text, &real) || !(real >= option->least && real <= option->most))
            return bad_value(parser, option, text);
        *(int64_t *)field = (int64_t)real;
        return true;
    }
    return false;
}

static const struct option *find_long(const char *name, size_t length) {
    for (int i = 0; i < option_count; i++)
        if (strlen(option_table[i].name) == length && strncmp(option_table[i].name, name, length) == 0)
            return &option_table[i];
    return NULL;
}

/* The verb that kiln explain is asked about; NULL: none. */
static const struct verb *explained_verb(const struct command *command) {
    const bool explains = command->verb && (command->verb->kinds & VERB_BIT(EXPLAIN)) && command->count > 0;
    return explains ? verb_named(command->arguments[0]) : NULL;
}

/* Verbs may give a letter to different options: the one that the verb takes, if it is known. */
static const struct option *find_letter(const struct command *command, char letter) {
    const struct option *first = NULL;
    const struct verb *verb = command->verb, *explained = explained_verb(command);
    for (int i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (!option->letter || option->letter != letter) continue;
        if (verb && option_applies(option, verb)) return option;
        if (explained && option_applies(option, explained)) return option;
        if (!first) first = option;
    }
    return first;
}

static void help_hint(struct parser *parser) {
    if (parser->verb_name)
        hint(parser->problem, "kiln %s --help lists the options", parser->verb_name);
    else
        hint(parser->problem, "kiln --help");
}

static bool unknown_option(struct parser *parser, const char *text, size_t length) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), text);
    complain(parser->problem, "unknown option --%s", word);
    struct suggestion nearest = {word, NULL, 0};
    for (int i = 0; i < option_count; i++) suggest_consider(&nearest, option_table[i].name);
    if (nearest.best)
        hint(parser->problem, "did you mean --%s?", nearest.best);
    else
        help_hint(parser);
    return false;
}

/* Takes the value of option argv[*i] from `attached` or from the next word. */
static bool take_value(struct parser *parser, const struct option *option, const char *attached, int argc,
                       char **argv, int *i) {
    const char **given = &parser->given[option - option_table];
    *given = option->kind == OPTION_FLAG ? option->name : attached;
    if (option->kind == OPTION_FLAG && !option->only)
        return set_value(parser, option, NULL); /* --help, --json */
    if (*given) return true;
    if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0) {
        complain(parser->problem, "--%s needs a value", option->name);
        return hint(parser->problem, "--%s %s", option->name,
                    option->choices ? option->choices : option->value);
    }
    *given = argv[++*i];
    return true;
}

static bool parse_long(struct parser *parser, int argc, char **argv, int *i) {
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find_long(name, length);
    if (!option) return unknown_option(parser, name, length);
    if (equals && option->kind == OPTION_FLAG)
        return complain(parser->problem, "--%s takes no value", option->name);
    return take_value(parser, option, equals ? equals + 1 : NULL, argc, argv, i);
}

/* -target is --target with a dash missing, and not -t with the value "arget". */
static bool lacks_a_dash(struct parser *parser, const char *word) {
    const size_t length = strcspn(word + 1, "=");
    if (length < 2 || !find_long(word + 1, length)) return false;
    complain(parser->problem, "unknown option %.*s", (int)length + 1, word);
    return !hint(parser->problem, "did you mean -%.*s?", (int)length + 1, word);
}

/* A letter that other verbs have for options of their own. */
static bool refuse_letter(struct parser *parser, char letter) {
    complain(parser->problem, "%s does not take -%c", parser->command->verb->name, letter);
    help_hint(parser);
    return false;
}

static bool parse_letters(struct parser *parser, int argc, char **argv, int *i) {
    if (lacks_a_dash(parser, argv[*i])) return false;
    for (const char *at = argv[*i] + 1; *at; at++) {
        const struct option *option = find_letter(parser->command, *at);
        if (!option) {
            complain(parser->problem, "unknown option -%c", *at);
            help_hint(parser);
            return false;
        }
        const struct command *command = parser->command;
        const bool explain = command->verb && (command->verb->kinds & VERB_BIT(EXPLAIN));
        if (command->verb && !explain && !option_for(command, option->name))
            return refuse_letter(parser, *at);
        bool flag = option->kind == OPTION_FLAG;
        if (!take_value(parser, option, !flag && at[1] ? at + 1 : NULL, argc, argv, i)) return false;
        if (!flag) return true;
    }
    return true;
}

static bool take_verb(struct parser *parser, const char *word) {
    const struct verb *verb = verb_named(word);
    if (verb) {
        parser->command->verb = verb;
        parser->verb_name = verb->name;
        return true;
    }
    const char *nearest = verb_nearest(word);
    complain(parser->problem, "unknown verb '%.80s'", word);
    if (nearest) return hint(parser->problem, "did you mean kiln %s?", nearest);
    if (access(word, F_OK) == 0)
        return hint(parser->problem, "to train on it: kiln linreg %.80s; to look at it: kiln info %.80s",
                    word, word);
    return hint(parser->problem, "kiln --help lists the verbs");
}

static bool take_word(struct parser *parser, const char *word) {
    struct command *command = parser->command;
    if (!command->verb) return take_verb(parser, word);
    if (command->count < command->verb->most) {
        command->arguments[command->count++] = word;
        return true;
    }
    complain(parser->problem, "one argument too many: '%.100s'", word);
    return hint(parser->problem, "usage: kiln %s %s%s[OPTION ...]", command->verb->name,
                command->verb->arguments, *command->verb->arguments ? " " : "");
}

/* kiln explain logreg DATA takes what kiln logreg DATA takes. */
const struct option *option_for(const struct command *command, const char *name) {
    const struct verb *verb = command->verb, *explained = explained_verb(command);
    for (int i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (strcmp(option->name, name) != 0) continue;
        if (option_applies(option, verb) || (explained && option_applies(option, explained))) return option;
    }
    return NULL;
}

/* Refuses an option, and names the verbs that take it if they are so few that somebody may look for one of
 * them. */
static bool refuse(struct parser *parser, const char *name) {
    enum { FEW = 16 };
    struct usage_problem *problem = parser->problem;
    char list[sizeof problem->hint - 40] = "";
    size_t used = 0;
    int found = 0;
    complain(problem, "%s does not take --%s", parser->command->verb->name, name);
    for (int v = 0; v < verb_count; v++) {
        if (!option_for(&(struct command){.verb = &verb_table[v]}, name)) continue;
        if (++found > FEW) break;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", found > 1 ? ", " : "",
                                 verb_table[v].name);
    }
    if (found <= FEW) return hint(problem, "--%s is an option of %s", name, list);
    return hint(problem, "kiln %s --help lists the options", parser->command->verb->name);
}

static const kiln_algorithm *algorithm_of(const struct command *command) {
    const struct verb *explained = explained_verb(command);
    return kiln_algorithm_named(explained ? explained->name : command->verb->name);
}

/* The size of the algorithm's options struct is its first field. */
static void size_options(struct command *command) {
    const kiln_algorithm *algorithm = algorithm_of(command);
    if (algorithm) *(size_t *)command->settings.algorithm.bytes = algorithm->options_bytes;
}

/* An option that was typed is meant, 0 too. */
static void give(struct command *command, const struct option *option) {
    const kiln_algorithm *algorithm = algorithm_of(command);
    const kiln_option *told = algorithm_option(algorithm->name, option->name);
    kiln_option_give(algorithm->name, command->settings.algorithm.bytes, told->name);
}

/* A verb's own options of numbers hold their defaults where they are not given: nobody else knows these. */
static bool set_defaults(struct parser *parser) {
    for (int i = 0; i < option_count; i++) {
        const struct option *option = option_for(parser->command, option_table[i].name);
        const bool number = option && (option->kind == OPTION_INTEGER || option->kind == OPTION_REAL);
        if (!number || option != &option_table[i] || option->place != IN_OWN || !option->standard) continue;
        if (!set_value(parser, option, option->standard)) return false;
    }
    return true;
}

/* Values are set when the verb is known, which may stand behind them. */
static bool set_values(struct parser *parser) {
    struct command *command = parser->command;
    for (int i = 0; i < option_count; i++) {
        if (!parser->given[i]) continue;
        const struct option *option = option_for(command, option_table[i].name);
        if (option && !set_value(parser, option, parser->given[i])) return false;
        if (option && option->place == IN_ALGORITHM) give(command, option);
        if (!option) return refuse(parser, option_table[i].name);
    }
    return true;
}

/* Returns whether the options go with the verb, and whether there are enough arguments. */
static bool check(struct parser *parser) {
    struct command *command = parser->command;
    const struct verb *verb = command->verb;
    if (!verb || command->settings.help || command->settings.version) return true;
    size_options(command);
    if (!set_defaults(parser) || !set_values(parser)) return false;
    const char *wrong, *advice;
    if (!parts_add(command, &wrong, &advice)) {
        complain(parser->problem, "--parts '%.200s': %s", command->settings.parts, wrong);
        return hint(parser->problem, "%s", advice);
    }
    if (command->count >= verb->least) return true;
    complain(parser->problem, "%s needs %s", verb->name, verb->arguments);
    return hint(parser->problem, "usage: kiln %s %s [OPTION ...]", verb->name, verb->arguments);
}

bool parse_command(struct command *command, int argc, char **argv, struct usage_problem *problem) {
    *command = (struct command){0};
    *problem = (struct usage_problem){"", ""};
    struct parser parser = {.command = command, .problem = problem};
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool good;
        if (options_end || word[0] != '-' || word[1] == '\0')
            good = take_word(&parser, word);
        else if (word[1] != '-')
            good = parse_letters(&parser, argc, argv, &i);
        else if (word[2])
            good = parse_long(&parser, argc, argv, &i);
        else
            good = options_end = true;
        if (!good) return false;
    }
    return check(&parser);
}
