/* A file written as a whole or not at all: temporary file in the same folder, write, fsync, rename, fsync of the folder. */
#ifndef KI_OUTPUT_H
#define KI_OUTPUT_H

#include <stdbool.h>

#include "core/status.h"

struct ki_output;

/* Creates PATH's temporary neighbour (O_EXCL). path "-" is standard output, written as it comes. gzip: compress. */
kiln_status ki_output_open(struct ki_output **output, const char *path, bool gzip, const kiln_control *control);
kiln_status ki_output_write(struct ki_output *output, const void *bytes, size_t size); /* buffered */
/* Makes it PATH. Frees the output, also on failure; then the temporary file is gone and the old PATH untouched. */
kiln_status ki_output_commit(struct ki_output *output);
void ki_output_abandon(struct ki_output *output); /* NULL is allowed */

#endif
