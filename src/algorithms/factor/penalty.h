/* The penalty of a factor model where nobody gives one. */
#ifndef KI_FACTOR_PENALTY_H
#define KI_FACTOR_PENALTY_H

#include "algorithms/run/arena.h"

/* Entries of each row and column of a sparse matrix. */
struct ki_counts {
    double *row, *column;
    int64_t rows, columns; /* that have entries */
};
/* transposed: R^T, or NULL where there is none; columns are counted by a product then. */
kiln_status ki_counts_take(struct ki_counts *counts, struct ki_arena *arena, const kiln_matrix *R,
                           const kiln_matrix *transposed);

/* Holds what R's entries are like: their mean, and their standard deviation, or of equal ones a thousandth of
 * their size, so that it is a unit in any case; squares: the sum of (r - mean)^2. */
struct ki_spread {
    double mean, squares, deviation;
};
/* sum: of R's entries. */
kiln_status ki_spread_take(struct ki_spread *spread, const kiln_matrix *R, double sum);

/* Says how large numbers of a type may be, and how small: 1 over that, 0 left out. *has: whether it holds the
 * largest |r| of R's entries; however small they are, the largest times a number, or their mean times it. */
struct ki_room {
    double f32, f64;
};
kiln_status ki_room_has(bool *has, struct ki_room room, const kiln_matrix *R);
kiln_status ki_room_below(bool *has, struct ki_room room, const kiln_matrix *R, double times);
kiln_status ki_room_on_average(bool *has, struct ki_room room, const kiln_matrix *R, double times);
/* ERR_DATA, as an error of `call`: what is made of R's entries leaves their type. */
kiln_status ki_room_fail(const char *call, const char *what, const kiln_matrix *R);

/* deviation * 0.8 (sqrt(entries a row) + sqrt(entries a column)). A random sparse matrix of that deviation
 * has its largest singular value near deviation * (sqrt + sqrt), so that about what is noise gets no factor,
 * however large the table and whatever the unit. */
double ki_factor_penalty(const struct ki_counts *counts, int64_t nnz, double deviation);

/* Adds the figures "l2" and "zero_factors", 1 where all products of A's and B's first `factors` columns,
 * over all cells, are less than a hundredth of sqrt(squares), which they should explain: | A B^T | <= sum_k
 * |a_k| |b_k|. */
kiln_status ki_factor_figures(kiln_report *report, double l2, const kiln_matrix *A, const kiln_matrix *B,
                              int64_t factors, double squares);

#endif
