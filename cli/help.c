/* kiln --help, kiln VERB --help, from the option and verb tables. */
#include "help.h"

#include <string.h>

#include "common.h"
#include "verbs.h"

enum { WIDTH = 96, NAME = 28 };

static void print_lines(FILE *file, const char *lines) {
    for (const char *at = lines; *at;) {
        int length = (int)strcspn(at, "\n");
        fprintf(file, "  %.*s\n", length, at);
        at += length + (at[length] == '\n');
    }
}

static void print_option(FILE *file, const struct option *option, const struct verb *verb) {
    char name[80], help[700], standard[STANDARD_ROOM];
    const char *value = option->value ? option->value : "";
    snprintf(name, sizeof name, "%c%c%s --%s %s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name, value);
    int length = snprintf(help, sizeof help, "%s", option->help);
    if (option->choices && option->kind == OPTION_CHOICE)
        length += snprintf(help + length, sizeof help - (size_t)length, " One of %s.", option->choices);
    if (option->kind != OPTION_FLAG && *option_standard(standard, option, verb))
        snprintf(help + length, sizeof help - (size_t)length, " [%s]", standard);
    fprintf(file, "  %-*s", NAME - 2, name);
    if (strlen(name) > NAME - 4) fprintf(file, "\n%*s", NAME, "");
    text_wrap(file, help, NAME, WIDTH);
}

static void print_options(FILE *file, const struct verb *verb) {
    for (int group = 0; group < GROUP_COUNT; group++) {
        bool headed = false;
        for (int i = 0; i < option_count; i++) {
            if (option_table[i].group != (enum option_group)group || !option_applies(&option_table[i], verb))
                continue;
            if (!headed) fprintf(file, "\n%s options\n", option_group_names[group]);
            headed = true;
            print_option(file, &option_table[i], verb);
        }
    }
}

static void print_exit_codes(FILE *file, const struct verb *verb) {
    fprintf(file, "\nExit codes\n");
    for (int i = 0; i < exit_meaning_count; i++)
        if (exit_applies(&exit_meanings[i], verb))
            fprintf(file, "  %4d  %s\n", exit_meanings[i].code, exit_meanings[i].meaning);
}

static void print_verb(FILE *file, const struct verb *verb) {
    const char *space = *verb->arguments ? " " : "";
    fprintf(file, "kiln %s: %s\n\nusage: kiln %s%s%s [OPTION ...]\n\n", verb->name, verb->summary, verb->name,
            space, verb->arguments);
    text_wrap(file, verb->description, 0, WIDTH);
    fprintf(file, "\nExamples\n");
    print_lines(file, verb->examples);
    print_options(file, verb);
    print_exit_codes(file, verb);
}

static void print_overview(FILE *file) {
    fprintf(file,
            "kiln %s: machine learning on large sparse and dense data, at the speed of memory\n\n"
            "usage: kiln VERB [ARGUMENT ...] [OPTION ...]\n\nVerbs\n",
            kiln_version());
    for (int v = 0; v < verb_count; v++) {
        char name[80];
        snprintf(name, sizeof name, "%s %s", verb_table[v].name, verb_table[v].arguments);
        fprintf(file, "  %-24s  %s\n", name, verb_table[v].summary);
    }
    fprintf(file, "\nOptions of every verb\n");
    for (int i = 0; i < option_count; i++)
        if (option_table[i].verbs == EVERY_VERB) print_option(file, &option_table[i], NULL);
    fprintf(file, "\nExamples\n");
    print_lines(file, "kiln linreg data/flights.csv.gz --target arr_delay -o flights.kiln\n"
                      "kiln predict flights.kiln data/flights.csv.gz -o delays.txt\n"
                      "kiln info flights.kiln\n"
                      "kiln doctor");
    print_exit_codes(file, NULL);
    fprintf(file, "\nkiln VERB --help describes a verb in full; kiln man VERB prints its man page.\n");
}

void help_print(FILE *file, const struct verb *verb) {
    if (verb)
        print_verb(file, verb);
    else
        print_overview(file);
}

const struct verb *verb_named(const char *name) {
    for (int v = 0; v < verb_count; v++)
        if (strcmp(verb_table[v].name, name) == 0) return &verb_table[v];
    return NULL;
}

const char *verb_nearest(const char *word) {
    struct suggestion nearest = {word, NULL, 0};
    for (int v = 0; v < verb_count; v++) suggest_consider(&nearest, verb_table[v].name);
    return nearest.best;
}

int fail_unknown_verb(const char *command, const char *word) {
    char hint[80] = "kiln --help lists the verbs";
    const char *nearest = verb_nearest(word);
    if (nearest) snprintf(hint, sizeof hint, "did you mean kiln %s %s?", command, nearest);
    return fail_with(KILN_ERR_ARGUMENT, WORKING, hint, "unknown verb '%s'", word);
}

int verb_help(struct run *run) {
    const struct verb *verb = run->count ? verb_named(run->arguments[0]) : NULL;
    if (run->count && !verb) return fail_unknown_verb("help", run->arguments[0]);
    help_print(stdout, verb);
    return EXIT_DONE;
}

int verb_version(struct run *run) {
    if (!run->settings->json) {
        printf("kiln %s\n", kiln_version());
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_put_text(object, "schema", "kiln.version/1");
    json_put_text(object, "kiln_version", kiln_version());
    return json_print(object);
}

/* ------------------------------------------------------------------------------------ the nearest word */

enum { LONGEST = 40 };

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Edit distance with transpositions (optimal string alignment): d[i][j] = least number of insertions,
 * deletions, replacements and swaps of neighbours that turn the first i letters of one word into the first j
 * of the other. A word that is the beginning of a candidate (--max-iter) counts as one edit away. */
static int edit_distance(const char *a, const char *b) {
    int m = (int)strlen(a), n = (int)strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (m > LONGEST || n > LONGEST) return LONGEST;
    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

void suggest_consider(struct suggestion *suggestion, const char *candidate) {
    size_t length = strlen(suggestion->word);
    int distance = edit_distance(suggestion->word, candidate);
    if (length >= 2 && strncmp(suggestion->word, candidate, length) == 0) distance = least(distance, 1);
    int allowed = length <= 3 ? 1 : (int)(length + 2) / 3;
    if (distance > allowed || (suggestion->best && distance >= suggestion->distance)) return;
    suggestion->best = candidate;
    suggestion->distance = distance;
}
