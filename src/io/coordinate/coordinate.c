/* Entries become rows: those in order of their rows stay where they are, and each row is sorted by itself
 * where its columns are not in order; others are sorted by bins of rows (bins.c). */
#include "io/coordinate/coordinate.h"

#include <stdatomic.h>

#include "core/threads.h"
#include "io/coordinate/bins.h"
#include "io/detect.h"
#include "io/text.h"

struct job {
    struct ki_table *table;
    const struct ki_entries *entries;
    const uint32_t *row;
    const int32_t *col;
    const double *value; /* NULL: all are 1 */
    double *values;      /* as scattered */
    bool placed;         /* the entries came in order of their rows: there is nothing to scatter */
    int64_t count;
    enum ki_symmetry symmetry;
    const kiln_read_options *options;
    atomic_bool repeats, no_memory; /* found by any thread */
};

void ki_entries_free(struct ki_entries *entries) {
    ki_bytes_free(&entries->row);
    ki_bytes_free(&entries->col);
    ki_bytes_free(&entries->value);
    ki_bytes_free(&entries->places);
    entries->count = 0;
}

static kiln_status read_file(struct ki_entries *entries, struct ki_input *input, const char *name,
                             ki_take_block *take, void *reader) {
    kiln_status status = KILN_OK;
    struct ki_block block;
    ki_entries_file(entries, name);
    for (;;) {
        TRY(ki_input_block(input, &block));
        if (block.size == 0) break;
        TRY(take(reader, input, &block));
    }
done:
    return status;
}

kiln_status ki_entries_read(struct ki_entries *entries, struct ki_table *table, struct ki_input *input,
                            kiln_file_format format, const kiln_read_options *options, ki_take_block *take,
                            void *reader) {
    struct ki_input *more = NULL;
    kiln_status status;
    TRY(read_file(entries, input, ki_input_name(input), take, reader));
    for (int64_t i = 0; i < options->more_count; i++) {
        TRY(ki_open_further(&more, i, format, options));
        TRY(read_file(entries, more, options->more[i], take, reader));
        table->more_bytes += ki_input_offset(more);
        ki_input_close(more);
        more = NULL;
    }
done:
    ki_input_close(more);
    return status;
}

/* Lines are counted from the entry before on. */
kiln_status ki_entries_note(struct ki_entries *entries, const struct ki_block *block, const char *at) {
    struct ki_entry_place *last = &entries->last;
    if (last->line < block->line) { /* a new block */
        last->line = block->line;
        entries->counted = block->text;
    }
    for (const char *p; (p = memchr(entries->counted, '\n', (size_t)(at - entries->counted)));) {
        entries->counted = p + 1;
        last->line++;
    }
    return ki_bytes_append(&entries->places, last, sizeof *last)
               ? KILN_OK
               : ki_fail_nomem(sizeof *last, "the places of entries");
}

/* Entries are in order of their rows: row r begins with the first entry of a row from r on. */
static void start_rows(void *user, int64_t from, int64_t to) {
    const struct job *job = user;
    int64_t *start = job->table->row_start;
    for (int64_t e = from; e < to; e++)
        for (int64_t r = e > 0 ? (int64_t)job->row[e - 1] + 1 : 0; r <= job->row[e]; r++) start[r] = e;
}

/* Rows from..to: sorts where needed. */
static void sort_rows(void *user, int64_t from, int64_t to) {
    struct job *job = user;
    struct ki_bytes scratch = {0};
    for (int64_t r = from; r < to; r++) {
        int64_t start = job->table->row_start[r], count = job->table->row_start[r + 1] - start, falls = 0,
                same = 0;
        int32_t *col = job->table->col + start;
        double *values = job->value ? job->values + start : NULL;
        for (int64_t i = 1; i < count; i++) falls += col[i] < col[i - 1];
        if (falls > 0 && !ki_sort_row(col, values, count, &scratch)) {
            job->no_memory = true;
            break;
        }
        for (int64_t i = 1; i < count; i++) same += col[i] == col[i - 1];
        if (same > 0) job->repeats = true;
        for (int64_t i = 0; !values && i < count; i++) job->values[start + i] = 1;
    }
    ki_bytes_free(&scratch);
}

/* Entries that are already in order of their rows stay where they are. */
static void build_in_place(struct job *job) {
    enum { WORTH_A_THREAD = 1 << 14 };
    const int64_t rows = job->table->rows;
    ki_parallel_ranges(job->options->threads, job->count, WORTH_A_THREAD, start_rows, job);
    for (int64_t r = job->count > 0 ? (int64_t)job->row[job->count - 1] + 1 : 0; r <= rows; r++)
        job->table->row_start[r] = job->count;
    ki_parallel_ranges(job->options->threads, rows, 1, sort_rows, job);
}

static void build(struct job *job) {
    struct ki_binning b = {.row = job->row,
                           .col = job->col,
                           .value = job->value,
                           .count = job->count,
                           .placed = job->table->nnz,
                           .symmetry = job->symmetry,
                           .threads = job->options->threads,
                           .rows = job->table->rows,
                           .row_start = job->table->row_start,
                           .to_col = job->table->col,
                           .to_value = job->values};
    if (job->placed) {
        build_in_place(job);
        return;
    }
    job->no_memory = !ki_bin_entries(&b);
    job->repeats = b.repeats;
}

static bool is_at(const struct job *job, int64_t e, int64_t row, int64_t col) {
    return (job->row[e] == row && job->col[e] == col) ||
           (job->symmetry != KI_GENERAL && job->row[e] == col && job->col[e] == row);
}

/* The place of the second entry at (row, col); *first: that of the one before it. */
static struct ki_place find_repeated(const struct job *job, int64_t row, int64_t col,
                                     struct ki_entry_place *first) {
    const struct ki_entry_place *places = (const void *)job->entries->places.data;
    int64_t e = 0;
    while (!is_at(job, e, row, col)) e++;
    *first = places[e];
    for (e++; !is_at(job, e, row, col);) e++;
    return (struct ki_place){.file = places[e].file, .line = places[e].line, .offset = -1};
}

static kiln_status fail_repeated(const struct job *job, int64_t row, int64_t col) {
    struct ki_entry_place first;
    if (job->entries->places.size == 0) return ki_fail(KILN_ERR_PARSE, "an entry stands twice");
    const struct ki_place place = find_repeated(job, row, col, &first);
    const struct ki_table_levels *const *names = job->entries->names;
    char from[64], to[64];
    if (names[0]) {
        const struct ki_table_level *levels[] = {ki_table_level(names[0], row),
                                                 ki_table_level(names[1], col)};
        ki_table_excerpt(from, names[0]->text.data + levels[0]->text, levels[0]->size);
        ki_table_excerpt(to, names[1]->text.data + levels[1]->text, levels[1]->size);
        ki_fail_at(KILN_ERR_PARSE, &place, "%s '%s' %s '%s' stands twice, first in %.500s:%lld",
                   job->entries->words[0], from, job->entries->words[1], to, first.file,
                   (long long)first.line);
    } else {
        ki_fail_at(KILN_ERR_PARSE, &place, "entry (%lld, %lld) stands twice, first in %.500s:%lld",
                   (long long)row + 1, (long long)col + 1, first.file, (long long)first.line);
    }
    return ki_hint(job->entries->last_counts ? "without --strict, the last one counts"
                                             : "without --strict, entries at the same place are added up");
}

static kiln_status fail_sum(const struct job *job, int64_t row, int64_t col) {
    const struct ki_place place = {.file = job->entries->file, .offset = -1};
    return ki_fail_at(KILN_ERR_DATA, &place, "the sum of the entries (%lld, %lld) is not finite",
                      (long long)row + 1, (long long)col + 1);
}

/* Makes one of neighbours of the same column and closes the gaps. */
static kiln_status merge(const struct job *job, struct ki_entries *entries) {
    struct ki_table *table = job->table;
    int64_t to = 0;
    for (int64_t r = 0, from = 0; r < table->rows; r++) {
        const int64_t end = table->row_start[r + 1], begin = to;
        for (; from < end; from++) {
            const bool repeated = to > begin && table->col[to - 1] == table->col[from];
            if (repeated && job->options->strict) return fail_repeated(job, r, table->col[from]);
            if (!repeated) table->col[to++] = table->col[from];
            entries->replaced += repeated && entries->last_counts;
            job->values[to - 1] = repeated && !entries->last_counts ? job->values[to - 1] + job->values[from]
                                                                    : job->values[from];
            if (repeated && !job->options->allow_nonfinite &&
                !ki_is_finite(job->values[to - 1], job->options->type))
                return fail_sum(job, r, table->col[to - 1]);
        }
        table->row_start[r + 1] = to;
    }
    table->nnz = to;
    return KILN_OK;
}

/* Narrowed in place: a float's slot lies before or within that of its double. */
static void narrow(double *values, int64_t count) {
    char *to = (char *)values;
    for (int64_t i = 0; i < count; i++) {
        float value = (float)values[i];
        memcpy(to + i * (int64_t)sizeof value, &value, sizeof value);
    }
}

static int64_t count_expanded(const struct job *job) {
    int64_t mirrored = 0;
    for (int64_t e = 0; job->symmetry != KI_GENERAL && e < job->count; e++)
        mirrored += job->row[e] != (uint32_t)job->col[e];
    return job->count + mirrored;
}

/* Returns whether the entries are in order of their rows. */
static bool by_rows(const struct job *job) {
    int64_t falls = 0;
    if (job->symmetry != KI_GENERAL) return false;
    for (int64_t e = 1; e < job->count; e++) falls += job->row[e] < job->row[e - 1];
    return falls == 0;
}

static kiln_status allocate(struct job *job, struct ki_entries *entries) {
    struct ki_table *table = job->table;
    const bool in_place = by_rows(job) && !job->options->strict; /* whose entries are looked at again */
    int64_t bytes, row_bytes;
    if (!ki_mul(table->nnz, sizeof(double), &bytes) || !ki_add(table->rows, 1, &row_bytes) ||
        !ki_mul(row_bytes, sizeof(int64_t), &row_bytes))
        return ki_fail(KILN_ERR_LIMIT, "%lld entries are too many", (long long)table->nnz);
    table->row_start = ki_calloc((size_t)row_bytes);
    table->col = in_place ? ki_bytes_take(&entries->col) : ki_alloc((size_t)bytes / 2);
    table->values = job->values =
        in_place && job->value ? ki_bytes_take(&entries->value) : ki_alloc((size_t)bytes);
    job->placed = in_place;
    return table->row_start && table->col && table->values
               ? KILN_OK
               : ki_fail_nomem((size_t)(row_bytes + bytes), "the rows of the file");
}

kiln_status ki_entries_to_csr(struct ki_table *table, struct ki_entries *entries, enum ki_symmetry symmetry,
                              const kiln_read_options *options) {
    struct job job = {.table = table,
                      .entries = entries,
                      .row = (const uint32_t *)(const void *)entries->row.data,
                      .col = (const int32_t *)(const void *)entries->col.data,
                      .value =
                          entries->value.size > 0 ? (const double *)(const void *)entries->value.data : NULL,
                      .count = entries->count,
                      .symmetry = symmetry,
                      .options = options};
    table->format = KILN_CSR;
    table->nnz = count_expanded(&job);
    kiln_status status = allocate(&job, entries);
    if (status != KILN_OK) return status;
    build(&job);
    if (job.no_memory) return ki_fail_nomem(1, "sorting a row");
    if (job.repeats) status = merge(&job, entries);
    if (status == KILN_OK && options->type == KILN_F32) narrow(job.values, table->nnz);
    return status;
}
