/* Any bytes as a table in memory: they choose types and fill buffers that are as large as the interface
 * demands and no larger, so that a sanitizer sees what is read beyond. */
#define _GNU_SOURCE
#include "reader_target.h"

#include "io/arrow_stream.h"

enum { ROWS_MOST = 40, BYTES_MOST = 64 };

struct source {
    const uint8_t *bytes;
    size_t size;
};

static unsigned draw(struct source *from, unsigned below) {
    if (from->size == 0) return 0;
    from->size--;
    return *from->bytes++ % below;
}

/* A buffer of its own of so many bytes, filled as far as there are bytes left, in `owned`. */
static void *buffer(struct source *from, size_t size, void **owned, int *count) {
    unsigned char *made = calloc(1, size ? size : 1);
    demand(made != NULL);
    const size_t some = size < from->size ? size : from->size;
    if (some > 0) memcpy(made, from->bytes, some);
    if (some > 0) from->bytes += some;
    from->size -= some;
    owned[(*count)++] = made;
    return made;
}

/* Fills the buffers of an array of `length` cells; returns how many. */
static int64_t fill(struct source *from, const char *format, int64_t length, const void **buffers,
                    void **owned, int *count) {
    static const struct {
        char format;
        size_t width;
    } widths[] = {{'c', 1}, {'C', 1}, {'s', 2}, {'S', 2}, {'i', 4}, {'I', 4},
                  {'l', 8}, {'L', 8}, {'e', 2}, {'f', 4}, {'g', 8}};
    const size_t cells = (size_t)length, bits = (cells + 7) / 8;
    if (*format == 'n') return 0;
    if (draw(from, 2)) buffers[0] = buffer(from, bits, owned, count);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (*format == widths[i].format) buffers[1] = buffer(from, cells * widths[i].width, owned, count);
    if (*format == 'b') buffers[1] = buffer(from, bits, owned, count);
    if (*format == 'u' || *format == 'U') {
        const int64_t bytes = draw(from, BYTES_MOST);
        const size_t width = *format == 'u' ? 4 : 8;
        char *offsets = buffer(from, (cells + 1) * width, owned, count);
        memset(offsets + cells * width, 0,
               width); /* the last is the text's length, which nothing else says */
        memcpy(offsets + cells * width, &(int32_t){(int32_t)bytes}, 4);
        buffers[1] = offsets;
        buffers[2] = buffer(from, (size_t)bytes, owned, count);
        return 3;
    }
    if (*format == 'v') {
        const int64_t bytes = draw(from, BYTES_MOST);
        buffers[1] = buffer(from, cells * 16, owned, count);
        buffers[2] = buffer(from, (size_t)bytes, owned, count);
        int64_t *sizes = buffer(&(struct source){NULL, 0}, sizeof *sizes, owned, count);
        *sizes = bytes;
        buffers[3] = sizes;
        return 4;
    }
    return 2;
}

static void run_stream(struct arrow_stream *s, const kiln_read_options *options) {
    struct ki_table table = {0};
    check_end(&table, ki_read_arrow(&table, &s->stream, options), options);
    demand(s->alive == 1); /* the stream itself */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *const formats[] = {"n", "b", "c", "C", "s", "S", "i",  "I",  "l",
                                          "L", "e", "f", "g", "u", "U", "vu", "tdD"};
    static const char *const indices[] = {"c", "C", "s", "S", "i", "I", "l", "L"};
    static const char *const names[] = {"y", "s", "g", "a", "b", "c"};
    struct source from = {bytes, size};
    struct arrow_column columns[6] = {{.name = NULL}};
    void *owned[64];
    int count = 0;
    const int64_t used = 1 + draw(&from, 6), rows = draw(&from, ROWS_MOST), offset = draw(&from, 3);
    const unsigned choice = draw(&from, 256);
    for (int64_t i = 0; i < used; i++) {
        struct arrow_column *column = &columns[i];
        column->name = names[i];
        column->format = formats[draw(&from, sizeof formats / sizeof *formats)];
        column->offset = draw(&from, 3);
        column->length = rows + offset;
        if (draw(&from, 4) == 0) {
            column->dictionary_format = column->format;
            column->format = indices[draw(&from, 8)];
            column->dictionary_length = draw(&from, 9);
            column->dictionary_buffer_count =
                fill(&from, column->dictionary_format, column->dictionary_length, column->dictionary_buffers,
                     owned, &count);
        }
        column->buffer_count =
            fill(&from, column->format, column->length + column->offset, column->buffers, owned, &count);
    }
    for (int way = 0; way < 2; way++) {
        struct arrow_stream s = arrow_stream_of(columns, used, rows, 2);
        kiln_read_options options = {.type = way ? KILN_F32 : KILN_F64, .threads = 1 + way};
        s.offset = offset;
        options.target = choice & 1 ? "y" : NULL;
        options.weights = choice & 2 && used > 1 ? "s" : NULL;
        options.groups = choice & 4 && used > 2 ? "g" : NULL;
        options.missing = (kiln_missing)((choice >> 3) % 5);
        options.text_targets = (int)(choice >> 5) % 3;
        options.allow_nonfinite = choice >> 7;
        run_stream(&s, &options);
    }
    for (int i = 0; i < count; i++) free(owned[i]);
    return 0;
}
