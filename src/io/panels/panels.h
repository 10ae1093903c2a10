/* Reading a packed file (layout.h) from the first byte to the last, in parts, and leaving its rows there. */
#ifndef KI_PANELS_H
#define KI_PANELS_H

#include "io/panels/layout.h"
#include "io/part.h"

struct ki_panels_reader {
    struct ki_panels p;
    const char *name;
    const struct ki_file *file; /* where the bytes lie, or NULL: */
    struct ki_bytes memory;
    const kiln_read_options *options;
    const struct ki_watch *watch;
    uint32_t *sums;
    int64_t sum[KI_PANELS_ARRAYS]; /* of an array's first panel */
};

/* Bytes from `offset` on that are in memory; NULL if they are not. */
static inline const unsigned char *ki_panels_memory(const struct ki_panels_reader *r, int64_t offset) {
    return r->file ? NULL : (const unsigned char *)r->memory.data + offset;
}

/* Header and checksums, of a file with so many bytes, or of what is in memory. Freed whatever it returns. */
kiln_status ki_panels_open(struct ki_panels_reader *r, int64_t bytes);
void ki_panels_close(struct ki_panels_reader *r);

/* Panels [first, end) of an array are what was written; ERR_PARSE names the first that is not. */
kiln_status ki_panels_check(struct ki_panels_reader *r, enum ki_panels_name name, int64_t first, int64_t end);
/* All elements of an array once, as struct ki_chunks does it, and their panels are checked. */
kiln_status ki_panels_run(struct ki_panels_reader *r, enum ki_panels_name name, void *straight,
                          void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count),
                          void *of);
/* Elements as they lie in the file. */
struct ki_npy ki_panels_npy(const struct ki_panels_array *array);
/* *to = bytes [first, first + bytes) of an array, with a NUL behind them. */
kiln_status ki_panels_load(void **to, struct ki_panels_reader *r, enum ki_panels_name name, int64_t first,
                           int64_t bytes);
/* *to = row starts, which begin with 0, do not fall and end with the number of entries. */
kiln_status ki_panels_starts(int64_t **to, struct ki_panels_reader *r);
/* ERR_PARSE at the array. */
kiln_status ki_panels_fail(const struct ki_panels_reader *r, enum ki_panels_name name, const char *reason);
/* The error of a value that is not finite. */
kiln_status ki_panels_nonfinite(const struct ki_panels_reader *r, enum ki_panels_name name, int64_t at);

/* *to = values [first, first + count) of an array in the options' type; checked where they are all of it. */
kiln_status ki_panels_values_of(void **to, struct ki_panels_reader *r, enum ki_panels_name name,
                                int64_t first, int64_t count);
/* X's rows [first, first + table->rows). */
kiln_status ki_panels_matrix(struct ki_table *table, struct ki_panels_reader *r, int64_t first);
/* The schema, if the file has one, is one that makes such columns. */
kiln_status ki_panels_check_schema(const struct ki_table *table, const struct ki_panels_reader *r);
/* Options and a model want such columns as the file has, else ERR_ARGUMENT and ERR_MODEL. */
kiln_status ki_panels_suit(struct ki_table *table, struct ki_panels_reader *r);

#endif
