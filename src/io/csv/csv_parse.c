/* One record: split it, then walk the schema's columns, so that features come out in the schema's order
 * whatever the file's.
 *
 * Threads only read the table of levels. A level that is not in it goes to the chunk's list of misses, and
 * the reader adds it between two parallel parts, in the order of the text: the same numbers for any number of
 * threads. */
#include "io/csv/csv_parse.h"

#include <math.h>

#include "core/range.h"

void ki_csv_chunk_free(struct ki_csv_chunk *chunk) {
    ki_bytes_free(&chunk->values);
    ki_bytes_free(&chunk->ids);
    ki_bytes_free(&chunk->row_ends);
    ki_bytes_free(&chunk->y);
    for (int i = 0; i < KI_CSV_ROLES; i++) ki_bytes_free(&chunk->roles[i]);
    ki_bytes_free(&chunk->misses);
    ki_bytes_free(&chunk->fields);
    ki_bytes_free(&chunk->scratch);
}

/* Room has been made for the whole row. */
static void put(struct ki_bytes *bytes, const void *data, int64_t size) {
    memcpy(bytes->data + bytes->size, data, (size_t)size);
    bytes->size += size;
}

static void put_real(struct ki_bytes *bytes, kiln_type type, double value) {
    float narrow = (float)value;
    if (type == KILN_F64)
        put(bytes, &value, sizeof value);
    else
        put(bytes, &narrow, sizeof narrow);
}

static bool row_room(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout) {
    int64_t count = layout->schema->count, targets = layout->schema->target_count, real = sizeof(double);
    for (int i = 0; i < KI_CSV_ROLES; i++)
        if (!ki_bytes_room(&chunk->roles[i], real)) return false;
    return ki_bytes_room(&chunk->values, count * real) && ki_bytes_room(&chunk->y, targets * real) &&
           ki_bytes_room(&chunk->ids, count * (int64_t)sizeof(int32_t)) &&
           ki_bytes_room(&chunk->row_ends, sizeof(int64_t));
}

static bool fits(double value, kiln_type type) {
    return isfinite(value) && (type == KILN_F64 || isfinite((float)value));
}

/* Notes a fault of a field; returns the fault. */
static enum ki_csv_fault note(struct ki_csv_chunk *chunk, enum ki_csv_fault fault,
                              const struct ki_csv_column *column, const struct ki_csv_field *field) {
    chunk->error = (struct ki_csv_error){fault, field->text, *field, column, 0};
    return fault;
}

/* Up to eight digits, perhaps behind a minus sign, without a loop whose end would be mispredicted: digits are
 * aligned to the end of a word and added up in pairs, pairs of pairs, and so on. Eight bytes must be readable
 * at the field. False for anything else. */
static bool short_integer(const struct ki_csv_field *field, double *value) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    if (field->size < 1 || field->size > 8) return false;
    uint64_t word = ki_csv_word(field->text);
    const int minus = (word & 0xFF) == '-', digits = (int)field->size - minus;
    if (digits == 0) return false;
    word = word >> 8 * minus << 8 * (8 - digits);
    word ^= ones * '0' << 8 * (8 - digits);
    if ((word | (word + ones * 6)) & ones * 0xF0) return false;
    word = word * 10 + (word >> 8);
    word = ((word & UINT64_C(0x000000FF000000FF)) * (100 + (UINT64_C(1000000) << 32)) +
            (word >> 16 & UINT64_C(0x000000FF000000FF)) * (1 + (UINT64_C(10000) << 32))) >>
           32;
    *value = minus ? -(double)(uint32_t)word : (double)(uint32_t)word;
    return true;
}

static enum ki_csv_fault number(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout,
                                const struct ki_csv_column *column, double *value) {
    const struct ki_csv_field *field =
        (const struct ki_csv_field *)(const void *)chunk->fields.data + column->field;
    if (chunk->end - field->text >= 8 && short_integer(field, value)) return KI_CSV_FINE;
    enum ki_csv_kind kind = ki_csv_number(field, value);
    if (kind == KI_CSV_TEXT) return note(chunk, KI_CSV_WORD, column, field);
    if (layout->allow_nonfinite) return KI_CSV_FINE;
    if (kind == KI_CSV_NOTHING) return note(chunk, KI_CSV_MISSING, column, field);
    return fits(*value, layout->type) ? KI_CSV_FINE : note(chunk, KI_CSV_NONFINITE, column, field);
}

const kiln_range *ki_csv_range(const struct ki_csv_layout *layout, const struct ki_csv_column *column) {
    static const kiln_range weights = {0, INFINITY, 0, NULL};
    if (column->target) return layout->target_range;
    return column == &layout->schema->roles[KI_CSV_WEIGHTS] ? &weights : NULL;
}

/* A target, a weight or an offset. */
static enum ki_csv_fault number_in_range(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout,
                                         const struct ki_csv_column *column, double *value) {
    const kiln_range *range = ki_csv_range(layout, column);
    enum ki_csv_fault fault = number(chunk, layout, column, value);
    if (fault || !range || ki_range_holds(range, *value)) return fault;
    return note(chunk, KI_CSV_RANGE, column,
                (const struct ki_csv_field *)(const void *)chunk->fields.data + column->field);
}

static void put_entry(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout, int32_t id,
                      double value) {
    put_real(&chunk->values, layout->type, value);
    if (layout->sparse) put(&chunk->ids, &id, sizeof id);
}

/* Looks a level up. Levels of up to eight bytes are most often found in the chunk's cache, by a hash that is
 * quick instead of safe: where entries collide, only the way by the table is left. */
static int32_t find_level(struct ki_csv_chunk *chunk, const struct ki_csv_levels *levels, int32_t column,
                          const struct ki_csv_field *plain) {
    if (plain->size > 8) return ki_csv_levels_find(levels, column, plain->text, plain->size);
    struct ki_csv_cached key = {.size = (int32_t)plain->size, .column = column};
    const int unused = 8 * (8 - key.size);
    if (!plain->quoted && plain->size > 0 && chunk->end - plain->text >= 8)
        key.word = ki_csv_word(plain->text) << unused >> unused;
    else
        for (int i = 0; i < key.size; i++) key.word |= (uint64_t)(unsigned char)plain->text[i] << 8 * i;
    uint64_t mixed = (key.word ^ (uint64_t)column << 32) * 0x9E3779B97F4A7C15u;
    struct ki_csv_cached *slot = &chunk->cache[mixed >> (64 - KI_CSV_CACHE_BITS)];
    if (slot->word == key.word && slot->size == key.size && slot->column == column && slot->known > 0)
        return slot->known - 1;
    int32_t found = ki_csv_levels_find(levels, column, plain->text, plain->size);
    key.known = found + 1;
    *slot = key;
    return found;
}

/* The field without doubled quotes; false if there is no memory. */
static bool plain_field(struct ki_csv_chunk *chunk, const struct ki_csv_field *field,
                        struct ki_csv_field *plain) {
    *plain = *field;
    if (!field->quoted) return true;
    chunk->scratch.size = 0;
    if (!ki_csv_unquote(&chunk->scratch, field)) return false;
    plain->size = chunk->scratch.size;
    if (plain->size > 0) plain->text = chunk->scratch.data;
    return true;
}

/* A class by its name. Classes are few, so the cache, which is for features, is passed by. */
static enum ki_csv_fault class_of(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout,
                                  int32_t target) {
    const struct ki_csv_column *column = &layout->schema->targets[target];
    const struct ki_csv_field *field =
        (const struct ki_csv_field *)(const void *)chunk->fields.data + column->field;
    struct ki_csv_field plain;
    if (!plain_field(chunk, field, &plain)) return KI_CSV_NOMEM;
    if (plain.size == 0) return note(chunk, KI_CSV_MISSING, column, field);
    int32_t found = ki_csv_levels_find(layout->classes, target, plain.text, plain.size);
    if (found < 0 && !layout->schema->frozen) {
        const int64_t real = layout->type == KILN_F32 ? 4 : 8;
        struct ki_csv_miss miss = {chunk->y.size / real, target, true, *field};
        if (!ki_bytes_append(&chunk->misses, &miss, sizeof miss)) return KI_CSV_NOMEM;
    }
    put_real(&chunk->y, layout->type, found);
    return KI_CSV_FINE;
}

static enum ki_csv_fault level(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout,
                               int32_t index) {
    const struct ki_csv_column *column = &layout->schema->columns[index];
    const struct ki_csv_field *field =
        (const struct ki_csv_field *)(const void *)chunk->fields.data + column->field;
    struct ki_csv_field plain;
    if (!plain_field(chunk, field, &plain)) return KI_CSV_NOMEM;
    int32_t found = find_level(chunk, layout->levels, index, &plain);
    if (found < 0 && layout->schema->frozen) return KI_CSV_FINE;
    if (found < 0) {
        struct ki_csv_miss miss = {chunk->ids.size / (int64_t)sizeof(int32_t), index, false, *field};
        if (!ki_bytes_append(&chunk->misses, &miss, sizeof miss)) return KI_CSV_NOMEM;
    }
    put_entry(chunk, layout, (int32_t)layout->schema->count + found, 1);
    return KI_CSV_FINE;
}

static enum ki_csv_fault convert(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout) {
    const struct ki_csv_schema *schema = layout->schema;
    enum ki_csv_fault fault = row_room(chunk, layout) ? KI_CSV_FINE : KI_CSV_NOMEM;
    double value;
    for (int64_t i = 0; !fault && i < schema->count; i++) {
        if (schema->columns[i].text) {
            fault = level(chunk, layout, (int32_t)i);
            continue;
        }
        fault = number(chunk, layout, &schema->columns[i], &value);
        if (!fault && (!layout->sparse || value != 0)) put_entry(chunk, layout, (int32_t)i, value);
    }
    for (int64_t i = 0; !fault && i < schema->target_count; i++) {
        if (schema->targets[i].text) {
            fault = class_of(chunk, layout, (int32_t)i);
            continue;
        }
        fault = number_in_range(chunk, layout, &schema->targets[i], &value);
        if (!fault) put_real(&chunk->y, layout->type, value);
    }
    for (int i = 0; !fault && i < KI_CSV_ROLES; i++) {
        if (!schema->roles[i].name) continue;
        fault = number_in_range(chunk, layout, &schema->roles[i], &value);
        if (!fault) put_real(&chunk->roles[i], layout->type, value);
    }
    int64_t entries = chunk->ids.size / (int64_t)sizeof(int32_t);
    if (!fault && layout->sparse) put(&chunk->row_ends, &entries, sizeof entries);
    return fault;
}

static enum ki_csv_fault record(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout,
                                const char **text) {
    const char *begin = *text;
    int64_t count;
    enum ki_csv_fault fault =
        ki_csv_split(text, chunk->end, layout->delimiter, (struct ki_csv_field *)(void *)chunk->fields.data,
                     layout->fields, &count);
    if (!fault && count == layout->fields) return convert(chunk, layout);
    chunk->error.at = fault ? *text : begin;
    chunk->error.count = count;
    return fault ? fault : KI_CSV_FIELDS;
}

void ki_csv_parse(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout) {
    chunk->rows = 0;
    chunk->values.size = chunk->ids.size = chunk->row_ends.size = chunk->y.size = chunk->misses.size = 0;
    for (int i = 0; i < KI_CSV_ROLES; i++) chunk->roles[i].size = 0;
    chunk->error = (struct ki_csv_error){0};
    if (!ki_bytes_room(&chunk->fields, layout->fields * (int64_t)sizeof(struct ki_csv_field)))
        chunk->error.fault = KI_CSV_NOMEM;
    const char *text = chunk->begin;
    while (!chunk->error.fault && (text = ki_csv_skip_blank(text, chunk->end)) < chunk->end) {
        chunk->error.fault = record(chunk, layout, &text);
        chunk->rows += !chunk->error.fault;
    }
}
