/* Tells file formats apart. */
#ifndef KI_DETECT_H
#define KI_DETECT_H

#include "kiln/data.h"
#include "io/input.h"

/* By the first bytes if they are a format's mark, else by the name (behind .gz or .zst), else by the first
 * lines. */
kiln_status ki_detect_format(kiln_file_format *format, struct ki_input *input);

/* ERR_PARSE if the input is of a kind that Kiln does not read, such as Parquet; for formats that the
 * caller has named. */
kiln_status ki_detect_foreign(struct ki_input *input);

/* options->format or, where that is AUTO, what the input looks like: a table or an edge list is what
 * options->tables says. */
kiln_status ki_detect_data(kiln_file_format *format, struct ki_input *input,
                           const kiln_read_options *options);
/* Opens options->more[i], whose format must be that of the first file. */
kiln_status ki_open_further(struct ki_input **input, int64_t i, kiln_file_format first,
                            const kiln_read_options *options);

#endif
