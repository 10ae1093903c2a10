/* This file says how text is cut: at the beginnings of lines, CSV at those of records, with the line of names
 * before each part.
 *
 * Where quotes are, a line may begin within them: that is known by the parity of all quotes before, which the
 * parts count, each in its own share, and tell each other (ki_part.open). */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/csv/csv.h"
#include "io/part_cut.h"

enum { WINDOW = 1 << 16 };

/* The end of the line or record that goes on at `at`; the size if it is not closed. open: whether `at` lies
 * within quotes. */
static kiln_status record_end(int64_t *end, const struct ki_file *file, int64_t at, int64_t size, bool quotes,
                              bool open) {
    char window[WINDOW];
    kiln_status status = KILN_OK;
    *end = size;
    for (int64_t from = at; from < size; from += WINDOW) {
        const int64_t some = ki_min(size - from, WINDOW);
        TRY(ki_file_read(file, window, from, some));
        for (int64_t i = 0; i < some; i++) {
            open ^= quotes && window[i] == '"';
            if (window[i] != '\n' || open) continue;
            *end = from + i + 1;
            return KILN_OK;
        }
    }
done:
    return status;
}

/* The first beginning of one at or behind `at`; the size if there is none. */
static kiln_status record_from(int64_t *begin, const struct ki_file *file, int64_t at, int64_t size,
                               bool quotes, bool open) {
    char before = '\n';
    kiln_status status = KILN_OK;
    if (at > 0) TRY(ki_file_read(file, &before, at - 1, 1));
    *begin = at;
    if (before != '\n' || open) TRY(record_end(begin, file, at, size, quotes, open));
done:
    return status;
}

static int64_t share(int64_t size, int64_t first, struct ki_part part, int next) {
    return first + ki_part_begin(size - first, part.number + next, part.count);
}

kiln_status ki_cut_lines(struct ki_input_piece *piece, const struct ki_file *file, int64_t size,
                         int64_t first, struct ki_part part) {
    kiln_status status;
    TRY(record_from(&piece->begin, file, share(size, first, part, 0), size, false, false));
    TRY(record_from(&piece->end, file, share(size, first, part, 1), size, false, false));
done:
    return status;
}

/* The first record with its end, read window by window. */
static kiln_status read_first(struct ki_bytes *line, struct ki_input *input) {
    char window[WINDOW];
    size_t got = WINDOW, at = 0;
    bool open = false, ended = false;
    kiln_status status = KILN_OK;
    for (; got == WINDOW && !ended; at = 0) {
        TRY(ki_input_read(input, window, WINDOW, &got));
        while (at < got && !ended) {
            open ^= window[at] == '"';
            ended = window[at++] == '\n' && !open;
        }
        if (!ki_bytes_append(line, window, (int64_t)at))
            TRY(ki_fail_nomem((size_t)line->size + at, "the names of columns"));
    }
done:
    return status;
}

kiln_status ki_csv_beginning(struct ki_beginning *beginning, const char *path,
                             const kiln_read_options *options) {
    struct ki_input *input = NULL;
    struct ki_bytes line = {NULL, 0, 0};
    bool named = false;
    kiln_status status;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(read_first(&line, input));
    TRY(ki_csv_names_columns(&named, line.data, line.size, path, options));
    if (!named) goto done;
    beginning->bytes = line.data;
    beginning->size = line.size;
    line.data = NULL;
done:
    ki_bytes_free(&line);
    ki_input_close(input);
    return status;
}

kiln_status ki_cut_csv(struct ki_input_piece *piece, struct ki_beginning *beginning,
                       const struct ki_file *file, int64_t size, const kiln_read_options *options,
                       struct ki_part part) {
    kiln_status status;
    TRY(ki_csv_beginning(beginning, file->name, options));
    const int64_t first = beginning->size;
    TRY(record_from(&piece->begin, file, share(size, first, part, 0), size, true, part.open[0]));
    TRY(record_from(&piece->end, file, share(size, first, part, 1), size, true, part.open[1]));
done:
    return status;
}

kiln_status ki_cut_compressed(struct ki_input **lines, const char *path, bool quotes, int64_t skipped,
                              const kiln_read_options *options, struct ki_part part) {
    struct ki_share some = {.skipped = skipped, .quotes = quotes};
    struct ki_file *file = NULL;
    int64_t size;
    kiln_status status;
    TRY(ki_file_open(&file, &size, path));
    for (int i = 0; i < 2; i++) some.cut[i] = share(size, 0, part, i);
    TRY(ki_input_open_share(lines, path, &some, options->limit, &options->control));
done:
    ki_file_close(file);
    return status;
}

static bool odd_quotes(const char *text, int64_t size) {
    bool odd = false;
    const char *end = text + size;
    while ((text = memchr(text, '"', (size_t)(end - text)))) {
        odd = !odd;
        text++;
    }
    return odd;
}

kiln_status ki_quotes_odd(bool *odd, const struct ki_file *file, int64_t size,
                          const kiln_read_options *options, struct ki_part part) {
    char window[WINDOW];
    struct ki_beginning names = {NULL, 0};
    kiln_status status;
    *odd = false;
    TRY(ki_csv_beginning(&names, file->name, options));
    const int64_t end = share(size, names.size, part, 1);
    for (int64_t from = share(size, names.size, part, 0); from < end; from += WINDOW) {
        const int64_t some = ki_min(end - from, WINDOW);
        TRY(ki_file_read(file, window, from, some));
        *odd ^= odd_quotes(window, some);
    }
done:
    ki_free(names.bytes);
    return status;
}
