/* A stream of Arrow's record batches over columns that lie in the caller's arrays. It counts what is not
 * yet released. */
#ifndef ARROW_STREAM_H
#define ARROW_STREAM_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "io/arrow/arrow.h"

enum { COLUMNS_MOST = 8 };

/* buffers: of the column's values, or of its indices; with dictionary_format of the dictionary, too. */
struct arrow_column {
    const char *name, *format, *dictionary_format;
    const void *buffers[5], *dictionary_buffers[5];
    int64_t buffer_count, dictionary_buffer_count, length, offset, dictionary_length;
};

struct arrow_stream {
    struct ArrowArrayStream stream; /* first: its address is the stream's */
    const struct arrow_column *columns;
    int64_t count, rows, batches, given; /* each batch has `rows` of its own: of the columns' beginning on */
    int64_t offset;                      /* of the batches themselves */
    int fail_at, alive;                  /* which call fails, with EIO; -1: none */
    const char *format;                  /* of the table */
    struct ArrowSchema schemas[COLUMNS_MOST], schema_dictionaries[COLUMNS_MOST],
        *schema_children[COLUMNS_MOST];
    struct ArrowArray arrays[COLUMNS_MOST], array_dictionaries[COLUMNS_MOST], *array_children[COLUMNS_MOST];
};

static inline void release_schema(struct ArrowSchema *schema) {
    struct arrow_stream *s = schema->private_data;
    s->alive--;
    schema->release = NULL;
}

static inline void release_array(struct ArrowArray *array) {
    struct arrow_stream *s = array->private_data;
    s->alive--;
    array->release = NULL;
}

static inline void release_stream(struct ArrowArrayStream *stream) {
    struct arrow_stream *s = (void *)stream;
    s->alive--;
    stream->release = NULL;
}

static inline int give_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema) {
    struct arrow_stream *s = (void *)stream;
    if (s->fail_at == 0) return EIO;
    for (int64_t i = 0; i < s->count; i++) {
        const struct arrow_column *column = &s->columns[i];
        s->schema_children[i] = &s->schemas[i];
        s->schemas[i] = (struct ArrowSchema){.format = column->format, .name = column->name};
        s->schema_dictionaries[i] = (struct ArrowSchema){.format = column->dictionary_format};
        if (column->dictionary_format) s->schemas[i].dictionary = &s->schema_dictionaries[i];
    }
    *schema = (struct ArrowSchema){.format = s->format ? s->format : "+s",
                                   .n_children = s->count,
                                   .children = s->schema_children,
                                   .release = release_schema,
                                   .private_data = s};
    s->alive++;
    return 0;
}

static inline int give_batch(struct ArrowArrayStream *stream, struct ArrowArray *batch) {
    struct arrow_stream *s = (void *)stream;
    *batch = (struct ArrowArray){.release = NULL};
    if (s->fail_at == (int)s->given + 1) return EIO;
    if (s->given++ == s->batches) return 0;
    for (int64_t i = 0; i < s->count; i++) {
        const struct arrow_column *column = &s->columns[i];
        s->array_children[i] = &s->arrays[i];
        s->arrays[i] = (struct ArrowArray){.length = column->length,
                                           .offset = column->offset,
                                           .n_buffers = column->buffer_count,
                                           .buffers = (const void **)(uintptr_t)column->buffers,
                                           .release = release_array,
                                           .private_data = s};
        s->array_dictionaries[i] =
            (struct ArrowArray){.length = column->dictionary_length,
                                .n_buffers = column->dictionary_buffer_count,
                                .buffers = (const void **)(uintptr_t)column->dictionary_buffers,
                                .release = release_array,
                                .private_data = s};
        if (column->dictionary_format) s->arrays[i].dictionary = &s->array_dictionaries[i];
    }
    *batch = (struct ArrowArray){.length = s->rows,
                                 .offset = s->offset,
                                 .n_children = s->count,
                                 .children = s->array_children,
                                 .release = release_array,
                                 .private_data = s};
    s->alive++;
    return 0;
}

static inline const char *say_error(struct ArrowArrayStream *stream) {
    (void)stream;
    return "the disk is gone";
}

/* Batches of `rows` rows each, the same ones again and again. */
static inline struct arrow_stream arrow_stream_of(const struct arrow_column *columns, int64_t count,
                                                  int64_t rows, int64_t batches) {
    return (struct arrow_stream){.stream = {give_schema, give_batch, say_error, release_stream, NULL},
                                 .columns = columns,
                                 .count = count,
                                 .rows = rows,
                                 .batches = batches,
                                 .fail_at = -1,
                                 .alive = 1};
}

#endif
