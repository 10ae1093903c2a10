/* The passes over a sparse matrix on a GPU derive these from it, each in a slot of its own (core/slots.h):
 *
 *   rows       The rows that are too long for a vector's turn, by length, for longer vectors,
 *              and segments of long ones, which a work-group each takes (long_rows.c).
 *   popular    The most frequent columns, ranked, and a copy of X's column numbers in which those of popular
 *              ones are ~rank, so that a pass sees from the entry alone where its sum gathers (popular.c).
 *              4 bytes an entry.
 *   panels     A copy of the entries in the other columns, or in all of them where none is popular:
 *              by panels of columns whose y and w the second cache level holds (panels.c,
 *              pass/csr/panels.cl). An index and a value for each such entry.
 *   transpose  A deterministic device has the transpose of X, in compressed columns, instead of
 *              panels, and goes through it for popular columns, too: no sum is atomic there
 *              (transpose.c). An index and a value for each entry.
 *
 * Where all values of X are the same number, as those of yes-or-no data are, nothing reads or copies them.
 *
 * Rows are looked at in the first pass, and the rest is made in the second, for a matrix multiplied once
 * would not gain by it. */
#ifndef KI_DERIVED_H
#define KI_DERIVED_H

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

struct ki_popular {
    int64_t count;            /* 0 = X was looked at, and no columns are popular */
    struct ki_buffer columns; /* by rank */
    struct ki_buffer code;    /* of X's entries: ~rank, or the column */
};

/* Panels of 2^bits columns, each cut into blocks of `height` rows. An entry is a word: its row within the
 * block above its column within the panel. */
struct ki_panels {
    int bits, height;
    int64_t count, blocks; /* panels, and blocks of each */
    int64_t entries;
    struct ki_buffer start, entry, value; /* start: of each block, panel by panel */
    struct ki_rows pieces;                /* segments of blocks, ki_limits.piece entries each */
};

/* The transpose of X, cut into bands of X's rows: its rows are the columns of X, band by band. */
struct ki_transpose {
    int64_t bands;
    struct ki_buffer start, row, value;
    struct ki_rows rows;
};

/* Holds what a pass has of X. */
struct ki_derived {
    int64_t passes;             /* over X, with this one */
    const struct ki_rows *rows; /* without lists where X was not looked at */
    const struct ki_popular *popular;
    const struct ki_panels *panels;
    const struct ki_transpose *transpose; /* these three may be NULL */
    bool alike;                           /* all values are `value` */
    double value;
};

/* Entries of a row for a thread of its vector, which has registers for them; longer rows are in lists. */
enum { KI_TURNS = 6 };

/* Finds all that, for a pass that scatters (or not) into w, of which chip_columns fit on chip; made as far as
 * it is due. X is held. */
kiln_status ki_derived_get(struct ki_derived *derived, const kiln_matrix *X, bool scatters,
                           int64_t chip_columns);
struct ki_programs;
/* Lists the kernels by which the first two passes that scatter into w, of which chip_columns fit on chip,
 * look at X. Returns whether columns will be ranked. */
bool ki_derived_programs(struct ki_programs *programs, const kiln_matrix *X, int64_t chip_columns);
/* Threads that should share a row of a matrix, for one column of y. */
int ki_rows_vector(const kiln_device *device, int64_t nnz, int64_t rows);
/* y of the popular columns into y_hot (unless y is NULL) and zeros into w_hot (unless that is NULL); the sums
 * to `out`. */
kiln_status ki_popular_pack(const struct ki_popular *popular, const struct ki_buffer *y_hot,
                            const struct ki_buffer *w_hot, const kiln_matrix *X, const kiln_matrix *y,
                            int first, int columns);
kiln_status ki_popular_unpack(const struct ki_popular *popular, kiln_matrix *out,
                              const struct ki_buffer *w_hot, int first, int columns);
/* n words of 32 bits become `value`. */
kiln_status ki_derived_fill(kiln_device *device, const struct ki_buffer *words, int64_t n, int32_t value);

#endif
