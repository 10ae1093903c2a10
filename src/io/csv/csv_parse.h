/* From text to numbers: whole records of a CSV file, parsed by several threads at once. */
#ifndef KI_CSV_PARSE_H
#define KI_CSV_PARSE_H

#include "io/csv/csv.h"

/* What all threads read and none writes. */
struct ki_csv_layout {
    char delimiter;
    int64_t fields; /* in each record */
    bool sparse;    /* there is a text column */
    kiln_type type;
    bool allow_nonfinite;
    int text_targets; /* as kiln_read_options' */
    struct ki_csv_numbers numbers;
    bool plain_numbers;             /* no word of digits means "missing", and points are points */
    kiln_unseen unseen;             /* never DEFAULT */
    const kiln_range *target_range; /* of targets that are numbers; NULL = any */
    const struct ki_csv_schema *schema;
    const struct ki_csv_levels *levels,
        *classes; /* of features; of targets, whose column is the target's number */
};

struct ki_csv_error {
    enum ki_csv_fault fault;
    const char *at;            /* the place, in the text that was parsed */
    struct ki_csv_field field; /* the value, where there is one */
    const struct ki_csv_column *column;
    int64_t count; /* KI_CSV_FIELDS: how many there are */
    int64_t row;   /* of a table without text: the place, from 1 on */
    double value;  /* where the field has no text */
};

/* What is wrong with values, not with the file's structure: all of it is counted, the first few are kept. */
enum { KI_CSV_KEPT = 5 };
struct ki_csv_problems {
    int64_t count[KI_CSV_FAULTS];
    struct ki_csv_error kept[KI_CSV_KEPT]; /* the first of any kind, then those of the same kind */
    int used;
};

/* A level that the table did not have; entry: where its number belongs in the chunk's ids, a target's in its
 * y. */
struct ki_csv_miss {
    int64_t entry, row;
    int32_t column;
    bool target;
    struct ki_csv_field field;
};

enum { KI_CSV_CACHE_BITS = 10 };

/* A short level that was found before: its bytes, zero-padded, and 1 + its number; 0 = free. */
struct ki_csv_cached {
    uint64_t word;
    int32_t size, column, known;
};

/* One thread's part of the text, and what came of it. Values and y are of the layout's type. Dense: values
 * row by row; sparse: values, ids and row_ends, where id i is column i and id count + k is level k. Zeros are
 * not kept. */
struct ki_csv_chunk {
    const char *begin, *end; /* NULL: rows of a table without text */
    int64_t first_row;       /* of such a table: how many rows come before */
    bool odd;                /* whether there is an odd number of quotes in it */
    int64_t rows;
    struct ki_bytes values, ids, row_ends, y, roles[KI_CSV_ROLES], misses;
    struct ki_bytes left_out; /* the numbers of `dropped` rows among all of the part */
    int64_t values_at, ids_at, row_ends_at, y_at, role_at[KI_CSV_ROLES]; /* where they go in the whole */
    struct ki_bytes fields, scratch;
    struct ki_bytes numbers; /* doubles, one a field, of fields without text; NaN is a missing value */
    struct ki_csv_error error;
    struct ki_csv_problems problems;
    /* Levels of features, and classes, that the model does not know, and rows left out: how many, and the
     * first. */
    int64_t unseen[2], dropped;
    struct ki_csv_error first_unseen[2], first_dropped;
    struct ki_csv_cached cache[1 << KI_CSV_CACHE_BITS];
};

/* Where a column's numbers must lie; NULL = anywhere. */
const kiln_range *ki_csv_range(const struct ki_csv_layout *layout, const struct ki_csv_column *column);
void ki_csv_chunk_free(struct ki_csv_chunk *chunk);
/* Forgets the rows of a chunk and makes room for the fields of one. */
void ki_csv_chunk_begin(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout);
/* The chunk's fields, a whole record, become a row. */
enum ki_csv_fault ki_csv_convert(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout);
/* Parses chunk->begin to chunk->end, whole records, up to the first fault. */
void ki_csv_parse(struct ki_csv_chunk *chunk, const struct ki_csv_layout *layout);

/* The place of a byte of the text in the file called name. */
struct ki_place ki_csv_place(const char *name, const struct ki_block *text, const char *at);
/* That of a byte of the text, or of a row where the table has none (text->text is NULL). */
struct ki_place ki_csv_record_place(const char *name, const struct ki_block *text, const char *at,
                                    int64_t row);
/* The error's value for messages; returns out. */
const char *ki_csv_error_excerpt(char out[64], const struct ki_csv_error *error);
/* Reports what a chunk noted about the text. */
kiln_status ki_csv_fail(const struct ki_csv_error *error, const struct ki_csv_layout *layout,
                        const char *name, const struct ki_block *text);

/* Problems of the whole input, with their places, since the text does not stay. */
struct ki_csv_report {
    int64_t count[KI_CSV_FAULTS];
    struct ki_csv_found {
        enum ki_csv_fault fault;
        const struct ki_csv_column *column;
        struct ki_place place;
        char value[64];
    } kept[KI_CSV_KEPT];
    int used;
};
/* Adds a chunk's problems. name must live as long as the report. */
void ki_csv_report_add(struct ki_csv_report *report, const struct ki_csv_problems *problems, const char *name,
                       const struct ki_block *text);
/* The error that the report stands for; KILN_OK if it is empty. */
kiln_status ki_csv_report_fail(const struct ki_csv_report *report, const struct ki_csv_layout *layout);
/* Reads the first line of the file called `file`: the layout's delimiter and fields, the columns' names (the
 * array and each name from ki_alloc, some perhaps NULL after a failure). *rest is where the data begin. */
kiln_status ki_csv_read_header(char ***names, struct ki_csv_layout *layout, const kiln_read_options *options,
                               const char *file, const struct ki_block *text, const char **rest);
/* ERR_PARSE: two columns have one name. */
kiln_status ki_csv_check_names(char **names, int64_t count, const struct ki_place *place);
/* Whether the file's first record, `size` bytes at `line`, names the columns; errors are those of reading
 * it. */
kiln_status ki_csv_names_columns(bool *named, const char *line, int64_t size, const char *file,
                                 const kiln_read_options *options);
/* Which columns' missing numbers become means, and get indicators, once it is known which are text. */
void ki_csv_settle_missing(struct ki_csv_schema *schema);
/* Sets `text` of each column from the first rows, which begin at rest. */
kiln_status ki_csv_decide_kinds(struct ki_csv_schema *schema, struct ki_warnings *warnings,
                                const struct ki_csv_layout *layout, const char *name,
                                const struct ki_block *text, const char *rest);

#endif
