/* This header says where the part of a file lies that a process reads: part.c, for text part_text.c. */
#ifndef KI_PART_CUT_H
#define KI_PART_CUT_H

#include "io/part.h"

/* Holds what comes before the bytes of a part. */
struct ki_beginning {
    char *bytes;
    int64_t size;
};

/* ERR_UNSUPPORTED: one process is to read the file. */
kiln_status ki_part_refuse(const char *path, const char *why);

/* Lines that begin in the part's share of the bytes behind the first `first`. */
kiln_status ki_cut_lines(struct ki_input_piece *piece, const struct ki_file *file, int64_t size,
                         int64_t first, struct ki_part part);
/* The line of names of a CSV file, which may be compressed; nothing, if the first line is none. */
kiln_status ki_csv_beginning(struct ki_beginning *beginning, const char *path,
                             const kiln_read_options *options);
/* Records of CSV that do, as part.open says, behind the line of names, if there is one. */
kiln_status ki_cut_csv(struct ki_input_piece *piece, struct ki_beginning *beginning,
                       const struct ki_file *file, int64_t size, const kiln_read_options *options,
                       struct ki_part part);
/* An input of the part's lines of a compressed file; with quotes its records. skipped: bytes of text at the
 * beginning that are no part's. */
kiln_status ki_cut_compressed(struct ki_input **lines, const char *path, bool quotes, int64_t skipped,
                              const kiln_read_options *options, struct ki_part part);
/* The part's rows of .npy; of a stream all before them are decoded, too. */
kiln_status ki_read_npy_part(struct ki_table *table, struct ki_input *input, const kiln_read_options *options,
                             struct ki_part part);
/* The part's rows of a packed file (io/panels). */
kiln_status ki_read_panels_part(struct ki_table *table, struct ki_input *input,
                                const kiln_read_options *options, struct ki_part part);
/* Finds whether there is an odd number of quotes in the part's share. */
kiln_status ki_quotes_odd(bool *odd, const struct ki_file *file, int64_t size,
                          const kiln_read_options *options, struct ki_part part);
#endif
