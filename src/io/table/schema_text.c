/* The schema as JSON text (docs/formats.md). It is written straight away: a tree of a thousand columns would
 * be many times as large as its text. */
#include <stdio.h>

#include "io/table/table.h"
#include "io/json.h"

/* Text to which pieces are appended until one does not fit into memory. */
struct writer {
    struct ki_bytes text;
    bool failed;
};

static void put(struct writer *w, const char *text, size_t size) {
    w->failed = w->failed || !ki_bytes_append(&w->text, text, (int64_t)size);
}

static void put_text(struct writer *w, const char *text) {
    put(w, text, strlen(text));
}

static void put_string(struct writer *w, const char *text) {
    w->failed = w->failed || !ki_json_put_text(&w->text, text);
}

static void put_key(struct writer *w, const char *key, const char *value) {
    put_text(w, ",\"");
    put_text(w, key);
    put_text(w, "\":");
    put_string(w, value);
}

static void put_mean(struct writer *w, double mean) {
    char number[40];
    snprintf(number, sizeof number, "%.17g", mean);
    for (char *p = number; *p; p++)
        if (*p == ',') *p = '.'; /* of the locale */
    put_text(w, ",\"mean\":");
    put_text(w, number);
}

static const struct ki_table_entry *put_column(struct writer *w, const struct ki_table_schema *schema,
                                               const struct ki_table_column *column,
                                               const struct ki_table_entry *entries) {
    put_text(w, "{\"name\":");
    put_string(w, column->name);
    put_key(w, "kind", column->text ? "text" : "number");
    if (column->imputed) put_mean(w, column->mean);
    if (column->indicator) put_text(w, ",\"indicator\":true");
    for (int i = 0; column->pair && i < 2; i++) {
        put_text(w, i > 0 ? "," : ",\"of\":[");
        put_string(w, schema->columns[column->of[i]].name);
        if (i > 0) put_text(w, "]");
    }
    if (column->text) put_text(w, ",\"levels\":[");
    for (int32_t k = 0; column->text && k < column->levels; k++, entries++) {
        if (k > 0) put_text(w, ",");
        put_string(w, entries->text);
    }
    if (column->text) put_text(w, "]");
    if (column->reference_level) put_key(w, "reference", column->reference_level);
    put_text(w, "}");
    return entries;
}

/* A numeric target is its name, a text target {"name":...,"levels":[...]}. */
static void put_target(struct writer *w, const struct ki_table *table, const struct ki_table_schema *schema,
                       int64_t t) {
    const struct ki_table_column *target = &schema->targets[t];
    if (t > 0) put_text(w, ",");
    if (!target->text) {
        put_string(w, target->name);
        return;
    }
    put_text(w, "{\"name\":");
    put_string(w, target->name);
    put_text(w, ",\"levels\":[");
    for (int64_t k = 0; k < table->class_count[t]; k++) {
        if (k > 0) put_text(w, ",");
        put_string(w, table->class_names[t][k]);
    }
    put_text(w, "]}");
}

/* Weights, offset and groups are columns that predictions do without. */
static void put_ignored(struct writer *w, const struct ki_table_schema *schema) {
    int64_t count = 0;
    for (int64_t i = 0; i < schema->ignored_count; i++) {
        put_text(w, count++ ? "," : ",\"ignored\":[");
        put_string(w, schema->ignored[i].name);
    }
    for (int i = 0; i < KI_TABLE_ROLES && !schema->frozen; i++) {
        if (!schema->roles[i].name) continue;
        put_text(w, count++ ? "," : ",\"ignored\":[");
        put_string(w, schema->roles[i].name);
    }
    if (count) put_text(w, "]");
}

static void put_missing(struct writer *w, const struct ki_table_schema *schema) {
    const char *word = schema->missing_words.data, *end = word ? word + schema->missing_words.size : NULL;
    if (schema->missing == KILN_MISSING_MEAN) put_key(w, "missing", "mean");
    if (schema->missing == KILN_MISSING_INDICATOR) put_key(w, "missing", "indicator");
    for (int64_t count = 0; word < end; word += strlen(word) + 1) {
        put_text(w, count++ ? "," : ",\"missing_words\":[");
        put_string(w, word);
        if (word + strlen(word) + 1 == end) put_text(w, "]");
    }
}

/* Prepares what the columns take at least, asked for at once: text that grows by doubling leaves as much
 * behind as it is long. */
static void make_room(struct writer *w, const struct ki_table_schema *schema,
                      const struct ki_table_entry *entries) {
    enum { COLUMN = sizeof "{\"name\":\"\",\"kind\":\"text\",\"levels\":[]},", LEVEL = sizeof "\"\"," };
    int64_t room = 0;
    for (int64_t i = 0; i < schema->count; i++) {
        const struct ki_table_column *column = &schema->columns[i];
        room += COLUMN + (int64_t)strlen(column->name);
        for (int32_t k = 0; column->text && k < column->levels; k++, entries++)
            room += LEVEL + (int64_t)strlen(entries->text);
    }
    w->failed = !ki_bytes_room(&w->text, room);
}

kiln_status ki_table_write_schema(struct ki_table *table, const struct ki_table_schema *schema,
                                  const struct ki_table_entry *entries) {
    struct writer w = {.failed = false};
    make_room(&w, schema, entries);
    put_text(&w, "{\"format\":\"csv\",\"target\":[");
    for (int64_t t = 0; t < schema->target_count; t++) put_target(&w, table, schema, t);
    put_text(&w, "],\"columns\":[");
    for (int64_t i = 0; i < schema->count; i++) {
        if (i > 0) put_text(&w, ",");
        entries = put_column(&w, schema, &schema->columns[i], entries);
    }
    put_text(&w, "]");
    put_ignored(&w, schema);
    put_missing(&w, schema);
    put_text(&w, "}");
    put(&w, "", 1);
    if (w.failed) {
        ki_bytes_free(&w.text);
        return ki_fail_nomem((size_t)w.text.size, "the schema's text");
    }
    table->schema = ki_bytes_take(&w.text);
    return KILN_OK;
}
