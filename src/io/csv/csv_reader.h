/* A CSV file on its way to a table: what the parts of the reader share (csv.c says in which order they
 * work). */
#ifndef KI_CSV_READER_H
#define KI_CSV_READER_H

#include "io/csv/csv_parse.h"

struct ki_csv_reader {
    const char *name;       /* of what is being read, in messages */
    struct ki_input *input; /* the file that is being read */
    struct ki_input **more; /* of further files, as far as they are open: places name them until the end */
    int64_t more_open;
    const kiln_read_options *options;
    struct ki_warnings *warnings;
    /* Text that ended within quotes waits for its rest; the first `handed` bytes have been parsed. */
    struct ki_bytes pending;
    size_t handed;
    struct ki_block place; /* of pending: line and offset */
    bool quoted;

    char **names; /* of the file's columns */
    struct ki_csv_schema schema;
    struct ki_csv_levels levels, classes;
    struct ki_csv_layout layout;
    struct ki_csv_chunk *chunks;
    int parts; /* of them */

    struct ki_csv_report report;
    struct noticed {
        int64_t count;
        struct ki_place first;
        char value[64], column[64];
    } unseen[2], dropped; /* levels of features, classes; rows */

    int64_t rows, all_rows; /* with those of other processes */
    struct ki_bytes values, ids, row_start, y, roles[KI_CSV_ROLES];
    struct ki_bytes left_out; /* the numbers of rows that are dropped, among all that are read */
};

/* A reader of what is called `name`, with room for the threads' parts; to be freed on failure, too. csv.c */
kiln_status ki_csv_reader_init(struct ki_csv_reader *r, const char *name, const kiln_read_options *options,
                               struct ki_warnings *warnings);
void ki_csv_reader_free(struct ki_csv_reader *r);
void ki_csv_free_chunks(struct ki_csv_reader *r);
/* The schema of the columns r->names, by the options or the model. csv.c */
kiln_status ki_csv_make_schema(struct ki_csv_reader *r, const struct ki_together *together);
/* Once the columns' kinds are known: X is sparse if one is text. csv.c */
kiln_status ki_csv_begin_rows(struct ki_csv_reader *r);
/* The next whole records; size 0 at the end. A text that ends within quotes is handed out too, when it is
 * the last or too long, for the parser to say where the quote was opened. csv_text.c */
kiln_status ki_csv_next_text(struct ki_csv_reader *r, struct ki_block *text);
/* Moves *rest from behind the header on to the first row, past blank lines and texts without a row; to the
 * end of a text of size 0 where there is none. csv_text.c */
kiln_status ki_csv_first_row(struct ki_csv_reader *r, struct ki_block *text, const char **rest);
/* Parses the text from begin on, by all threads, and puts its rows behind what there is. csv_rows.c */
kiln_status ki_csv_take_text(struct ki_csv_reader *r, const struct ki_block *text, const char *begin);
/* Puts the rows of the first `parts` chunks, which came of the text, behind what there is. csv_rows.c */
kiln_status ki_csv_take_parts(struct ki_csv_reader *r, const struct ki_block *text, int parts);
/* Whether the column may have one more level. csv_rows.c */
bool ki_csv_level_room(const struct ki_csv_reader *r, const struct ki_csv_column *column);
/* Opens options->more[more_open] and reads its header, which must be that of the first file. csv_files.c */
kiln_status ki_csv_open_next(struct ki_csv_reader *r, struct ki_block *text, const char **rest);
/* Which columns are text, by the first rows of the file `first`, of whose parts this is one.
 * csv_together.c */
kiln_status ki_csv_first_kinds(struct ki_csv_reader *r, const char *first);
/* The levels and classes of all who read parts, and how many rows they have. csv_together.c */
kiln_status ki_csv_meet(struct ki_csv_reader *r, const struct ki_together *together);
/* The second meeting of readers with a model that keeps no means: who has no rows does not know that.
 * csv_together.c */
kiln_status ki_csv_meet_idly(const struct ki_together *together);
/* The table of all rows: warnings, classes, means, features and their names. csv_finish.c */
kiln_status ki_csv_finish(struct ki_csv_reader *r, struct ki_table *table);

#endif
