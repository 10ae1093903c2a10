/* A part of what a path names, for processes that read a file together (src/processes/read.c). */
#ifndef KI_PART_H
#define KI_PART_H

#include "io/data.h"

/* Part `number` of `count`: their rows one after the other are those of the whole. */
struct ki_part {
    int number, count;
    bool open[2]; /* CSV: whether its share of the bytes, and the next part's, begins within quotes */
};

/* Finds whether parts of the data can be read by themselves at all, by their files and the options. Of
 * several files each part takes some as they are; fewer files than parts are each cut into some parts, as one
 * file is. What is cut is LIBSVM and CSV, behind gzip and zstd, too, and .npy and .npz; of other files the
 * first of their parts has all rows. One file may be Matrix Market, too, whose entries come in any order
 * (ki_market_part_read). */
kiln_status ki_parts_possible(bool *possible, kiln_file_format *format, const char *path,
                              const kiln_read_options *options);
/* Reads one into a zeroed table. *bytes: of the input, which it is told. A part of text begins with the line,
 * of CSV the record, that begins in its share of the bytes; it may have no rows at all, and columns that it
 * does not use. ERR_UNSUPPORTED: the file cannot be cut after all; other errors of the data name places that
 * count from the part's beginning. */
kiln_status ki_part_read(struct ki_table *table, int64_t *bytes, const char *path, kiln_file_format format,
                         const kiln_read_options *options, struct ki_part part);
/* CSV: whether the part's share has an odd number of quotes. A part's `open` is the parity of these over the
 * parts of the same file before it. */
kiln_status ki_part_quotes(bool *odd, const char *path, const kiln_read_options *options,
                           struct ki_part part);
/* Returns whether the part begins a file, of so many. */
bool ki_part_begins_file(struct ki_part part, int64_t files);

#endif
