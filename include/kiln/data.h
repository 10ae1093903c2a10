/* Kiln: data on files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_DATA_H
#define KILN_DATA_H

#include "kiln/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_file_format {
    /* by content and name: .svm .libsvm .mtx .csv .tsv .npy .npz .edges .kiln-data .txt docword.*, each also
     * with .gz or .zst */
    KILN_FILE_AUTO = 0,
    KILN_FILE_LIBSVM = 1,
    KILN_FILE_MATRIX_MARKET = 2,
    KILN_FILE_CSV = 3,
    KILN_FILE_NPY = 4,
    /* a CSR or CSC matrix as scipy.sparse.save_npz writes it, or X and y as numpy.savez does */
    KILN_FILE_NPZ = 5,
    KILN_FILE_EDGES =
        6, /* a graph: "from to" or "from to weight" a line, any names; X is square, X_ij the link i to j */
    KILN_FILE_BAG_OF_WORDS = 7, /* UCI's: documents, words, entries, then "document word count" lines */
    KILN_FILE_RATINGS = 8,      /* "user, item, rating" a line, any names; X_ui the rating */
    KILN_FILE_PACKED = 9        /* Kiln's own: all that reading has found, with checksums (.kiln-data) */
} kiln_file_format;

/* "libsvm", "csv", ...; of AUTO "auto". NULL behind the last. */
KILN_API const char *kiln_format_name(kiln_file_format format);

typedef struct kiln_data kiln_data;   /* a matrix X, targets y where the file has them, and names */
typedef struct kiln_model kiln_model; /* named tensors and text, one file */

/* Says what becomes of missing values in a CSV file: empty fields, NA, N/A, NaN, null, None, <NA>, #NA and
 * #N/A in any case, and the words of kiln_read_options.missing_words. In columns that
 * kiln_read_options.categorical names, empty fields and the words of missing_words alone are missing. All
 * text that is missing is one level, the empty one. X knows which of its entries MEAN and INDICATOR have
 * filled without a model, and kiln_path fills them anew for each fold. */
typedef enum kiln_missing {
    KILN_MISSING_DEFAULT =
        0, /* what the model remembers; else an error in numeric columns and targets, a level in text
            * columns */
    KILN_MISSING_ERROR = 1, /* in text columns too */
    KILN_MISSING_DROP = 2,  /* the row is left out */
    KILN_MISSING_MEAN = 3,  /* a number becomes the column's mean; text that is missing is the empty level */
    KILN_MISSING_INDICATOR =
        4 /* the same, and a feature "COLUMN missing" is 1 there, for columns with missing numbers */
} kiln_missing;

/* A level that the model has not seen. DEFAULT is ZERO. */
typedef enum kiln_unseen {
    KILN_UNSEEN_DEFAULT = 0,
    KILN_UNSEEN_ERROR = 1,
    KILN_UNSEEN_ZERO = 2,     /* no level of the column */
    KILN_UNSEEN_REFERENCE = 3 /* as the column's reference level, or without one its first */
} kiln_unseen;

/* Columns that the model does not know. DEFAULT ignores them with a warning (kiln_data_warning). */
typedef enum kiln_extra { KILN_EXTRA_DEFAULT = 0, KILN_EXTRA_IGNORE = 1, KILN_EXTRA_ERROR = 2 } kiln_extra;

enum { KILN_TARGETS_TEXT = 1, KILN_TARGETS_LABELS = 2 }; /* kiln_read_options.text_targets */

typedef struct kiln_read_options {
    size_t size;
    kiln_file_format format;
    kiln_type type; /* element type of X and y; default f64 */
    int zero_based; /* LIBSVM: indices count from 0; default from 1, and an index 0 is an error */
    /* CSV: name of the target column, several separated by commas; NULL = none. A dense matrix without names
     * (.npy, .npz, a Matrix Market array) that is read into memory has a number instead, from 1 on, or from
     * the end, -1 for the last. For edge lists and ratings see `source`. */
    const char *target;
    /* Likewise: columns that are no features but the rows' weights (none negative) and offset
     * (kiln_data_weights, _offset) */
    const char *weights, *offset;
    const kiln_range
        *target_range; /* targets in text must be numbers in it, else ERR_DATA with the place; NULL = any */
    /* 0: targets are numbers. KILN_TARGETS_TEXT: a target may be text; y then holds class numbers
     * (kiln_data_class_name). It is text where a number would rewrite what the file says: codes such as
     * 007, and integers beyond those that the type counts without a gap. KILN_TARGETS_LABELS: it is also
     * text where one of its values is not the plain form of a number, 1.0 for instance, so that labels are
     * exactly what the file says. */
    int text_targets;
    const char *target_file; /* Matrix Market, npy, npz: a file with the targets, one row a row of X */
    int64_t cols;            /* force at least this many columns (LIBSVM files do not say); 0 = as found */
    int allow_nonfinite;     /* accept NaN and infinity; default: an error that names the place */
    int strict;              /* duplicates that a format's rule would merge are errors */
    /* X stays in its file, which must not change meanwhile, and each pass over X reads it from there: X need
     * not fit into memory (its row starts must, if sparse). For a packed file without categories, an
     * uncompressed .npy by rows of the wanted type or of narrower numbers, and an .npz with a CSR matrix that
     * was stored, not deflated, columns of 32 bits ascending in each row. X of CSV, LIBSVM and other such
     * files, and of several of them, goes to a temporary file in the folder that TMPDIR names, else in
     * /var/tmp, and is read from there: what belongs to the rows beside it is in memory, and the files are
     * read in windows, CSV two or three times. A device with room enough for X takes it in. On the CPU only
     * mmchain, multiply, the losses, gram and gram_diagonal take such an X, else ERR_UNSUPPORTED. */
    int map;
    const kiln_model *model; /* encode columns as this model's training data were (CSV categories, columns) */
    /* CSV, each a list of column names separated by commas, or NULL. With a model its own say counts
     * instead. */
    const char *features;              /* only these are features */
    const char *ignore;                /* these are none */
    const char *categorical, *numeric; /* text, whatever it looks like; numbers; targets too */
    const char *reference;             /* COLUMN=LEVEL, ...: the level that gets no feature */
    kiln_missing missing;
    const char *missing_words; /* further words that mean "missing", separated by commas */
    int decimal_comma;         /* 1,5 is one and a half */
    kiln_unseen unseen;        /* with a model */
    kiln_extra extra_columns;  /* with a model; in sparse formats too */
    /* Limits of a CSV file, against memory that is many times its size; 0 = 100,000 columns (1,000 without a
     * name), 1,000,000 levels of a column, 4,096 bytes of a name or a level. */
    int64_t max_columns, max_levels, max_name;
    const char *const
        *more; /* more_count further files, whose rows follow those of the first; of the same columns */
    int64_t more_count;
    int64_t limit; /* bytes after decompression; 0 = no limit but the ratio guard against gz bombs */
    int threads;   /* parsing threads; 0 = the device's */
    kiln_control control;
    /* A file with the names of X's columns, a line each, for formats without names. NULL: for
     * docword.NAME.txt the file vocab.NAME.txt beside it, if there is one. */
    const char *vocabulary;
    kiln_file_format tables; /* what AUTO takes for CSV or an edge list is read as this; 0 = as that */
    const char
        *groups; /* CSV: a column that is no feature but says which rows belong together (kiln_data_groups) */
    /* Edge lists and ratings: the column with the vertex that a link comes from, or the user, and that with
     * the link's weight, or the rating; `target` is the one with the vertex that it leads to, or the item.
     * A whole number is a column's place, from 1 on, or from the end, -1 for the last; anything else its
     * name, exactly as in the header, which the file then must have. NULL: by the header's words, else by the
     * order (docs/formats.md). With `source` or `weight` AUTO takes a table for an edge list. ERR_PARSE:
     * there is no such column; the message lists those that there are. ERR_ARGUMENT: the file is of another
     * format. */
    const char *source, *weight;
    /* Edge lists: each link leads both ways, X_ji = X_ij, a vertex's link to itself once. Links that are
     * listed both ways add up, as others that are there several times. ERR_ARGUMENT: the file is of another
     * format; with `model` a matrix is taken for what its links have become. */
    int undirected;
    /* CSV and tables: A:B, ...: pairs of text columns that are features. Each pair of levels that occurs is
     * one more feature, "A=x:B=y", but those with a reference level of A or B; pairs come behind all
     * columns. */
    const char *interact;
} kiln_read_options;

/* Reads X (and y) onto the device. path "-" is standard input, read once.
 * One contract for all formats: memory stays proportional to the bytes read, never to a number in a header;
 * malformed input is ERR_PARSE with file, line, column, offset and reason; nothing is left allocated.
 * Rules per format: docs/formats.md. */
KILN_API kiln_status kiln_data_read(kiln_data **data, kiln_device *device, const char *path,
                                    const kiln_read_options *options);
/* Reads a table in memory, a stream of record batches by the Arrow C stream interface, as pandas, polars,
 * pyarrow and nanoarrow export it. It is read as a CSV file with these columns would be: the same
 * options, schema and errors, whose lines are rows, from 1 on. Booleans and numbers of all widths are
 * numbers, nulls and NaN missing values; texts (utf8, large_utf8, views) and dictionaries are text
 * columns, in which nulls, empty texts and the words of missing_words are missing, and NA, None and the like
 * are what they say. ERR_UNSUPPORTED: a column that is used is a time, a decimal, binary or nested. Numbers
 * are converted once, into X; nothing of the table is kept. The stream is released in any case. */
struct ArrowArrayStream;
KILN_API kiln_status kiln_data_from_arrow(kiln_data **data, kiln_device *device,
                                          struct ArrowArrayStream *stream, const kiln_read_options *options);
/* Takes over X and y (y may be NULL), which must not be freed by the caller after success. */
KILN_API kiln_status kiln_data_create(kiln_data **data, kiln_matrix *X, kiln_matrix *y);
KILN_API void kiln_data_free(kiln_data *data);
/* Moves all matrices to another device; from the CPU without a second copy in host memory. On failure the
 * data stay where they were. */
KILN_API kiln_status kiln_data_move(kiln_data *data, kiln_device *device);

KILN_API const kiln_matrix *kiln_data_X(const kiln_data *data);
KILN_API const kiln_matrix *kiln_data_y(const kiln_data *data); /* NULL if the file has no targets */
/* The columns that kiln_read_options.weights and .offset named, m x 1; NULL if they named none. */
KILN_API const kiln_matrix *kiln_data_weights(const kiln_data *data);
KILN_API const kiln_matrix *kiln_data_offset(const kiln_data *data);
/* The group of each row, by the text in the column that kiln_read_options.groups named: 0, 1, ... in the
 * order of the groups' first rows. m numbers; NULL if it named none. Two different texts share a number with
 * probability 2^-64. */
KILN_API const int64_t *kiln_data_groups(const kiln_data *data);
/* The rows that KILN_MISSING_DROP left out, numbered 0, 1, ... among all rows of the files, ascending; NULL
 * and 0 if there are none. */
KILN_API const int64_t *kiln_data_left_out(const kiln_data *data, int64_t *count);
KILN_API const char *kiln_data_feature_name(const kiln_data *data, int64_t j); /* NULL if unnamed */
KILN_API const char *kiln_data_row_name(const kiln_data *data, int64_t i);     /* NULL if unnamed */
KILN_API const char *kiln_data_target_name(const kiln_data *data, int64_t j);  /* NULL if unnamed */
/* The class that target j calls `number`: 0, 1, ... in the order of the names; -1, a class that the model of
 * the reading does not know, has none. NULL if the target is numeric. */
KILN_API const char *kiln_data_class_name(const kiln_data *data, int64_t j, int64_t number);
KILN_API kiln_file_format kiln_data_format(const kiln_data *data);
KILN_API int64_t kiln_data_bytes(const kiln_data *data); /* bytes after decompression */
/* The encoding of the columns, as JSON text (docs/formats.md, "Schema"); "" if there is nothing to say. */
KILN_API const char *kiln_data_schema(const kiln_data *data);
/* Returns what is odd about the file but no error: text of warning i = 0, 1, ..., which begins with its place
 * FILE:LINE:COLUMN where it has one; *hint (may be NULL) says what to do, or is "". NULL behind the last. */
KILN_API const char *kiln_data_warning(const kiln_data *data, int64_t i, const char **hint);

typedef enum kiln_column_role {
    KILN_COLUMN_FEATURE = 0,
    KILN_COLUMN_TARGET = 1,
    KILN_COLUMN_WEIGHTS = 2,
    KILN_COLUMN_OFFSET = 3,
    KILN_COLUMN_IGNORED = 4,
    KILN_COLUMN_GROUPS = 5
} kiln_column_role;
/* The name of the column with the role WEIGHTS, OFFSET or GROUPS; NULL if there is none. */
KILN_API const char *kiln_data_role_name(const kiln_data *data, kiln_column_role role);
/* A column of a CSV file or of a table in memory. levels counts those of text, missing fields not among
 * them. With missing = MEAN or INDICATOR missing counts fields, and least, most and mean are those of the
 * numbers that are there; else 0 and NaN. */
typedef struct kiln_column {
    const char *name;
    kiln_column_role role;
    int text;
    int64_t levels, missing;
    double least, most, mean;
} kiln_column;
/* Column i of the file, or of the first of several; NULL if there is none, or the file is no CSV. */
KILN_API const kiln_column *kiln_data_column(const kiln_data *data, int64_t i);

/* Writes atomically (temporary file, fsync, rename, fsync of the folder); format AUTO goes by the name. A
 * name ending in .gz compresses. Targets go into LIBSVM, CSV and packed files; what else there is beside X
 * goes into packed files alone, which read back as the same data. CSV and LIBSVM print the shortest decimals
 * that read back to the same bits, CSV classes by their names. */
KILN_API kiln_status kiln_data_write(const kiln_data *data, const char *path, kiln_file_format format,
                                     const kiln_control *control);

/* Removes the temporary files of outputs that are being written, by any thread. Only for a program that ends
 * at once: a handler of signals may call it before _exit (it is async-signal-safe). Writing that goes on
 * after it fails. */
KILN_API void kiln_abandon_files(void);

#ifdef __cplusplus
}
#endif
#endif
