/* Memory of a call: its matrices and the numbers that it needs on the host. They are freed together, and by
 * nobody else.
 *
 * The first error stays with the arena, and what is asked for after it is NULL. So several things are asked
 * for in turn, and one line, TRY(arena.status), checks them all. */
#ifndef KI_ARENA_H
#define KI_ARENA_H

#include "algorithms/algorithm.h"

struct ki_arena {
    struct ki_held *held; /* full whenever count is a power of two */
    int64_t count;
    kiln_status status;
};

/* New dense matrices, whose numbers are not set, on X's device. _rows: as long as X, of X's type. _model:
 * of the model's size, whatever X's number of rows; of X's type. _sums: f64 where the device has it, for
 * sums. */
kiln_matrix *ki_arena_rows(struct ki_arena *arena, const kiln_matrix *X, int64_t cols);
kiln_matrix *ki_arena_model(struct ki_arena *arena, const kiln_matrix *X, int64_t rows, int64_t cols);
kiln_matrix *ki_arena_sums(struct ki_arena *arena, const kiln_matrix *X, int64_t rows, int64_t cols);
/* A, with one value throughout; NULL passes. */
kiln_matrix *ki_arena_fill(struct ki_arena *arena, kiln_matrix *A, double value);
/* A new vector of the model's size with these numbers. */
kiln_matrix *ki_arena_vector(struct ki_arena *arena, const kiln_matrix *X, int64_t count,
                             const double *values);
/* Host memory for `count` elements: all zero, or, of much that is written anyway, not set. */
void *ki_arena_zeros(struct ki_arena *arena, int64_t count, size_t size);
void *ki_arena_room(struct ki_arena *arena, int64_t count, size_t size);
double *ki_arena_reals(struct ki_arena *arena, int64_t count);     /* zeros */
double *ki_arena_doubles(struct ki_arena *arena, int64_t count);   /* not set */
int64_t *ki_arena_integers(struct ki_arena *arena, int64_t count); /* zeros */

/* Takes the matrix *A, or *pieces, that a call has made, if `made` says so. Returns the first error. */
kiln_status ki_arena_take(struct ki_arena *arena, kiln_matrix *const *A, kiln_status made);
kiln_status ki_arena_take_batch(struct ki_arena *arena, kiln_batch *const *pieces, kiln_status made);

/* Anything else, which `release` frees, and at once where there is no room to write it down. */
kiln_status ki_arena_keep(struct ki_arena *arena, void *thing, void (*release)(void *));

/* A matrix, or memory, that the arena no longer holds: the caller frees it. */
void *ki_arena_give(struct ki_arena *arena, void *thing);
/* Frees a matrix before its time. */
void ki_arena_drop(struct ki_arena *arena, kiln_matrix *A);
/* Frees all, and is empty again. Returns `status`, so that a function can end with it. */
kiln_status ki_arena_free(struct ki_arena *arena, kiln_status status);

#endif
