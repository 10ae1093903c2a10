/* label[,label...] index:value index:value ...  # comment
 *
 * Threads parse parts of a block into arrays of their own, which are then appended in the file's order, so
 * the result does not depend on their number. The arrays of the parts are reused from block to block and stay
 * in the cache. */
#include <string.h>

#include "core/range.h"
#include "core/threads.h"
#include "io/bytes.h"
#include "io/data.h"
#include "io/labels.h"
#include "io/quick.h"

enum { PARTS_PER_THREAD = 4 }; /* evens out threads that are held up */

/* Rows: of a part while it is parsed, or of the whole file. */
struct rows {
    struct ki_bytes col, values; /* int32_t and, in a part, double */
    struct ki_bytes ends;        /* int64_t: entries up to the end of each row */
    struct ki_bytes y;           /* targets of each row; in a part double */
    struct ki_bytes labels;      /* their texts, where they may be labels */
    bool odd;                    /* one of these is none that a number says */
    int64_t targets, count, cols;
};

struct part {
    const char *text, *end, *first; /* first: its first row */
    struct rows rows;
    int64_t row, entry; /* rows and entries of the file before it */
    struct ki_bytes scratch;
    struct ki_fault fault;
};

struct reader {
    const kiln_read_options *options;
    struct part *parts;
    const char **cuts;
    int part_count;
    struct rows rows;
};

static int64_t entry_count(const struct rows *rows) {
    return rows->col.size / (int64_t)sizeof(int32_t);
}

static const char nonfinite_hint[] = "repair or remove the row; --allow-nonfinite accepts such values";

static bool check_value(struct part *part, const kiln_read_options *options, const char *at, double value) {
    if (options->allow_nonfinite || ki_is_finite(value, options->type)) return true;
    return ki_fault(&part->fault, KILN_ERR_PARSE, at, nonfinite_hint, "value '%s'%s",
                    ki_word(at, part->end).text, __builtin_isfinite(value) ? " is too large for f32" : "");
}

static bool check_label(struct part *part, const kiln_read_options *options, const char *at, double value) {
    const kiln_range *range = options->target_range;
    char wanted[KI_RANGE_WORDS];
    if (!check_value(part, options, at, value)) return false;
    if (!range || ki_range_holds(range, value)) return true;
    return ki_fault(&part->fault, KILN_ERR_DATA, at, range->hint, "target '%s' must be %s",
                    ki_word(at, part->end).text, ki_range_words(wanted, range));
}

/* Behind a number: a blank, a comment, or the end of the line. */
static inline bool ends_word(const char *p, const char *end) {
    return ki_at_line_end(p, end) || *p == ' ' || *p == '\t' || *p == '#';
}

/* False if there is no memory. */
static bool keep_label(struct rows *rows, const kiln_read_options *options, const char *text, int64_t size) {
    rows->odd |= ki_label_is_odd(text, size, options);
    return ki_bytes_append(&rows->labels, text, size) && ki_bytes_append(&rows->labels, "", 1);
}

static bool parse_labels(struct part *part, const kiln_read_options *options, const char **text) {
    struct rows *rows = &part->rows;
    const char *p = *text;
    int64_t count = 0;
    for (;; p++, count++) {
        const char *at = p;
        double value;
        if (!ki_parse_real(&p, part->end, options->type == KILN_F32, &value))
            return ki_expected(&part->fault, at, part->end, "a label");
        if (p < part->end && *p == ':')
            return ki_fault(&part->fault, KILN_ERR_PARSE, at, "put a number in front, 0 if it is not known",
                            "the row begins with a feature, not with a label");
        if (!check_label(part, options, at, value)) return false;
        if (!ki_bytes_append(&rows->y, &value, sizeof value)) return ki_fault_nomem(&part->fault);
        if (options->text_targets && !keep_label(rows, options, at, p - at))
            return ki_fault_nomem(&part->fault);
        if (p == part->end || *p != ',') break;
    }
    count++;
    if (!ends_word(p, part->end)) return ki_expected(&part->fault, *text, part->end, "a label");
    if (rows->count > 0 && count != rows->targets)
        return ki_fault(&part->fault, KILN_ERR_PARSE, *text, NULL, "%lld labels, the row before has %lld",
                        (long long)count, (long long)rows->targets);
    rows->targets = count;
    *text = p;
    return true;
}

/* Returns where column `col` comes up for the second time in a row that has been parsed already. */
static const char *find_second(const char *p, const char *end, int64_t index) {
    for (int seen = 0; p < end && *p != '\n'; p++) {
        const char *at = p;
        int64_t found;
        if ((p[-1] == ' ' || p[-1] == '\t') && ki_parse_int64(&p, end, &found) && *p == ':' &&
            found == index && ++seen == 2)
            return at;
        p = at;
    }
    return p;
}

static bool sort_row(struct part *part, const kiln_read_options *options, const char *features,
                     int64_t first) {
    int64_t count = entry_count(&part->rows) - first;
    int32_t *col = (int32_t *)(void *)part->rows.col.data + first;
    double *values = (double *)(void *)part->rows.values.data + first;
    if (!ki_sort_row(col, values, count, &part->scratch)) return ki_fault_nomem(&part->fault);
    for (int64_t i = 1; i < count; i++) {
        if (col[i] != col[i - 1]) continue;
        int64_t index = (int64_t)col[i] + !options->zero_based;
        return ki_fault(&part->fault, KILN_ERR_PARSE, find_second(features, part->end, index), NULL,
                        "index %lld twice", (long long)index);
    }
    return true;
}

static bool fail_index(struct part *part, const kiln_read_options *options, const char *at) {
    const char *p = at;
    int64_t index;
    if (part->end - at >= 4 && memcmp(at, "qid:", 4) == 0)
        return ki_fault(&part->fault, KILN_ERR_UNSUPPORTED, at,
                        "remove the qid: words if groups do not matter",
                        "query groups (qid:) are not supported");
    if (!ki_parse_int64(&p, part->end, &index) && !ki_is_digit(*p) && *p != '-')
        return ki_expected(&part->fault, at, part->end, "index:value");
    if (p > at && (p == part->end || *p != ':'))
        return ki_expected(&part->fault, at, part->end, "index:value");
    if (p > at && index == 0 && !options->zero_based)
        return ki_fault(&part->fault, KILN_ERR_PARSE, at, "--zero-based (LightGBM style)",
                        "feature index 0; LIBSVM files count from 1");
    return ki_fault(&part->fault, KILN_ERR_PARSE, at, NULL, "feature index %s, possible are %d to %d",
                    ki_word(at, part->end).text, !options->zero_based, INT32_MAX - !!options->zero_based);
}

/* index:value at *text; its column becomes *col. */
static inline bool parse_entry(struct part *part, const kiln_read_options *options, const char **text,
                               int64_t *col, double *value) {
    const char *p = *text, *end = part->end;
    int64_t index = 0;
    while (p < end && ki_is_digit(*p) && index < INT32_MAX) index = index * 10 + (*p++ - '0');
    *col = index - !options->zero_based;
    if (p == *text || p == end || *p != ':' || *col < 0 || *col >= INT32_MAX)
        return fail_index(part, options, *text);
    const char *at = ++p;
    if (!ki_parse_real(&p, end, options->type == KILN_F32, value) || !ends_word(p, end))
        return ki_expected(&part->fault, at, part->end, "a number");
    *text = p;
    return check_value(part, options, at, *value);
}

/* The same of an entry as most are: an index of up to seven digits, a number without an exponent, and a blank
 * or the line's end behind it; false: it is another one. */
static inline bool quick_entry(const kiln_read_options *options, const char **text, int64_t *col,
                               double *value) {
    const char *p = *text;
    const uint64_t word = ki_text_word(p);
    const int count = ki_quick_count(word);
    *col = (int64_t)ki_quick_value(word, count) - !options->zero_based;
    p += count;
    if (count == 0 || count == 8 || *col < 0 || *p++ != ':') return false;
    if (!ki_quick_real(&p, options->type == KILN_F32, value) || (*p != ' ' && *p != '\n')) return false;
    *text = p;
    return true;
}

static bool parse_entries(struct part *part, const kiln_read_options *options, const char **text) {
    enum { READS = 16 + KI_QUICK_READS }; /* of an entry, without asking where the text ends */
    struct rows *rows = &part->rows;
    const char *p = *text, *end = part->end;
    int64_t first = entry_count(rows), before = -1;
    bool sorted = true;
    for (;;) {
        p = ki_skip_blanks(p, end);
        if (ki_at_line_end(p, end) || *p == '#') break;
        int64_t column;
        double value;
        if ((end - p < READS || !quick_entry(options, &p, &column, &value)) &&
            !parse_entry(part, options, &p, &column, &value))
            return false;
        int32_t col = (int32_t)column;
        ki_bytes_append(&rows->col, &col, sizeof col); /* there is room: entry_room */
        ki_bytes_append(&rows->values, &value, sizeof value);
        sorted &= column > before;
        before = column;
        if (column >= rows->cols) rows->cols = column + 1;
    }
    if (!sorted && !sort_row(part, options, *text, first)) return false;
    *text = p;
    return true;
}

static bool parse_line(struct part *part, const kiln_read_options *options, const char **text) {
    struct rows *rows = &part->rows;
    const char *p = ki_skip_blanks(*text, part->end);
    if (!ki_at_line_end(p, part->end) && *p != '#') {
        if (rows->count == 0) part->first = p;
        if (!parse_labels(part, options, &p) || !parse_entries(part, options, &p)) return false;
        int64_t entries = entry_count(rows);
        if (!ki_bytes_append(&rows->ends, &entries, sizeof entries)) return ki_fault_nomem(&part->fault);
        rows->count++;
    }
    const char *newline = memchr(p, '\n', (size_t)(part->end - p));
    *text = newline ? newline + 1 : part->end;
    return true;
}

/* Room for the entries of a text of so many bytes, each at least three and a blank. */
static bool entry_room(struct rows *rows, int64_t bytes) {
    const int64_t most = bytes / 4 + 1;
    return ki_bytes_room(&rows->col, most * (int64_t)sizeof(int32_t)) &&
           ki_bytes_room(&rows->values, most * (int64_t)sizeof(double));
}

static void parse_part(void *user, int i) {
    const struct reader *reader = user;
    struct part *part = &reader->parts[i];
    struct rows *rows = &part->rows;
    part->text = reader->cuts[i];
    part->end = reader->cuts[i + 1];
    rows->col.size = rows->values.size = rows->ends.size = rows->y.size = rows->labels.size = 0;
    rows->odd = false;
    rows->targets = rows->count = rows->cols = 0;
    part->fault.status = KILN_OK;
    if (!entry_room(rows, part->end - part->text)) {
        ki_fault_nomem(&part->fault);
        return;
    }
    for (const char *p = part->text; p < part->end;)
        if (!parse_line(part, reader->options, &p)) return;
}

/* to[0..count) = from, narrowed to f32 if that is the type. */
static void store_reals(struct ki_bytes *to, int64_t offset, const struct ki_bytes *from, kiln_type type) {
    int64_t count = from->size / (int64_t)sizeof(double);
    const double *values = (const double *)(const void *)from->data;
    if (count == 0) return;
    if (type == KILN_F64) {
        memcpy(to->data + offset * (int64_t)sizeof(double), values, (size_t)from->size);
        return;
    }
    float *narrow = (float *)(void *)to->data + offset;
    for (int64_t i = 0; i < count; i++) narrow[i] = (float)values[i];
}

/* Copies a part's rows to their place; ends[0] of all is the start of the first row. */
static void store_part(void *user, int i) {
    struct reader *reader = user;
    struct rows *all = &reader->rows;
    const struct part *part = &reader->parts[i];
    const struct rows *rows = &part->rows;
    const kiln_type type = reader->options->type;
    const int64_t *ends = (const int64_t *)(const void *)rows->ends.data;
    int64_t *all_ends = (int64_t *)(void *)all->ends.data + part->row + 1;
    for (int64_t r = 0; r < rows->count; r++) all_ends[r] = part->entry + ends[r];
    if (rows->col.size > 0)
        memcpy(all->col.data + part->entry * (int64_t)sizeof(int32_t), rows->col.data,
               (size_t)rows->col.size);
    store_reals(&all->values, part->entry, &rows->values, type);
    store_reals(&all->y, part->row * all->targets, &rows->y, type);
}

/* Makes room for `count` more items of `item` bytes, and counts them as there. */
static bool extend(struct ki_bytes *bytes, int64_t count, int64_t item) {
    int64_t more;
    if (!ki_mul(count, item, &more) || !ki_bytes_room(bytes, more)) return false;
    bytes->size += more;
    return true;
}

static kiln_status check_targets(const struct reader *reader, const struct ki_input *input,
                                 const struct ki_block *block, struct part *part) {
    if (part->rows.targets == reader->rows.targets) return KILN_OK;
    ki_fault(&part->fault, KILN_ERR_PARSE, part->first, NULL, "%lld labels, the row before has %lld",
             (long long)part->rows.targets, (long long)reader->rows.targets);
    return ki_report_fault(input, block, &part->fault);
}

/* Appends the rows of the first `count` parts. */
static kiln_status append_parts(struct reader *reader, const struct ki_input *input,
                                const struct ki_block *block, int count) {
    struct rows *all = &reader->rows;
    const kiln_type type = reader->options->type;
    const int64_t real = type == KILN_F32 ? 4 : 8;
    const int64_t before = entry_count(all);
    int64_t rows = 0, entries = 0;
    for (int i = 0; i < count; i++) {
        struct part *part = &reader->parts[i];
        if (part->rows.count == 0) continue;
        part->row = all->count;
        part->entry = before + entries;
        if (all->count == 0) all->targets = part->rows.targets;
        kiln_status status = check_targets(reader, input, block, part);
        if (status != KILN_OK) return status;
        all->count += part->rows.count;
        all->odd |= part->rows.odd;
        if (!ki_bytes_append(&all->labels, part->rows.labels.data, part->rows.labels.size))
            return ki_fail_nomem((size_t)part->rows.labels.size, "the labels");
        all->cols = ki_max(all->cols, part->rows.cols);
        rows += part->rows.count;
        entries += entry_count(&part->rows);
    }
    if (!extend(&all->col, entries, sizeof(int32_t)) || !extend(&all->values, entries, real) ||
        !extend(&all->ends, rows, sizeof(int64_t)) || !extend(&all->y, rows * all->targets, real))
        return ki_fail_nomem((size_t)(entries * (real + 4)), "the rows of the file");

    ki_parallel(reader->options->threads, count, store_part, reader);
    return KILN_OK;
}

static kiln_status parse_block(struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block) {
    struct part *parts = reader->parts;
    const char **cuts = reader->cuts;
    int count = ki_cut_block(cuts, block, reader->part_count);
    ki_parallel(reader->options->threads, count, parse_part, reader);
    for (int i = 0; i < count; i++)
        if (parts[i].fault.status != KILN_OK) return ki_report_fault(input, block, &parts[i].fault);
    return append_parts(reader, input, block, count);
}

static void free_rows(struct rows *rows) {
    ki_bytes_free(&rows->col);
    ki_bytes_free(&rows->values);
    ki_bytes_free(&rows->ends);
    ki_bytes_free(&rows->y);
    ki_bytes_free(&rows->labels);
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->parts && i < reader->part_count; i++) {
        free_rows(&reader->parts[i].rows);
        ki_bytes_free(&reader->parts[i].scratch);
    }
    ki_free(reader->parts);
    ki_free(reader->cuts);
    free_rows(&reader->rows);
}

static kiln_status finish(struct ki_table *table, struct reader *reader, const struct ki_input *input) {
    struct rows *rows = &reader->rows;
    if (rows->count == 0) {
        const struct ki_place place = {.file = ki_input_name(input), .offset = -1};
        return ki_fail_at(KILN_ERR_DATA, &place, "no rows: the file is empty or holds only comments");
    }
    table->format = KILN_CSR;
    table->rows = rows->count;
    table->cols = rows->cols;
    table->nnz = entry_count(rows);
    table->targets = rows->targets;
    table->row_start = ki_bytes_take(&rows->ends);
    table->col = ki_bytes_take(&rows->col);
    table->values = ki_bytes_take(&rows->values);
    table->y = ki_bytes_take(&rows->y);
    table->label_text = rows->labels;
    table->odd_labels = rows->odd;
    rows->labels = (struct ki_bytes){0};
    return table->col && table->values ? KILN_OK : ki_fail_nomem(1, "the rows of the file");
}

kiln_status ki_read_libsvm(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader reader = {.options = options, .part_count = options->threads * PARTS_PER_THREAD};
    struct ki_block block;
    reader.parts = ki_calloc((size_t)reader.part_count * sizeof *reader.parts);
    reader.cuts = ki_calloc((size_t)(reader.part_count + 1) * sizeof *reader.cuts);
    const int64_t start = 0;
    if (!reader.parts || !reader.cuts || !ki_bytes_append(&reader.rows.ends, &start, sizeof start)) {
        status = ki_fail_nomem((size_t)reader.part_count * sizeof *reader.parts, "the parts of a block");
        goto done;
    }
    for (;;) {
        TRY(ki_input_block(input, &block));
        if (block.size == 0) break;
        TRY(parse_block(&reader, input, &block));
    }
    TRY(finish(table, &reader, input));
done:
    free_reader(&reader);
    return status;
}
