/* CPU body of the passes over an X that keeps categories as codes (core/codes/codes.h):
 * X = [numbers | categories].
 * The numbers are a dense matrix, over which the pass goes as over any other. Between a block's products with
 * y and its scatter into w, where the row map stands, the categories join: q_i += y of row i's levels before
 * it, and w of these levels += q_i after it. So an X of both kinds is read in one walk. There is no test for
 * a row that has none of a category's levels: "none" is a level of its own, whose y is 0 and whose w nobody
 * reads.
 *
 * w of the levels is added up in double in either type, each part of the rows in a copy of its own. Where
 * levels are few, neighbouring rows often have the same one, and each addition would wait for the one before:
 * they take turns with SPREAD sums of a level. */

#include "core/codes/codes.h"

enum { FN(SPREAD) = 4 };

struct FN(coded) {
    const struct ki_codes *codes;
    const struct ki_chain *whole; /* the pass over X; chain->X is the numbers */
    const real *y;                /* slots x k */
    int64_t k, size;              /* columns of y; of a part's copy of w */
};

/* Numbers of a copy of w for each level of a column. */
static int64_t FN(level_sums)(const struct ki_code_column *column, int64_t k) {
    return k == 1 && column->bytes == 1 ? FN(SPREAD) : k;
}

/* The rows' codes begin at `code`. One column of y is by far the most frequent case. */
#define GATHER_LEVELS(name, code_type)                                                                       \
    NEVER_INLINE void FN(name)(real *restrict q, const code_type *restrict code, const real *restrict y,     \
                               int64_t k, int64_t count) {                                                   \
        for (int64_t i = 0; k == 1 && i < count; i++) q[i] += y[code[i]];                                    \
        for (int64_t i = 0; k > 1 && i < count; i++)                                                         \
            for (int64_t c = 0; c < k; c++) q[i * k + c] += y[(int64_t)code[i] * k + c];                     \
    }
GATHER_LEVELS(gather_levels_1, uint8_t)
GATHER_LEVELS(gather_levels_2, uint16_t)
GATHER_LEVELS(gather_levels_4, int32_t)
#undef GATHER_LEVELS

#define SCATTER_LEVELS(name, code_type)                                                                      \
    NEVER_INLINE void FN(name)(double *restrict w, const code_type *restrict code, const real *restrict q,   \
                               int64_t k, int64_t count) {                                                   \
        for (int64_t i = 0; k == 1 && i < count; i++) w[code[i]] += (double)q[i];                            \
        for (int64_t i = 0; k > 1 && i < count; i++)                                                         \
            for (int64_t c = 0; c < k; c++) w[(int64_t)code[i] * k + c] += (double)q[i * k + c];             \
    }
SCATTER_LEVELS(scatter_levels_1, uint8_t)
SCATTER_LEVELS(scatter_levels_2, uint16_t)
SCATTER_LEVELS(scatter_levels_4, int32_t)
#undef SCATTER_LEVELS

NEVER_INLINE void FN(scatter_spread)(double *restrict w, const uint8_t *restrict code, const real *restrict q,
                                     int64_t count) {
    int64_t i = 0;
    for (; i + FN(SPREAD) <= count; i += FN(SPREAD))
#pragma GCC unroll 4
        for (int u = 0; u < FN(SPREAD); u++) w[code[i + u] * FN(SPREAD) + u] += (double)q[i + u];
    for (; i < count; i++) w[code[i] * FN(SPREAD)] += (double)q[i];
}

/* q of rows [row, row + count) += their levels' y. */
static void FN(add_levels)(const struct FN(coded) * coded, real *q, int64_t row, int64_t count) {
    const int64_t k = coded->k;
    for (int64_t c = 0; c < coded->codes->count; c++) {
        const struct ki_code_column *column = &coded->codes->column[c];
        const real *y = coded->y + column->slot * k;
        switch (column->bytes) {
        case 1: FN(gather_levels_1)(q, (const uint8_t *)column->codes + row, y, k, count); break;
        case 2: FN(gather_levels_2)(q, (const uint16_t *)column->codes + row, y, k, count); break;
        default: FN(gather_levels_4)(q, (const int32_t *)column->codes + row, y, k, count);
        }
    }
}

/* w of the levels of rows [row, row + count) += q. */
static void FN(scatter_levels)(const struct FN(coded) * coded, double *w, const real *q, int64_t row,
                               int64_t count) {
    const int64_t k = coded->k;
    for (int64_t c = 0; c < coded->codes->count; c++) {
        const struct ki_code_column *column = &coded->codes->column[c];
        const uint8_t *one = (const uint8_t *)column->codes + row;
        switch (column->bytes) {
        case 1:
            if (k == 1)
                FN(scatter_spread)(w, one, q, count);
            else
                FN(scatter_levels_1)(w, one, q, k, count);
            break;
        case 2: FN(scatter_levels_2)(w, (const uint16_t *)column->codes + row, q, k, count); break;
        default: FN(scatter_levels_4)(w, (const int32_t *)column->codes + row, q, k, count);
        }
        w += (column->levels + 1) * FN(level_sums)(column, k);
    }
}

/* Elements of a part's copy of w: whole lines of the cache. */
static int64_t FN(coded_size)(const struct ki_codes *codes, int64_t k) {
    enum { LINE = 8 };
    int64_t size = 0;
    for (int64_t c = 0; c < codes->count; c++)
        size += (codes->column[c].levels + 1) * FN(level_sums)(&codes->column[c], k);
    return ki_ceil_div(size, LINE) * LINE;
}

/* y as the numbers and the levels want it: D x k, and slots x k. */
static void FN(lay_out_levels)(real *numbers, real *levels, const struct ki_codes *codes, const real *y,
                               int64_t k) {
    const size_t bytes = (size_t)k * sizeof(real);
    for (int64_t j = 0; j < codes->numbers->cols; j++)
        memcpy(numbers + j * k, y + codes->place[j] * k, bytes);
    for (int64_t c = 0; c < codes->count; c++) {
        const struct ki_code_column *column = &codes->column[c];
        real *to = levels + column->slot * k;
        memcpy(to, y + column->first * k, (size_t)column->levels * bytes);
        memset(to + column->levels * k, 0, bytes);
    }
}

/* Element `at` of out = alpha times sum + beta z. */
static void FN(finish_element)(const struct ki_chain *whole, int64_t at, double sum) {
    const real scaled = (real)whole->alpha * (real)sum;
    VALUES(whole->out)[at] = scaled + (whole->z ? (real)whole->beta * VALUES(whole->z)[at] : 0);
}

/* The whole's out from the numbers' sums and from those of the levels, of which `parts` copies lie one after
 * the other and are added up in order. */
static void FN(finish_coded)(const struct FN(coded) * coded, const real *numbers, double *w, int parts) {
    const struct ki_codes *codes = coded->codes;
    const int64_t k = coded->k;
    for (int part = 1; part < parts; part++)
        for (int64_t i = 0; i < coded->size; i++) w[i] += w[part * coded->size + i];
    for (int64_t i = 0; i < codes->numbers->cols * k; i++)
        FN(finish_element)(coded->whole, codes->place[i / k] * k + i % k, (double)numbers[i]);
    for (int64_t c = 0; c < codes->count; c++) {
        const struct ki_code_column *column = &codes->column[c];
        const int64_t sums = FN(level_sums)(column, k), spread = sums / k;
        for (int64_t i = 0; i < column->levels * k; i++) {
            double sum = w[i * spread];
            for (int64_t s = 1; s < spread; s++) sum += w[i * spread + s];
            FN(finish_element)(coded->whole, column->first * k + i, sum);
        }
        w += (column->levels + 1) * sums;
    }
}
