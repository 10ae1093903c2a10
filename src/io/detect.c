/* A mark at the beginning says more than the name, and the name more than a guess from the text. */
#include "io/detect.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/seams.h"
#include "io/coordinate/coordinate.h"
#include "io/formats.h"

enum { PEEK_BYTES = 1 << 16 };

/* safetensors: the length of a JSON header in eight bytes, little endian, then the header. */
static bool is_model(const char *text, size_t size) {
    return size > 9 && text[8] == '{' && text[5] == 0 && text[6] == 0 && text[7] == 0;
}

static kiln_status fail_wrong_kind(const struct ki_input *input, const char *what, const char *hint) {
    const struct ki_place place = {.file = ki_input_name(input), .offset = 0};
    ki_fail_at(KILN_ERR_PARSE, &place, "this is %s", what);
    return ki_hint("%s", hint);
}

/* Formats that others write and Kiln does not read, and what does. */
static kiln_status refuse_foreign(const struct ki_input *input, const char *text, size_t size) {
    static const struct {
        const char *mark, *what, *hint;
    } foreign[] = {
        {"PAR1\x15", "a Parquet file",
         "kiln.read reads it in Python; for the tool python3 -c \"import pandas; "
         "pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)\""},
        {"ARROW1", "an Arrow (Feather) file",
         "kiln.read reads it in Python; for the tool python3 -c \"import pandas; "
         "pandas.read_feather('FILE').to_csv('FILE.csv', index=False)\""},
        {"\x89HDF\r\n", "an HDF5 file", "write its table as CSV, or its matrix as .npy"},
        {"SQLite format 3", "an SQLite database",
         "sqlite3 -header -csv FILE 'select * from TABLE' > FILE.csv"},
        {"\xd0\xcf\x11\xe0", "an Excel file", "save the sheet as CSV"},
        {"%PDF", "a PDF document", "data are CSV, LIBSVM, Matrix Market, .npy or .npz"},
        {"<!DOCTYPE", "a web page", "was it a download that failed?"},
        {"<html", "a web page", "was it a download that failed?"},
        {"\xff\xfe", "text in UTF-16", "iconv -f utf-16 -t utf-8 FILE > NEW"},
        {"\xfe\xff", "text in UTF-16", "iconv -f utf-16 -t utf-8 FILE > NEW"},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ki_begins_with(text, size, foreign[i].mark))
            return fail_wrong_kind(input, foreign[i].what, foreign[i].hint);
    return KILN_OK;
}

static kiln_status detect_by_mark(kiln_file_format *format, const struct ki_input *input, const char *text,
                                  size_t size) {
    *format = ki_format_by_mark(text, size);
    if (*format == KILN_FILE_AUTO && is_model(text, size))
        return fail_wrong_kind(input, "a Kiln model, not data", "did you swap the arguments?");
    if (ki_begins_with(text, size, "\x1f\x8b") || ki_begins_with(text, size, "\x28\xb5\x2f\xfd"))
        return fail_wrong_kind(input, "compressed twice", "take one layer off: only one is read");
    return refuse_foreign(input, text, size);
}

/* LIBSVM if the text has a word like "12:", with digits before the colon and a blank before them. */
static kiln_file_format detect_by_text(const char *text, size_t size) {
    bool comment = false;
    for (size_t i = 1; i < size; i++) {
        if (text[i - 1] == '#') comment = true;
        if (text[i - 1] == '\n') comment = false;
        if (comment || text[i] != ':') continue;
        size_t from = i;
        while (from > 0 && isdigit((unsigned char)text[from - 1])) from--;
        if (from < i && from > 0 && (text[from - 1] == ' ' || text[from - 1] == '\t'))
            return KILN_FILE_LIBSVM;
    }
    return KILN_FILE_CSV;
}

/* 1.5 and 1e+00: no name of a vertex, but a column of a table. */
static bool is_decimal(const char *word) {
    const size_t size = strcspn(word, " \t\r\n");
    return strspn(word, "0123456789+-.eE") == size && isdigit((unsigned char)word[size - 1]) &&
           (memchr(word, '.', size) || memchr(word + 1, '+', size - 1) || memchr(word + 1, '-', size - 1));
}

/* Words of a line, separated by blanks or tabs; 0 if it has signs of another format, a third word that is no
 * number, or a decimal number for a vertex. */
static int words_of_line(const char *text, size_t size) {
    int words = 0;
    for (size_t i = 0; i < size; i++) {
        if (strchr(",;\"", text[i])) return 0; /* '\0' too */
        if (isspace((unsigned char)text[i])) continue;
        const bool begins = i == 0 || isspace((unsigned char)text[i - 1]);
        words += begins;
        if (begins && words < 3 && is_decimal(text + i)) return 0;
        if (words == 3 && !strchr("0123456789+-.eE", text[i])) return 0;
    }
    return words;
}

/* Lines of two words, or of three of which the last is a number, behind comments. */
static bool looks_like_edges(const char *text, size_t size) {
    int words = 0;
    for (size_t begin = 0, end; begin < size; begin = end + 1) {
        const char *newline = memchr(text + begin, '\n', size - begin);
        end = newline ? (size_t)(newline - text) : size;
        if (!newline && words > 0) break; /* perhaps cut off */
        if (text[begin] == '#' || text[begin] == '%') continue;
        int here = words_of_line(text + begin, end - begin);
        if (here == 0 && strspn(text + begin, " \t\r\n") >= end - begin) continue;
        if (here < 2 || here > 3 || (words && here != words)) return false;
        words = here;
    }
    return words > 0;
}

static kiln_status peek(char **text, size_t *size, struct ki_input *input) {
    *text = ki_alloc(PEEK_BYTES + 1);
    if (!*text) return ki_fail_nomem(PEEK_BYTES + 1, "telling the format");
    kiln_status status = ki_input_peek(input, *text, PEEK_BYTES, size);
    if (status == KILN_OK) (*text)[*size] = '\0';
    return status;
}

kiln_status ki_detect_format(kiln_file_format *format, struct ki_input *input) {
    kiln_status status = KILN_OK;
    kiln_file_format found = KILN_FILE_AUTO;
    size_t size = 0;
    char *text = NULL;
    TRY(peek(&text, &size, input));
    TRY(detect_by_mark(&found, input, text, size));
    if (found == KILN_FILE_AUTO) found = ki_format_by_path(ki_input_name(input), false);
    if (found == KILN_FILE_AUTO) found = detect_by_text(text, size);
    const char *name = ki_input_name(input);
    if (found == KILN_FILE_CSV && ki_ends_with(name, ki_bare_length(name), ".txt") &&
        looks_like_edges(text, size))
        found = KILN_FILE_EDGES;
    if (found == KILN_FILE_CSV && ki_links_named(text, text + size)) found = KILN_FILE_EDGES;
    *format = found;
done:
    ki_free(text);
    return status;
}

kiln_status ki_detect_foreign(struct ki_input *input) {
    kiln_status status = KILN_OK;
    size_t size = 0;
    char *text = NULL;
    TRY(peek(&text, &size, input));
    TRY(refuse_foreign(input, text, size));
done:
    ki_free(text);
    return status;
}

kiln_status ki_detect_data(kiln_file_format *format, struct ki_input *input,
                           const kiln_read_options *options) {
    const bool links = options->source || options->weight;
    const kiln_file_format tables = options->tables ? options->tables
                                    : links         ? KILN_FILE_EDGES
                                                    : KILN_FILE_AUTO;
    kiln_status status = KILN_OK;
    *format = options->format;
    TRY(options->format ? ki_detect_foreign(input) : ki_detect_format(format, input));
    if (!options->format && tables && (*format == KILN_FILE_CSV || *format == KILN_FILE_EDGES))
        *format = tables;
    if (links && !ki_format(*format)->names_vertices) {
        ki_fail(KILN_ERR_ARGUMENT, "%s is read as %s, which has no column for the %s", ki_input_name(input),
                ki_format(*format)->title, options->source ? "source" : "weight");
        TRY(ki_hint("--format edges or --format ratings"));
    }
    if (options->undirected && *format != KILN_FILE_EDGES && !options->model) {
        ki_fail(KILN_ERR_ARGUMENT, "%s is read as %s, and undirected is of links in a list",
                ki_input_name(input), ki_format(*format)->title);
        TRY(ki_hint("--format edges, or the matrix A + A^T, its diagonal once"));
    }
done:
    return status;
}

kiln_status ki_open_further(struct ki_input **input, int64_t i, kiln_file_format first,
                            const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_input *opened = NULL;
    kiln_file_format format = KILN_FILE_AUTO;
    TRY(ki_input_open(&opened, options->more[i], options->limit, &options->control));
    ki_input_use_threads(opened, options->threads);
    TRY(ki_detect_data(&format, opened, options));
    if (format != first) {
        const struct ki_place place = {.file = ki_input_name(opened), .offset = -1};
        TRY(ki_fail_at(KILN_ERR_DATA, &place, "this is %s, the first file is %s", ki_format(format)->title,
                       ki_format(first)->title));
    }
    *input = opened;
    opened = NULL;
done:
    ki_input_close(opened);
    return status;
}
