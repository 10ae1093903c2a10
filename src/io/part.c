/* This file says how a file is cut: text at the beginnings of lines (part_text.c; share.c where it is
 * compressed), so that a part is read by the reader of its format, which need not know; .npy at rows (where
 * it is compressed, npy.c reads what comes before them, too). */
#include "io/part.h"

#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/detect.h"
#include "io/formats.h"
#include "io/numpy/map.h"
#include "io/numpy/npy.h"
#include "io/part_cut.h"
#include "io/table/append.h"

kiln_status ki_part_refuse(const char *path, const char *why) {
    return ki_fail(KILN_ERR_UNSUPPORTED, "%s cannot be read in parts: %s", path, why);
}

/* -------------------------------------------------------------------------------------------- a part */

static kiln_status cut(struct ki_input_piece *piece, struct ki_beginning *beginning,
                       const struct ki_file *file, int64_t size, kiln_file_format format,
                       const kiln_read_options *options, struct ki_part part) {
    switch (ki_format(format)->cut) {
    case KI_CUT_RECORDS: return ki_cut_csv(piece, beginning, file, size, options, part);
    default: return ki_cut_lines(piece, file, size, 0, part);
    }
}

static kiln_status read_piece(struct ki_table *table, int64_t *bytes, const char *path,
                              kiln_file_format format, const kiln_read_options *options,
                              struct ki_part part) {
    struct ki_input_piece piece = {.begin = 0};
    struct ki_beginning beginning = {NULL, 0};
    struct ki_input *input = NULL;
    struct ki_file *file = NULL;
    int64_t size;
    kiln_status status;
    TRY(ki_file_open(&file, &size, path));
    TRY(cut(&piece, &beginning, file, size, format, options, part));
    *bytes = piece.end - piece.begin;
    if (*bytes == 0 && part.number > 0) goto done; /* no rows */
    TRY(ki_input_open_piece(&input, path, &piece, &options->control));
    ki_input_use_threads(input, options->threads);
    TRY(ki_input_put_before(input, beginning.bytes, beginning.size));
    TRY(ki_format(format)->read(table, input, options));
    TRY(ki_file_check(file));
done:
    ki_input_close(input);
    ki_file_close(file);
    ki_free(beginning.bytes);
    return status;
}

/* Text that is compressed, which each part decodes from the file's beginning to its own end, and keeps its
 * lines. */
static kiln_status read_share(struct ki_table *table, int64_t *bytes, const char *path,
                              kiln_file_format format, const kiln_read_options *options,
                              struct ki_part part) {
    const bool quotes = ki_format(format)->cut == KI_CUT_RECORDS;
    struct ki_beginning beginning = {NULL, 0};
    struct ki_input *input = NULL;
    char first;
    size_t some;
    kiln_status status = KILN_OK;
    *bytes = 0;
    if (quotes) TRY(ki_csv_beginning(&beginning, path, options));
    TRY(ki_cut_compressed(&input, path, quotes, beginning.size, options, part));
    TRY(ki_input_peek(input, &first, sizeof first, &some));
    if (some == 0 && part.number > 0) goto done; /* no rows */
    TRY(ki_input_put_before(input, beginning.bytes, beginning.size));
    TRY(ki_format(format)->read(table, input, options));
    *bytes = ki_input_offset(input) - beginning.size;
done:
    ki_input_close(input);
    ki_free(beginning.bytes);
    return status;
}

/* Rows of .npy, or of a packed file. */
static kiln_status read_rows(struct ki_table *table, int64_t *bytes, const char *path,
                             kiln_file_format format, const kiln_read_options *options, struct ki_part part) {
    struct ki_input *input = NULL;
    kiln_status status;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY((format == KILN_FILE_NPY ? ki_read_npy_part : ki_read_panels_part)(table, input, options, part));
    TRY(ki_input_check(input));
    *bytes = table->nnz * ki_type_bytes(options->type);
done:
    ki_input_close(input);
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
    TRY(ki_file_check(m.file));
    *bytes = table->nnz * (ki_type_bytes(options->type) + 4) + (table->rows + 1) * 8;
done:
    ki_file_close(m.file);
    return status;
}

/* The first part has all of a file that is no plain one, or of a format that is not cut here. */
static kiln_status read_undivided(struct ki_table *table, int64_t *bytes, const char *path,
                                  const kiln_read_options *options, struct ki_part part) {
    kiln_file_format format = options->format;
    *bytes = 0;
    return part.number > 0 ? KILN_OK : ki_table_read(table, &format, bytes, path, options);
}

enum way { UNDIVIDED, BYTES, DECODED }; /* DECODED: lines, or rows, of what is decoded */

/* Returns how an input of the format is cut. */
static enum way way_of(const struct ki_input *input, kiln_file_format format) {
    int64_t size;
    const enum ki_format_cut cut = ki_format(format)->cut;
    if (ki_input_file(input, &size)) return cut == KI_CUT_NONE ? UNDIVIDED : BYTES;
    return ki_input_compressed(input) && cut != KI_CUT_NONE && cut != KI_CUT_ARRAYS ? DECODED : UNDIVIDED;
}

/* Finds how `path`, which is to be of the format, is cut. */
static kiln_status look(enum way *way, const char *path, kiln_file_format format,
                        const kiln_read_options *options) {
    struct ki_input *input = NULL;
    kiln_file_format found = KILN_FILE_AUTO;
    kiln_status status;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(ki_detect_data(&found, input, options));
    if (found != format) status = ki_part_refuse(path, "it is of another format than the first file");
    *way = way_of(input, format);
done:
    ki_input_close(input);
    return status;
}

static kiln_status read_one(struct ki_table *table, int64_t *bytes, const char *path, kiln_file_format format,
                            const kiln_read_options *options, struct ki_part part) {
    enum way way;
    kiln_status status;
    TRY(look(&way, path, format, options));
    if (way == UNDIVIDED) return read_undivided(table, bytes, path, options, part);
    if (ki_format(format)->cut == KI_CUT_ROWS) return read_rows(table, bytes, path, format, options, part);
    if (way == DECODED) return read_share(table, bytes, path, format, options, part);
    if (ki_format(format)->cut == KI_CUT_ARRAYS) return read_npz(table, bytes, path, options, part);
    return read_piece(table, bytes, path, format, options, part);
done:
    return status;
}

static const char *file_of(const char *path, const kiln_read_options *options, int64_t file) {
    return file == 0 ? path : options->more[file - 1];
}

/* Whole files [begin, end) of all, as if there were no others. */
static kiln_status read_files(struct ki_table *table, int64_t *bytes, const char *path,
                              const kiln_read_options *options, struct ki_part part) {
    const int64_t files = 1 + options->more_count, begin = ki_part_begin(files, part.number, part.count);
    kiln_read_options own = *options;
    kiln_file_format format = options->format;
    own.more_count = ki_part_begin(files, part.number + 1, part.count) - begin - 1;
    own.more = options->more + begin;
    *bytes = 0;
    return ki_table_read(table, &format, bytes, file_of(path, options, begin), &own);
}

/* Several files, and not fewer than parts: each part has some. One file is cut, as fewer files are. */
static bool are_dealt(int64_t files, struct ki_part part) {
    return files > 1 && files >= part.count;
}

/* If files are fewer than parts, each is cut into some of these. */
static struct ki_part within(int64_t *file, int64_t files, struct ki_part part) {
    *file = 0;
    while (ki_part_begin(part.count, (int)*file + 1, (int)files) <= part.number) ++*file;
    const int64_t begin = ki_part_begin(part.count, (int)*file, (int)files);
    return (struct ki_part){.number = (int)(part.number - begin),
                            .count = (int)(ki_part_begin(part.count, (int)*file + 1, (int)files) - begin),
                            .open = {part.open[0], part.open[1]}};
}

bool ki_part_begins_file(struct ki_part part, int64_t files) {
    int64_t file;
    return are_dealt(files, part) || within(&file, files, part).number == 0;
}

kiln_status ki_part_read(struct ki_table *table, int64_t *bytes, const char *path, kiln_file_format format,
                         const kiln_read_options *options, struct ki_part part) {
    const int64_t files = 1 + options->more_count;
    int64_t file;
    kiln_status status;
    if (are_dealt(files, part)) {
        status = read_files(table, bytes, path, options, part);
    } else {
        const struct ki_part own = within(&file, files, part);
        kiln_read_options alone = *options; /* readers of some formats take further files themselves */
        alone.more_count = 0;
        status = read_one(table, bytes, file_of(path, options, file), format, &alone, own);
    }
    return status == KILN_OK && files > 1 && table->groups && format == KILN_FILE_PACKED
               ? ki_table_refuse_groups(path)
               : status;
}

kiln_status ki_part_quotes(bool *odd, const char *path, const kiln_read_options *options,
                           struct ki_part part) {
    const int64_t files = 1 + options->more_count;
    struct ki_file *file = NULL;
    int64_t number, size;
    enum way way;
    kiln_status status;
    *odd = false;
    if (are_dealt(files, part)) return KILN_OK;
    const struct ki_part own = within(&number, files, part);
    TRY(look(&way, file_of(path, options, number), KILN_FILE_CSV, options));
    if (way != BYTES) goto done; /* who decodes all that comes before sees the quotes there */
    TRY(ki_file_open(&file, &size, file_of(path, options, number)));
    TRY(ki_quotes_odd(odd, file, size, options, own));
done:
    ki_file_close(file);
    return status;
}

kiln_status ki_parts_possible(bool *possible, kiln_file_format *format, const char *path,
                              const kiln_read_options *options) {
    struct ki_input *input = NULL;
    int64_t size;
    kiln_status status = KILN_OK;
    *possible = false;
    if (strcmp(path, "-") == 0) return KILN_OK;
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(ki_detect_data(format, input, options));
    if (options->map) goto done;
    if (options->more_count > 0)
        *possible = !ki_format(*format)->names_vertices;
    else
        *possible = way_of(input, *format) != UNDIVIDED ||
                    (*format == KILN_FILE_MATRIX_MARKET &&
                     (ki_input_file(input, &size) || ki_input_compressed(input)));
done:
    ki_input_close(input);
    return status;
}
