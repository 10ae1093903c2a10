/* A bit says whether a column has entries. How many such columns lie before a word of 64 bits is kept with
 * it, and a column's new number is that and the bits below its own: tables that the cache holds even for a
 * million columns, where one of numbers would not stay. */
#include <string.h>

#include "core/codes/codes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "derived/select.h"

enum { BITS = 64 };

struct word {
    uint64_t bits;
    int64_t before;
};

/* Returns how many bits are set. For processors of any age the compiler's own is a call. */
static int64_t ones(uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (int64_t)(bits * 0x0101010101010101 >> 56);
}

static struct word *mark(int64_t *count, const kiln_matrix *X) {
    const int32_t *col = ki_host(&X->col);
    const int64_t words = ki_ceil_div(X->cols, BITS);
    struct word *word = ki_calloc((size_t)words * sizeof *word);
    if (!word) return NULL;
    for (int64_t e = 0; e < X->nnz; e++) word[col[e] / BITS].bits |= (uint64_t)1 << col[e] % BITS;
    *count = 0;
    for (int64_t i = 0; i < words; i++) {
        word[i].before = *count;
        *count += ones(word[i].bits);
    }
    return word;
}

static void list(int32_t *kept, const struct word *word, int64_t cols) {
    for (int64_t i = 0; i < ki_ceil_div(cols, BITS); i++)
        for (uint64_t bits = word[i].bits; bits; bits &= bits - 1)
            *kept++ = (int32_t)(i * BITS + __builtin_ctzll(bits));
}

static void number(int32_t *to, const kiln_matrix *X, const struct word *word) {
    const int32_t *col = ki_host(&X->col);
    for (int64_t e = 0; e < X->nnz; e++) {
        const struct word *at = &word[col[e] / BITS];
        const uint64_t below = at->bits & (((uint64_t)1 << col[e] % BITS) - 1);
        to[e] = (int32_t)(at->before + ones(below));
    }
}

kiln_status ki_occupied_open(struct ki_occupied *occupied, const kiln_matrix *X) {
    kiln_status status = ki_matrix_expand(X);
    if (status != KILN_OK) return status;
    const size_t starts = (size_t)(X->rows + 1) * 8, values = (size_t)(X->nnz * ki_type_bytes(X->type));
    struct ki_occupied made = {0};
    struct word *word = mark(&made.count, X);
    int64_t *row_start = ki_alloc(starts);
    int32_t *col = ki_alloc((size_t)X->nnz * sizeof *col);
    void *value = ki_alloc(values);
    if (word) made.kept = ki_alloc((size_t)made.count * sizeof *made.kept);
    if (!made.kept || !row_start || !col || !value)
        TRY(ki_fail_nomem(starts + values + (size_t)X->nnz * 8, "the columns that have entries"));
    list(made.kept, word, X->cols);
    number(col, X, word);
    memcpy(row_start, ki_host(&X->row_start), starts);
    memcpy(value, ki_host(&X->values), values);
    TRY(ki_matrix_adopt_csr(&made.X, X->device, X->type, X->rows, made.count, X->nnz, row_start, col, value));
    row_start = NULL;
    col = NULL;
    value = NULL;
    *occupied = made;
    made.kept = NULL;
done:
    ki_free(made.kept);
    ki_free(word);
    ki_free(row_start);
    ki_free(col);
    ki_free(value);
    return status;
}

void ki_occupied_close(struct ki_occupied *occupied) {
    kiln_matrix_free(occupied->X);
    ki_free(occupied->kept);
    *occupied = (struct ki_occupied){0};
}

void ki_occupied_gather(kiln_matrix *few, const kiln_matrix *wide, const struct ki_occupied *occupied) {
    const int64_t bytes = few->cols * ki_type_bytes(few->type);
    char *to = ki_host(&few->values);
    const char *from = ki_host(&wide->values);
    for (int64_t j = 0; j < occupied->count; j++)
        memcpy(to + j * bytes, from + occupied->kept[j] * bytes, (size_t)bytes);
}

void ki_occupied_spread(kiln_matrix *wide, const kiln_matrix *few, const struct ki_occupied *occupied) {
    const int64_t bytes = few->cols * ki_type_bytes(few->type);
    char *to = ki_host(&wide->values);
    const char *from = ki_host(&few->values);
    memset(to, 0, (size_t)(wide->rows * bytes));
    for (int64_t j = 0; j < occupied->count; j++)
        memcpy(to + occupied->kept[j] * bytes, from + j * bytes, (size_t)bytes);
}
