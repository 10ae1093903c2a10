/* From fields to numbers: records, which several threads bring at once, become rows. */
#ifndef KI_TABLE_CONVERT_H
#define KI_TABLE_CONVERT_H

#include "io/table/table.h"

/* Holds what all threads read and none writes. */
struct ki_table_layout {
    int64_t fields; /* in each record */
    bool sparse;    /* there is a text column */
    kiln_type type;
    bool allow_nonfinite;
    bool nulls; /* the table says itself what is missing: NA and the like in texts are no words for it */
    int text_targets; /* as kiln_read_options' */
    struct ki_table_numbers numbers;
    bool plain_numbers;             /* no word of digits means "missing", and points are points */
    kiln_unseen unseen;             /* never DEFAULT */
    const kiln_range *target_range; /* of targets that are numbers; NULL = any */
    const struct ki_table_schema *schema;
    const struct ki_table_levels *levels,
        *classes; /* of features; of targets, whose column is the target's number */
};

/* Room for what is shown of a value, or of the two of a pair. */
enum { KI_TABLE_VALUE = 136 };

struct ki_table_error {
    int fault;                   /* of ki_table_fault, or the feeder's own */
    const char *at;              /* the place, in the text that was parsed */
    struct ki_table_field field; /* the value, where there is one */
    struct ki_table_field with;  /* of a pair of columns: the second one's */
    const struct ki_table_column *column;
    int64_t count; /* of a feeder's fault: what it wants to tell, such as how many fields there are */
    int64_t row;   /* of a table without text: the place, from 1 on */
    double value;  /* where the field has no text */
};

/* Faults of values, not of the file's structure: all are counted, the first few are kept. */
enum { KI_TABLE_KEPT = 5 };
struct ki_table_problems {
    int64_t count[KI_TABLE_FAULTS];
    struct ki_table_error kept[KI_TABLE_KEPT]; /* the first of any kind, then those of the same kind */
    int used;
};

/* A level that the table did not have; entry: where its number belongs in the chunk's ids, a target's in its
 * y. The text is the field's, that of a pair lies in the chunk's `pairs`, of so many bytes. */
struct ki_table_miss {
    int64_t entry, row;
    int32_t column;
    bool target;
    struct ki_table_field field;
    int64_t pair, pair_size; /* -1: it is no pair */
};

enum { KI_TABLE_CACHE_BITS = 12, KI_TABLE_CACHED = 16 };

/* A level of up to KI_TABLE_CACHED bytes that was found before: these, zero-padded, and 1 + its number; 0 =
 * free. */
struct ki_table_cached {
    char text[KI_TABLE_CACHED];
    int32_t size, column, known;
};

/* One thread's part of the records, and what came of it. Values and y are of the layout's type. Dense: values
 * row by row; sparse: values, ids and row_ends, where id i is column i and id count + k is level k. Zeros are
 * not kept. */
struct ki_table_chunk {
    const char *begin, *end; /* NULL: rows of a table without text */
    int64_t first_row;       /* of such a table: how many rows come before */
    bool odd;                /* whether there is an odd number of quotes in it */
    int64_t rows;
    struct ki_bytes values, ids, row_ends, y, roles[KI_TABLE_ROLES], misses;
    struct ki_bytes left_out; /* the numbers of `dropped` rows among all of the part */
    int64_t values_at, ids_at, row_ends_at, y_at, role_at[KI_TABLE_ROLES]; /* where they go in the whole */
    struct ki_bytes fields, scratch;
    struct ki_bytes pairs;   /* the texts of pairs that are misses */
    struct ki_bytes numbers; /* doubles, one a field, of fields without text; NaN is a missing value */
    struct ki_table_error error;
    struct ki_table_problems problems;
    /* Levels of features, and classes, that the model does not know, and rows left out: how many, and the
     * first. */
    int64_t unseen[2], dropped;
    struct ki_table_error first_unseen[2], first_dropped;
    struct ki_table_cached cache[1 << KI_TABLE_CACHE_BITS];
};

/* Returns where a column's numbers must lie; NULL = anywhere. */
const kiln_range *ki_table_range(const struct ki_table_layout *layout, const struct ki_table_column *column);
void ki_table_chunk_free(struct ki_table_chunk *chunk);
/* Forgets the rows of a chunk and makes room for the fields of one. */
void ki_table_chunk_begin(struct ki_table_chunk *chunk, const struct ki_table_layout *layout);
/* The chunk's fields, a whole record, become a row. */
enum ki_table_fault ki_table_convert(struct ki_table_chunk *chunk, const struct ki_table_layout *layout);

/* The place of a byte of the text in the file called name. */
struct ki_place ki_table_place(const char *name, const struct ki_block *text, const char *at);
/* The place is that of a byte of the text, or of a row where the table has none (text->text is NULL). */
struct ki_place ki_table_record_place(const char *name, const struct ki_block *text, const char *at,
                                      int64_t row);
/* A byte of a text and its line: from there the next is counted, since counting from the text's start for
 * each of many columns is quadratic. */
struct ki_table_line {
    const char *at;
    int64_t line;
};
/* Moves it to another byte, forwards or backwards, and returns that one's line. */
int64_t ki_table_line_move(struct ki_table_line *line, const char *at);
/* The error's value for messages; returns out. */
const char *ki_table_error_excerpt(char out[KI_TABLE_VALUE], const struct ki_table_error *error);

/* Problems of the whole input, with their places, since the text does not stay. */
struct ki_table_report {
    int64_t count[KI_TABLE_FAULTS];
    struct ki_table_found {
        enum ki_table_fault fault;
        const struct ki_table_column *column;
        struct ki_place place;
        char value[KI_TABLE_VALUE];
    } kept[KI_TABLE_KEPT];
    int used;
};
/* Adds a chunk's problems. name must live as long as the report. */
void ki_table_report_add(struct ki_table_report *report, const struct ki_table_problems *problems,
                         const char *name, const struct ki_block *text);
/* The error that the report stands for; KILN_OK if it is empty. */
kiln_status ki_table_report_fail(const struct ki_table_report *report, const struct ki_table_layout *layout);

#endif
