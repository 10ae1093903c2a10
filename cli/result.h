/* This header says what a verb has found, as one list of rows in the order in which they are told. Three
 * printers read it: one makes text for people, one the JSON object, one what a model keeps. A row has its
 * value once; where it appears follows from its fields:
 *
 *   key     it is in JSON under that name; .kept: also in the model's record, .only_kept: there alone
 *   head    a line of text begins with that;  label: so does an indented line, in a column of labels
 *   before  it goes on with the line, behind that;  after: what follows the value
 *
 * A row without head, label and before is not shown to people; one without a key is shown to them alone.
 * Sections nest JSON objects and mean nothing to text. A table is a list whose rows are results in turn:
 * there a label is the column's head, "" has none, a cell without a label is not shown, and a head with its
 * value is a line before its row. One value with the key "" makes a list of values. Tables that stand in no
 * section are the last keys in JSON and take no memory, however long they are. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kiln.h>

#include "errors.h"
#include "json.h"

enum { ROWS_MOST = 160, WORDS_ROOM = 3000 };
enum { NUMBERS_MOST = 4100 }; /* a matrix of more stands in a file alone, and in JSON as null */

enum row_kind {
    ROW_NONE, /* null, and no text */
    ROW_TEXT,
    ROW_COUNT,   /* text: 1,234, with a unit "1,234 rows" */
    ROW_NUMBER,  /* text by .format, or six digits */
    ROW_FLAG,    /* text: yes or no */
    ROW_SECONDS, /* text: 2 min 05 s */
    ROW_BYTES,
    ROW_TABLE,
    ROW_JSON, /* a value that was made elsewhere, which the result owns */
    ROW_BEGIN,
    ROW_END
};

struct result;
typedef void result_fill(struct result *row, const void *of, int64_t i);

struct row {
    const char *key;
    enum row_kind kind;
    const char *head, *label, *before, *after, *unit, *shown; /* shown: text in the value's place */
    const char *format;                                       /* of a number */
    int width; /* of a table's cell: right-aligned, negative left-aligned, 0 as long as it is */
    bool kept, only_kept;
    const char *text;
    int64_t count; /* of a table: its rows */
    double number;
    json_t *json;
    result_fill *fill; /* of a table: row i; NULL: there is no table */
    const void *of;
    int64_t first;    /* row i of the table is `first` + i of what it is filled from */
    int64_t most;     /* of a table: rows of text, 0 = all; JSON has all */
    bool hidden;      /* a table that JSON alone has */
    void *owned;      /* by the library, freed with the result */
    bool lines;       /* of a table in a row of a table: its rows are lines of their own */
    bool wrapped;     /* a line of its own for people, in as many lines of text as it takes */
    const char *rest; /* of a table that shows most rows only: "and 5 more" goes on so */
};

struct result {
    struct row rows[ROWS_MOST];
    int count;
    int margin;             /* labels are as wide; 0: as usual */
    char words[WORDS_ROOM]; /* of result_words */
    size_t used;
    bool full; /* a row or words did not fit, which the printers report */
};

#define TEXT(value) .kind = ROW_TEXT, .text = (value)
#define COUNT(value) .kind = ROW_COUNT, .count = (value)
#define NUMBER(value) .kind = ROW_NUMBER, .number = (value)
#define FLAG(value) .kind = ROW_FLAG, .count = (value) != 0
#define SECONDS(value) .kind = ROW_SECONDS, .number = (value)
#define BYTES(value) .kind = ROW_BYTES, .number = (value)
#define JSON(value) .kind = ROW_JSON, .json = (value)
#define TABLE(rows, filled, from) .kind = ROW_TABLE, .count = (rows), .fill = (filled), .of = (from)
/* PUT(result, key, NUMBER(3), .label = "three"); texts are borrowed until the result is freed. */
#define PUT(result, name, ...) result_put(result, (struct row){.key = (name), __VA_ARGS__})

void result_begin(struct result *result); /* an empty one */
void result_put(struct result *result, struct row row);
void result_open(struct result *result, const char *key,
                 bool kept); /* a section; the model keeps it as a text of its own */
void result_close(struct result *result);
bool result_has(const struct result *result, const char *key); /* outside of sections */
/* A copy that lives as long as the result. */
const char *result_words(struct result *result, const char *format, ...) CLI_PRINTF(2, 3);
/* `text`, copied where that is the caller's buffer. */
const char *result_hold(struct result *result, const char *text, const char *buffer);
/* A line for people alone, at the margin. */
#define PUT_LINE(result, ...) PUT(result, NULL, .kind = ROW_NONE, .head = result_words(result, __VA_ARGS__))
void result_free(struct result *result);

/* Each returns 0, or the exit code of an error that it has reported. */
int result_print(const struct result *result, FILE *file);
int result_print_json(const struct result *result);
/* Sets the model's texts: "report", of the rows that are kept and stand in no section, and one for each
 * section or JSON value that is. */
kiln_status result_keep(kiln_model *model, const struct result *result);

#endif
