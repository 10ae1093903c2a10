/* A reader hands this to data.c: host arrays, each from ki_alloc or ki_resize, which then become matrices. */
#ifndef KI_DATA_H
#define KI_DATA_H

#include "kiln.h"
#include "io/bytes.h"
#include "core/codes/codes.h"
#include "io/input.h"

/* Columns that are neither features nor targets, as kiln_read_options names them. */
enum ki_table_role { KI_TABLE_WEIGHTS, KI_TABLE_OFFSET, KI_TABLE_GROUPS, KI_TABLE_ROLES };

/* Pairs of text and hint, NUL-terminated each. */
struct ki_warnings {
    struct ki_bytes text;
    int64_t count;
};

struct kiln_data {
    kiln_matrix *X, *y, *weights, *offset; /* all but X NULL if there are none */
    int64_t *groups;                       /* of the rows, or NULL */
    char **feature_names, **target_names, **row_names, *role_names[KI_TABLE_ROLES];
    char *name_text;     /* where the features' names lie; NULL if each has memory of its own */
    char *row_name_text; /* where those of the rows lie */
    char ***class_names; /* as the table's */
    int64_t *class_count;
    char *schema;
    struct ki_warnings warnings;
    int64_t *left_out; /* as the table's */
    int64_t left_out_count;
    struct ki_category *categories; /* as the table's */
    int64_t category_count;
    kiln_column *columns; /* column_count of them, names in column_names */
    int64_t column_count;
    char *column_names;
    kiln_file_format format;
    int64_t bytes; /* after decompression */
};

/* Who reads parts of the same data at the same time. A reader whose rows depend on what others find meets
 * them, when it has all of its own: CSV once, and once more where missing numbers get their mean, or a model
 * may say so. One that fails before is missed there, and all fail. */
struct ki_together {
    int rank;           /* of this reader; not all need tell something */
    const char *first;  /* the first file of all */
    const char *name;   /* of the file that is read, whose lines all count alike; or NULL: each its own */
    const char *schema; /* of the model that the first reader has; "" or NULL: it has none */
    uint64_t key[2];    /* all hash groups by it, which ki_table_number_groups is to number over all rows */
    void *of;
    /* Exchanges what each tells: the own bytes become those of all, in order of their ranks. ERR_UNSUPPORTED:
     * not all have come. */
    kiln_status (*meet)(void *of, struct ki_bytes *bytes);
};

struct ki_table {
    const struct ki_together *together; /* NULL: the reader has all of the data */
    kiln_format format;                 /* KILN_DENSE or KILN_CSR */
    int64_t rows, cols, nnz;
    struct ki_file *file; /* where values and col lie instead, NULL then; or NULL (io/numpy/map.h) */
    void *values;         /* of options.type (f32 or f64): rows*cols row-major, or nnz */
    kiln_element element; /* of values that are written: they may be narrow ones, 0: of the type */
    int64_t *row_start;   /* CSR: rows+1 */
    int32_t *col;         /* CSR: nnz, ascending within each row, no duplicates */
    struct ki_category *categories; /* of text columns with levels, category_count of them, or NULL */
    int64_t category_count;
    int64_t *filled; /* entries of X that were missing and have a mean of these rows, ascending; or NULL */
    int64_t filled_count;
    int64_t *left_out; /* rows that were dropped, numbered among all that were read, ascending; or NULL */
    int64_t left_out_count;
    void *y;         /* rows*targets row-major of the same type, or NULL */
    int64_t targets; /* columns of y; 0 if y is NULL */
    struct ki_bytes
        label_text;  /* of a single target the text of each row, NUL-terminated, where it may be needed */
    bool odd_labels; /* one of them is none that a number says (io/labels.h) */
    void *weights;   /* rows of the same type, or NULL */
    void *offset;    /* likewise */
    int64_t *groups; /* rows of them, or NULL */
    char **feature_names; /* cols of them, or NULL */
    char *name_text;      /* where they lie, in one piece; NULL: each is from ki_alloc */
    char **row_names;     /* rows of them, which lie in row_name_text, or NULL */
    char *row_name_text;
    char **target_names;              /* targets of them, each from ki_alloc, or NULL */
    char *role_names[KI_TABLE_ROLES]; /* of weights, offset and groups, from ki_alloc; NULL: there are none */
    char **
        *class_names; /* for each target, if it is text, class_count of names in order, else NULL; or NULL */
    int64_t *class_count;
    char *schema;       /* JSON text of how columns were encoded, or NULL */
    int64_t more_bytes; /* of further files that the reader took with the first */
    struct ki_warnings warnings;
    kiln_column *columns; /* of the file, column_count of them, or NULL; their names lie in column_names */
    int64_t column_count;
    char *column_names;
};
/* The e-th element of an array of the type. */
static inline double ki_element(const void *values, kiln_type type, int64_t e) {
    return type == KILN_F32 ? (double)((const float *)values)[e] : ((const double *)values)[e];
}
/* Adds a warning; place may be NULL, hint "". */
kiln_status ki_warn(struct ki_warnings *warnings, const struct ki_place *place, const char *hint,
                    const char *format, ...) KI_PRINTF(4, 5);
void ki_table_clear(struct ki_table *table); /* frees all and zeroes the struct */

/* A reader fills a zeroed table, or fails and leaves it to the caller to clear. options->type is F32 or F64
 * (never DEFAULT), options->threads > 0; the input stands at the beginning. */
typedef kiln_status ki_reader(struct ki_table *table, struct ki_input *input,
                              const kiln_read_options *options);
ki_reader ki_read_libsvm, ki_read_matrix_market, ki_read_csv, ki_read_npy, ki_read_npz, ki_read_edges,
    ki_read_bag_of_words, ki_read_ratings, ki_read_panels;

/* A model with a schema was trained on a table with named columns, and what has none is not what it knows:
 * ERR_MODEL. One without a schema takes columns by their place, which is a warning. */
kiln_status ki_check_model_format(kiln_file_format format, const char *path, const kiln_read_options *options,
                                  struct ki_warnings *warnings);
/* All files that path and options name, into a zeroed table; *format may be AUTO, *bytes is added to. */
kiln_status ki_table_read(struct ki_table *table, kiln_file_format *format, int64_t *bytes, const char *path,
                          const kiln_read_options *options);
/* A file without names has columns named by their number: these leave X, and names that would be ignored are
 * an error. */
kiln_status ki_take_named(struct ki_table *table, kiln_file_format format, const char *path,
                          const kiln_read_options *options);

/* Rows of the model's weights, or of the factors of its columns; 0 if it has neither. */
int64_t ki_model_columns(const kiln_model *model);

/* A writer appends the data's matrix to an output (io/output.h); host arrays as in the table; threads > 0. */
struct ki_output;
typedef kiln_status ki_writer(struct ki_output *output, const struct ki_table *table, kiln_type type,
                              int threads);
ki_writer ki_write_libsvm, ki_write_matrix_market, ki_write_csv, ki_write_npy, ki_write_npz, ki_write_panels;

#endif
