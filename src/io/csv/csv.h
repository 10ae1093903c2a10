/* What the parts of the CSV reader share: records split into fields, the columns' schema, the levels of text
 * columns. */
#ifndef KI_CSV_H
#define KI_CSV_H

#include "io/bytes.h"
#include "io/data.h"

enum {
    KI_CSV_COLUMN_LIMIT = 100000,     /* unless max_columns says otherwise; so with the next two */
    KI_CSV_UNNAMED_LIMIT = 1000,      /* columns without a name, unless max_columns is given */
    KI_CSV_LEVEL_LIMIT = 1000000,     /* levels of one text column */
    KI_CSV_NAME_LIMIT = 4096,         /* bytes of a column's name or of a level */
    KI_CSV_MODEL_LIMIT = 100000000,   /* levels of a column that a model may have */
    KI_CSV_LARGEST_RECORD = 64 << 20, /* bytes; an unclosed quote is noticed here at the latest */
};

/* ------------------------------------------------------------------------------- fields (csv_split.c) */

/* What may be wrong with a record. Worker threads note it; csv_error.c turns it into an error with its
 * place. */
enum ki_csv_fault {
    KI_CSV_FINE = 0,
    KI_CSV_BARE_QUOTE,  /* a quote inside a field that does not begin with one */
    KI_CSV_AFTER_QUOTE, /* something between the closing quote and the delimiter */
    KI_CSV_OPEN_QUOTE,  /* the input ends before the closing quote */
    KI_CSV_LONE_CR,     /* a carriage return without line feed, outside quotes */
    KI_CSV_FIELDS,      /* too many fields or too few */
    KI_CSV_WORD,        /* not a number, in a numeric column */
    KI_CSV_MISSING,     /* nothing, or NA, in a numeric column */
    KI_CSV_NONFINITE,   /* NaN, infinity, or too large for the type */
    KI_CSV_RANGE,       /* a target or weight that must not be */
    KI_CSV_UNSEEN,      /* a level that the model does not know, where that is an error */
    KI_CSV_CODE,        /* digits that a number would rewrite, in a target that is numbers */
    KI_CSV_BROKEN,      /* an array of a table whose offsets or indices lead out of it */
    KI_CSV_NOMEM,
    KI_CSV_FAULTS
};

struct ki_csv_field {
    const char
        *text; /* what stands between the quotes, "" still doubled, if quoted; NULL: chunk->numbers has it */
    int64_t size;
    bool quoted;
};

/* How a field becomes a number. */
struct ki_csv_numbers {
    const struct ki_bytes
        *missing; /* words that mean "missing", NUL-terminated each; beside these nothing, NA and NaN */
    bool decimal_comma, single; /* 1,5; single: for f32, rounded once */
};

/* Eight bytes, the first one lowest, whatever the machine's order. */
static inline uint64_t ki_csv_word(const char *text) {
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

/* Splits the record at *text, which is not blank, and moves *text behind its line end. *count counts all its
 * fields, of which the first `limit` are stored. On a fault *text points at its cause. */
/* Delimiters that stand for any number of blanks; with NAMED_ROWS the first field of a record names the row
 * and is left out. */
enum { KI_CSV_BLANKS = ' ', KI_CSV_NAMED_ROWS = '\v' };
enum ki_csv_fault ki_csv_split(const char **text, const char *end, char delimiter,
                               struct ki_csv_field *fields, int64_t limit, int64_t *count);
/* The first byte at or behind text that does not belong to an empty line. */
const char *ki_csv_skip_blank(const char *text, const char *end);
/* Length of the part of text that ends with a whole record. *quoted: whether a quote is open, before and
 * after. Text without line feed at its end counts as a whole record if no quote is open. */
size_t ki_csv_whole_records(const char *text, size_t size, bool *quoted, int threads);
/* Comma, semicolon or tab: the most frequent outside quotes in the first line. */
char ki_csv_delimiter(const char *text, const char *end);
/* Whether blanks separate, as numpy.savetxt and R's write.table have it: the first record has no other
 * delimiter, and is several numbers, or names of the columns of the second, in which there are numbers; of
 * all its columns, of all but the first, whose fields then name the rows, or behind a #. */
bool ki_csv_is_by_blanks(const char *text, const char *end);

enum ki_csv_kind { KI_CSV_NUMBER, KI_CSV_NOTHING, KI_CSV_TEXT };
/* Reads a field as a number; blanks around it are allowed. KI_CSV_NOTHING: empty, NA, or nan (*value is NaN).
 */
enum ki_csv_kind ki_csv_number(const struct ki_csv_field *field, const struct ki_csv_numbers *numbers,
                               double *value);
/* Whether the field is one of the words for "missing", or with `na` nothing, NA or NaN. */
bool ki_csv_missing(const struct ki_csv_field *field, const struct ki_csv_numbers *numbers, bool na);
/* Adds the words of a list separated by commas. */
kiln_status ki_csv_add_words(struct ki_bytes *words, const char *list);
/* The field's text without doubled quotes, appended to out; false if there is no memory. */
bool ki_csv_unquote(struct ki_bytes *out, const struct ki_csv_field *field);
bool ki_csv_is_number(const char *text, int64_t size); /* all of it, whatever says "missing" */
bool ki_csv_utf8(const char *text, int64_t size);      /* valid UTF-8 without NUL */
/* For messages: at most 40 bytes, printable; returns out. */
const char *ki_csv_excerpt(char out[64], const char *text, int64_t size);

/* ------------------------------------------------------------------------------ levels (csv_levels.c) */

struct ki_csv_level {
    uint64_t hash;
    int64_t text; /* offset in `text` of the NUL-terminated level */
    int32_t size, column;
};

/* The levels of all text columns, numbered as they came; a hash table with open addressing. */
struct ki_csv_levels {
    struct ki_bytes levels, text;
    int32_t *slots; /* 1 + number of the level, 0 = free; a power of two of them */
    int64_t count, slot_count;
    uint64_t key[2];
};

/* Of the hash of texts: another one each time, so that no file can be made whose texts collide. */
void ki_csv_new_key(uint64_t key[2]);
void ki_csv_levels_init(struct ki_csv_levels *levels);
void ki_csv_levels_free(struct ki_csv_levels *levels);
/* The level's number, or -1. Threads may look up together while nobody adds. */
int32_t ki_csv_levels_find(const struct ki_csv_levels *levels, int32_t column, const char *text,
                           int64_t size);
/* Adds a level that is not there yet; -1 if there is no memory. */
int32_t ki_csv_levels_add(struct ki_csv_levels *levels, int32_t column, const char *text, int64_t size);
/* Of any text, under the levels' key; never 0. */
uint64_t ki_csv_hash(const struct ki_csv_levels *levels, const char *text, int64_t size);
const struct ki_csv_level *ki_csv_level(const struct ki_csv_levels *levels, int64_t i);

/* Replaces hashes, none of them 0, by 0, 1, ... in the order in which they come. csv_groups.c */
kiln_status ki_csv_number_groups(int64_t *groups, int64_t rows);

/* ------------------------------------------------------------------------------ schema (csv_schema.c) */

/* Columns that are neither features nor targets. */
enum ki_csv_role { KI_CSV_WEIGHTS, KI_CSV_OFFSET, KI_CSV_GROUPS, KI_CSV_ROLES };

struct ki_csv_column {
    char *name;
    bool text, target;
    bool numbers;   /* of a text target: the first rows hold numbers alone */
    bool forced;    /* `text` is what the options say, not what the first rows look like */
    bool label;     /* text that becomes numbers again where numbers say the same (ki_csv_classes_settle) */
    bool imputed;   /* a number that is missing becomes `mean` */
    bool indicator; /* and one feature more is 1 there */
    int32_t levels; /* how many, if text */
    int32_t reference;     /* number of the level that has no feature, by arrival; -1: none */
    char *reference_level; /* its name, or NULL */
    int32_t first;         /* of a model's schema: number of the first level */
    int64_t field;         /* where the column stands in the file */
    int64_t word_line; /* of a text column: where its first level that is no number stands; 0: not known */
    int64_t missing;   /* with the numbers' statistics below: set by ki_csv_describe */
    double least, most, mean;
};

struct ki_csv_schema {
    struct ki_csv_column *columns; /* the features' columns, in the order of their features */
    int64_t count;
    struct ki_csv_column *targets;
    int64_t target_count;
    struct ki_csv_column roles[KI_CSV_ROLES]; /* name NULL: no column has the role */
    struct ki_csv_column *ignored; /* columns that nobody wants, those with a role among them in a model */
    int64_t ignored_count;
    struct ki_bytes missing_words;
    kiln_missing missing;    /* never DEFAULT once the schema is made */
    bool text_missing_error; /* the options say ERROR: then text that is missing is one, and else a level */
    bool frozen;             /* from a model: no level is added */
};

void ki_csv_schema_free(struct ki_csv_schema *schema);
/* Names of the file's columns become columns, targets and roles, as the options name them. */
kiln_status ki_csv_schema_from_header(struct ki_csv_schema *schema, char **names, int64_t count,
                                      const kiln_read_options *options, const struct ki_place *place);
/* From a model's schema text, which is not trusted; its levels are added to levels, those of targets to
 * classes. */
kiln_status ki_csv_schema_from_model(struct ki_csv_schema *schema, struct ki_csv_levels *levels,
                                     struct ki_csv_levels *classes, const char *text);
/* Finds the schema's columns among the file's. A target of the options replaces the schema's own. */
kiln_status ki_csv_schema_match(struct ki_csv_schema *schema, struct ki_warnings *warnings,
                                char *const *names, int64_t count, const kiln_read_options *options,
                                const struct ki_place *place);
/* The error for a name that the file does not have; what: "target". */
kiln_status ki_csv_unknown_column(const char *what, const char *name, char *const *names, int64_t count,
                                  const struct ki_place *place);

/* A level where it stands among the features; number: in order of arrival. */
struct ki_csv_entry {
    int32_t column, number;
    const char *text;
};
/* table->schema, the text that a model keeps; entries: all levels in order. csv_schema_text.c */
kiln_status ki_csv_write_schema(struct ki_table *table, const struct ki_csv_schema *schema,
                                const struct ki_csv_entry *entries);

/* ------------------------------------------------------------- what the options say (csv_choices.c) */

enum { KI_CSV_FEATURE = 1, KI_CSV_IGNORE = 2, KI_CSV_CATEGORICAL = 4, KI_CSV_NUMERIC = 8 };
/* What the options say of each of the file's columns: bits, from ki_alloc. */
kiln_status ki_csv_choices(unsigned char **bits, char *const *names, int64_t count,
                           const kiln_read_options *options, const struct ki_place *place);
/* Sets reference_level of the columns that kiln_read_options.reference names. */
kiln_status ki_csv_choose_references(struct ki_csv_schema *schema, const char *text,
                                     const struct ki_place *place);
/* Finds each column's reference among the levels that came; ERR_ARGUMENT where there is no such level. */
kiln_status ki_csv_find_references(struct ki_csv_schema *schema, const struct ki_csv_levels *levels,
                                   const struct ki_place *place);

/* Numbers the features - a numeric column is one, and one more if it has an indicator, a text column one a
 * level but its reference, levels in the order of their bytes - and fills table->cols, feature_names,
 * target_names and schema. (*feature)[i]: for column i; (*feature)[count + i]: for its indicator; behind
 * these one for each level. -1: none. Allocated with ki_alloc. */
kiln_status ki_csv_schema_finish(int32_t **feature, struct ki_table *table,
                                 const struct ki_csv_schema *schema, const struct ki_csv_levels *levels);

/* --------------------------------------------------------------------------- missing (csv_impute.c) */

/* Values as the chunks left them: dense, rows x count with NaN where a number is missing; or sparse, ids[e]
 * the column of entry e, count + column for its indicator, 2 count + level. */
struct ki_csv_entries {
    bool sparse;
    kiln_type type;
    int64_t rows, count; /* of entries; dense: rows x columns */
    void *values;
    int32_t *ids;
    int64_t *row_start;
};
/* Sets missing, least, most and mean of numeric columns (of a frozen schema all but the mean that the model
 * remembers) and missing of text columns. Where others read further parts these are of all rows, and all
 * meet. ERR_DATA: a column to be imputed without a single number. */
kiln_status ki_csv_describe(struct ki_csv_schema *schema, const struct ki_csv_entries *entries,
                            const struct ki_csv_levels *levels, const struct ki_place *place,
                            int64_t all_rows, int threads, const struct ki_together *together);
/* Puts means where numbers are missing, the features of the entries being numbered, and keeps in the table
 * which these are, unless a model has set the means. */
kiln_status ki_csv_impute(struct ki_table *table, const struct ki_csv_schema *schema,
                          const struct ki_csv_entries *entries, const int32_t *feature);
/* Replaces ids by features; entries without a feature are left out. */
void ki_csv_number_entries(struct ki_csv_entries *entries, const int32_t *feature, int threads);
/* Replaces dense rows by such with indicators, of so many columns; what is missing still is. */
kiln_status ki_csv_widen(struct ki_bytes *values, struct ki_csv_entries *entries,
                         const struct ki_csv_schema *schema, const int32_t *feature, int64_t cols);
/* table->columns, in the order of the file. */
kiln_status ki_csv_list_columns(struct ki_table *table, const struct ki_csv_schema *schema);

/* ---------------------------------------------------------------------------- classes (csv_classes.c) */

/* Targets that are labels become numbers where all their labels are plain ones. csv_classes.c */
void ki_csv_classes_settle(void *y, kiln_type type, int64_t rows, struct ki_csv_schema *schema,
                           const struct ki_csv_levels *classes);
/* Names the classes of text targets, levels whose column is the target's number: fills table->targets,
 * class_names and class_count. (*rank)[i]: the number of the class that came as the i-th level. Allocated
 * with ki_alloc. */
kiln_status ki_csv_classes_finish(int32_t **rank, struct ki_table *table, const struct ki_csv_schema *schema,
                                  const struct ki_csv_levels *classes);
/* Replaces levels by ranks in y, rows x targets; a negative entry stays. */
void ki_csv_classes_number(void *y, kiln_type type, int64_t rows, const struct ki_csv_schema *schema,
                           const int32_t *rank);

#endif
