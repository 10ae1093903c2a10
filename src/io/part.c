/* How a file is cut: text at the beginnings of lines, CSV with the line of names before each part, .npy at rows with a header for so
 * many. So a part is read by the reader of its format, which need not know. */
#define _DEFAULT_SOURCE /* strsep */
#include "io/part.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/detect.h"
#include "io/number.h"
#include "io/numpy/map.h"
#include "io/numpy/npy.h"
#include "io/numpy/npy_write.h"

/* What comes before the bytes of a part. */
struct beginning {
    char *bytes;
    int64_t size;
};

static kiln_status refuse(const char *path, const char *why) {
    return ki_fail(KILN_ERR_UNSUPPORTED, "%s cannot be read in parts: %s", path, why);
}

/* ---------------------------------------------------------------------------------------------- text */

enum { WINDOW = 1 << 16 };

/* The first line's beginning at or behind `at`; the size if there is none. */
static kiln_status line_from(int64_t *begin, const struct ki_file *file, int64_t at, int64_t size) {
    char window[WINDOW];
    kiln_status status = KILN_OK;
    *begin = at;
    if (at == 0) return KILN_OK;
    for (int64_t from = at - 1; from < size; from += WINDOW) {
        const int64_t some = ki_min(size - from, WINDOW);
        TRY(ki_file_read(file, window, from, some));
        const char *end = memchr(window, '\n', (size_t)some);
        *begin = end ? from + (end - window) + 1 : size;
        if (end) break;
    }
done:
    return status;
}

/* A field in quotes may hold an end of a line, and nothing tells where one stands. */
static kiln_status check_quotes(const struct ki_file *file, const struct ki_input_piece *piece) {
    char window[WINDOW];
    kiln_status status = KILN_OK;
    for (int64_t from = piece->begin; from < piece->end; from += WINDOW) {
        const int64_t some = ki_min(piece->end - from, WINDOW);
        TRY(ki_file_read(file, window, from, some));
        if (memchr(window, '"', (size_t)some)) return refuse(file->name, "it has fields in quotes");
    }
done:
    return status;
}

static kiln_status cut_text(struct ki_input_piece *piece, const struct ki_file *file, int64_t size,
                            int64_t first, struct ki_part part) {
    kiln_status status;
    TRY(line_from(&piece->begin, file, first + ki_part_begin(size - first, part.number, part.count), size));
    TRY(line_from(&piece->end, file, first + ki_part_begin(size - first, part.number + 1, part.count), size));
done:
    return status;
}

enum { NUMBER, NAME, EITHER };

/* What a field is to the reader, as far as can be said without its options. */
static int kind_of(const char *field, size_t size) {
    static const char *const words[] = {"na",  "nan", "n/a",      "null",   "none",
                                        "nil", "inf", "infinity", "missing"};
    const char *end = field + size, *p = field;
    double value;
    if (ki_parse_double(&p, end, &value) && p == end) return NUMBER;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == size && strncasecmp(field, words[i], size) == 0) return EITHER;
    return size > 0 && (isalpha((unsigned char)*field) || *field == '_') ? NAME : EITHER;
}

/* Whether the first line names the columns: a field is a name, or all are numbers. Otherwise the file is read as a whole. */
static kiln_status is_named(bool *named, const struct ki_file *file, char *line) {
    int numbers = 0, fields = 0;
    char *rest = line;
    *named = false;
    for (char *field; (field = strsep(&rest, ",;\t|\r\n")) && *field; fields++) {
        const int kind = kind_of(field, strlen(field));
        *named = *named || kind == NAME;
        numbers += kind == NUMBER;
    }
    if (*named || (fields > 0 && numbers == fields)) return KILN_OK;
    return refuse(file->name, "its first line may be names or numbers");
}

/* The line of names stands before each part but the first, where it is. */
static kiln_status cut_csv(struct ki_input_piece *piece, struct beginning *beginning,
                           const struct ki_file *file, int64_t size, struct ki_part part) {
    int64_t first = 0;
    bool named;
    char *line = NULL;
    kiln_status status;
    TRY(line_from(&first, file, 1, size));
    line = ki_calloc((size_t)first + 1);
    if (!line) return ki_fail_nomem((size_t)first, "the names of columns");
    TRY(ki_file_read(file, line, 0, first));
    TRY(is_named(&named, file, line));
    TRY(ki_file_read(file, line, 0, first));
    TRY(cut_text(piece, file, size, named ? first : 0, part));
    TRY(check_quotes(file, piece));
    if (!named) goto done;
    beginning->bytes = line;
    beginning->size = first;
    line = NULL;
done:
    ki_free(line);
    return status;
}

/* ---------------------------------------------------------------------------------------------- .npy */

static kiln_status read_header(struct ki_npy *npy, int64_t *header, const struct ki_file *file,
                               int64_t size) {
    const struct ki_place place = {file->name, 0, 0, 0};
    const int64_t most = ki_min(size, KI_NPY_HEADER_LIMIT);
    char *begin = ki_alloc((size_t)most);
    kiln_status status;
    if (!begin) return ki_fail_nomem((size_t)most, "the .npy header");
    TRY(ki_file_read(file, begin, 0, most));
    TRY(ki_npy_header_size(header, begin, (size_t)most, &place));
    TRY(ki_npy_header(npy, begin, (size_t)ki_min(most, *header), &place));
    TRY(ki_npy_check_matrix(npy, file->name));
done:
    ki_free(begin);
    return status;
}

static kiln_status cut_npy(struct ki_input_piece *piece, struct beginning *beginning,
                           const struct ki_file *file, int64_t size, struct ki_part part) {
    struct ki_npy npy;
    int64_t header;
    char type[16], shape[64];
    kiln_status status;
    TRY(read_header(&npy, &header, file, size));
    if (npy.fortran && npy.shape[0] > 1 && npy.shape[1] > 1)
        return refuse(file->name, "it is stored by columns");
    if (size != header + npy.bytes) return refuse(file->name, "its size is not what its header promises");
    const int64_t first = ki_part_begin(npy.shape[0], part.number, part.count);
    const int64_t rows = ki_part_begin(npy.shape[0], part.number + 1, part.count) - first;
    const int64_t row = npy.shape[1] * npy.itemsize;
    snprintf(type, sizeof type, "%c%c%lld", npy.swapped ? '>' : '<', npy.kind, (long long)npy.itemsize);
    snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)rows, (long long)npy.shape[1]);
    beginning->bytes = ki_alloc(KI_NPY_HEADER_BYTES);
    if (!beginning->bytes) return ki_fail_nomem(KI_NPY_HEADER_BYTES, "the .npy header");
    beginning->size = (int64_t)ki_npy_print_header(beginning->bytes, type, shape);
    piece->begin = header + first * row;
    piece->end = piece->begin + rows * row;
done:
    return status;
}

/* -------------------------------------------------------------------------------------------- a part */

static kiln_status cut(struct ki_input_piece *piece, struct beginning *beginning, const char *path,
                       kiln_file_format format, struct ki_part part) {
    struct ki_file *file = NULL;
    int64_t size;
    kiln_status status;
    TRY(ki_file_open(&file, &size, path));
    if (format == KILN_FILE_NPY)
        TRY(cut_npy(piece, beginning, file, size, part));
    else if (format == KILN_FILE_CSV)
        TRY(cut_csv(piece, beginning, file, size, part));
    else
        TRY(cut_text(piece, file, size, 0, part));
    piece->before = beginning->bytes;
    piece->before_size = beginning->size;
done:
    ki_file_close(file);
    return status;
}

static kiln_status read_piece(struct ki_table *table, int64_t *bytes, const char *path,
                              kiln_file_format format, const kiln_read_options *options,
                              struct ki_part part) {
    struct ki_input_piece piece = {.begin = 0};
    struct beginning beginning = {NULL, 0};
    struct ki_input *input = NULL;
    kiln_status status;
    TRY(cut(&piece, &beginning, path, format, part));
    *bytes = piece.end - piece.begin;
    if (*bytes == 0 && part.number > 0) goto done; /* no rows */
    TRY(ki_input_open_piece(&input, path, &piece, &options->control));
    TRY(ki_reader_of(format)(table, input, options));
done:
    ki_input_close(input);
    ki_free(beginning.bytes);
    return status;
}

static kiln_status read_npz(struct ki_table *table, int64_t *bytes, const char *path,
                            const kiln_read_options *options, struct ki_part part) {
    struct ki_mapping m = {.options = options, .watch = {.name = path, .control = options->control}};
    kiln_status status;
    TRY(ki_file_open(&m.file, &m.bytes, path));
    m.watch.start = ki_clock();
    m.watch.total = m.bytes;
    TRY(ki_npz_read_part(table, &m, part.number, part.count));
    *bytes = table->nnz * (ki_type_bytes(options->type) + 4) + (table->rows + 1) * 8;
done:
    ki_file_close(m.file);
    return status;
}

/* Files [begin, end) of all, as if there were no others. */
static kiln_status read_files(struct ki_table *table, int64_t *bytes, const char *path,
                              const kiln_read_options *options, struct ki_part part) {
    const int64_t files = 1 + options->more_count, begin = ki_part_begin(files, part.number, part.count);
    kiln_read_options own = *options;
    kiln_file_format format = options->format;
    own.more_count = ki_part_begin(files, part.number + 1, part.count) - begin - 1;
    own.more = options->more + begin;
    *bytes = 0;
    return ki_table_read(table, &format, bytes, begin == 0 ? path : options->more[begin - 1], &own);
}

kiln_status ki_part_read(struct ki_table *table, int64_t *bytes, const char *path, kiln_file_format format,
                         const kiln_read_options *options, struct ki_part part) {
    if (options->more_count > 0) return read_files(table, bytes, path, options, part);
    if (format == KILN_FILE_NPZ) return read_npz(table, bytes, path, options, part);
    return read_piece(table, bytes, path, format, options, part);
}

/* Missing numbers are replaced by the mean of all, levels and groups are numbered over all, a model's columns are found by name. */
static bool options_allow(const kiln_read_options *options, kiln_file_format format) {
    const bool csv = format == KILN_FILE_CSV;
    return !options->map && !options->whole && options->missing < KILN_MISSING_MEAN && !options->groups &&
           !(csv && options->model);
}

/* Its names get numbers as they come. */
static bool numbers_names(kiln_file_format format) {
    return format == KILN_FILE_EDGES || format == KILN_FILE_RATINGS;
}

static bool can_be_cut(kiln_file_format format) {
    return format == KILN_FILE_LIBSVM || format == KILN_FILE_CSV || format == KILN_FILE_NPY ||
           format == KILN_FILE_NPZ;
}

kiln_status ki_parts_possible(bool *possible, kiln_file_format *format, const char *path,
                              const kiln_read_options *options, int count) {
    struct ki_input *input = NULL;
    int64_t size;
    kiln_status status = KILN_OK;
    *possible = false;
    if (strcmp(path, "-") == 0) return KILN_OK;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(ki_detect_data(format, input, options));
    if (!options_allow(options, *format)) goto done;
    if (options->more_count > 0)
        *possible = 1 + options->more_count >= count && !numbers_names(*format);
    else
        *possible = can_be_cut(*format) && ki_input_file(input, &size);
done:
    ki_input_close(input);
    return status;
}
