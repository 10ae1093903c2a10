/* A file written as a whole or not at all: temporary file in the same folder, write, fsync, rename, fsync of
 * the folder. */
#ifndef KI_OUTPUT_H
#define KI_OUTPUT_H

#include <stdbool.h>

#include "kiln/data.h"
#include "core/status.h"

struct ki_output;

/* Creates PATH's temporary neighbour (O_EXCL). What PATH is decides:
 *   missing, or a regular file          replaced as a whole at commit; a replaced file keeps its permissions
 *   a symbolic link to a regular file   the file it leads to is replaced, the link stays
 *   a device, FIFO or socket            written as it comes
 *   "-" and "/dev/stdout"               standard output, written as it comes
 *   a folder, or a link to nothing      an error
 * gzip: compress. control (may be NULL) is polled for cancellation and told the bytes written; it must
 * outlive the output. */
kiln_status ki_output_open(struct ki_output **output, const char *path, bool gzip,
                           const kiln_control *control);
kiln_status ki_output_write(struct ki_output *output, const void *bytes, size_t size); /* buffered */
/* Writes the first `count` elements of an array of a matrix of the type, which lies in a file. */
struct ki_file;
kiln_status ki_output_copy(struct ki_output *output, const struct ki_file *file, int part, kiln_type type,
                           int64_t count);
int64_t ki_output_bytes(const struct ki_output *output); /* handed in so far */
/* Makes it PATH. Frees the output, also on failure; then the temporary file is gone and the old PATH
 * untouched, save when only the last step, the fsync of the folder, failed: PATH then is the whole new file,
 * which a power cut may undo. */
kiln_status ki_output_commit(struct ki_output *output);
void ki_output_abandon(struct ki_output *output); /* NULL is allowed */

#endif
