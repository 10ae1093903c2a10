/* A table that is being built: a feeder names its columns, brings chunks of rows, and has it finished. */
#ifndef KI_TABLE_BUILDER_H
#define KI_TABLE_BUILDER_H

#include "io/table/convert.h"

struct ki_table_builder {
    const char *name; /* of what is being read, in messages; each lives until the end */
    const kiln_read_options *options;
    struct ki_warnings *warnings;
    /* The error for a fault of the feeder's own; NULL if there is none. */
    kiln_status (*fail)(const struct ki_table_builder *b, const struct ki_table_error *error,
                        const struct ki_block *text);

    char **names; /* of the feeder's columns, of which there are layout.fields */
    struct ki_table_schema schema;
    struct ki_table_levels levels, classes;
    struct ki_table_layout layout;
    struct ki_table_chunk *chunks;
    int parts;                 /* of them */
    struct ki_table_line line; /* of the last new level whose line was kept, in the text being taken */

    struct ki_table_report report;
    struct ki_table_noticed {
        int64_t count;
        struct ki_place first;
        char value[KI_TABLE_VALUE], column[64];
    } unseen[2], dropped; /* levels of features, classes; rows */

    int64_t rows, all_rows; /* with those of other processes */
    struct ki_bytes values, ids, row_start, y, roles[KI_TABLE_ROLES];
    struct ki_bytes left_out; /* the numbers of rows that are dropped, among all that are read */
};

/* A builder of what is called `name`, with room for the threads' parts; to be freed on failure, too. */
kiln_status ki_table_builder_init(struct ki_table_builder *b, const char *name,
                                  const kiln_read_options *options, struct ki_warnings *warnings);
void ki_table_builder_free(struct ki_table_builder *b);
void ki_table_free_chunks(struct ki_table_builder *b);
/* The schema of the columns b->names, by the options or the model. */
kiln_status ki_table_make_schema(struct ki_table_builder *b, const struct ki_together *together);
/* Once the columns' kinds are known: X is sparse if one is text. */
kiln_status ki_table_begin_rows(struct ki_table_builder *b);
/* Puts the rows of the first `parts` chunks, which came of the text, behind what there is. take.c */
kiln_status ki_table_take_parts(struct ki_table_builder *b, const struct ki_block *text, int parts);
/* Returns whether the column may have one more level. take.c */
bool ki_table_level_room(const struct ki_table_builder *b, const struct ki_table_column *column);
/* The levels and classes of all who read parts, and how many rows they have. together.c */
kiln_status ki_table_meet(struct ki_table_builder *b, const struct ki_together *together);
/* The second meeting of readers with a model that keeps no means: who has no rows does not know that.
 * together.c */
/* Makes what was told at the first meeting, by readers who have a name, one word of all: levels that many
 * have told are there once. */
kiln_status ki_table_told_once(struct ki_bytes *told);
kiln_status ki_table_meet_idly(const struct ki_together *together);
/* The table of all rows: warnings, classes, means, features and their names. finish.c */
kiln_status ki_table_finish(struct ki_table_builder *b, struct ki_table *table);

#endif
