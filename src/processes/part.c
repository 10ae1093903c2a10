/* One process's part of data that all read, and what the others are to know of it. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "processes/reading.h"

static bool has_text(const struct ki_table *table) {
    bool text = table->class_names || table->row_names;
    for (int64_t i = 0; i < table->column_count; i++) text = text || table->columns[i].text;
    return text;
}

/* Of errors in the data the leader knows the place, once it reads them. */
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

/* Whether a part of a CSV file begins within quotes is known from the parity of those before: each process tells the leader that of its
 * share, and learns how its own share and the next begin. A process that cannot say fails when it reads. */
static kiln_status share_quotes(struct kiln_processes *p, struct ki_part *part, const char *path,
                                const kiln_read_options *options) {
    const int64_t files = 1 + options->more_count;
    bool odd = false, open = false;
    kiln_status status = KILN_OK;
    if (ki_part_quotes(&odd, path, options, *part) != KILN_OK) odd = false;
    int64_t number = odd, *all = p->piece;
    if (ki_leads(p)) {
        all[0] = odd;
        for (int i = 1; i < part->count; i++) TRY(ki_wire_receive(p, i, &all[i], sizeof *all));
        for (int i = 0; i < part->count; i++) {
            if (ki_part_begins_file((struct ki_part){.number = i, .count = part->count}, files)) open = false;
            const bool begins = open;
            open ^= all[i] & 1;
            all[i] = begins + 2 * open;
        }
        for (int i = 1; i < part->count; i++) TRY(ki_wire_send(p, i, &all[i], sizeof *all));
        number = all[0];
    } else {
        TRY(ki_wire_send(p, 0, &number, sizeof number));
        TRY(ki_wire_receive(p, 0, &number, sizeof number));
    }
    part->open[0] = number & 1;
    part->open[1] = number >> 1;
done:
    return status;
}

kiln_status ki_read_part(struct ki_summary *s, struct kiln_processes *p, struct ki_table *table,
                         const char *path, const struct ki_order *order) {
    const kiln_read_options *options = &order->read.options;
    const kiln_file_format format = order->read.format;
    struct ki_part part = {.number = p->transport.rank, .count = p->transport.count};
    kiln_status status = KILN_OK;
    *s = (struct ki_summary){.rows = 0};
    if (format == KILN_FILE_CSV) TRY(share_quotes(p, &part, path, options));
    if (format == KILN_FILE_MATRIX_MARKET && options->more_count == 0)
        TRY(ki_deal_entries(p, table, &s->bytes, path, options, &s->status));
    else
        s->status = ki_part_read(table, &s->bytes, path, format, options, part);
    s->whole = s->status != KILN_OK ? is_told_by_leader(s->status) : has_text(table);
    if (s->status != KILN_OK && !s->whole) ki_error_keep(&p->error);
    if (s->whole) s->status = KILN_OK;
    s->rows = table->rows;
    s->cols = table->cols;
    s->entries = table->format == KILN_CSR ? table->nnz : table->rows * table->cols;
    s->targets = table->targets;
    s->format = table->format;
    s->weights = table->weights != NULL;
    s->offset = table->offset != NULL;
    s->names =
        digest_names(digest_names(1, table->feature_names, table->cols), table->target_names, table->targets);
done:
    return status;
}
