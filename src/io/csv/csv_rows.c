/* A text is cut into parts of whole records, which threads split into fields; io/table makes rows of
 * these. */
#include "core/threads.h"
#include "io/csv/csv.h"
#include "io/text.h"

enum { SMALLEST_PART = 32 << 10 }; /* bytes worth a thread */

static void count_quotes(void *reader, int part) {
    struct ki_table_chunk *chunk = &((struct ki_csv_reader *)reader)->table.chunks[part];
    chunk->odd = ki_count_byte(chunk->begin, (size_t)(chunk->end - chunk->begin), '"', 1) & 1;
}

/* Cuts the text into parts of whole records; returns how many. First into equal parts, whose quotes say
 * whether one is open where the next begins; then each cut moves on to the end of its record. */
static int cut(struct ki_csv_reader *r, const char *begin, const char *end) {
    const int parts = (int)ki_min(r->table.parts, 1 + (end - begin) / SMALLEST_PART);
    struct ki_table_chunk *chunks = r->table.chunks;
    int used = 0;
    bool open = false;
    for (int i = 0; i < parts; i++) {
        chunks[i].begin = begin + ki_part_begin(end - begin, i, parts);
        chunks[i].end = begin + ki_part_begin(end - begin, i + 1, parts);
    }
    ki_parallel(r->table.options->threads, parts, count_quotes, r);
    for (int i = 0; i < parts && begin < end; i++) {
        const char *p = chunks[i].end;
        open ^= chunks[i].odd;
        if (p <= begin) continue; /* within a record that has been cut off */
        bool within = open;
        while (p < end && (within || p[-1] != '\n')) within ^= *p++ == '"';
        chunks[used].begin = begin;
        chunks[used++].end = begin = p;
    }
    return used;
}

/* Reads the record at *text and moves *text behind it; a fault, or 0. */
static int read_record(struct ki_table_chunk *chunk, const struct ki_csv_reader *r, const char **text) {
    const int64_t fields = r->table.layout.fields;
    const char *begin = *text;
    int64_t count;
    const enum ki_csv_fault fault = ki_csv_split(
        text, chunk->end, r->delimiter, (struct ki_table_field *)(void *)chunk->fields.data, fields, &count);
    if (!fault && count == fields) return (int)ki_table_convert(chunk, &r->table.layout);
    chunk->error.at = fault ? *text : begin;
    chunk->error.count = count;
    return fault ? (int)fault : (int)KI_CSV_FIELDS;
}

static void parse_part(void *reader, int part) {
    struct ki_csv_reader *r = reader;
    struct ki_table_chunk *chunk = &r->table.chunks[part];
    const char *text = chunk->begin;
    ki_table_chunk_begin(chunk, &r->table.layout);
    while (!chunk->error.fault && (text = ki_csv_skip_blank(text, chunk->end)) < chunk->end) {
        chunk->error.fault = ki_csv_quick_rows(chunk, r, &text);
        text = ki_csv_skip_blank(text, chunk->end);
        if (!chunk->error.fault && text < chunk->end) chunk->error.fault = read_record(chunk, r, &text);
    }
}

kiln_status ki_csv_take_text(struct ki_csv_reader *r, const struct ki_block *text, const char *begin) {
    const int parts = cut(r, begin, text->text + text->size);
    ki_parallel(r->table.options->threads, parts, parse_part, r);
    return ki_table_take_parts(&r->table, text, parts);
}
