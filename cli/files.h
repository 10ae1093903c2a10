/* The files that a run reads and writes. */
#ifndef CLI_FILES_H
#define CLI_FILES_H

#include "common.h"

/* Before long work: whether the files that the options name, and convert's second argument, can be written,
 * each for itself, and none of them is a file that is read. "-" does not go with --json. 0 or an exit
 * code. */
int run_check_outputs(const struct run *run);
FILE *run_tables(const struct run *run); /* where tables go: to standard error if one of these files is "-" */

#endif
