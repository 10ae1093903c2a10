/* Data in many files, by a pattern of their names. */
#ifndef CLI_PARTS_H
#define CLI_PARTS_H

#include "options.h"

/* Puts the files that --parts names behind the command's arguments, in the order of their bytes. False:
 * *problem and *hint say why not. */
bool parts_add(struct command *command, const char **problem, const char **hint);

#endif
