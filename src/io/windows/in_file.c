/* Rows that cannot stay where they are, as those of text, are read window by window and go to a temporary
 * file (core/spill/spill.h), from which passes then read them. What belongs to rows beside X, such as
 * targets, stays in memory.
 *
 * A CSV file has levels, means and counts of rows that are known when all of it was read: its readers meet,
 * as those of several processes do (struct ki_together). Here they come one after the other: all windows are
 * read until each has told what it has, and once more with what all have told. */
#include "io/windows/in_file.h"

#include "core/memory.h"
#include "core/spill/spill.h"
#include "io/detect.h"
#include "io/formats.h"
#include "io/numpy/map.h"
#include "io/part_cut.h"
#include "io/table/append.h"
#include "io/table/builder.h"
#include "io/table/table.h"

/* A window takes 1/SHARE of the budget, as text may take sixteen times its bytes on its way to numbers. */
enum { SHARE = 32, WINDOW_LEAST = 1 << 16, WINDOW_MOST = 1 << 26, MEETINGS = 2, PARTS_MOST = 1 << 20 };
/* Entries that a temporary file has room for where their number is not known: the room takes no space. */
static const int64_t ENTRIES_MOST = (int64_t)1 << 40;

/* Holds what belongs to the rows that have come so far. */
struct columns {
    struct ki_bytes y, weights, offset, groups, filled, left_out, labels;
};

struct copying {
    const char *path;
    const kiln_read_options *options;
    kiln_file_format format;
    int64_t window; /* bytes */
    int64_t plain;  /* bytes of the first file, if it is text that is not compressed; else 0 */
    int64_t known;  /* columns that the model knows, of a format that does not say how many there are; or 0 */
    struct ki_narrowed narrowed;
    struct ki_table *table; /* of all */
    struct ki_spill spill;
    struct columns columns;
    struct ki_beginning beginning; /* of the file that is read: a line of names */
    struct ki_together together;
    struct ki_bytes told[MEETINGS]; /* by all windows, at each meeting so far */
    int settled, met;               /* meetings of which all is known; those of this window */
    bool stopped;                   /* a window has told something that the others do not know yet */
    bool begun;                     /* some rows are kept */
};

/* --------------------------------------------------------------------------------------------- meeting */

static kiln_status meet(void *of, struct ki_bytes *bytes) {
    struct copying *c = of;
    if (bytes->size == 0) return KILN_OK;
    struct ki_bytes *told = &c->told[c->met];
    if (c->met < c->settled) {
        bytes->size = 0;
        c->met++;
        return ki_bytes_append(bytes, told->data, told->size)
                   ? KILN_OK
                   : ki_fail_nomem((size_t)told->size, "what windows of a file have told");
    }
    if (!ki_bytes_append(told, bytes->data, bytes->size))
        return ki_fail_nomem((size_t)bytes->size, "what windows of a file have told");
    c->stopped = true;
    return ki_fail(KILN_ERR_UNSUPPORTED, "a window's rows wait for what others have");
}

/* --------------------------------------------------------------------------------------------- keeping */

static bool append_list(struct ki_bytes *all, const int64_t *list, int64_t count, int64_t before) {
    bool room = ki_bytes_room(all, count * (int64_t)sizeof before);
    for (int64_t i = 0; room && i < count; i++) {
        const int64_t place = list[i] + before;
        room = ki_bytes_append(all, &place, sizeof place);
    }
    return room;
}

static kiln_status keep_columns(struct copying *c, const struct ki_table *rows) {
    const int64_t real = ki_type_bytes(c->options->type), m = rows->rows,
                  before = c->table->rows + c->columns.left_out.size / (int64_t)sizeof(int64_t);
    struct columns *all = &c->columns;
    const bool room =
        ki_bytes_append(&all->y, rows->y, rows->y ? m * rows->targets * real : 0) &&
        ki_bytes_append(&all->weights, rows->weights, rows->weights ? m * real : 0) &&
        ki_bytes_append(&all->offset, rows->offset, rows->offset ? m * real : 0) &&
        ki_bytes_append(&all->groups, rows->groups, rows->groups ? m * (int64_t)sizeof(int64_t) : 0) &&
        append_list(&all->filled, rows->filled, rows->filled_count, c->table->nnz) &&
        append_list(&all->left_out, rows->left_out, rows->left_out_count, before) &&
        ki_bytes_append(&all->labels, rows->label_text.data, rows->label_text.size);
    return room ? KILN_OK : ki_fail_nomem((size_t)(m * real), "the targets of rows in a file");
}

/* Entries that there can be at most: a byte of text makes two at most, a number that is missing and the
 * mark that it is. */
static int64_t entries_most(const struct copying *c) {
    return c->plain > 0 && c->options->more_count == 0 ? ki_min(2 * c->plain + 1, ENTRIES_MOST)
                                                       : ENTRIES_MOST;
}

/* The first window with rows says what the table is like. */
static kiln_status begin(struct copying *c, struct ki_table *rows) {
    struct ki_table *table = c->table;
    const kiln_status status =
        ki_spill_begin(&c->spill, c->options->type, 0, rows->cols, entries_most(c), rows->format);
    if (status != KILN_OK) return status;
    const struct ki_warnings warnings = table->warnings;
    *table = *rows;
    table->rows = table->nnz = 0;
    *rows = (struct ki_table){.format = table->format,
                              .rows = rows->rows,
                              .cols = table->cols,
                              .nnz = rows->nnz,
                              .targets = table->targets,
                              .values = table->values,
                              .row_start = table->row_start,
                              .col = table->col,
                              .y = table->y,
                              .weights = table->weights,
                              .offset = table->offset,
                              .groups = table->groups,
                              .filled = table->filled,
                              .filled_count = table->filled_count,
                              .left_out = table->left_out,
                              .left_out_count = table->left_out_count,
                              .label_text = table->label_text};
    table->values = table->y = table->weights = table->offset = NULL;
    table->row_start = table->groups = table->filled = table->left_out = NULL;
    table->col = NULL;
    table->label_text = (struct ki_bytes){0};
    table->filled_count = table->left_out_count = 0;
    table->together = NULL;
    c->begun = true;
    if (warnings.count == 0) return KILN_OK;
    const bool room = ki_bytes_append(&table->warnings.text, warnings.text.data, warnings.text.size);
    table->warnings.count += warnings.count;
    ki_free(warnings.text.data);
    return room ? KILN_OK : ki_fail_nomem((size_t)warnings.text.size, "a warning");
}

/* Some rows go to the file. */
static kiln_status keep(struct copying *c, struct ki_table *rows, const char *name) {
    const kiln_read_options *options = c->options;
    kiln_status status;
    TRY(ki_take_named(rows, c->format, name, options));
    if (c->known > 0 && !rows->feature_names)
        TRY(ki_table_narrow(&c->narrowed, rows, options->type, c->known, options->extra_columns, name));
    if (!c->begun)
        TRY(begin(c, rows));
    else
        TRY(ki_table_same_names(c->table, rows, name));
    TRY(ki_table_check_alike(c->table, rows, name));
    TRY(ki_spill_rows(&c->spill, rows->rows, rows->row_start, rows->col, rows->values));
    TRY(keep_columns(c, rows));
    c->table->odd_labels |= rows->odd_labels;
    c->table->rows += rows->rows;
    c->table->nnz += rows->nnz;
    c->table->cols = ki_max(c->table->cols, rows->cols);
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- windows */

/* The next window's rows, which are kept, or have only told what they have. */
static kiln_status read_window(struct copying *c, struct ki_input *input) {
    kiln_read_options alone = *c->options;
    struct ki_table rows = {.together = &c->together};
    kiln_status status;
    alone.more_count = 0;
    alone.control = (kiln_control){NULL, NULL}; /* the input has it */
    c->met = 0;
    c->stopped = false;
    status = ki_format(c->format)->read(&rows, input, &alone);
    if (c->stopped) status = KILN_OK;
    TRY(status);
    const bool any = rows.rows > 0 || rows.left_out_count > 0 || !c->begun;
    if (!c->stopped && any) TRY(keep(c, &rows, ki_input_name(input)));
done:
    ki_table_clear(&rows);
    return status;
}

/* All windows of a file. *again: they have told something. */
static kiln_status read_windows(struct copying *c, struct ki_input *input, bool *again) {
    const bool records = ki_format(c->format)->cut == KI_CUT_RECORDS;
    kiln_status status = KILN_OK;
    for (int64_t i = 0;; i++, c->together.rank++) {
        char first;
        size_t some;
        TRY(ki_input_window(input, c->window, records));
        TRY(ki_input_peek(input, &first, sizeof first, &some));
        if (some == 0 && i > 0) break;
        if (i > 0) TRY(ki_input_repeat(input, c->beginning.bytes, c->beginning.size));
        TRY(read_window(c, input));
        *again |= c->stopped;
    }
    TRY(ki_input_check(input));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- array by rows */

static const char *file_of(const struct copying *c, int64_t i) {
    return i < 0 ? c->path : c->options->more[i];
}

static int64_t memory_of(const struct ki_table *rows, kiln_type type) {
    return rows->nnz * (ki_type_bytes(type) + (rows->col ? 4 : 0)) + (rows->row_start ? rows->rows * 8 : 0);
}

/* Part `number` of `count` of an array's rows. */
static kiln_status read_rows(struct ki_table *rows, int64_t *bytes, struct copying *c, int64_t i, int number,
                             int count) {
    kiln_read_options alone = *c->options;
    const struct ki_part part = {.number = number, .count = count};
    alone.more_count = alone.map = 0;
    return ki_part_read(rows, bytes, file_of(c, i), c->format, &alone, part);
}

/* Parts are as large as windows, which the first one shows: an archive may hold many times its bytes. */
static kiln_status count_parts(int *count, struct copying *c, int64_t i) {
    struct ki_file *file = NULL;
    int64_t size, bytes, parts;
    kiln_status status;
    TRY(ki_file_open(&file, &size, file_of(c, i)));
    parts = ki_ceil_div(size, c->window);
    for (int64_t memory = INT64_MAX; memory > 2 * c->window && parts < PARTS_MOST;) {
        struct ki_table rows = {.rows = 0};
        *count = (int)(parts = ki_max(parts, 1));
        status = read_rows(&rows, &bytes, c, i, 0, *count);
        memory = memory_of(&rows, c->options->type);
        parts *= ki_ceil_div(memory, c->window);
        const bool single = rows.rows <= 1;
        ki_table_clear(&rows);
        if (status != KILN_OK || single) break;
    }
done:
    ki_file_close(file);
    return status;
}

/* Rows of a compressed packed file begin everywhere in it. */
static kiln_status refuse_compressed(const struct copying *c, int64_t i) {
    struct ki_input *input = NULL;
    kiln_status status;
    if (c->format != KILN_FILE_PACKED) return KILN_OK;
    TRY(ki_input_open(&input, file_of(c, i), c->options->limit, &c->options->control));
    if (ki_input_compressed(input)) {
        const struct ki_place place = {file_of(c, i), 0, 0, -1};
        ki_fail_at(KILN_ERR_UNSUPPORTED, &place, "a compressed packed file cannot stay on disk");
        status = ki_hint("decompress it, or leave --map out");
    }
done:
    ki_input_close(input);
    return status;
}

static kiln_status read_parts(struct copying *c, int64_t i, int64_t *bytes) {
    int count = 1;
    kiln_status status;
    TRY(refuse_compressed(c, i));
    TRY(count_parts(&count, c, i));
    for (int number = 0; number < count && status == KILN_OK; number++) {
        struct ki_table rows = {.rows = 0};
        int64_t some = 0;
        status = read_rows(&rows, &some, c, i, number, count);
        if (status == KILN_OK && i >= 0 && rows.groups) status = ki_table_refuse_groups(file_of(c, i));
        if (status == KILN_OK && (rows.rows > 0 || !c->begun)) status = keep(c, &rows, file_of(c, i));
        ki_table_clear(&rows);
        *bytes += some;
    }
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- archive */

struct archive {
    struct copying *c;
    const char *name;
};

static kiln_status keep_rows(void *of, struct ki_table *rows) {
    const struct archive *archive = of;
    return keep(archive->c, rows, archive->name);
}

/* A CSR matrix in an .npz, deflated or of other types. */
static kiln_status read_archive(struct copying *c, int64_t i, int64_t *bytes) {
    struct archive archive = {c, file_of(c, i)};
    struct ki_mapping m = {.options = c->options,
                           .watch = {.name = archive.name, .control = c->options->control}};
    kiln_status status;
    TRY(ki_file_open(&m.file, &m.bytes, archive.name));
    m.watch.start = ki_clock();
    m.watch.total = m.bytes;
    TRY(ki_npz_each_rows(&m, c->window / (ki_type_bytes(c->options->type) + 4), keep_rows, &archive));
    TRY(ki_file_check(m.file));
    *bytes += m.bytes;
done:
    ki_file_close(m.file);
    return status;
}

/* ------------------------------------------------------------------------------------------ all of them */

static kiln_status open_file(struct ki_input **input, struct copying *c, int64_t i) {
    const kiln_read_options *options = c->options;
    kiln_status status = KILN_OK;
    ki_free(c->beginning.bytes);
    c->beginning = (struct ki_beginning){NULL, 0};
    if (c->format == KILN_FILE_CSV) TRY(ki_csv_beginning(&c->beginning, file_of(c, i), options));
    if (c->beginning.size >= 3 && memcmp(c->beginning.bytes, "\xef\xbb\xbf", 3) == 0) {
        c->beginning.size -= 3; /* which is passed over at the beginning of a file alone */
        memmove(c->beginning.bytes, c->beginning.bytes + 3, (size_t)c->beginning.size);
    }
    if (i >= 0) return ki_open_further(input, i, c->format, options);
    TRY(ki_input_open(input, c->path, options->limit, &options->control));
    ki_input_use_threads(*input, options->threads);
done:
    return status;
}

static kiln_status read_files(struct copying *c, int64_t *bytes, bool *again) {
    struct ki_input *input = NULL;
    kiln_status status = KILN_OK;
    *bytes = 0;
    *again = false;
    c->together.rank = 0;
    for (int64_t i = -1; i < c->options->more_count; i++) {
        const enum ki_format_cut cut = ki_format(c->format)->cut;
        if (cut == KI_CUT_ROWS || cut == KI_CUT_ARRAYS) {
            TRY((cut == KI_CUT_ROWS ? read_parts : read_archive)(c, i, bytes));
            continue;
        }
        c->together.name = file_of(c, i);
        TRY(open_file(&input, c, i));
        TRY(read_windows(c, input, again));
        *bytes += ki_input_offset(input);
        ki_input_close(input);
        input = NULL;
    }
done:
    ki_input_close(input);
    return status;
}

static kiln_status settle(struct copying *c, kiln_device *device) {
    struct ki_table *table = c->table;
    struct columns *all = &c->columns;
    kiln_status status;
    TRY(ki_warn_narrowed(&table->warnings, &c->narrowed, c->known, c->options->extra_columns, c->path));
    TRY(ki_spill_close(&c->spill, device));
    table->file = c->spill.file;
    table->row_start = c->spill.row_start;
    c->spill.file = NULL;
    c->spill.row_start = NULL;
    table->filled_count = all->filled.size / (int64_t)sizeof(int64_t);
    table->left_out_count = all->left_out.size / (int64_t)sizeof(int64_t);
    if (table->targets > 0 && !(table->y = ki_bytes_take(&all->y))) /* of no rows, too */
        TRY(ki_fail_nomem(1, "the targets of rows in a file"));
    if (all->weights.data) table->weights = ki_bytes_take(&all->weights);
    if (all->offset.data) table->offset = ki_bytes_take(&all->offset);
    if (all->groups.data) table->groups = ki_bytes_take(&all->groups);
    if (all->filled.data) table->filled = ki_bytes_take(&all->filled);
    if (all->left_out.data) table->left_out = ki_bytes_take(&all->left_out);
    table->label_text = all->labels;
    all->labels = (struct ki_bytes){0};
    if (table->groups) TRY(ki_table_number_groups(table->groups, table->rows));
done:
    return status;
}

static void free_all(struct copying *c) {
    struct ki_bytes *const all[] = {&c->columns.y,      &c->columns.weights, &c->columns.offset,
                                    &c->columns.groups, &c->columns.filled,  &c->columns.left_out,
                                    &c->columns.labels, &c->told[0],         &c->told[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_bytes_free(all[i]);
    ki_spill_free(&c->spill);
    ki_free(c->beginning.bytes);
}

static int64_t window_of(const kiln_device *device) {
    if (!ki_on_cpu(device)) return WINDOW_MOST;
    return ki_min(ki_max(ki_memory_room(device) / SHARE, WINDOW_LEAST), WINDOW_MOST);
}

static kiln_status copy(struct copying *c, int64_t *bytes, kiln_device *device) {
    const kiln_read_options *options = c->options;
    bool again;
    int64_t size = 0;
    kiln_status status;
    c->window = window_of(device);
    c->known = ki_model_columns(options->model);
    c->together =
        (struct ki_together){.first = c->path,
                             .schema = options->model ? kiln_model_text(options->model, "schema") : NULL,
                             .of = c,
                             .meet = meet};
    ki_table_new_key(c->together.key);
    TRY(ki_check_model_format(c->format, c->path, options, &c->table->warnings));
    for (;; c->settled++) {
        TRY(read_files(c, &size, &again));
        if (!again) break;
        if (c->settled == 0) TRY(ki_table_told_once(&c->told[0]));
    }
    TRY(settle(c, device));
    *bytes += size;
done:
    free_all(c);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ */

/* Finds how the first file is read. *plain: of text that is not compressed its bytes, or 0. */
static kiln_status look(bool *text, int64_t *plain, kiln_file_format *format, const char *path,
                        const kiln_read_options *options) {
    struct ki_input *input = NULL;
    struct ki_file *file = NULL;
    int64_t size;
    kiln_status status;
    *text = false;
    *plain = 0;
    if (strcmp(path, "-") == 0) return KILN_OK;
    TRY(ki_file_open(&file, &size, path)); /* what is read once more is a regular file */
    TRY(ki_input_open(&input, path, options->limit, &options->control));
    TRY(ki_detect_data(format, input, options));
    const enum ki_format_cut cut = ki_format(*format)->cut;
    *text = (cut == KI_CUT_LINES || cut == KI_CUT_RECORDS) &&
            (size == 0 || ki_input_file(input, plain) || ki_input_compressed(input));
done:
    ki_file_close(file);
    ki_input_close(input);
    return status;
}

/* Returns whether columns named by their number leave X, which cannot be where it stays as it is. */
static bool takes_columns(const kiln_read_options *options) {
    return options->target || options->weights || options->offset;
}

kiln_status ki_table_in_file(struct ki_table *table, kiln_file_format *format, int64_t *bytes,
                             kiln_device *device, const char *path, const kiln_read_options *options) {
    struct copying c = {.path = path, .options = options, .table = table};
    struct ki_error_copy why;
    bool text;
    kiln_status status;
    TRY(look(&text, &c.plain, format, path, options));
    c.format = *format;
    const enum ki_format_cut cut = ki_format(*format)->cut;
    const bool rows = cut == KI_CUT_ROWS || cut == KI_CUT_ARRAYS,
               taken = cut == KI_CUT_ROWS && !ki_format(*format)->names_columns && takes_columns(options);
    if (text || (rows && (options->more_count > 0 || taken))) return copy(&c, bytes, device);
    if (options->more_count > 0) {
        ki_fail(KILN_ERR_UNSUPPORTED, "of several such files none can stay on disk (kiln_read_options.map)");
        return ki_hint("join them into one");
    }
    status = ki_map_table(table, format, bytes, path, options);
    if (status == KILN_OK) return ki_take_named(table, *format, path, options);
    if (status != KILN_ERR_UNSUPPORTED || !rows) return status;
    ki_error_keep(&why);
    ki_table_clear(table);
    status = copy(&c, bytes, device);
    return status == KILN_ERR_UNSUPPORTED ? ki_error_renew(&why) : status;
done:
    return status;
}
