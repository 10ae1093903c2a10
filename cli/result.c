/* Rows become text, JSON and a model's record. */
#include "result.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { LABEL_WIDTH = 11, NUMBER_ROOM = 400, LISTS_MOST = 8, LINE_WIDTH = 100 };

void result_begin(struct result *result) {
    result->count = 0;
    result->used = 0;
    result->full = false;
    result->margin = 0;
}

void result_put(struct result *result, struct row row) {
    if (result->count < ROWS_MOST) {
        result->rows[result->count++] = row;
        return;
    }
    json_decref(row.json);
    result->full = true;
}

void result_open(struct result *result, const char *key, bool kept) {
    PUT(result, key, .kind = ROW_BEGIN, .kept = kept);
}

void result_close(struct result *result) {
    PUT(result, NULL, .kind = ROW_END);
}

bool result_has(const struct result *result, const char *key) {
    int depth = 0;
    for (int i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        depth += (row->kind == ROW_BEGIN) - (row->kind == ROW_END);
        if (depth == 0 && row->key && strcmp(row->key, key) == 0) return true;
    }
    return false;
}

const char *result_words(struct result *result, const char *format, ...) {
    char *words = result->words + result->used;
    const size_t room = WORDS_ROOM - result->used;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(words, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room) {
        result->full = true;
        return "";
    }
    result->used += (size_t)length + 1;
    return words;
}

const char *result_hold(struct result *result, const char *text, const char *buffer) {
    return text == buffer ? result_words(result, "%s", text) : text;
}

void result_free(struct result *result) {
    for (int i = 0; i < result->count; i++) {
        json_decref(result->rows[i].json);
        kiln_free(result->rows[i].owned);
    }
    result->count = 0;
}

static bool
    rows_cut; /* a row of some table did not fit: a table's rows are printed without a way to say so */

/* Row i of a table, in `line`. */
static void fill_row(struct result *line, const struct row *table, int64_t i) {
    result_begin(line);
    table->fill(line, table->of, table->first + i);
    rows_cut = rows_cut || line->full;
}

static int check_full(const struct result *result) {
    if (!result->full && !rows_cut) return 0;
    return fail_with(KILN_ERR_INTERNAL, WORKING, "",
                     "the result has more rows or words than there is room for");
}

/* ------------------------------------------------------------------------------------------- text */

static const char *value_text(const struct row *row, char number[NUMBER_ROOM]) {
    if (row->shown) return row->shown;
    switch (row->kind) {
    case ROW_TEXT: return row->text ? row->text : "";
    case ROW_COUNT: return row->unit ? text_plural(row->count, row->unit) : text_count(row->count);
    case ROW_FLAG: return row->count ? "yes" : "no";
    case ROW_SECONDS: return text_seconds(row->number);
    case ROW_BYTES: return text_bytes(row->number);
    case ROW_NUMBER:
        if (!row->format) return text_number(row->number);
        snprintf(number, NUMBER_ROOM, row->format, row->number);
        return number;
    default: return "";
    }
}

static bool print_cells(FILE *file, const struct result *line, bool heads);
static void print_table(FILE *file, const struct row *table);

static void print_row_of(FILE *file, const struct row *table, int64_t i, const char *end) {
    struct result line;
    fill_row(&line, table, i);
    if (print_cells(file, &line, false)) fputs(end, file);
    result_free(&line);
}

static void print_cell(FILE *file, const struct row *cell) {
    char number[NUMBER_ROOM];
    const char *text = value_text(cell, number);
    /* A table within a row of a table: what is shown of it stands in the line. */
    for (int64_t i = 0; cell->kind == ROW_TABLE && i < cell->count; i++) {
        if (i > 0) fputc(' ', file);
        print_row_of(file, cell, i, "");
    }
    if (cell->width > 0 && cell->kind == ROW_TEXT && !cell->shown)
        fputs(text_cell(text, cell->width), file);
    else if (cell->width)
        fprintf(file, "%*s", cell->width, text);
    else
        text_put(file, text, 0);
    if (cell->after) fputs(cell->after, file);
}

/* Returns whether there is anything to see. */
static bool print_cells(FILE *file, const struct result *line, bool heads) {
    const char *between = "";
    char number[NUMBER_ROOM];
    bool any = false;
    for (int i = 0; i < line->count; i++) {
        const struct row *cell = &line->rows[i];
        if (cell->head && !heads) {
            fputs(cell->head, file);
            text_put(file, value_text(cell, number), 0);
            fputc('\n', file);
        }
        if (cell->lines && !heads) print_table(file, cell);
        if (!cell->label) continue;
        if (!heads || *cell->label) fputs(cell->before ? cell->before : between, file);
        between = " ";
        any = true;
        if (!heads)
            print_cell(file, cell);
        else if (cell->width > 0)
            fputs(text_cell(cell->label, cell->width), file);
        else
            fprintf(file, "%*s", cell->width, cell->label);
    }
    return any;
}

static bool has_heads(const struct result *line) {
    for (int i = 0; i < line->count; i++)
        if (line->rows[i].label && *line->rows[i].label) return true;
    return false;
}

static void print_heads(FILE *file, const struct row *table) {
    struct result line;
    if (table->head) fprintf(file, "%s\n", table->head);
    if (table->count == 0) return;
    fill_row(&line, table, 0);
    if (has_heads(&line)) {
        print_cells(file, &line, true);
        fputc('\n', file);
    }
    result_free(&line);
}

static void print_table(FILE *file, const struct row *table) {
    const int64_t shown = table->most && table->most < table->count ? table->most : table->count;
    print_heads(file, table);
    for (int64_t i = 0; i < shown; i++) print_row_of(file, table, i, "\n");
    if (shown < table->count)
        fprintf(file, "  and %s more%s\n", text_count(table->count - shown), table->rest ? table->rest : "");
}

int result_print(const struct result *result, FILE *file) {
    char number[NUMBER_ROOM];
    bool open = false;
    for (int i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        const bool table = row->kind == ROW_TABLE && row->fill && !row->hidden,
                   begins = row->head || row->label || table || row->wrapped;
        if ((!begins && !row->before) || (row->kind == ROW_TABLE && !table)) continue;
        if (begins && open) fputc('\n', file);
        open = !table && !row->wrapped;
        if (table) print_table(file, row);
        if (row->wrapped) text_wrap(file, row->text, 0, LINE_WIDTH);
        if (!open) continue;
        if (row->head) text_put(file, row->head, 0);
        if (row->label) fprintf(file, "  %-*s ", result->margin ? result->margin : LABEL_WIDTH, row->label);
        if (row->before) fputs(row->before, file);
        text_put(file, value_text(row, number), 0);
        if (row->after) fputs(row->after, file);
    }
    if (open) fputc('\n', file);
    return check_full(result);
}

/* ------------------------------------------------------------------------------------------- JSON */

/* All that JSON has; the same without tables that stand in no section; what a model keeps of the rows
 * outside of sections. */
enum part { WHOLE, SHORT, REPORT };

static json_t *section_json(const struct result *result, int *at, enum part part);
static json_t *value_json(const struct row *row);

/* The i-th item of a table; NULL: there is none. */
static json_t *item_json(const void *of, int64_t i) {
    const struct row *table = of;
    struct result line;
    int at = 0;
    if (i >= table->count) return NULL;
    fill_row(&line, table, i);
    const struct row *only = line.count == 1 && line.rows[0].key ? &line.rows[0] : NULL;
    json_t *item = only && !*only->key ? value_json(only) : section_json(&line, &at, WHOLE);
    result_free(&line);
    return item;
}

static json_t *table_json(const struct row *table) {
    json_t *array = json_array();
    for (int64_t i = 0; i < table->count; i++) json_add(array, item_json(table, i));
    return array;
}

static json_t *value_json(const struct row *row) {
    switch (row->kind) {
    case ROW_TEXT: return json_text(row->text);
    case ROW_COUNT: return json_integer(row->count);
    case ROW_FLAG: return json_boolean(row->count);
    case ROW_NUMBER:
    case ROW_SECONDS:
    case ROW_BYTES: return json_number_or_null(row->number);
    case ROW_TABLE: return row->fill ? table_json(row) : json_null();
    case ROW_JSON: return json_incref(row->json);
    default: return json_null();
    }
}

static bool belongs(const struct row *row, enum part part) {
    if (!row->key) return false;
    if (part == REPORT) return (row->kept || row->only_kept) && row->kind != ROW_JSON;
    return !row->only_kept && !(part == SHORT && row->kind == ROW_TABLE);
}

/* From row *at to the section's end, where it leaves *at. */
static json_t *section_json(const struct result *result, int *at, enum part part) {
    json_t *object = json_object();
    for (; *at < result->count && result->rows[*at].kind != ROW_END; ++*at) {
        const struct row *row = &result->rows[*at];
        if (row->kind == ROW_BEGIN) {
            ++*at;
            json_t *inner = section_json(result, at, WHOLE);
            if (part == REPORT)
                json_decref(inner);
            else
                json_put(object, row->key, inner);
        } else if (belongs(row, part)) {
            json_put(object, row->key, value_json(row));
        }
    }
    return object;
}

int result_print_json(const struct result *result) {
    struct json_list lists[LISTS_MOST];
    int count = 0, depth = 0, at = 0;
    for (int i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        depth += (row->kind == ROW_BEGIN) - (row->kind == ROW_END);
        if (depth > 0 || !row->key || row->kind != ROW_TABLE) continue;
        rows_cut = rows_cut || count == LISTS_MOST;
        if (count < LISTS_MOST)
            lists[count++] = (struct json_list){row->key, item_json, row->fill ? row : NULL};
    }
    int code = check_full(result);
    if (!code) code = json_print_lists(section_json(result, &at, SHORT), lists, count);
    return code ? code : check_full(result);
}

/* ---------------------------------------------------------------------------------- a model's record */

static kiln_status keep_text(kiln_model *model, const char *key, json_t *object) {
    char *text = json_compact(object);
    const kiln_status status = text ? kiln_model_set_text(model, key, text) : KILN_ERR_NOMEM;
    free(text);
    json_decref(object);
    return status;
}

kiln_status result_keep(kiln_model *model, const struct result *result) {
    int at = 0;
    kiln_status status = keep_text(model, "report", section_json(result, &at, REPORT));
    for (int i = 0; status == KILN_OK && i < result->count; i++) {
        const struct row *row = &result->rows[i];
        at = i + 1;
        if (row->kept && row->kind == ROW_BEGIN)
            status = keep_text(model, row->key, section_json(result, &at, WHOLE));
        else if (row->kept && row->kind == ROW_JSON)
            status = keep_text(model, row->key, json_incref(row->json));
    }
    return status;
}
