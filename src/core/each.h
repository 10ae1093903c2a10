/* This header says what is done to the rows of a matrix where they lie: here, or in each of the processes
 * that have some; and some of its entries. */
#ifndef KI_EACH_H
#define KI_EACH_H

#include <stdbool.h>

#include "kiln/matrix.h"

enum { KI_EACH_MADE = 2, KI_EACH_SUMS = 4, KI_EACH_CALL = 24 };

/* Holds what is done to the rows of X where they lie, by each process itself (of a sparse X): matrices are
 * made of them, which lie as X does, and sums taken. It travels as it is, so that it has no pointers but to
 * code, where rows lie in processes. */
struct ki_each {
    /* On rows of X, the first of which is X's row `row` and has its entry number `entry`. made: as many new
     * matrices of those rows, NULL before; sums: those of the rows before, 0 at first. */
    kiln_status (*run)(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                       kiln_matrix **made, double *sums);
    int made, sums;          /* how many */
    char call[KI_EACH_CALL]; /* what run wants to know: the name of the call for errors, ... */
    double number;           /* ... and numbers */
    uint64_t seed;
    kiln_type type;             /* of what is made; KILN_TYPE_DEFAULT: X's */
    const double *row, *column; /* a number for each row and column of an X that does not lie in processes */
    void *kept;                 /* what run writes to, of such an X */
};

/* `each` on all of X, wherever its rows lie; made and sums may be NULL if there are none. On failure nothing
 * is made. Of an X in a file `each` sees some rows at a time, and what is made lies in temporary files. */
kiln_status ki_each_run(kiln_matrix **made, double *sums, const struct ki_each *each, const kiln_matrix *X);

/* Entries [first, first + count) of a dense matrix, elements of its type, to host memory. */
kiln_status ki_elements_get(void *to, const kiln_matrix *A, int64_t first, int64_t count);

/* Entries of a sparse matrix that lies in a file, likewise; and the end of reading: ERR_IO where the file is
 * no longer what it was, of a matrix in a file. */
kiln_status ki_file_entries_get(int32_t *col, void *values, const kiln_matrix *A, int64_t first,
                                int64_t count);
kiln_status ki_rows_unchanged(const kiln_matrix *A);

/* A's numbers are a method's own, though they came from the host: operations on it are not shared. */
void ki_matrix_not_shared(kiln_matrix *A);

/* X; where its rows lie in processes *own, a copy that has them all, which the caller frees. */
kiln_status ki_whole_of(const kiln_matrix **whole, kiln_matrix **own, const kiln_matrix *X);
bool ki_in_processes(const kiln_matrix *X);
bool ki_lies_in_file(const kiln_matrix *X);
/* Returns whether a sparse X and another of its size have no room on its device, which is no CPU. */
bool ki_pair_too_large(const kiln_matrix *X);
/* Returns whether X's rows lie in processes or in a file, and of such an X, which is sparse, the transposed
 * matrix, whose rows do, too. */
bool ki_lies_apart(const kiln_matrix *X);
kiln_status ki_transposed_apart(kiln_matrix **T, const kiln_matrix *X);

/* Both of an X in a file (spill/each_file.c). */
kiln_status ki_each_in_file(kiln_matrix **made, double *sums, const struct ki_each *each,
                            const kiln_matrix *X);
kiln_status ki_transposed_in_file(kiln_matrix **T, const kiln_matrix *X);

#endif
