/* The text of a file, whole records at a time. A block that ends within quotes waits for its rest. */
#include <string.h>

#include "core/seams.h"
#include "io/csv/csv.h"

/* Forgets the part of the pending text that has been parsed. */
static void drop_handed(struct ki_csv_reader *r) {
    if (r->handed == 0) return;
    char *data = r->pending.data;
    r->place.text = data;
    struct ki_place next = ki_table_place(NULL, &r->place, data + r->handed);
    r->place.line = next.line;
    r->place.offset = next.offset;
    r->pending.size -= (int64_t)r->handed;
    memmove(data, data + r->handed, (size_t)r->pending.size);
    r->handed = 0;
}

static void hand_out(struct ki_csv_reader *r, struct ki_block *text, size_t size) {
    *text = (struct ki_block){r->pending.data ? r->pending.data : "", size, r->place.line, r->place.offset};
    r->handed = size;
}

kiln_status ki_csv_next_text(struct ki_csv_reader *r, struct ki_block *text) {
    drop_handed(r);
    for (;;) {
        struct ki_block block;
        kiln_status status = ki_input_block(r->input, &block);
        if (status != KILN_OK) return status;
        if (block.size == 0) {
            hand_out(r, text, (size_t)r->pending.size);
            return KILN_OK;
        }
        size_t whole = ki_csv_whole_records(block.text, block.size, &r->quoted, r->table.options->threads);
        if (r->pending.size == 0) r->place = block;
        if (r->pending.size == 0 && whole == block.size) {
            *text = block;
            return KILN_OK;
        }
        size_t before = (size_t)r->pending.size;
        if (!ki_bytes_append(&r->pending, block.text, (int64_t)block.size))
            return ki_fail_nomem(block.size, "a quoted field");
        if (whole == 0 && r->pending.size < KI_CSV_LARGEST_RECORD) continue;
        hand_out(r, text, whole > 0 ? before + whole : (size_t)r->pending.size);
        return KILN_OK;
    }
}

kiln_status ki_csv_first_row(struct ki_csv_reader *r, struct ki_block *text, const char **rest) {
    kiln_status status = KILN_OK;
    *rest = ki_csv_skip_blank(*rest, text->text + text->size);
    while (*rest == text->text + text->size && text->size > 0) {
        TRY(ki_csv_next_text(r, text));
        *rest = ki_csv_skip_blank(text->text, text->text + text->size);
    }
done:
    return status;
}
