/* Names of a matrix's columns from a file of their own: a line each. */
#ifndef KI_VOCABULARY_H
#define KI_VOCABULARY_H

#include "io/data.h"

/* Gives the table's columns the names in the file; ERR_DATA if they are fewer, and a warning if they are
 * more. */
kiln_status ki_read_vocabulary(struct ki_table *table, const char *path, const kiln_read_options *options);
/* *found = the path of vocab.NAME.txt that stands beside docword.NAME.txt, each perhaps with .gz or .zst;
 * NULL if there is none, or the data are not called so. To be freed by ki_free. */
kiln_status ki_find_vocabulary(char **found, const char *path);

#endif
