/* Any process may find entries of any row. An array's values are numbered by their place in the file, column
 * by column: its k-th is that of row k mod m in column k div m, or of the lower triangle's columns, which
 * have m, m - 1, ... of them (skew: m - 1, ...). */
#include "io/coordinate/market_part.h"

#include <string.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"
#include "io/part_cut.h"

void ki_market_part_free(struct ki_market_part *part) {
    ki_entries_free(&part->entries);
}

/* *end: the offset behind the head. */
static kiln_status read_head(struct ki_market *header, int64_t *end, struct ki_input *input) {
    struct ki_block block;
    struct ki_fault fault = {.status = KILN_OK};
    kiln_status status = KILN_OK;
    while (!header->sized) {
        TRY(ki_input_block(input, &block));
        if (block.size == 0) return ki_part_refuse(ki_input_name(input), "it ends before its size line");
        const char *text = block.text;
        if (!ki_market_header(header, &fault, &text, block.text + block.size, block.line))
            return ki_report_fault(input, &block, &fault);
        *end = block.offset + (text - block.text);
    }
done:
    return status;
}

/* An input of the part's lines behind the head. */
static kiln_status open_lines(struct ki_input **lines, const struct ki_input *whole, int64_t head,
                              const char *path, const kiln_read_options *options, struct ki_part part) {
    struct ki_input_piece piece = {.begin = 0};
    int64_t size;
    kiln_status status;
    const struct ki_file *file = ki_input_file(whole, &size);
    if (!file) return ki_cut_compressed(lines, path, false, head, options, part);
    TRY(ki_cut_lines(&piece, file, size, head, part));
    TRY(ki_input_open_piece(lines, path, &piece, &options->control));
done:
    return status;
}

kiln_status ki_market_part_read(struct ki_market_part *of, const char *path, const kiln_read_options *options,
                                struct ki_part part) {
    struct ki_input *whole = NULL, *lines = NULL;
    int64_t head = 0;
    kiln_status status;
    TRY(ki_input_open(&whole, path, options->limit, &options->control));
    TRY(read_head(&of->header, &head, whole));
    if (of->header.array && of->header.rows > UINT32_MAX)
        TRY(ki_part_refuse(path, "it has 2^32 rows or more"));
    TRY(open_lines(&lines, whole, head, path, options, part));
    TRY(ki_read_more_entries(&of->entries, lines, &of->header, options));
    of->bytes = ki_input_offset(lines) + (part.number == 0 ? head : 0);
done:
    ki_input_close(whole);
    ki_input_close(lines);
    return status;
}

kiln_status ki_market_place(struct ki_market_part *part, int64_t first) {
    const struct ki_market *header = &part->header;
    const bool triangle = header->symmetry != KI_GENERAL, skew = header->symmetry == KI_SKEW;
    struct ki_entries *e = &part->entries;
    if (!header->array) return KILN_OK;
    if (!ki_bytes_room(&e->row, e->count * 4) || !ki_bytes_room(&e->col, e->count * 4))
        return ki_fail_nomem((size_t)e->count * 8, "the places of values");
    int64_t col = 0, begin = 0; /* the column, and the number of its first value */
    const int64_t rows = header->rows;
    if (!triangle && rows > 0) {
        col = first / rows;
        begin = col * rows;
    }
    for (int64_t k = first; k < first + e->count; k++) {
        while (k - begin >= (triangle ? rows - col - skew : rows)) {
            begin += triangle ? rows - col - skew : rows;
            col++;
        }
        ((uint32_t *)(void *)e->row.data)[k - first] = (uint32_t)(k - begin + (triangle ? col + skew : 0));
        ((int32_t *)(void *)e->col.data)[k - first] = (int32_t)col;
    }
    e->row.size = e->col.size = e->count * 4;
    return KILN_OK;
}

static void put_dense(struct ki_table *table, const struct ki_entries *entries, kiln_type type) {
    const uint32_t *row = (const void *)entries->row.data;
    const int32_t *col = (const void *)entries->col.data;
    const double *value = (const void *)entries->value.data;
    for (int64_t e = 0; e < entries->count; e++) {
        const int64_t at = row[e] * table->cols + col[e];
        if (type == KILN_F32)
            ((float *)table->values)[at] = (float)value[e];
        else
            ((double *)table->values)[at] = value[e];
    }
}

kiln_status ki_market_table(struct ki_table *table, struct ki_entries *entries,
                            const struct ki_market *header, int64_t first, int64_t rows,
                            const kiln_read_options *options) {
    uint32_t *row = (void *)entries->row.data;
    int64_t bytes;
    for (int64_t e = 0; e < entries->count; e++) row[e] -= (uint32_t)first;
    table->rows = rows;
    table->cols = header->cols;
    if (!header->array) return ki_entries_to_csr(table, entries, KI_GENERAL, options);
    table->format = KILN_DENSE;
    if (!ki_mul(rows, header->cols, &table->nnz) || !ki_mul(table->nnz, ki_type_bytes(options->type), &bytes))
        return ki_fail(KILN_ERR_LIMIT, "too many values");
    table->values = ki_calloc((size_t)bytes); /* of a skew matrix the diagonal is not in the file */
    if (!table->values) return ki_fail_nomem((size_t)bytes, "the values of the file");
    put_dense(table, entries, options->type);
    return KILN_OK;
}
