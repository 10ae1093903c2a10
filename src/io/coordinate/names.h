/* Names of rows and columns, numbered as they come, whatever they look like. */
#ifndef KI_NAMES_H
#define KI_NAMES_H

#include "io/table/table.h"
#include "io/text.h"

/* A name as it stands in a block of text. */
struct ki_name {
    const char *text;
    int32_t size;
    bool doubled; /* it stood between quotes: "" is a quote */
};
/* A name as a number if it is written as numbers are: no sign, no leading zero, at most nine digits; or
 * -1. */
int32_t ki_plain_number(const char *text, int64_t size);

/* The table that also keeps the levels of CSV columns. In front of it stands an array that maps a name
 * which is a small number straight to the name's own number; the array is never longer than the input in
 * bytes, so that an identifier like 2000000000 in a short file costs nothing. */
struct ki_names {
    struct ki_table_levels levels;
    struct ki_bytes direct; /* int32_t: 1 + number of the name "i", 0 = none */
    struct ki_bytes plain;  /* the name at hand, without its doubled quotes */
    const char *what;       /* "a vertex" */
};
void ki_names_init(struct ki_names *names, const char *what);
void ki_names_free(struct ki_names *names);

/* The number of the name "plain"; -1: there is none. Threads may look names up while nobody adds any. */
int32_t ki_names_find_number(const struct ki_names *names, int32_t plain);
static inline int32_t ki_names_of_number(const struct ki_names *names, int32_t plain) {
    const int64_t length = names->direct.size / (int64_t)sizeof(int32_t);
    return plain < length ? ((const int32_t *)(const void *)names->direct.data)[plain] - 1
                          : ki_names_find_number(names, plain);
}
/* The number of the name "plain", which is the next one if the name is new; `allowed` bytes of input were
 * read. */
kiln_status ki_names_add_number(int32_t *number, struct ki_names *names, int32_t plain, int64_t allowed);
/* The same of a name in the block that is no plain number. ERR_PARSE unless it is UTF-8 text. */
kiln_status ki_names_add(int32_t *number, struct ki_names *names, const struct ki_name *name,
                         const struct ki_input *input, const struct ki_block *block);
/* Hands the names over: *list[i] points into *text. */
kiln_status ki_names_take(char ***list, char **text, struct ki_names *names);

#endif
