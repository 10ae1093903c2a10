/* --help, and the nearest word to a mistyped one. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

struct verb;
void help_print(FILE *file, const struct verb *verb); /* NULL: of kiln as a whole */
const struct verb *verb_named(const char *name);      /* NULL: there is none */
/* The verb that a mistyped one is near to, or NULL. */
const char *verb_nearest(const char *word);
/* For `kiln COMMAND WORD` where WORD is not a verb. */
int fail_unknown_verb(const char *command, const char *word);

struct suggestion {
    const char *word; /* what was typed */
    const char *best; /* the nearest candidate near enough, or NULL */
    int distance;
};

/* Start with {word, NULL, 0}, consider each candidate, then read best. */
void suggest_consider(struct suggestion *suggestion, const char *candidate);

#endif
