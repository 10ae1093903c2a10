/* Parts that the making of codes shares with turning them into entries. */
#ifndef KI_CODES_ENTRIES_H
#define KI_CODES_ENTRIES_H

#include "core/codes/codes.h"

/* Entries of rows whose codes lie in host memory, as do numbers, rows x width. */
int64_t ki_codes_count(const struct ki_codes *codes, const void *numbers, int64_t width, int64_t rows,
                       kiln_type type, int threads);
/* Says where a CPU finds the codes of columns; words: NULL, nowhere. */
void ki_codes_point(struct ki_code_column *column, int64_t count, void *words);

/* Bytes of a code. */
int ki_code_bytes(int64_t levels);
/* Returns whether codes take at most three quarters of what entries do: of tables of many zeros they would
 * take more. */
bool ki_codes_pay(kiln_type type, int64_t rows, int64_t cols, int64_t nnz,
                  const struct ki_category *categories, int64_t count);

#endif
