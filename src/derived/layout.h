/* What the passes over a sparse matrix on a GPU derive from it, once: kept with the matrix, gone with it.
 *
 *   rows     The rows that are too long for a vector's turn, by length, for longer vectors, and segments of long ones, which
 *            a work-group each takes.
 *   popular  The most frequent columns. Entries of X in them hold ~slot in col, the slots in
 *            descending frequency, so that a pass sees from the entry alone where its sum gathers.
 *   tiles    A copy of the entries in the other columns, or in all of them where none is popular: by panels of columns
 *            whose y and w the second cache level holds (pass/csr/panels.cl).
 *   strips   A copy of all entries in strips of rows, each in the order of its columns (pass/csr/strips.cl): instead of popular
 *            columns and tiles, where no columns are popular, but rows are so alike and columns so few that those of a strip
 *            lie close together.
 *   transposed  A deterministic device has the transpose of X, in compressed columns, instead of tiles, and goes through it for
 *            popular columns, too: no sum is atomic there. Frequent columns are cut into bands of rows.
 *   alike    All values of X are the same number, as those of yes-or-no data are: nothing reads or copies them.
 *
 * Rows are looked at in the first pass, and the rest is made in the second, for a matrix multiplied once would not gain by
 * it. */
#ifndef KI_LAYOUT_H
#define KI_LAYOUT_H

#include "core/matrix.h"
#include "core/size.h"

/* Classes of lengths: up to KI_TURNS entries, which are in none, then twice as many each. */
enum { KI_ROW_CLASSES = 5, KI_ROW_LISTS = 3 };
struct ki_rows {
    int vector;  /* threads that suit the other rows, for one column of y; 0 = those for their mean */
    int longest; /* rows of more entries are in the lists */
    struct ki_buffer list;
    int ends[KI_ROW_LISTS],
        vectors[KI_ROW_LISTS]; /* of the lists in `list`, one after the other; their threads a row */
    int64_t segments;
    struct ki_buffer segment_row, segment_number; /* a row, and which of its segments */
};

/* Columns that are cut into `count` bands of X's rows: the rows of the transpose are these columns, band by band. */
struct ki_bands {
    int64_t columns, count, entries;
    int32_t first; /* of the columns in ki_transpose's list */
    struct ki_buffer start;
    struct ki_rows rows;
};

struct ki_transpose {
    struct ki_buffer row, value;
    struct ki_buffer columns; /* those that are cut, then the others; without a list, all as they come */
    struct ki_bands cut, whole;
    bool near; /* bands whose factors the first cache level holds, not the second */
};

/* Panels of 2^bits columns, cut into tiles of `height` rows. An entry is a word: its row within the tile above its column
 * within the panel. */
struct ki_tiles {
    int bits, height;
    int64_t blocks, panels; /* tiles in a panel, and panels */
    int64_t entries;
    struct ki_buffer start, entry, value; /* start: of each tile, panel by panel */
    struct ki_rows pieces;                /* segments of tiles, KI_PIECE entries each */
};

/* Strips of `height` rows. An entry is a word: its row within the strip above its column within a panel of 2^bits columns. */
struct ki_strips {
    int height, bits, panels, buckets, bucket_bits;
    int64_t count;
    struct ki_buffer start, entry, value; /* start: of each strip's buckets of 2^bucket_bits columns */
};

struct ki_layout {
    int64_t passes;
    bool ranked; /* popular columns have been looked for */
    bool alike;
    double value; /* of every entry, if alike */
    struct ki_rows rows;
    int64_t coded;
    /* The coded columns of an X whose own are shared or lent, and these; else they stand in X's own. */
    struct ki_buffer col, plain;
    struct ki_buffer slots;           /* the columns in the order of their slots */
    bool tiled, transposed, stripped; /* one of them, maybe without entries */
    struct ki_tiles tiles;
    struct ki_strips strips;
    struct ki_transpose transpose;
    int64_t bytes; /* of all that */
    /* Work space of passes. */
    struct ki_buffer y_hot, w_hot, dots, factors, partials, band_sums;
};

/* Entries of a row for a thread of its vector, which has registers for them; longer rows are in lists. */
enum { KI_TURNS = 6 };
/* Entries of a long row, and of a tile, that a work-group takes, and bytes of local memory for w and y. More would leave too
 * little of a compute unit's memory to its first cache level. Test builds (core/size.h) take every path with little data. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { KI_SEGMENT = 24, KI_PIECE = 200, KI_CHIP_BYTES = 256, KI_CHIP_BYTES_CPU = 256 };
#else
enum { KI_SEGMENT = 2048, KI_PIECE = 8192, KI_CHIP_BYTES = 128 * 1024, KI_CHIP_BYTES_CPU = 32 * 1024 };
#endif

/* The layout of X for a pass of one or several columns that scatters (or not) into w, of which chip_columns fit on chip; made as
 * far as it is due. */
kiln_status ki_layout_get(struct ki_layout **layout, const kiln_matrix *X, bool scatters, bool several,
                          int64_t chip_columns);
/* Threads that should share a row of a matrix, for one column of y. */
int ki_layout_vector(const kiln_device *device, int64_t nnz, int64_t rows);
/* Whether passes of one column will make strips of X, if no columns are popular and its rows are alike; whether the device has
 * room for them and X entries enough in each; threads of a group that takes one. */
bool ki_layout_strips_expected(const kiln_matrix *X);
bool ki_strips_suit(const kiln_matrix *X);
int ki_strips_group(const kiln_device *device);
/* Makes a buffer of the layout's work space at least so large. */
kiln_status ki_layout_work(kiln_device *device, struct ki_buffer *buffer, int64_t bytes);
/* y of the popular columns into y_hot (unless y is NULL) and zeros into w_hot (if `sums`); the sums to `out`. */
kiln_status ki_layout_pack(struct ki_layout *layout, const kiln_matrix *X, const kiln_matrix *y, bool sums,
                           int k, int first, int columns);
kiln_status ki_layout_unpack(struct ki_layout *layout, const kiln_matrix *X, kiln_matrix *out, int k,
                             int first, int columns);
/* n elements of X's type become zeros. */
kiln_status ki_layout_zero(const kiln_matrix *X, const struct ki_buffer *values, int64_t n);

#endif
