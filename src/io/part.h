/* A part of what a path names, for processes that read a file together (src/processes/read.c). */
#ifndef KI_PART_H
#define KI_PART_H

#include "io/data.h"

/* Part `number` of `count`: their rows one after the other are those of the whole. */
struct ki_part {
    int number, count;
};

/* Whether parts of the data can be read by themselves at all, by their files and the options. Of several files each part takes some
 * as they are, so that there must be as many as parts; one file must be LIBSVM, CSV or .npy, not compressed. */
kiln_status ki_parts_possible(bool *possible, kiln_file_format *format, const char *path,
                              const kiln_read_options *options, int count);
/* Reads one into a zeroed table. *bytes: of the input, which it is told. A part of text begins with the line that begins in its share
 * of the bytes; it may have no rows at all, and columns that it does not use. ERR_UNSUPPORTED: the file cannot be cut after all; other
 * errors of the data name places that count from the part's beginning. */
kiln_status ki_part_read(struct ki_table *table, int64_t *bytes, const char *path, kiln_file_format format,
                         const kiln_read_options *options, struct ki_part part);

#endif
