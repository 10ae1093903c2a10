/* This header has what the parts of the CSV reader share: text split into records and these into fields, the
 * first line, the columns' kinds. A record becomes a row in io/table. */
#ifndef KI_CSV_H
#define KI_CSV_H

#include "io/table/builder.h"

enum {
    KI_CSV_UNNAMED_LIMIT = 1000,      /* columns without a name, unless max_columns is given */
    KI_CSV_LARGEST_RECORD = 64 << 20, /* bytes; an unclosed quote is noticed here at the latest */
};

/* These faults a record may have before its fields are looked at; csv_error.c puts them in words. */
enum ki_csv_fault {
    KI_CSV_FINE = 0,
    KI_CSV_BARE_QUOTE = KI_TABLE_FAULTS, /* a quote inside a field that does not begin with one */
    KI_CSV_AFTER_QUOTE,                  /* something between the closing quote and the delimiter */
    KI_CSV_OPEN_QUOTE,                   /* the input ends before the closing quote */
    KI_CSV_LONE_CR,                      /* a carriage return without line feed, outside quotes */
    KI_CSV_FIELDS,                       /* too many fields or too few */
};

/* --------------------------------------------------------------------------- records (csv_split.c) */

/* Delimiters that stand for any number of blanks; with NAMED_ROWS the first field of a record names the row
 * and is left out. */
enum { KI_CSV_BLANKS = ' ', KI_CSV_NAMED_ROWS = '\v' };
bool ki_csv_by_blanks(char delimiter);
/* Finds how many bytes of a word come before the first that is the delimiter or below '#', as line ends and
 * quotes are; 8: all. A byte of `less` or `equal` has its top bit set where the word's byte is below '#' or
 * the delimiter; the lowest such bit is right, those above it may not be. */
static inline int ki_csv_ordinary(uint64_t word, char delimiter) {
    const uint64_t ones = UINT64_C(0x0101010101010101), differs = word ^ ones * (unsigned char)delimiter;
    const uint64_t less = (word - ones * '#') & ~word, equal = (differs - ones) & ~differs;
    const uint64_t found = (less | equal) & ones << 7;
    return found ? __builtin_ctzll(found) / 8 : 8;
}
/* Reads the field at *text, and moves *text behind it; on a fault to its cause. */
enum ki_csv_fault ki_csv_field(const char **text, const char *end, char delimiter,
                               struct ki_table_field *field);
/* Splits the record at *text, which is not blank, and moves *text behind its line end. *count counts all its
 * fields, of which the first `limit` are stored. On a fault *text points at its cause. */
enum ki_csv_fault ki_csv_split(const char **text, const char *end, char delimiter,
                               struct ki_table_field *fields, int64_t limit, int64_t *count);
/* The first byte at or behind text that does not belong to an empty line. */
const char *ki_csv_skip_blank(const char *text, const char *end);
/* Length of the part of text that ends with a whole record. *quoted: whether a quote is open, before and
 * after. Text without line feed at its end counts as a whole record if no quote is open. */
size_t ki_csv_whole_records(const char *text, size_t size, bool *quoted, int threads);
/* Comma, semicolon or tab: the most frequent outside quotes in the first line. */
char ki_csv_delimiter(const char *text, const char *end);
/* Returns whether blanks separate, as numpy.savetxt and R's write.table have it: the first record has no
 * other delimiter, and is several numbers, or names of the columns of the second, in which there are numbers;
 * of all its columns, of all but the first, whose fields then name the rows, or behind a #. */
bool ki_csv_is_by_blanks(const char *text, const char *end);

/* -------------------------------------------------------------------- the first line (csv_header.c) */

struct ki_csv_header {
    char delimiter;
    int64_t fields;   /* in each record */
    char **names;     /* of the columns; after a failure some may be NULL */
    const char *rest; /* where the data begin */
};
/* Reads the first line of the file called `file` into a zeroed header. */
kiln_status ki_csv_read_header(struct ki_csv_header *header, const struct ki_table_numbers *numbers,
                               const kiln_read_options *options, const char *file,
                               const struct ki_block *text);
void ki_csv_header_free(struct ki_csv_header *header);
/* Finds whether the file's first record, `size` bytes at `line`, names the columns; errors are those of
 * reading it. */
kiln_status ki_csv_names_columns(bool *named, const char *line, int64_t size, const char *file,
                                 const kiln_read_options *options);
/* The error for a fault that a record of a file of so many columns has. csv_error.c */
kiln_status ki_csv_fail(const struct ki_table_error *error, int64_t fields, const char *name,
                        const struct ki_block *text);

/* ------------------------------------------------------------------------------------- the reader */

struct ki_csv_reader {
    struct ki_table_builder table;
    char delimiter;
    struct ki_input *input; /* the file that is being read */
    struct ki_input **more; /* of further files, as far as they are open: places name them until the end */
    int64_t more_open;
    /* Text that ended within quotes waits for its rest; the first `handed` bytes have been parsed. */
    struct ki_bytes pending;
    size_t handed;
    struct ki_block place; /* of pending: line and offset */
    bool quoted;
    int32_t
        *plan; /* for each field its feature, the schema's column, or -1; NULL: not in the schema's order */
};

/* The next whole records; size 0 at the end. A text that ends within quotes is handed out too, when it is
 * the last or too long, for the parser to say where the quote was opened. csv_text.c */
kiln_status ki_csv_next_text(struct ki_csv_reader *r, struct ki_block *text);
/* Moves *rest from behind the header on to the first row, past blank lines and texts without a row; to the
 * end of a text of size 0 where there is none. csv_text.c */
kiln_status ki_csv_first_row(struct ki_csv_reader *r, struct ki_block *text, const char **rest);
/* Sets `text` of each of the table's columns from the first rows of the file called `name`, which begin at
 * rest. csv_kinds.c */
kiln_status ki_csv_decide_kinds(struct ki_table_builder *table, char delimiter, const char *name,
                                const struct ki_block *text, const char *rest);
/* The same by the first rows of the file `first`, of whose parts this is one. csv_kinds.c */
kiln_status ki_csv_first_kinds(struct ki_table_builder *table, const char *first);
/* Parses the text from begin on, by all threads, and puts its rows behind what there is. csv_rows.c */
kiln_status ki_csv_take_text(struct ki_csv_reader *r, const struct ki_block *text, const char *begin);
/* Makes the plan, once the schema is settled. csv_quick.c */
kiln_status ki_csv_make_plan(struct ki_csv_reader *r);
/* Converts the rows at *text, which is moved behind them, up to one that csv_split.c has to look at; a fault,
 * or 0. csv_quick.c */
int ki_csv_quick_rows(struct ki_table_chunk *chunk, const struct ki_csv_reader *r, const char **text);
/* Opens options->more[more_open] and reads its header, which must be that of the first file. csv_files.c */
kiln_status ki_csv_open_next(struct ki_csv_reader *r, struct ki_block *text, const char **rest);

#endif
