/* Rows as most are, read in one walk: a number, or a level that the chunk has met before, is put down where
 * it stands; any other field is cut out and goes the way of all (io/table/row.h). That works where the file's
 * columns come in the schema's order.
 *
 * A record that turns out to be none is forgotten, with what was noted about its fields: csv_split.c says
 * what is wrong with it. */
#include "io/csv/csv.h"
#include "io/quick.h"
#include "io/table/row.h"

enum {
    READS = KI_QUICK_READS + 8, /* bytes of a field that are looked at without asking where the text ends */
    KEPT = -1                   /* of a plan: no feature, but perhaps a target, or nothing */
};

/* Returns whether each field is one thing only, and the features come in the schema's order. */
static bool in_order(const struct ki_table_layout *layout, const int32_t *plan) {
    const struct ki_table_schema *schema = layout->schema;
    for (int64_t i = 0; i < schema->count; i++)
        if (schema->columns[i].field <= (i > 0 ? schema->columns[i - 1].field : -1)) return false;
    for (int64_t i = 0; i < schema->target_count; i++)
        if (plan[schema->targets[i].field] != KEPT) return false;
    for (int i = 0; i < KI_TABLE_ROLES; i++)
        if (schema->roles[i].name && plan[schema->roles[i].field] != KEPT) return false;
    return true;
}

kiln_status ki_csv_make_plan(struct ki_csv_reader *r) {
    const struct ki_table_layout *layout = &r->table.layout;
    const size_t bytes = (size_t)layout->fields * sizeof *r->plan;
    int32_t *plan = ki_alloc(bytes);
    if (!plan) return ki_fail_nomem(bytes, "the columns");
    for (int64_t i = 0; i < layout->fields; i++) plan[i] = KEPT;
    for (int64_t i = 0; i < layout->schema->count; i++) plan[layout->schema->columns[i].field] = (int32_t)i;
    if (layout->plain_numbers && in_order(layout, plan))
        r->plan = plan;
    else
        ki_free(plan);
    return KILN_OK;
}

/* A walk along the rows of a chunk. values and ids: where the next entry goes; behind them is room for the
 * rest of the row. */
struct walk {
    struct ki_table_chunk *chunk;
    const struct ki_csv_reader *reader;
    const struct ki_table_layout *layout;
    const char *stop;
    char *values;
    int32_t *ids;
    /* The notes as they were before the row. */
    bool noted;
    struct ki_table_problems problems;
    int64_t unseen[2];
};

static inline void begin_row(struct walk *w) {
    w->values = w->chunk->values.data + w->chunk->values.size;
    w->ids = (int32_t *)(void *)(w->chunk->ids.data + w->chunk->ids.size);
}

static inline void tell_chunk(struct walk *w) {
    w->chunk->values.size = w->values - w->chunk->values.data;
    w->chunk->ids.size = (char *)w->ids - w->chunk->ids.data;
}

static inline void put(struct walk *w, int32_t id, double value) {
    if (w->layout->type == KILN_F64) {
        memcpy(w->values, &value, sizeof value);
        w->values += sizeof value;
    } else {
        const float narrow = (float)value;
        memcpy(w->values, &narrow, sizeof narrow);
        w->values += sizeof narrow;
    }
    if (w->layout->sparse) *w->ids++ = id;
}

/* Returns whether a field may end with this byte: a carriage return is looked at by end_field. */
static inline bool ends_field(char c, char delimiter) {
    return c == delimiter || c == '\n' || c == '\r';
}

static inline bool quick_number(struct walk *w, int32_t index, const char **text, char delimiter) {
    const char *p = *text;
    double value;
    if (!ki_quick_real(&p, w->layout->numbers.single, &value) || !ends_field(*p, delimiter)) return false;
    if (!w->layout->sparse || value != 0) put(w, index, value);
    *text = p;
    return true;
}

/* The bytes of a level in two words, of which the second begins at the eighth byte. */
static inline void put_word(char *to, uint64_t word) {
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) word = __builtin_bswap64(word);
    memcpy(to, &word, sizeof word);
}

/* Finds how many bytes of a word come before the first quote; 8: all. */
static inline int unquoted(uint64_t word) {
    const uint64_t differs = word ^ KI_QUICK_ONES * '"',
                   found = (differs - KI_QUICK_ONES) & ~differs & KI_QUICK_ONES << 7;
    return found ? __builtin_ctzll(found) / 8 : 8;
}

/* A level, perhaps in quotes. */
static inline bool quick_level(struct walk *w, int32_t index, const char **text, char delimiter) {
    const bool quoted = **text == '"';
    const char *p = *text + quoted;
    const uint64_t first = ki_text_word(p), second = ki_text_word(p + 8);
    const int in_first = quoted ? unquoted(first) : ki_csv_ordinary(first, delimiter);
    const int in_second = quoted ? unquoted(second) : ki_csv_ordinary(second, delimiter);
    const int size = in_first < 8 ? in_first : 8 + in_second;
    struct ki_table_cached key = {.size = size, .column = index};
    if (size == 0 || size == KI_TABLE_CACHED || (quoted && p[size] != '"') ||
        !ends_field(p[size + quoted], delimiter))
        return false;
    put_word(key.text, in_first < 8 ? first & ((UINT64_C(1) << 8 * in_first) - 1) : first);
    if (size > 8) put_word(key.text + 8, second & ((UINT64_C(1) << 8 * in_second) - 1));
    const int32_t known = ki_table_recall(ki_table_slots(w->chunk, &key), &key);
    if (known < 0) return false;
    put(w, (int32_t)(2 * w->layout->schema->count) + known, 1);
    *text = p + size + quoted;
    return true;
}

/* Any field, which something may be noted about; a fault of the record, or of the table. */
static int odd_field(struct walk *w, int64_t field, const char **text, bool *drop) {
    struct ki_table_chunk *chunk = w->chunk;
    struct ki_table_field *cut = (struct ki_table_field *)(void *)chunk->fields.data + field;
    const int32_t index = w->reader->plan[field];
    const enum ki_csv_fault fault = ki_csv_field(text, chunk->end, w->reader->delimiter, cut);
    if (fault || index == KEPT) return (int)fault;
    if (!w->noted) {
        w->problems = chunk->problems;
        memcpy(w->unseen, chunk->unseen, sizeof w->unseen);
        w->noted = true;
    }
    enum ki_table_fault wrong = KI_TABLE_FINE;
    tell_chunk(w);
    if (w->layout->schema->columns[index].text)
        wrong = ki_table_put_level(chunk, w->layout, index, drop);
    else
        ki_table_put_number(chunk, w->layout, index, drop);
    begin_row(w);
    return (int)wrong;
}

/* Returns whether the field ends as it should, the last one with the line. */
static inline bool end_field(const char **text, const char *end, char delimiter, bool last) {
    const char *p = *text;
    if (p == end) return false; /* a file's last line, which csv_split.c reads */
    if (last && *p == '\r' && p + 1 < end) p++;
    if (*p != (last ? '\n' : delimiter)) return false;
    *text = p + 1;
    return true;
}

/* The row at *text; false: it is no such row. A fault of the table: *fault. */
static bool read_row(struct walk *w, const char **text, int *fault) {
    const struct ki_table_column *columns = w->layout->schema->columns;
    const int32_t *plan = w->reader->plan;
    const char delimiter = w->reader->delimiter, *p = *text;
    const int64_t fields = w->layout->fields;
    const struct ki_table_mark mark = ki_table_mark(w->chunk);
    bool drop = false;
    w->noted = false;
    begin_row(w);
    for (int64_t i = 0; i < fields; i++) {
        const int32_t index = plan[i];
        if (p >= w->stop) goto other;
        if (index == KEPT || !(columns[index].text ? quick_level(w, index, &p, delimiter)
                                                   : quick_number(w, index, &p, delimiter))) {
            *fault = odd_field(w, i, &p, &drop);
            if (*fault == KI_TABLE_NOMEM) return false;
            if (*fault) goto other;
        }
        if (!end_field(&p, w->chunk->end, delimiter, i == fields - 1)) goto other;
    }
    tell_chunk(w);
    *fault = (int)ki_table_end_row(w->chunk, w->layout, &mark, drop);
    *text = p;
    return *fault == KI_TABLE_FINE;
other:
    *fault = KI_TABLE_FINE;
    ki_table_undo(w->chunk, &mark);
    if (w->noted) {
        w->chunk->problems = w->problems;
        memcpy(w->chunk->unseen, w->unseen, sizeof w->unseen);
    }
    return false;
}

int ki_csv_quick_rows(struct ki_table_chunk *chunk, const struct ki_csv_reader *r, const char **text) {
    struct walk w = {.chunk = chunk, .reader = r, .layout = &r->table.layout};
    int fault = KI_TABLE_FINE;
    if (!r->plan || chunk->end - chunk->begin < READS || ki_csv_by_blanks(r->delimiter)) return fault;
    w.stop = chunk->end - READS;
    while (*text < w.stop && **text != '\n' && **text != '\r') {
        if (!ki_table_row_room(chunk, w.layout)) return KI_TABLE_NOMEM;
        if (!read_row(&w, text, &fault)) break;
    }
    return fault;
}
