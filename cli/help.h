/* --help and version. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

struct verb;
void help_print(FILE *file, const struct verb *verb); /* NULL: of kiln as a whole */
const struct verb *verb_named(const char *name);      /* NULL: there is none */

#endif
