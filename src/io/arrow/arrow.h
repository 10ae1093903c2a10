/* Tables in memory by the Arrow C data interface:
 * https://arrow.apache.org/docs/format/CDataInterface.html. The structs are those of its ABI; whoever made
 * them frees them, by `release`. */
#ifndef KI_ARROW_H
#define KI_ARROW_H

#include "io/table/builder.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

enum ki_arrow_kind {
    KI_ARROW_REFUSED, /* a type that is neither a number nor a text */
    KI_ARROW_NULL,    /* nothing but missing values */
    KI_ARROW_BOOL,
    KI_ARROW_INT8,
    KI_ARROW_UINT8,
    KI_ARROW_INT16,
    KI_ARROW_UINT16,
    KI_ARROW_INT32,
    KI_ARROW_UINT32,
    KI_ARROW_INT64,
    KI_ARROW_UINT64,
    KI_ARROW_HALF,
    KI_ARROW_FLOAT,
    KI_ARROW_DOUBLE,
    KI_ARROW_TEXT, /* offsets of 32 bits */
    KI_ARROW_LONG_TEXT,
    KI_ARROW_VIEWS
};

/* The type of a column; of a dictionary's column the type of its values, and its indices' in `index`. */
struct ki_arrow_type {
    enum ki_arrow_kind kind, index;
    bool dictionary;
};
struct ki_arrow_type ki_arrow_type_of(const struct ArrowSchema *schema);
/* Words for what a column of a refused type holds, and for what to do with it. */
struct ki_arrow_refusal {
    const char *kind, *remedy;
};
struct ki_arrow_refusal ki_arrow_refusal(const struct ArrowSchema *schema);
static inline bool ki_arrow_is_text(enum ki_arrow_kind kind) {
    return kind >= KI_ARROW_TEXT;
}

/* An array, checked as far as that takes no look at its values. */
struct ki_arrow_view {
    enum ki_arrow_kind kind;
    int64_t offset, length;     /* cell i is the array's element offset + i */
    const unsigned char *valid; /* bits; NULL: no value is missing */
    const void *values;         /* numbers, bits, offsets, or views of 16 bytes */
    const char *bytes;          /* where offsets lead */
    int64_t byte_count;         /* of these: the last offset */
    const void *const *buffers; /* where views lead: `buffer_count` of them, of buffer_sizes bytes */
    const int64_t *buffer_sizes;
    int64_t buffer_count;
};
struct ki_arrow_column_view {
    struct ki_arrow_view cells, dictionary; /* cells: indices, if there is a dictionary */
    bool has_dictionary;
};
/* An array of the type with `rows` cells behind `offset`. ERR_DATA names the column: fewer cells or
 * buffers than the type needs. */
kiln_status ki_arrow_view_column(struct ki_arrow_column_view *view, const struct ki_arrow_type *type,
                                 const struct ArrowArray *array, int64_t offset, int64_t rows,
                                 const char *name);

/* Cell i as a field, and what is not text as a number with field->text NULL, NaN if it is missing. With
 * `printed` (room for KI_DECIMAL_BYTES) numbers become text there, and what is missing an empty text.
 * False: offsets, an index or a view lead out of the array. */
bool ki_arrow_cell(const struct ki_arrow_column_view *view, int64_t i, struct ki_table_field *field,
                   double *number, char *printed);

/* All batches of the stream into a zeroed table. */
kiln_status ki_read_arrow(struct ki_table *table, struct ArrowArrayStream *stream,
                          const kiln_read_options *options);

#endif
