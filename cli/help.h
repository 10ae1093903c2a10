/* --help and version. */
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

#endif
