/* A table: columns of numbers, of texts, and what is missing in them, on its way to a matrix. A feeder (csv/,
 * arrow/) brings records of fields and the columns' names; from there on all is the same: the columns'
 * schema, the levels of text columns, classes, missing values, problems and their places. What the parts
 * share stands here; convert.h has a record's way to a row, builder.h the order of all. */
#ifndef KI_TABLE_H
#define KI_TABLE_H

#include "io/bytes.h"
#include "io/data.h"

enum {
    KI_TABLE_COLUMN_LIMIT = 100000,   /* unless max_columns says otherwise; so with the next two */
    KI_TABLE_LEVEL_LIMIT = 1000000,   /* levels of one text column */
    KI_TABLE_NAME_LIMIT = 4096,       /* bytes of a column's name or of a level */
    KI_TABLE_MODEL_LIMIT = 100000000, /* levels of a column that a model may have */
};

/* -------------------------------------------------------------------------------------- fields (cell.c) */

/* A record may have one of these faults. Worker threads note it; errors.c makes an error with its place. */
enum ki_table_fault {
    KI_TABLE_FINE = 0,
    KI_TABLE_WORD,      /* not a number, in a numeric column */
    KI_TABLE_MISSING,   /* nothing, or NA, in a numeric column */
    KI_TABLE_NONFINITE, /* NaN, infinity, or too large for the type */
    KI_TABLE_RANGE,     /* a target or weight that must not be */
    KI_TABLE_UNSEEN,    /* a level that the model does not know, where that is an error */
    KI_TABLE_CODE,      /* digits that a number would rewrite, in a target that is numbers */
    KI_TABLE_AMBIGUOUS, /* a level by which a pair of levels would have the name of another */
    KI_TABLE_NOMEM,
    KI_TABLE_FAULTS /* from here on a feeder's own, of a record as a whole */
};

struct ki_table_field {
    const char
        *text; /* what stands between the quotes, "" still doubled, if quoted; NULL: chunk->numbers has it */
    int64_t size;
    bool quoted;
};

/* Says how a field becomes a number. */
struct ki_table_numbers {
    const struct ki_bytes
        *missing; /* words that mean "missing", NUL-terminated each; beside these nothing, NA and NaN */
    bool decimal_comma, single; /* 1,5; single: for f32, rounded once */
};

enum ki_table_kind { KI_TABLE_NUMBER, KI_TABLE_NOTHING, KI_TABLE_TEXT };
/* Reads a field as a number; blanks around it are allowed. KI_TABLE_NOTHING: empty, NA, or nan (*value is
 * NaN). */
enum ki_table_kind ki_table_number(const struct ki_table_field *field, const struct ki_table_numbers *numbers,
                                   double *value);
/* Returns whether the field is one of the words for "missing", or with `na` nothing, NA or NaN. */
bool ki_table_missing(const struct ki_table_field *field, const struct ki_table_numbers *numbers, bool na);
/* Adds the words of a list separated by commas. */
kiln_status ki_table_add_words(struct ki_bytes *words, const char *list);
/* The field's text without doubled quotes, appended to out; false if there is no memory. */
bool ki_table_unquote(struct ki_bytes *out, const struct ki_table_field *field);
bool ki_table_is_number(const char *text, int64_t size); /* all of it, whatever says "missing" */
bool ki_table_utf8(const char *text, int64_t size);      /* valid UTF-8 without NUL */
/* For messages: at most 40 bytes, printable; returns out. */
const char *ki_table_excerpt(char out[64], const char *text, int64_t size);

/* ------------------------------------------------------------------------------ levels (levels.c) */

struct ki_table_level {
    uint64_t hash; /* 0: it is not in the hash table */
    int64_t text;  /* offset in `text` of the NUL-terminated level */
    int32_t size, column;
};

/* The levels of all text columns, numbered as they came; a hash table with open addressing. */
struct ki_table_levels {
    struct ki_bytes levels, text;
    int32_t *slots; /* 1 + number of the level, 0 = free; a power of two of them */
    int64_t count, slot_count;
    uint64_t key[2];
};

/* The key of the hash of texts is another one each time, so that no file can be made whose texts collide. */
void ki_table_new_key(uint64_t key[2]);
void ki_table_levels_init(struct ki_table_levels *levels);
void ki_table_levels_free(struct ki_table_levels *levels);
/* The level's number, or -1. Threads may look up together while nobody adds. */
int32_t ki_table_levels_find(const struct ki_table_levels *levels, int32_t column, const char *text,
                             int64_t size);
/* A text that is looked for among the levels of column 0: number is set as above. */
struct ki_table_sought {
    const struct ki_table_levels *in;
    const char *text;
    int64_t size;
    uint64_t hash;
    int32_t number;
};
/* Looks for some dozens of texts together, faster than one by one where the tables are large. */
void ki_table_levels_find_all(struct ki_table_sought *sought, int count);
/* Adds a level that is not there yet; -1 if there is no memory. */
int32_t ki_table_levels_add(struct ki_table_levels *levels, int32_t column, const char *text, int64_t size);
/* The same of a level that nobody will look for here. */
int32_t ki_table_levels_add_unhashed(struct ki_table_levels *levels, int32_t column, const char *text,
                                     int64_t size);
/* Hashes any text, under the levels' key; never 0. */
uint64_t ki_table_hash(const struct ki_table_levels *levels, const char *text, int64_t size);
const struct ki_table_level *ki_table_level(const struct ki_table_levels *levels, int64_t i);

/* Replaces hashes, none of them 0, by 0, 1, ... in the order in which they come. groups.c */
kiln_status ki_table_number_groups(int64_t *groups, int64_t rows);

/* ------------------------------------------------------------------------------ schema (schema.c) */

struct ki_table_column {
    char *name;
    bool text, target;
    bool numbers;   /* of a text target: the first rows hold numbers alone */
    bool forced;    /* `text` is what the options say, not what the first rows look like */
    bool label;     /* text that becomes numbers again where numbers say the same (ki_table_classes_settle) */
    bool imputed;   /* a number that is missing becomes `mean` */
    bool indicator; /* and one feature more is 1 there */
    int32_t levels; /* how many, if text */
    int32_t reference;     /* number of the level that has no feature, by arrival; -1: none */
    char *reference_level; /* its name, or NULL */
    int32_t first;         /* of a model's schema: number of the first level */
    int64_t field;         /* where the column stands in the file; a pair's, where its first one does */
    int64_t with;          /* a pair's: where its second one does */
    bool pair;             /* its levels are the pairs of levels of these columns of the schema */
    int32_t of[2];
    int64_t word_line; /* of a text column: where its first level that is no number stands; 0: not known */
    int64_t missing;   /* with the numbers' statistics below: set by ki_table_describe */
    double least, most, mean;
};

/* ------------------------------------------------------------------------------ first rows (sample.c) */

/* Holds what the first rows hold in one column. */
struct ki_table_sample {
    int64_t numbers, codes, words, with_comma, dates; /* codes: numbers that are perhaps none */
    int64_t dressed;            /* words that are a number with something beside it, all the same */
    struct ki_table_field word; /* the first */
};

#define KI_TABLE_COMMA_HINT                                                                                  \
    "kiln_read_options.decimal_comma reads 1,5 as one and a half; else write numbers with a decimal point "  \
    "and without thousands separators"
/* Returns whether a field is digits and signs with a comma: 1,5 or 12,000. */
bool ki_table_has_comma(const struct ki_table_field *field);
void ki_table_sample_look(struct ki_table_sample *sample, const struct ki_table_field *field,
                          const struct ki_table_numbers *numbers, kiln_type type);
/* Returns whether levels made of these words are probably not meant, and the warning that says so. */
bool ki_table_sample_is_odd(const struct ki_table_sample *sample);
kiln_status ki_table_sample_warn(struct ki_warnings *warnings, const struct ki_table_column *column,
                                 const struct ki_table_sample *sample, const struct ki_place *place);

struct ki_table_schema {
    struct ki_table_column *columns; /* the features' columns, in the order of their features */
    int64_t count;                   /* pairs stand last */
    struct ki_table_column *targets;
    int64_t target_count;
    struct ki_table_column roles[KI_TABLE_ROLES]; /* name NULL: no column has the role */
    struct ki_table_column *ignored; /* columns that nobody wants, those with a role among them in a model */
    int64_t ignored_count;
    struct ki_bytes missing_words;
    kiln_missing missing;    /* never DEFAULT once the schema is made */
    bool text_missing_error; /* the options say ERROR: then text that is missing is one, and else a level */
    bool frozen;             /* from a model: no level is added */
};

void ki_table_schema_free(struct ki_table_schema *schema);
/* Names of the file's columns become columns, targets and roles, as the options name them. */
kiln_status ki_table_schema_from_header(struct ki_table_schema *schema, char **names, int64_t count,
                                        const kiln_read_options *options, const struct ki_place *place);
/* From a model's schema text, which is not trusted; its levels are added to levels, those of targets to
 * classes. */
kiln_status ki_table_schema_from_model(struct ki_table_schema *schema, struct ki_table_levels *levels,
                                       struct ki_table_levels *classes, const char *text);
/* Finds the schema's columns among the file's. A target of the options replaces the schema's own. */
kiln_status ki_table_schema_match(struct ki_table_schema *schema, struct ki_warnings *warnings,
                                  char *const *names, int64_t count, const kiln_read_options *options,
                                  const struct ki_place *place);
/* ERR_PARSE: two columns have one name. */
kiln_status ki_table_check_names(char **names, int64_t count, const struct ki_place *place);
/* Finds which columns' missing numbers become means, and get indicators, once it is known which are text. */
void ki_table_settle_missing(struct ki_table_schema *schema);
/* The error for a name that the file does not have; what: "target". */
kiln_status ki_table_unknown_column(const char *what, const char *name, char *const *names, int64_t count,
                                    const struct ki_place *place);

/* A level where it stands among the features; number: in order of arrival. */
struct ki_table_entry {
    int32_t column, number;
    const char *text;
};
/* table->schema, the text that a model keeps; entries: all levels in order. schema_text.c */
kiln_status ki_table_write_schema(struct ki_table *table, const struct ki_table_schema *schema,
                                  const struct ki_table_entry *entries);

/* ------------------------------------------------------------- what the options say (choices.c) */

enum { KI_TABLE_FEATURE = 1, KI_TABLE_IGNORE = 2, KI_TABLE_CATEGORICAL = 4, KI_TABLE_NUMERIC = 8 };
/* Finds what the options say of each of the file's columns: bits, from ki_alloc. */
kiln_status ki_table_choices(unsigned char **bits, char *const *names, int64_t count,
                             const kiln_read_options *options, const struct ki_place *place);
/* Sets reference_level of the columns that kiln_read_options.reference names. */
kiln_status ki_table_choose_references(struct ki_table_schema *schema, const char *text,
                                       const struct ki_place *place);
/* Adds the pairs of columns that kiln_read_options.interact names. */
kiln_status ki_table_choose_pairs(struct ki_table_schema *schema, const char *text,
                                  const struct ki_place *place);
/* ERR_ARGUMENT where a pair is of a numeric column. */
kiln_status ki_table_check_pairs(const struct ki_table_schema *schema, const struct ki_place *place);
/* Finds each column's reference among the levels that came; ERR_ARGUMENT where there is no such level. */
kiln_status ki_table_find_references(struct ki_table_schema *schema, const struct ki_table_levels *levels,
                                     const struct ki_place *place);

/* Numbers the features - a numeric column is one, and one more if it has an indicator, a text column one a
 * level but its reference, levels in the order of their bytes - and fills table->cols, feature_names,
 * target_names and schema. (*feature)[i]: for column i; (*feature)[count + i]: for its indicator; behind
 * these one for each level. -1: none. Allocated with ki_alloc. */
kiln_status ki_table_schema_finish(int32_t **feature, struct ki_table *table,
                                   const struct ki_table_schema *schema,
                                   const struct ki_table_levels *levels);

/* --------------------------------------------------------------------------- missing (impute.c) */

/* Values as the chunks left them: dense, rows x count with NaN where a number is missing; or sparse, ids[e]
 * the column of entry e, count + column for its indicator, 2 count + level. */
struct ki_table_entries {
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
kiln_status ki_table_describe(struct ki_table_schema *schema, const struct ki_table_entries *entries,
                              const struct ki_table_levels *levels, const struct ki_place *place,
                              int64_t all_rows, int threads, const struct ki_together *together);
/* Puts means where numbers are missing, the features of the entries being numbered, and keeps in the table
 * which these are, unless a model has set the means. */
kiln_status ki_table_impute(struct ki_table *table, const struct ki_table_schema *schema,
                            const struct ki_table_entries *entries, const int32_t *feature);
/* Replaces ids by features; entries without a feature are left out. */
void ki_table_number_entries(struct ki_table_entries *entries, const int32_t *feature, int threads);
/* Replaces dense rows by such with indicators, of so many columns; what is missing still is. */
kiln_status ki_table_widen(struct ki_bytes *values, struct ki_table_entries *entries,
                           const struct ki_table_schema *schema, const int32_t *feature, int64_t cols);
/* table->columns, in the order of the file. */
kiln_status ki_table_list_columns(struct ki_table *table, const struct ki_table_schema *schema);

/* ---------------------------------------------------------------------------- classes (classes.c) */

/* Targets that are labels become numbers where all their labels are plain ones. classes.c */
void ki_table_classes_settle(void *y, kiln_type type, int64_t rows, struct ki_table_schema *schema,
                             const struct ki_table_levels *classes);
/* Names the classes of text targets, levels whose column is the target's number: fills table->targets,
 * class_names and class_count. (*rank)[i]: the number of the class that came as the i-th level. Allocated
 * with ki_alloc. */
kiln_status ki_table_classes_finish(int32_t **rank, struct ki_table *table,
                                    const struct ki_table_schema *schema,
                                    const struct ki_table_levels *classes);
/* Replaces levels by ranks in y, rows x targets; a negative entry stays. */
void ki_table_classes_number(void *y, kiln_type type, int64_t rows, const struct ki_table_schema *schema,
                             const int32_t *rank);

#endif
