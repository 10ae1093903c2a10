/* A text file written as a whole or not at all: temporary neighbour, fsync, rename, fsync of the folder.
 * Standard output, devices and pipes are written as they are. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    char *path, *temporary; /* temporary NULL: written in place */
    bool terminal;          /* a person reads along */
};

/* Each returns 0 or the exit code of an error that it has reported; commit and abandon close. */
int output_open(struct output *output, const char *path); /* NULL or "-": standard output */
int output_commit(struct output *output);
void output_abandon(struct output *output);
/* Writes a name from the data: as it is, or where it holds a byte of `special` quoted as in CSV; on a
 * terminal without the control characters, which it would obey. */
void output_text(const struct output *output, const char *text, const char *special);
/* Removes the temporary files of all outputs that are open; async-signal-safe, for a process that ends at
 * once. */
void output_abandon_all(void);

#endif
