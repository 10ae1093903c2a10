/* A Matrix Market file, whose entries come in any order, read by all processes: each takes those of its share
 * of the bytes, and deals them out to the processes whose rows they are in. Rows go to processes in ranges
 * with about as many entries each, found from a histogram over ranges of rows. Entries of one place keep the
 * order of the file, in which they are added up.
 *
 * Errors break nothing off: after each step that may fail all learn whether to go on. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/coordinate/market_part.h"
#include "processes/reading.h"

enum { BINS = 1 << 16 }; /* of rows */

/* Entries in order of the processes: those of process i are [at[i], at[i + 1]). */
struct dealt {
    struct ki_entries entries;
    int64_t *at;
};

struct dealing {
    struct kiln_processes *p;
    const kiln_read_options *options;
    struct ki_market_part part;
    double *bins;
    int64_t *first; /* process i gets the rows [first[i], first[i + 1]) */
    struct dealt out, in;
    kiln_status outcome;
};

static void clear(struct dealing *d) {
    ki_market_part_free(&d->part);
    ki_entries_free(&d->out.entries);
    ki_entries_free(&d->in.entries);
    ki_free(d->bins);
    ki_free(d->first);
}

static kiln_status make_lists(struct dealing *d) {
    const size_t count = (size_t)d->p->transport.count + 1;
    d->bins = ki_calloc(BINS * sizeof *d->bins);
    d->first = ki_calloc(3 * count * sizeof *d->first);
    if (!d->bins || !d->first) return ki_fail_nomem(BINS * sizeof *d->bins, "what processes deal out");
    d->out.at = d->first + count;
    d->in.at = d->out.at + count;
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------ what there is */

/* *first: how many entries come before this process's. All learn whether all entries are there. */
static kiln_status count_all(struct dealing *d, int64_t *first, bool *well) {
    struct kiln_processes *p = d->p;
    int64_t *each = p->piece, bytes = 0, all = 0;
    kiln_status status;
    TRY(ki_wire_gather(p, each, d->part.bytes));
    for (int i = 0; i < p->transport.count; i++) bytes += each[i];
    TRY(ki_wire_gather(p, each, d->part.entries.count));
    for (int i = 0; i < p->transport.count; all += each[i++])
        if (i == p->transport.rank) *first = all;
    if (all != d->part.header.count)
        d->outcome = ki_fail(KILN_ERR_PARSE, "entries are missing");
    else
        d->outcome = ki_market_check_rows(&d->part.header, bytes, NULL);
    TRY(ki_wire_all_well(well, d->p, d->outcome == KILN_OK));
done:
    return status;
}

static int64_t bin_of(const struct dealing *d, int64_t row) {
    return row * BINS / d->part.header.rows;
}

/* The process that gets the row. */
static int owner(const struct dealing *d, int64_t row) {
    return ki_owner_of(d->first, d->p->transport.count, row);
}

/* Entry e of this process's part. */
struct entry {
    int64_t row, col;
    double value;
    int mirrors; /* the sign of its mirror image; 0: there is none */
};

static struct entry entry_of(const struct dealing *d, int64_t e) {
    const struct ki_entries *entries = &d->part.entries;
    const int64_t row = ((const uint32_t *)(const void *)entries->row.data)[e];
    const int64_t col = ((const int32_t *)(const void *)entries->col.data)[e];
    return (struct entry){row, col, ((const double *)(const void *)entries->value.data)[e],
                          ki_market_mirrors(&d->part, row, col)};
}

/* Rows for each process: by ranges with about as many entries, the leader at least one, as long as there are
 * any. */
static kiln_status cut_rows(struct dealing *d) {
    struct kiln_processes *p = d->p;
    const int64_t rows = d->part.header.rows;
    const int count = p->transport.count;
    double all = 0, before = 0;
    kiln_status status;
    for (int64_t e = 0; e < d->part.entries.count; e++) {
        const struct entry entry = entry_of(d, e);
        d->bins[bin_of(d, entry.row)]++;
        if (entry.mirrors) d->bins[bin_of(d, entry.col)]++;
    }
    TRY(ki_wire_sum(p, d->bins, BINS, false));
    for (int64_t b = 0; b < BINS; b++) all += d->bins[b];
    for (int64_t b = 0, i = 1; b < BINS && ki_leads(p); b++) {
        for (; i < count && before >= all / count * (double)i; i++)
            d->first[i] = ki_max((b * rows + BINS - 1) / BINS, ki_min(rows, 1));
        before += d->bins[b];
        for (int64_t later = i; later < count && b == BINS - 1; later++) d->first[later] = rows;
    }
    d->first[0] = 0;
    d->first[count] = rows;
    TRY(ki_wire_broadcast(p, d->first, (count + 1) * (int64_t)sizeof *d->first));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- dealing */

static kiln_status make_room(struct dealt *to, int count) {
    struct ki_entries *e = &to->entries;
    e->count = to->at[count];
    if (!ki_bytes_room(&e->row, e->count * 4) || !ki_bytes_room(&e->col, e->count * 4) ||
        !ki_bytes_room(&e->value, e->count * 8))
        return ki_fail_nomem((size_t)e->count * 16, "entries for other processes");
    e->row.size = e->col.size = e->count * 4;
    e->value.size = e->count * 8;
    return KILN_OK;
}

/* at[i + 1] = how many there are of i's, for all i, becomes where they end. */
static void add_up(int64_t *at, int count) {
    at[0] = 0;
    for (int i = 0; i < count; i++) at[i + 1] += at[i];
}

static void put(struct dealing *d, int64_t *at, int64_t row, int64_t col, double value) {
    struct ki_entries *e = &d->out.entries;
    const int64_t place = at[owner(d, row)]++;
    ((uint32_t *)(void *)e->row.data)[place] = (uint32_t)row;
    ((int32_t *)(void *)e->col.data)[place] = (int32_t)col;
    ((double *)(void *)e->value.data)[place] = value;
}

/* This process's entries, in order of those who get them. */
static kiln_status sort_own(struct dealing *d) {
    const int count = d->p->transport.count;
    int64_t *at = d->out.at;
    kiln_status status;
    for (int64_t e = 0; e < d->part.entries.count; e++) {
        const struct entry entry = entry_of(d, e);
        at[owner(d, entry.row) + 1]++;
        if (entry.mirrors) at[owner(d, entry.col) + 1]++;
    }
    add_up(at, count);
    TRY(make_room(&d->out, count));
    for (int64_t e = 0; e < d->part.entries.count; e++) {
        const struct entry entry = entry_of(d, e);
        put(d, at, entry.row, entry.col, entry.value);
        if (entry.mirrors) put(d, at, entry.col, entry.row, entry.mirrors * entry.value);
    }
    memmove(at + 1, at, (size_t)count * sizeof *at); /* which `put` has moved on to the ends */
    at[0] = 0;
    ki_market_part_free(&d->part);
done:
    return status;
}

/* One array of the entries, each of so many bytes. */
static kiln_status exchange_part(struct dealing *d, const struct ki_bytes *out, const struct ki_bytes *in,
                                 int64_t size) {
    for (int i = 0; i < d->p->transport.count; i++)
        d->p->exchange[i] = (struct ki_exchange){.out = out->data + d->out.at[i] * size,
                                                 .in = in->data + d->in.at[i] * size,
                                                 .out_bytes = (d->out.at[i + 1] - d->out.at[i]) * size,
                                                 .in_bytes = (d->in.at[i + 1] - d->in.at[i]) * size};
    return ki_wire_exchange(d->p);
}

/* in.at: from the counts that all others send. */
static kiln_status exchange_counts(struct dealing *d) {
    const int count = d->p->transport.count;
    int64_t *out = d->p->piece;
    kiln_status status;
    for (int i = 0; i < count; i++) {
        out[i] = d->out.at[i + 1] - d->out.at[i];
        d->p->exchange[i] = (struct ki_exchange){&out[i], &d->in.at[i + 1], sizeof *out, sizeof *out};
    }
    TRY(ki_wire_exchange(d->p));
    add_up(d->in.at, count);
done:
    return status;
}

/* All have their entries in order, or not all, and nobody sends any. */
static kiln_status exchange(struct dealing *d, bool *well) {
    const struct ki_entries *out = &d->out.entries, *in = &d->in.entries;
    kiln_status status;
    TRY(exchange_counts(d));
    if (d->outcome == KILN_OK) d->outcome = make_room(&d->in, d->p->transport.count);
    TRY(ki_wire_all_well(well, d->p, d->outcome == KILN_OK));
    if (!*well) goto done;
    TRY(exchange_part(d, &out->row, &in->row, 4));
    TRY(exchange_part(d, &out->col, &in->col, 4));
    TRY(exchange_part(d, &out->value, &in->value, 8));
    ki_entries_free(&d->out.entries);
done:
    return status;
}

/* A process without rows has no arrays, either. */
static kiln_status make_table(struct dealing *d, struct ki_table *table) {
    const int64_t *first = d->first + d->p->transport.rank;
    if (first[1] > first[0])
        return ki_market_table(table, &d->in.entries, &d->part.header, first[0], first[1] - first[0],
                               d->options);
    table->format = d->part.header.array ? KILN_DENSE : KILN_CSR;
    table->cols = d->part.header.cols;
    return KILN_OK;
}

static kiln_status deal(struct dealing *d, struct ki_table *table) {
    int64_t first = 0;
    bool well;
    kiln_status status;
    TRY(ki_wire_all_well(&well, d->p, d->outcome == KILN_OK));
    if (!well) goto done;
    TRY(count_all(d, &first, &well));
    if (!well) goto done;
    d->outcome = ki_market_place(&d->part, first);
    TRY(ki_wire_all_well(&well, d->p, d->outcome == KILN_OK));
    if (!well) goto done;
    TRY(cut_rows(d));
    d->outcome = sort_own(d);
    TRY(exchange(d, &well));
    if (!well) goto done;
    d->outcome = make_table(d, table);
done:
    return status;
}

kiln_status ki_deal_entries(struct kiln_processes *p, struct ki_table *table, int64_t *bytes,
                            const char *path, const kiln_read_options *options, kiln_status *outcome) {
    struct dealing d = {.p = p, .options = options};
    const struct ki_part part = {.number = p->transport.rank, .count = p->transport.count};
    kiln_status status;
    d.outcome = make_lists(&d);
    if (d.outcome == KILN_OK) d.outcome = ki_market_part_read(&d.part, path, options, part);
    *bytes = d.part.bytes;
    status = deal(&d, table);
    *outcome = d.outcome;
    clear(&d);
    return status;
}
