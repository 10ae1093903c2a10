/* Data whose rows lie in a file while they are used. */
#ifndef KI_IO_IN_FILE_H
#define KI_IO_IN_FILE_H

#include "io/data.h"

/* Fills a zeroed table whose values, and columns, stay in the file (io/numpy/map.h), or go to a temporary one
 * where they cannot, as they are text or of another type: a window of rows is in memory at a time. *format
 * may be AUTO, *bytes is added to. ERR_UNSUPPORTED: rows of such data cannot be read in order. */
kiln_status ki_table_in_file(struct ki_table *table, kiln_file_format *format, int64_t *bytes,
                             kiln_device *device, const char *path, const kiln_read_options *options);

#endif
