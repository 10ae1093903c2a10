/* Names of rows and columns, numbered as they come, whatever they look like. */
#ifndef KI_NAMES_H
#define KI_NAMES_H

#include "io/table/table.h"
#include "io/text.h"

/* A name as it stands in a block of text. */
struct ki_name {
    const char *text;
    int32_t size, number; /* number: what the name says in plain decimal, or -1 */
    bool doubled;         /* it stood between quotes: "" is a quote */
    int32_t found;        /* its own number, if it was known before the block; or -1 */
};
struct ki_name ki_name_of(const char *text, int64_t size); /* size up to INT32_MAX */

/* The table that also keeps the levels of CSV columns. In front of it stands an array that maps a name
 * which is a small number straight to the name's own number; the array is never longer than the input in
 * bytes, so that an identifier like 2000000000 in a short file costs nothing. */
struct ki_names {
    struct ki_table_levels levels;
    struct ki_bytes direct; /* int32_t: 1 + number of the name "i", 0 = look in levels */
    struct ki_bytes plain;  /* the name at hand, without its doubled quotes */
    const char *what;       /* "a vertex" */
};
void ki_names_init(struct ki_names *names, const char *what);
void ki_names_free(struct ki_names *names);
/* Sets name->found. Threads may look names up while nobody adds any. */
void ki_names_find(const struct ki_names *names, struct ki_name *name);
/* The number of a name in the block, which is the next one if the name is new. ERR_PARSE unless the name
 * is UTF-8 text. */
kiln_status ki_names_number(int32_t *number, struct ki_names *names, const struct ki_name *name,
                            const struct ki_input *input, const struct ki_block *block);
/* Hands the names over: *list[i] points into *text. */
kiln_status ki_names_take(char ***list, char **text, struct ki_names *names);

#endif
