/* Categories of a sparse X that are kept as codes: X = [numbers | categories], in any order of columns.
 *
 * A category of L levels is L columns of X, of which a row has a 1 in one, or in none. A code says which: 1,
 * 2 or 4 bytes in place of an entry's value and column. The other columns, the numbers, are a dense matrix
 * beside the codes. To everybody X is the sparse matrix that it would be with entries (kiln_matrix_format,
 * nnz and get_csr say so). Passes on the CPU read the codes as they are (pass/cpu/codes.h), and so does a
 * Gram matrix (ops/linear/gram.cpu.h). Whatever else wants entries gets them: the matrix is expanded once,
 * where the memory manager brings it (core/memory.c), and has no codes from then on. So no matrix is in two
 * states, and none but one on a CPU has codes. */
#ifndef KI_CODES_H
#define KI_CODES_H

#include <string.h>

#include "core/matrix.h"
#include "kiln/codes.h"

struct ki_code_column {
    int64_t first, levels; /* columns of X: [first, first + levels) */
    int64_t slot;          /* where its levels stand among those of all, each with one more for "none" */
    int bytes;             /* of a code: 1 or 2 without a sign, or 4 */
    void *codes;           /* of each row, from ki_alloc; `levels`: none */
};

struct ki_codes {
    kiln_matrix *numbers; /* rows x D */
    int32_t *place;       /* D: their columns of X, ascending */
    struct ki_code_column *column;
    int64_t count, slots; /* columns of codes; levels of all, and a "none" each */
};

/* Columns [first, first + levels) of a CSR matrix that are perhaps a category. */
struct ki_category {
    int64_t first, levels;
};

static inline int64_t ki_code_at(const struct ki_code_column *column, int64_t row) {
    uint16_t two;
    int32_t four;
    switch (column->bytes) {
    case 1: return ((const uint8_t *)column->codes)[row];
    case 2: memcpy(&two, (const char *)column->codes + 2 * row, 2); return two;
    default: memcpy(&four, (const char *)column->codes + 4 * row, 4); return four;
    }
}

/* Whether matrices on the device may have codes: a CPU's own, no group of them and no process's. */
bool ki_codes_fit(const kiln_device *device);
/* Bytes that numbers and codes take. */
int64_t ki_codes_bytes(const struct ki_codes *codes, int64_t rows);
void ki_codes_free(struct ki_codes *codes); /* NULL is allowed */
/* A matrix that has them, which are its own on success. */
kiln_status ki_matrix_adopt_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, struct ki_codes *codes);
/* *codes of a CSR matrix's arrays on their way to a CPU; NULL where these are no smaller, or a category is
 * none: a row has two of its columns, or an entry that is not 1; or a number that is an entry is 0. */
kiln_status ki_codes_pack(struct ki_codes **codes, kiln_device *device, kiln_type type, int64_t rows,
                          int64_t cols, const int64_t *row_start, const int32_t *col, const void *values,
                          const struct ki_category *categories, int64_t count);
/* The entries of a matrix with codes, as kiln_matrix_get_csr has them; any array may be NULL. */
void ki_codes_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A);

#endif
