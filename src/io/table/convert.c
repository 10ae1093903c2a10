/* One record: a walk over the schema's columns, so that features come out in the schema's order whatever the
 * feeder's.
 *
 * Threads only read the table of levels. A level that is not in it goes to the chunk's list of misses, and
 * the builder adds it between two parallel parts, in the order of the text: the same numbers for any number
 * of threads. */
#include "io/table/row.h"

#include <math.h>

#include "core/range.h"
#include "io/decimal.h"
#include "io/labels.h"
#include "io/quick.h"

void ki_table_chunk_free(struct ki_table_chunk *chunk) {
    ki_bytes_free(&chunk->values);
    ki_bytes_free(&chunk->ids);
    ki_bytes_free(&chunk->row_ends);
    ki_bytes_free(&chunk->y);
    for (int i = 0; i < KI_TABLE_ROLES; i++) ki_bytes_free(&chunk->roles[i]);
    ki_bytes_free(&chunk->misses);
    ki_bytes_free(&chunk->left_out);
    ki_bytes_free(&chunk->fields);
    ki_bytes_free(&chunk->scratch);
    ki_bytes_free(&chunk->pairs);
    ki_bytes_free(&chunk->numbers);
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

bool ki_table_row_room(struct ki_table_chunk *chunk, const struct ki_table_layout *layout) {
    int64_t count = layout->schema->count, targets = layout->schema->target_count, real = sizeof(double);
    for (int i = 0; i < KI_TABLE_ROLES; i++)
        if (!ki_bytes_room(&chunk->roles[i], real)) return false;
    return ki_bytes_room(&chunk->values, 2 * count * real) && ki_bytes_room(&chunk->y, targets * real) &&
           ki_bytes_room(&chunk->ids, 2 * count * (int64_t)sizeof(int32_t)) &&
           ki_bytes_room(&chunk->row_ends, sizeof(int64_t));
}

static bool fits(double value, kiln_type type) {
    return isfinite(value) && (type == KILN_F64 || isfinite((float)value));
}

static double number_of(const struct ki_table_chunk *chunk, const struct ki_table_column *column) {
    return ((const double *)(const void *)chunk->numbers.data)[column->field];
}

static int64_t row_of(const struct ki_table_chunk *chunk) {
    return chunk->first_row + chunk->rows + chunk->dropped + 1;
}

static struct ki_table_error error_of(const struct ki_table_chunk *chunk, enum ki_table_fault fault,
                                      const struct ki_table_column *column,
                                      const struct ki_table_field *field) {
    struct ki_table_error error = {
        .fault = fault, .at = field->text, .field = *field, .column = column, .row = row_of(chunk)};
    if (!field->text) error.value = number_of(chunk, column);
    if (column->pair)
        error.with = ((const struct ki_table_field *)(const void *)chunk->fields.data)[column->with];
    return error;
}

/* Notes what is wrong with a value. The reader goes on, so that all of a file's problems are told at once. */
static enum ki_table_fault note(struct ki_table_chunk *chunk, enum ki_table_fault fault,
                                const struct ki_table_column *column, const struct ki_table_field *field) {
    struct ki_table_problems *problems = &chunk->problems;
    problems->count[fault]++;
    if (problems->used < KI_TABLE_KEPT && (problems->used == 0 || problems->kept[0].fault == (int)fault))
        problems->kept[problems->used++] = error_of(chunk, fault, column, field);
    return KI_TABLE_FINE;
}

static const struct ki_table_field *field_of(const struct ki_table_chunk *chunk,
                                             const struct ki_table_column *column) {
    return (const struct ki_table_field *)(const void *)chunk->fields.data + column->field;
}

struct ki_table_mark ki_table_mark(const struct ki_table_chunk *chunk) {
    struct ki_table_mark mark = {chunk->values.size, chunk->ids.size, chunk->y.size, chunk->misses.size, {0}};
    for (int i = 0; i < KI_TABLE_ROLES; i++) mark.roles[i] = chunk->roles[i].size;
    return mark;
}

void ki_table_undo(struct ki_table_chunk *chunk, const struct ki_table_mark *mark) {
    chunk->values.size = mark->values;
    chunk->ids.size = mark->ids;
    chunk->y.size = mark->y;
    chunk->misses.size = mark->misses;
    for (int i = 0; i < KI_TABLE_ROLES; i++) chunk->roles[i].size = mark->roles[i];
}

static bool drop_row(struct ki_table_chunk *chunk, const struct ki_table_mark *mark) {
    const int64_t row = chunk->rows + chunk->dropped;
    ki_table_undo(chunk, mark);
    chunk->dropped++;
    return ki_bytes_append(&chunk->left_out, &row, sizeof row);
}

/* Returns whether the row is left out for this field. */
static bool drops(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                  const struct ki_table_column *column, const struct ki_table_field *field, bool *drop) {
    if (layout->schema->missing != KILN_MISSING_DROP) return false;
    if (chunk->dropped == 0 && !*drop)
        chunk->first_dropped = error_of(chunk, KI_TABLE_MISSING, column, field);
    return *drop = true;
}

/* Returns whether so many bytes can be read there. */
static bool is_readable(const struct ki_table_chunk *chunk, const char *text, int64_t bytes) {
    return chunk->end && chunk->end - text >= bytes;
}

/* A number of a table that holds numbers; the options may have a word for it that means "missing". */
static enum ki_table_kind known_number(const struct ki_table_chunk *chunk,
                                       const struct ki_table_layout *layout,
                                       const struct ki_table_column *column, double *value) {
    char text[KI_DECIMAL_BYTES];
    *value = number_of(chunk, column);
    if (isnan(*value)) return KI_TABLE_NOTHING;
    if (layout->numbers.missing->size == 0) return KI_TABLE_NUMBER;
    const struct ki_table_field field = {text, ki_print_real(text, *value, KILN_F64) - text, false};
    if (!ki_table_missing(&field, &layout->numbers, false)) return KI_TABLE_NUMBER;
    *value = NAN;
    return KI_TABLE_NOTHING;
}

/* NaN stands for a number that is missing, for the mean to come. */
static void number(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                   const struct ki_table_column *column, double *value, bool *drop) {
    const struct ki_table_field *field = field_of(chunk, column);
    const char *p = field->text;
    if (layout->plain_numbers && p && is_readable(chunk, p, KI_QUICK_READS) &&
        ki_quick_real(&p, layout->numbers.single, value) && p == field->text + field->size)
        return;
    enum ki_table_kind kind = field->text ? ki_table_number(field, &layout->numbers, value)
                                          : known_number(chunk, layout, column, value);
    if (kind == KI_TABLE_TEXT) {
        note(chunk, KI_TABLE_WORD, column, field);
    } else if (kind == KI_TABLE_NOTHING) {
        if (column->imputed || drops(chunk, layout, column, field, drop) || layout->allow_nonfinite) return;
        note(chunk, KI_TABLE_MISSING, column, field);
    } else if (!layout->allow_nonfinite && !fits(*value, layout->type)) {
        note(chunk, KI_TABLE_NONFINITE, column, field);
    }
}

const kiln_range *ki_table_range(const struct ki_table_layout *layout, const struct ki_table_column *column) {
    static const kiln_range weights = {0, INFINITY, 0, NULL};
    if (column->target) return layout->target_range;
    return column == &layout->schema->roles[KI_TABLE_WEIGHTS] ? &weights : NULL;
}

static void note_unseen(struct ki_table_chunk *chunk, bool target, const struct ki_table_column *column,
                        const struct ki_table_field *field) {
    if (chunk->unseen[target]++ == 0)
        chunk->first_unseen[target] = error_of(chunk, KI_TABLE_UNSEEN, column, field);
}

/* Digits that a number would rewrite, in a target that is numbers by the first rows, or to the model: a
 * class that this does not know. */
static bool is_code(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                    const struct ki_table_column *column, double *value) {
    const struct ki_table_field *field = field_of(chunk, column);
    if (!ki_label_is_code(field->text, field->size, layout->type)) return false;
    if (layout->schema->frozen) {
        note_unseen(chunk, true, column, field);
        *value = NAN;
    } else {
        note(chunk, KI_TABLE_CODE, column, field);
    }
    return true;
}

/* A target, a weight or an offset. */
static void number_in_range(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                            const struct ki_table_column *column, double *value, bool *drop) {
    const kiln_range *range = ki_table_range(layout, column);
    const int64_t before = chunk->problems.count[KI_TABLE_WORD] + chunk->problems.count[KI_TABLE_MISSING] +
                           chunk->problems.count[KI_TABLE_NONFINITE];
    number(chunk, layout, column, value, drop);
    if (column->target && layout->text_targets && !column->forced && is_code(chunk, layout, column, value))
        return;
    const int64_t after = chunk->problems.count[KI_TABLE_WORD] + chunk->problems.count[KI_TABLE_MISSING] +
                          chunk->problems.count[KI_TABLE_NONFINITE];
    if (*drop || after > before || !range || ki_range_holds(range, *value)) return;
    note(chunk, KI_TABLE_RANGE, column, field_of(chunk, column));
}

static void put_entry(struct ki_table_chunk *chunk, const struct ki_table_layout *layout, int32_t id,
                      double value) {
    put_real(&chunk->values, layout->type, value);
    if (layout->sparse) put(&chunk->ids, &id, sizeof id);
}

/* Looks a level up. Short ones are most often found in the chunk's cache. */
static int32_t find_level(struct ki_table_chunk *chunk, const struct ki_table_levels *levels, int32_t column,
                          bool target, const struct ki_table_field *plain) {
    if (plain->size > KI_TABLE_CACHED) return ki_table_levels_find(levels, column, plain->text, plain->size);
    struct ki_table_cached key = {.size = (int32_t)plain->size, .column = target ? -1 - column : column};
    if (plain->size > 0) memcpy(key.text, plain->text, (size_t)plain->size);
    struct ki_table_cached *slots = ki_table_slots(chunk, &key);
    int32_t found = ki_table_recall(slots, &key);
    if (found >= 0) return found;
    found = ki_table_levels_find(levels, column, plain->text, plain->size);
    key.known = found + 1;
    if (found >= 0) {
        slots[1] = slots[0];
        slots[0] = key;
    }
    return found;
}

/* The field without doubled quotes; false if there is no memory. */
static bool plain_field(struct ki_table_chunk *chunk, const struct ki_table_field *field,
                        struct ki_table_field *plain) {
    *plain = *field;
    if (!field->quoted) return true;
    chunk->scratch.size = 0;
    if (!ki_table_unquote(&chunk->scratch, field)) return false;
    plain->size = chunk->scratch.size;
    if (plain->size > 0) plain->text = chunk->scratch.data;
    return true;
}

/* Nothing, a word of the options, and what usually stands for a missing value: not in a table that has
 * nulls for that, nor where the options say that text is meant, nor, unless they say what becomes of missing
 * values, among classes that are words. */
static bool is_missing(const struct ki_table_layout *layout, const struct ki_table_column *column,
                       const struct ki_table_field *plain) {
    const bool words = column->target && !column->numbers && layout->schema->missing <= KILN_MISSING_ERROR;
    const bool meant = layout->nulls || (column->forced && !column->label);
    return plain->size == 0 || ki_table_missing(plain, &layout->numbers, !meant && !words);
}

/* A label without the blanks around it, where that is a plain number. */
static struct ki_table_field trim_number(const struct ki_table_field *field, kiln_type type) {
    struct ki_table_field trimmed = *field;
    while (trimmed.size > 0 && (*trimmed.text == ' ' || *trimmed.text == '\t')) {
        trimmed.text++;
        trimmed.size--;
    }
    while (trimmed.size > 0 && strchr(" \t", trimmed.text[trimmed.size - 1])) trimmed.size--;
    if (trimmed.size == field->size) return *field;
    return trimmed.size == 0 || ki_label_is_plain(trimmed.text, trimmed.size, type) ? trimmed : *field;
}

/* A class by its name. */
static enum ki_table_fault class_of(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                    int32_t target, bool *drop) {
    const struct ki_table_column *column = &layout->schema->targets[target];
    const struct ki_table_field *field = field_of(chunk, column);
    struct ki_table_field trimmed = *field, plain;
    int32_t found = -1;
    if (column->label) trimmed = trim_number(field, layout->type);
    if (!plain_field(chunk, &trimmed, &plain)) return KI_TABLE_NOMEM;
    const bool known = layout->schema->frozen && plain.size > 0 &&
                       (found = find_level(chunk, layout->classes, target, true, &plain)) >= 0;
    if (!known && is_missing(layout, column, &plain)) {
        if (!drops(chunk, layout, column, field, drop)) note(chunk, KI_TABLE_MISSING, column, field);
    } else if (!known && (found = find_level(chunk, layout->classes, target, true, &plain)) < 0) {
        if (layout->schema->frozen) note_unseen(chunk, true, column, field);
        const int64_t real = layout->type == KILN_F32 ? 4 : 8;
        struct ki_table_miss miss = {chunk->y.size / real, row_of(chunk), target, true, trimmed, -1, 0};
        if (!layout->schema->frozen && !ki_bytes_append(&chunk->misses, &miss, sizeof miss))
            return KI_TABLE_NOMEM;
    }
    put_real(&chunk->y, layout->type, found);
    return KI_TABLE_FINE;
}

/* The number of the level that one stands for that the model does not know, or -1. */
static int32_t stands_for(const struct ki_table_layout *layout, const struct ki_table_column *column) {
    if (layout->unseen != KILN_UNSEEN_REFERENCE || column->levels == 0) return -1;
    return column->reference >= 0 ? column->reference : column->first;
}

/* Notes a level that the model does not know. */
static void unseen_level(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                         const struct ki_table_column *column, const struct ki_table_field *field) {
    if (layout->unseen == KILN_UNSEEN_ERROR)
        note(chunk, KI_TABLE_UNSEEN, column, field);
    else
        note_unseen(chunk, false, column, field);
}

enum ki_table_fault ki_table_put_level(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                       int32_t index, bool *drop) {
    const struct ki_table_schema *schema = layout->schema;
    const struct ki_table_column *column = &schema->columns[index];
    const struct ki_table_field *field = field_of(chunk, column);
    struct ki_table_field plain;
    int32_t found = -1;
    if (!plain_field(chunk, field, &plain)) return KI_TABLE_NOMEM;
    if (schema->frozen) found = find_level(chunk, layout->levels, index, false, &plain);
    if ((found < 0 || plain.size == 0) && is_missing(layout, column, &plain)) {
        if (drops(chunk, layout, column, field, drop)) return KI_TABLE_FINE;
        if (schema->text_missing_error) note(chunk, KI_TABLE_MISSING, column, field);
        plain.size = 0;
        found = -1;
    }
    if (found < 0) found = find_level(chunk, layout->levels, index, false, &plain);
    if (found < 0 && schema->frozen) {
        unseen_level(chunk, layout, column, field);
        if ((found = stands_for(layout, column)) < 0) return KI_TABLE_FINE;
    }
    if (found < 0) {
        struct ki_table_miss miss = {
            chunk->ids.size / (int64_t)sizeof(int32_t), row_of(chunk), index, false, *field, -1, 0};
        if (plain.size == 0) miss.field.size = 0;
        if (!ki_bytes_append(&chunk->misses, &miss, sizeof miss)) return KI_TABLE_NOMEM;
    }
    put_entry(chunk, layout, (int32_t)(2 * schema->count) + found, 1);
    return KI_TABLE_FINE;
}

/* Adds a column's level to the text of a pair. *none: it is one that the model does not know, and stands for
 * none that it does, or the reference level, whose pairs have no feature either. */
static enum ki_table_fault add_part(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                    int32_t index, bool *none) {
    const struct ki_table_column *column = &layout->schema->columns[index];
    const char *const reference = column->reference_level;
    struct ki_table_field plain;
    int32_t found = -1;
    if (!plain_field(chunk, field_of(chunk, column), &plain)) return KI_TABLE_NOMEM;
    const bool frozen = layout->schema->frozen;
    if (frozen && plain.size > 0) found = find_level(chunk, layout->levels, index, false, &plain);
    if (found < 0 && is_missing(layout, column, &plain)) plain.size = 0;
    if (frozen && found < 0 && find_level(chunk, layout->levels, index, false, &plain) < 0) {
        if ((found = stands_for(layout, column)) < 0) {
            *none = true;
            return KI_TABLE_FINE;
        }
        const struct ki_table_level *const level = ki_table_level(layout->levels, found);
        plain.text = layout->levels->text.data + level->text;
        plain.size = level->size;
    }
    *none |= reference && (size_t)plain.size == strlen(reference) &&
             (plain.size == 0 || memcmp(plain.text, reference, (size_t)plain.size) == 0);
    return ki_bytes_append(&chunk->pairs, plain.text, plain.size) ? KI_TABLE_FINE : KI_TABLE_NOMEM;
}

/* Returns whether the text holds the words of so many bytes. */
static bool holds(const char *text, int64_t size, const char *words, int64_t length) {
    for (int64_t i = 0; i + length <= size; i++)
        if (memcmp(text + i, words, (size_t)length) == 0) return true;
    return false;
}

/* Appends the level of a pair, "x:B=y". If ":B=" began within x, two pairs could have one name. */
static enum ki_table_fault add_pair(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                    const struct ki_table_column *pair, bool *none) {
    const struct ki_table_column *second = &layout->schema->columns[pair->of[1]];
    const int64_t begin = chunk->pairs.size, name = (int64_t)strlen(second->name);
    enum ki_table_fault fault = add_part(chunk, layout, pair->of[0], none);
    const int64_t joint = chunk->pairs.size;
    if (fault) return fault;
    if (!ki_bytes_append(&chunk->pairs, ":", 1) || !ki_bytes_append(&chunk->pairs, second->name, name) ||
        !ki_bytes_append(&chunk->pairs, "=", 1))
        return KI_TABLE_NOMEM;
    if (!*none &&
        holds(chunk->pairs.data + begin, joint - begin + name + 1, chunk->pairs.data + joint, name + 2))
        note(chunk, KI_TABLE_AMBIGUOUS, pair, field_of(chunk, pair));
    return add_part(chunk, layout, pair->of[1], none);
}

/* A pair that the model does not know, of levels that it knows, is noted, and has no feature. */
static enum ki_table_fault put_pair(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                    int32_t index) {
    const struct ki_table_schema *schema = layout->schema;
    const struct ki_table_column *pair = &schema->columns[index];
    const int64_t begin = chunk->pairs.size;
    bool none = false;
    const enum ki_table_fault fault = add_pair(chunk, layout, pair, &none);
    if (fault) return fault;
    const struct ki_table_field text = {chunk->pairs.data + begin, chunk->pairs.size - begin, false};
    const int32_t found = none ? -1 : find_level(chunk, layout->levels, index, false, &text);
    if (found < 0 && !none && !schema->frozen) {
        const struct ki_table_miss miss = {chunk->ids.size / (int64_t)sizeof(int32_t),
                                           row_of(chunk),
                                           index,
                                           false,
                                           *field_of(chunk, pair),
                                           begin,
                                           text.size};
        if (!ki_bytes_append(&chunk->misses, &miss, sizeof miss)) return KI_TABLE_NOMEM;
    } else {
        chunk->pairs.size = begin;
        if (found < 0 && !none) unseen_level(chunk, layout, pair, field_of(chunk, pair));
        if (found < 0) return KI_TABLE_FINE;
    }
    put_entry(chunk, layout, (int32_t)(2 * schema->count) + found, 1);
    return KI_TABLE_FINE;
}

void ki_table_put_number(struct ki_table_chunk *chunk, const struct ki_table_layout *layout, int32_t index,
                         bool *drop) {
    const struct ki_table_column *column = &layout->schema->columns[index];
    double value;
    number(chunk, layout, column, &value, drop);
    if (!layout->sparse || value != 0) put_entry(chunk, layout, index, value);
    if (layout->sparse && column->indicator && isnan(value))
        put_entry(chunk, layout, (int32_t)layout->schema->count + index, 1);
}

/* Any text but a missing one is a group. */
static enum ki_table_fault group(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                 bool *drop) {
    const struct ki_table_column *column = &layout->schema->roles[KI_TABLE_GROUPS];
    const struct ki_table_field *field = field_of(chunk, column);
    struct ki_table_field plain;
    if (!plain_field(chunk, field, &plain)) return KI_TABLE_NOMEM;
    if ((plain.size == 0 || ki_table_missing(&plain, &layout->numbers, !layout->nulls)) &&
        !drops(chunk, layout, column, field, drop))
        note(chunk, KI_TABLE_MISSING, column, field);
    const uint64_t hash = ki_table_hash(layout->levels, plain.text, plain.size);
    put(&chunk->roles[KI_TABLE_GROUPS], &hash, sizeof hash);
    return KI_TABLE_FINE;
}

enum ki_table_fault ki_table_end_row(struct ki_table_chunk *chunk, const struct ki_table_layout *layout,
                                     const struct ki_table_mark *mark, bool drop) {
    const struct ki_table_schema *schema = layout->schema;
    enum ki_table_fault fault = KI_TABLE_FINE;
    double value;
    for (int64_t i = 0; !fault && i < schema->target_count; i++) {
        if (schema->targets[i].text) {
            fault = class_of(chunk, layout, (int32_t)i, &drop);
            continue;
        }
        number_in_range(chunk, layout, &schema->targets[i], &value, &drop);
        put_real(&chunk->y, layout->type, value);
    }
    if (!fault && schema->roles[KI_TABLE_GROUPS].name) fault = group(chunk, layout, &drop);
    for (int i = 0; !fault && i < KI_TABLE_GROUPS; i++) {
        if (!schema->roles[i].name) continue;
        number_in_range(chunk, layout, &schema->roles[i], &value, &drop);
        put_real(&chunk->roles[i], layout->type, value);
    }
    if (!fault && drop) return drop_row(chunk, mark) ? KI_TABLE_FINE : KI_TABLE_NOMEM;
    int64_t entries = chunk->ids.size / (int64_t)sizeof(int32_t);
    if (!fault && layout->sparse) put(&chunk->row_ends, &entries, sizeof entries);
    chunk->rows += !fault;
    return fault;
}

enum ki_table_fault ki_table_convert(struct ki_table_chunk *chunk, const struct ki_table_layout *layout) {
    const struct ki_table_schema *schema = layout->schema;
    enum ki_table_fault fault = ki_table_row_room(chunk, layout) ? KI_TABLE_FINE : KI_TABLE_NOMEM;
    const struct ki_table_mark mark = ki_table_mark(chunk);
    bool drop = false;
    for (int64_t i = 0; !fault && i < schema->count; i++) {
        if (schema->columns[i].pair)
            fault = put_pair(chunk, layout, (int32_t)i);
        else if (schema->columns[i].text)
            fault = ki_table_put_level(chunk, layout, (int32_t)i, &drop);
        else
            ki_table_put_number(chunk, layout, (int32_t)i, &drop);
    }
    return fault ? fault : ki_table_end_row(chunk, layout, &mark, drop);
}

void ki_table_chunk_begin(struct ki_table_chunk *chunk, const struct ki_table_layout *layout) {
    chunk->rows = chunk->dropped = chunk->unseen[0] = chunk->unseen[1] = 0;
    chunk->problems = (struct ki_table_problems){0};
    chunk->values.size = chunk->ids.size = chunk->row_ends.size = chunk->y.size = chunk->misses.size =
        chunk->left_out.size = chunk->pairs.size = 0;
    for (int i = 0; i < KI_TABLE_ROLES; i++) chunk->roles[i].size = 0;
    chunk->error = (struct ki_table_error){0};
    if (!ki_bytes_room(&chunk->fields, layout->fields * (int64_t)sizeof(struct ki_table_field)))
        chunk->error.fault = KI_TABLE_NOMEM;
}
