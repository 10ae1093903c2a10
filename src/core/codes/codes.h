/* Categories of a sparse X that are kept as codes: X = [numbers | categories], in any order of columns.
 *
 * A category of L levels is L columns of X, of which a row has a 1 in one, or in none. A code says which: 1,
 * 2 or 4 bytes in place of an entry's value and column. The other columns, the numbers, are a dense matrix
 * beside the codes. To everybody X is the sparse matrix that it would be with entries (kiln_matrix_format,
 * nnz and get_csr say so). Passes read the codes as they are, on the CPU (pass/cpu/codes.h) and on a GPU
 * (pass/codes/codes.cl), and so does the CPU's Gram matrix (ops/linear/gram.cpu.h). Whatever else wants
 * entries gets them: the matrix is expanded once, where the memory manager brings it (core/memory.c), and has
 * no codes from then on. So no matrix is in two states.
 *
 * The codes of all categories lie in one matrix of words, whose values nobody takes for numbers, so that they
 * come to a device and leave it as any matrix does. It begins with what kernels want to know of them. */
#ifndef KI_CODES_H
#define KI_CODES_H

#include <string.h>

#include "core/matrix.h"
#include "kiln/codes.h"

struct ki_code_column {
    int64_t first, levels; /* columns of X: [first, first + levels) */
    int64_t slot;          /* where its levels stand among those of all, each with one more for "none" */
    int bytes;             /* of a code: 1 or 2 without a sign, or 4 */
    int spread;            /* sums of a level that neighbouring threads of a GPU take turns with */
    int64_t at;            /* byte of the words where its codes begin, a multiple of 16 */
    int64_t near;          /* sums of the narrower categories and its own: what a GPU wants on chip */
    void *codes;           /* of each row, `levels`: none. On a CPU, else NULL */
};

/* The words begin so: a row a category, the narrowest first, then D places. */
enum ki_code_word {
    KI_CODE_AT, /* in units of 16 bytes */
    KI_CODE_BYTES,
    KI_CODE_FIRST,
    KI_CODE_LEVELS,
    KI_CODE_SPREAD,
    KI_CODE_NEAR,
    KI_CODE_WORDS
};

struct ki_codes {
    kiln_matrix *numbers; /* rows x D */
    kiln_matrix *words;   /* n x 1, KILN_F32 in name */
    int32_t *place;       /* D: their columns of X, ascending */
    struct ki_code_column *column;
    int64_t count, slots; /* columns of codes; levels of all, and a "none" each */
    int64_t nnz;          /* entries of X */
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

/* Whether matrices on the device may have codes: no group's and no process's, and on a GPU none where sums
 * have an order, which they have by way of a transpose. */
bool ki_codes_fit(const kiln_device *device);
/* Bytes that numbers and codes take. */
int64_t ki_codes_bytes(const struct ki_codes *codes, int64_t rows);
void ki_codes_free(struct ki_codes *codes); /* NULL is allowed */
/* A matrix that has them, which are its own on success. */
kiln_status ki_matrix_adopt_codes(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                  int64_t cols, struct ki_codes *codes);
/* *codes of a CSR matrix's arrays on their way to a device; NULL where these are no smaller, or a category is
 * none: a row has two of its columns, or an entry that is not 1; or a number that is an entry is 0. */
kiln_status ki_codes_pack(struct ki_codes **codes, kiln_device *device, kiln_type type, int64_t rows,
                          int64_t cols, const int64_t *row_start, const int32_t *col, const void *values,
                          const struct ki_category *categories, int64_t count);
/* The entries of a matrix with codes, as kiln_matrix_get_csr has them; any array may be NULL. */
kiln_status ki_codes_entries(int64_t *row_start, int32_t *col, void *values, const kiln_matrix *A);
/* kiln_matrix_copy of an A with codes to a device that keeps them, and ki_matrix_move. */
kiln_status ki_codes_copy(kiln_matrix **B, kiln_device *device, kiln_type type, const kiln_matrix *A);
kiln_status ki_codes_move(kiln_matrix *A, kiln_device *device);

#endif
