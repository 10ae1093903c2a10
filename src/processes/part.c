/* One process's part of data that all read, and what the others are to know of it. */
#include <string.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "processes/digest.h"
#include "processes/reading.h"

/* The leader knows the place of errors in the data, once it reads them. */
static bool is_told_by_leader(kiln_status status) {
    return status == KILN_ERR_PARSE || status == KILN_ERR_DATA || status == KILN_ERR_UNSUPPORTED ||
           status == KILN_ERR_LIMIT || status == KILN_ERR_ARGUMENT;
}

/* FNV-1a, with the NUL behind each name. */
static uint64_t digest_names(uint64_t digest, char *const *names, int64_t count) {
    for (int64_t j = 0; names && j < count; j++)
        for (size_t i = 0, size = strlen(names[j]); i <= size; i++)
            digest = (digest ^ (unsigned char)names[j][i]) * UINT64_C(1099511628211);
    return digest;
}

/* Finds what processes compare of a file that all should see alike: its size, head and tail. */
static kiln_status digest_file(uint64_t *digest, const char *path) {
    enum { END = 1 << 12 };
    struct {
        int64_t size;
        char head[END], tail[END];
    } seen = {.size = 0};
    struct ki_file *file = NULL;
    kiln_status status;
    TRY(ki_file_open(&file, &seen.size, path));
    TRY(ki_file_read(file, seen.head, 0, ki_min(seen.size, END)));
    TRY(ki_file_read(file, seen.tail, ki_max(seen.size - END, 0), ki_min(seen.size, END)));
    *digest = *digest * UINT64_C(1099511628211) ^ ki_digest(&seen, sizeof seen);
done:
    ki_file_close(file);
    return status;
}

/* Those of all files; 0 where one cannot be read, of which the reader tells. */
static uint64_t digest_files(const char *path, const kiln_read_options *options) {
    uint64_t digest = 1;
    for (int64_t i = -1; i < options->more_count; i++)
        if (digest_file(&digest, i < 0 ? path : options->more[i]) != KILN_OK) return 0;
    return digest ? digest : 1;
}

/* Whether a part of a CSV file begins within quotes is known from the parity of those before it. A
 * process that cannot say fails when it reads. */
static kiln_status share_quotes(struct kiln_processes *p, struct ki_part *part, const char *path,
                                const kiln_read_options *options) {
    const int64_t files = 1 + options->more_count;
    int64_t *odd = p->piece;
    bool own = false, open = false;
    kiln_status status;
    if (ki_part_quotes(&own, path, options, *part) != KILN_OK) own = false;
    TRY(ki_wire_gather(p, odd, own));
    for (int i = 0; i <= part->number; i++) {
        if (ki_part_begins_file((struct ki_part){.number = i, .count = part->count}, files)) open = false;
        part->open[0] = open;
        open ^= odd[i];
        part->open[1] = open;
    }
done:
    return status;
}

/* ------------------------------------------------------------------------ readers who meet (CSV) */

struct meeting {
    struct kiln_processes *p;
    int left;         /* so many times all meet from now on; none once somebody was missed */
    kiln_status wire; /* MPI's */
};

/* From each process `bytes` to all, one after the other. *well: whether all have come, and have memory for
 * it. */
static kiln_status gather_bytes(bool *well, struct kiln_processes *p, struct ki_bytes *bytes, bool comes) {
    const int count = p->transport.count;
    struct ki_bytes all = {NULL, 0, 0};
    int64_t sum = 0, *sizes = ki_alloc((size_t)count * sizeof *sizes);
    kiln_status status = KILN_OK;
    TRY(ki_wire_all_well(well, p, comes && sizes));
    if (!*well) goto done;
    TRY(ki_wire_gather(p, sizes, bytes->size));
    for (int i = 0; i < count; i++) sum += sizes[i];
    TRY(ki_wire_all_well(well, p, ki_bytes_room(&all, sum)));
    if (!*well) goto done;
    for (int i = 0; i < count; all.size += sizes[i++])
        p->exchange[i] = (struct ki_exchange){.out = bytes->data,
                                              .in = sizes[i] ? all.data + all.size : NULL,
                                              .out_bytes = bytes->size,
                                              .in_bytes = sizes[i]};
    TRY(ki_wire_exchange(p));
    ki_bytes_free(bytes);
    *bytes = all;
    all.data = NULL;
done:
    ki_bytes_free(&all);
    ki_free(sizes);
    return status;
}

static kiln_status meet(void *of, struct ki_bytes *bytes) {
    struct meeting *meeting = of;
    bool well = false;
    meeting->wire = gather_bytes(&well, meeting->p, bytes, true);
    meeting->left = well ? meeting->left - 1 : 0;
    if (meeting->wire != KILN_OK || well) return meeting->wire;
    return ki_fail(KILN_ERR_UNSUPPORTED, "not all processes could read their parts");
}

/* Who has no rows tells nothing; who could not read them is missed, and then nobody meets any more. */
static kiln_status meet_without_rows(struct meeting *meeting, bool failed) {
    kiln_status status = KILN_OK;
    while (meeting->left > 0) {
        struct ki_bytes nothing = {NULL, 0, 0};
        bool well = false;
        status = gather_bytes(&well, meeting->p, &nothing, !failed);
        ki_bytes_free(&nothing);
        meeting->left = well ? meeting->left - 1 : 0;
    }
    return status;
}

/* ------------------------------------------------------------------------------------- the part */

static void summarize(struct ki_summary *s, const struct ki_table *table) {
    s->rows = table->rows;
    s->cols = table->cols;
    s->entries = table->format == KILN_CSR ? table->nnz : table->rows * table->cols;
    s->targets = table->targets;
    s->filled = table->filled_count;
    s->left_out = table->left_out_count;
    s->format = table->format;
    s->weights = table->weights != NULL;
    s->offset = table->offset != NULL;
    s->groups = table->groups != NULL;
    s->names =
        digest_names(digest_names(1, table->feature_names, table->cols), table->target_names, table->targets);
}

/* A part of CSV, whose readers meet. */
static kiln_status read_csv(struct ki_summary *s, struct kiln_processes *p, struct ki_table *table,
                            const char *path, const struct ki_order *order, struct ki_part part) {
    const kiln_read_options *options = &order->read.options;
    const bool twice = order->read.schema || options->missing >= KILN_MISSING_MEAN;
    struct meeting meeting = {.p = p, .left = twice ? 2 : 1, .wire = KILN_OK};
    const struct ki_together together = {.rank = part.number,
                                         .first = path,
                                         .schema = order->read.schema,
                                         .key = {order->read.key[0], order->read.key[1]},
                                         .of = &meeting,
                                         .meet = meet};
    kiln_status status;
    TRY(share_quotes(p, &part, path, options));
    table->together = &together;
    s->status = ki_part_read(table, &s->bytes, path, KILN_FILE_CSV, options, part);
    table->together = NULL;
    TRY(meeting.wire);
    TRY(meet_without_rows(&meeting, s->status != KILN_OK));
done:
    return status;
}

kiln_status ki_read_part(struct ki_summary *s, struct kiln_processes *p, struct ki_table *table,
                         const char *path, const struct ki_order *order) {
    const kiln_read_options *options = &order->read.options;
    const kiln_file_format format = order->read.format;
    const struct ki_part part = {.number = p->transport.rank, .count = p->transport.count};
    kiln_status status = KILN_OK;
    *s = (struct ki_summary){.files = digest_files(path, options)};
    if (format == KILN_FILE_CSV)
        TRY(read_csv(s, p, table, path, order, part));
    else if (format == KILN_FILE_MATRIX_MARKET && options->more_count == 0)
        TRY(ki_deal_entries(p, table, &s->bytes, path, options, &s->status));
    else
        s->status = ki_part_read(table, &s->bytes, path, format, options, part);
    if (s->status == KILN_OK && table->rows > 0) s->status = ki_take_named(table, format, path, options);
    /* Labels that become text are numbered over all rows. */
    s->whole = s->status != KILN_OK ? is_told_by_leader(s->status) : table->row_names || table->odd_labels;
    s->unread = s->status != KILN_OK && s->whole;
    s->bad = s->status == KILN_ERR_PARSE || s->status == KILN_ERR_DATA;
    if (s->status != KILN_OK) ki_error_keep(&p->error);
    if (s->whole) s->status = KILN_OK;
    summarize(s, table);
done:
    return status;
}
