/* Counting sort by row: count, add up, scatter. Every thread runs over all entries but counts and places only
 * those of its own range of rows, which keeps the order of the entries, needs no atomics and no memory of its
 * own. Files are mostly sorted by row or by column; the scattered rows are then in order, and the sort behind
 * has nothing to do. */
#include "io/coordinate/coordinate.h"

#include <stdatomic.h>

#include "core/threads.h"
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

/* Rows from..to: row_start[r] = number of entries of row r. */
static void count_rows(const struct job *job, int64_t from, int64_t to) {
    int64_t *counts = job->table->row_start;
    const uint64_t width = (uint64_t)(to - from);
    for (int64_t e = 0; e < job->count; e++) {
        int64_t r = job->row[e], c = job->col[e];
        if ((uint64_t)(r - from) < width) counts[r]++;
        if (job->symmetry != KI_GENERAL && r != c && (uint64_t)(c - from) < width) counts[c]++;
    }
}

/* Entry e at (row, col), its value with a sign. */
static void place(const struct job *job, int64_t row, int64_t col, int64_t e, int sign) {
    int64_t at = job->table->row_start[row]++;
    job->table->col[at] = (int32_t)col;
    if (job->value) job->values[at] = sign * job->value[e];
}

/* Rows from..to: puts entries where row_start[r] points, which then moves on to the end of the row. */
static void scatter_rows(const struct job *job, int64_t from, int64_t to) {
    const uint64_t width = (uint64_t)(to - from);
    for (int64_t e = 0; e < job->count; e++) {
        int64_t r = job->row[e], c = job->col[e];
        if ((uint64_t)(r - from) < width) place(job, r, c, e, 1);
        if (job->symmetry != KI_GENERAL && r != c && (uint64_t)(c - from) < width)
            place(job, c, r, e, job->symmetry);
    }
}

/* Rows from..to: sorts where needed. */
static void sort_rows(struct job *job, int64_t from, int64_t to) {
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

/* The three loops, on the i-th share of the rows. */
static void count_share(void *user, int i) {
    const struct job *job = user;
    const int64_t rows = job->table->rows;
    count_rows(job, ki_part_begin(rows, i, job->options->threads),
               ki_part_begin(rows, i + 1, job->options->threads));
}

static void scatter_share(void *user, int i) {
    const struct job *job = user;
    const int64_t rows = job->table->rows;
    scatter_rows(job, ki_part_begin(rows, i, job->options->threads),
                 ki_part_begin(rows, i + 1, job->options->threads));
}

static void sort_share(void *user, int i) {
    struct job *job = user;
    const int64_t rows = job->table->rows;
    sort_rows(job, ki_part_begin(rows, i, job->options->threads),
              ki_part_begin(rows, i + 1, job->options->threads));
}

static void build(struct job *job) {
    const int threads = job->options->threads;
    const int64_t rows = job->table->rows;
    int64_t *row_start = job->table->row_start;
    ki_parallel(threads, threads, count_share, job);
    for (int64_t r = 0, sum = 0; r <= rows; r++) {
        int64_t count = row_start[r];
        row_start[r] = sum;
        sum += count;
    }
    if (!job->placed) { /* moves row_start on by one row */
        ki_parallel(threads, threads, scatter_share, job);
        memmove(row_start + 1, row_start, (size_t)rows * sizeof *row_start);
        row_start[0] = 0;
    }
    ki_parallel(threads, threads, sort_share, job);
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

/* Whether the entries are in order of their rows. */
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
