/* How text is cut: at the beginnings of lines, CSV at those of records, with the line of names before each part.
 *
 * Where quotes are, a line may begin within them: that is known by the parity of all quotes before, which the parts count, each in its own
 * share, and tell each other (ki_part.open). */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/csv/csv.h"
#include "io/csv/csv_parse.h"
#include "io/part_cut.h"

enum { WINDOW = 1 << 16 };

/* The end of the line or record that goes on at `at`; the size if it is not closed. open: whether `at` lies within quotes. */
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

/* The first line, and behind it the bytes to be shared: *first is its length if it names the columns, else 0. */
static kiln_status read_first(char **line, int64_t *first, const struct ki_file *file, int64_t size,
                              const kiln_read_options *options) {
    int64_t length = 0;
    bool named = false;
    kiln_status status;
    TRY(record_end(&length, file, 0, size, true, false));
    *line = ki_calloc((size_t)length + 1);
    if (!*line) return ki_fail_nomem((size_t)length, "the names of columns");
    TRY(ki_file_read(file, *line, 0, length));
    TRY(ki_csv_names_columns(&named, *line, length, file->name, options));
    *first = named ? length : 0;
done:
    return status;
}

kiln_status ki_cut_csv(struct ki_input_piece *piece, struct ki_beginning *beginning,
                       const struct ki_file *file, int64_t size, const kiln_read_options *options,
                       struct ki_part part) {
    int64_t first = 0;
    char *line = NULL;
    kiln_status status;
    TRY(read_first(&line, &first, file, size, options));
    TRY(record_from(&piece->begin, file, share(size, first, part, 0), size, true, part.open[0]));
    TRY(record_from(&piece->end, file, share(size, first, part, 1), size, true, part.open[1]));
    if (first == 0) goto done;
    beginning->bytes = line;
    beginning->size = first;
    line = NULL;
done:
    ki_free(line);
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
    char window[WINDOW], *line = NULL;
    int64_t first = 0;
    kiln_status status;
    *odd = false;
    TRY(read_first(&line, &first, file, size, options));
    const int64_t end = share(size, first, part, 1);
    for (int64_t from = share(size, first, part, 0); from < end; from += WINDOW) {
        const int64_t some = ki_min(end - from, WINDOW);
        TRY(ki_file_read(file, window, from, some));
        *odd ^= odd_quotes(window, some);
    }
done:
    ki_free(line);
    return status;
}
