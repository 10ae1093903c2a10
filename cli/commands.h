/* This header says what the tool reads in the library's registry of algorithms. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <kiln.h>

#include "options.h"

/* The registry's row of an option, by the name of the option or of its field; NULL if the algorithm has none
 * such. */
const kiln_option *algorithm_option(const char *algorithm, const char *name);
/* Returns what holds where the option is not given. */
double algorithm_standard(const char *algorithm, const char *name, kiln_type type);
/* The value in force of an option, by its field's name, for data in f64: what the command line sets, a flag
 * as 0 or 1, or the default; 0 where the algorithm has none of that name. */
double algorithm_value(const char *algorithm, const struct settings *settings, const char *name);

#endif
