/* Tells file formats apart. */
#ifndef KI_DETECT_H
#define KI_DETECT_H

#include "io/input.h"

/* By the first bytes if they are a format's mark, else by the name (behind .gz or .zst), else by the first
 * lines. */
kiln_status ki_detect_format(kiln_file_format *format, struct ki_input *input);

/* ERR_PARSE if the input is of a kind that Kiln does not read, such as Parquet; for formats that the caller has named. */
kiln_status ki_detect_foreign(struct ki_input *input);

#endif
