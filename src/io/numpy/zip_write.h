/* A zip archive of stored (not compressed) members. */
#ifndef KI_ZIP_WRITE_H
#define KI_ZIP_WRITE_H

#include "core/status.h"
#include "kiln/matrix.h"

#include <stddef.h>

enum { KI_ZIP_WRITTEN = 16 };

struct ki_zip_written {
    const char *name;
    int64_t offset, bytes; /* of its local header in the archive; of its contents */
    uint32_t crc;
};

struct ki_output;
struct ki_zip {
    struct ki_output *output;
    int64_t offset; /* bytes written so far */
    int64_t most;   /* sizes and offsets up to this have fields of 32 bits; 0: all that fit. Tests lower it */
    int count;
    struct ki_zip_written members[KI_ZIP_WRITTEN];
};

/* Appends a member, its contents in two pieces. The name must live until ki_zip_finish, which writes the
 * directory. */
kiln_status ki_zip_add(struct ki_zip *zip, const char *name, const void *first, size_t first_bytes,
                       const void *second, size_t second_bytes);
/* The same, the second piece being the first `count` elements of an array in a file, which are read twice. */
struct ki_file;
kiln_status ki_zip_add_file(struct ki_zip *zip, const char *name, const void *first, size_t first_bytes,
                            const struct ki_file *file, int part, kiln_type type, int64_t count);
kiln_status ki_zip_finish(struct ki_zip *zip);

#endif
