/* Some columns of a sparse matrix on the CPU: by rows, as a matrix, or by columns, as plain arrays.
 * Algorithms that work on a few columns for a while (newton_descent.c) then read no others. Also a sample of
 * the rows of a dense matrix. */
#ifndef KI_OPS_SELECT_H
#define KI_OPS_SELECT_H

#include <stdbool.h>

#include "kiln/matrix.h"

/* Once for a matrix, which has to stay: how many entries its columns have in each part of the rows. */
struct ki_selector {
    const kiln_matrix *X;
    int64_t columns;
    int32_t *entries; /* parts x n */
    int32_t *place;   /* n, for the selection last opened: a column's number in it, else `count` or more */
    int parts;
};

/* Some of its columns. */
struct ki_selection {
    const struct ki_selector *of;
    int64_t count;
    int64_t *start; /* count + 1: where a column's entries begin when they are sorted by columns */
    int64_t *next;  /* for each part of the rows the same of its entries, and where others may go */
};

/* X lies on the CPU, in memory, and has rows that 32 bits number. Columns are selected only where X is
 * sparse, rows only where it is dense. */
bool ki_selectable(const kiln_matrix *X);
kiln_status ki_selector_open(struct ki_selector *selector, const kiln_matrix *X);
void ki_selector_close(struct ki_selector *selector);
static inline int64_t ki_selector_entries(const struct ki_selector *selector, int64_t column) {
    int64_t entries = 0;
    for (int part = 0; part < selector->parts; part++)
        entries += selector->entries[part * selector->columns + column];
    return entries;
}
/* chosen: the columns of the selection, `count` of them. A selector has one selection at a time. */
kiln_status ki_selection_open(struct ki_selection *selection, const struct ki_selector *selector,
                              const int32_t *chosen, int64_t count);
void ki_selection_close(struct ki_selection *selection);
/* The selected columns as a matrix, m x count. */
kiln_status ki_selection_matrix(kiln_matrix **A, const struct ki_selection *selection);
/* The same column by column: start[count] entries in arrays with room for ki_selection_spare more,
 * rows ascending within a column. Once for a selection, the last that is done with it. */
int64_t ki_selection_spare(const struct ki_selector *selector);
void ki_selection_columns(int32_t *row, double *value, struct ki_selection *selection);

/* ---- rows ---- */

/* few = as many rows as it has of a dense X that is ki_selectable, spread over all of it: the same ones for
 * every X of as many rows (sample_rows.c). */
void ki_sample_rows(kiln_matrix *few, const kiln_matrix *X);
/* Pairs of rows that differ in a column, no row in two of them, in such a sample of `count`; up to `enough`.
 * With two values that is how often the rarer one is there, with more at least half of the rows that do not
 * have the most frequent one. */
int64_t ki_sample_differs(const kiln_matrix *X, int64_t count, int64_t column, int64_t enough);

/* ---- columns without entries ---- */

/* The columns that have entries, where there are far more that have none: documents of a large vocabulary.
 * Costs as much as the entries, and a bit for each column (occupied.c). */
struct ki_occupied {
    kiln_matrix *X; /* m x count: the same entries, of columns numbered anew in the same order */
    int32_t *kept;  /* count: which columns they were */
    int64_t count;
};

/* X: ki_selectable, with entries. */
kiln_status ki_occupied_open(struct ki_occupied *occupied, const kiln_matrix *X);
void ki_occupied_close(struct ki_occupied *occupied);
/* These take dense matrices in the CPU's memory, n x k and count x k, of X's type: few = wide's rows of the
 * kept columns; and wide = few's rows there, 0 elsewhere. */
void ki_occupied_gather(kiln_matrix *few, const kiln_matrix *wide, const struct ki_occupied *occupied);
void ki_occupied_spread(kiln_matrix *wide, const kiln_matrix *few, const struct ki_occupied *occupied);

#endif
