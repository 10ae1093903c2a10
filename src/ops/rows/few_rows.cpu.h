/* CPU body of kiln_predict_rows.
 *
 * W by columns of X (output_step 1): four dense rows make tiles of rows and outputs that stay in registers; a
 * single row, and entries, add four rows of W at a time to the results, which stay in the first cache: W goes
 * by once, in the order in which it lies. W by outputs: dot products. */
#include "dialect/losses.h"

#undef FEW_VECTORS
#define FEW_VECTORS (SIMD_BYTES == 64 ? 4 : 2) /* of a tile: as many as there are registers for */
enum { FN(FEW_TILE) = 4 };                     /* rows of a tile, and rows of W that are added at once */

/* out += sum over four of x_i w_i, k numbers each. */
ALWAYS_INLINE void FN(few_add)(real *out, const real x[FN(FEW_TILE)], const real *const w[FN(FEW_TILE)],
                               int64_t k) {
    int64_t c = 0;
    for (; c + LANES <= k; c += LANES) {
        const FN(vreal) one = FN(load)(out + c) + x[0] * FN(load)(w[0] + c) + x[1] * FN(load)(w[1] + c);
        FN(store)(out + c, one + (x[2] * FN(load)(w[2] + c) + x[3] * FN(load)(w[3] + c)));
    }
    for (; c < k; c++)
        out[c] = (out[c] + x[0] * w[0][c] + x[1] * w[1][c]) + (x[2] * w[2][c] + x[3] * w[3][c]);
}

/* out += x W for `count` numbers of x, at these columns, or at 0, 1, ... where col is NULL. */
static void FN(few_sum)(real *out, const real *x, const int32_t *col, int64_t count,
                        const kiln_row_model *model) {
    const real *W = model->W;
    for (int64_t e = 0; e < count; e += FN(FEW_TILE)) {
        real value[FN(FEW_TILE)];
        const real *w[FN(FEW_TILE)];
        for (int i = 0; i < FN(FEW_TILE); i++) {
            const int64_t at = e + i < count ? e + i : e;
            value[i] = at == e + i ? x[at] : 0;
            w[i] = W + (col ? col[at] : at) * model->input_step;
        }
        if (e + FN(FEW_TILE) <= count)
            FN(few_add)(out, value, w, model->outputs);
        else /* the last ones: a 0 times what is not finite must not count */
            for (int i = 0; e + i < count; i++)
                for (int64_t c = 0; c < model->outputs; c++) out[c] += value[i] * w[i][c];
    }
}

/* x . w for w's numbers one behind the other. */
ALWAYS_INLINE real FN(few_dot)(const real *x, const int32_t *col, int64_t count, const real *w) {
    FN(vreal) sum = {0}, other = {0};
    real rest = 0;
    int64_t e = 0;
    if (!col) {
        for (; e + 2 * LANES <= count; e += 2 * LANES) {
            sum += FN(load)(x + e) * FN(load)(w + e);
            other += FN(load)(x + e + LANES) * FN(load)(w + e + LANES);
        }
        for (; e < count; e++) rest += x[e] * w[e];
        return FN(lane_sum)(sum + other) + rest;
    }
    for (; e < count; e++) rest += x[e] * w[col[e]];
    return rest;
}

/* Outputs c .. c + FEW_VECTORS LANES - 1 of four dense rows. */
ALWAYS_INLINE void FN(few_tile)(real *const out[FN(FEW_TILE)], const real *const x[FN(FEW_TILE)],
                                const kiln_row_model *model, int64_t c) {
    const real *W = (const real *)model->W + c;
    FN(vreal) sum[FN(FEW_TILE)][FEW_VECTORS];
    for (int i = 0; i < FN(FEW_TILE); i++)
        for (int v = 0; v < FEW_VECTORS; v++) sum[i][v] = FN(load)(out[i] + c + v * LANES);
    for (int64_t j = 0; j < model->inputs; j++)
        for (int v = 0; v < FEW_VECTORS; v++) {
            const FN(vreal) w = FN(load)(W + j * model->input_step + v * LANES);
            for (int i = 0; i < FN(FEW_TILE); i++) sum[i][v] += x[i][j] * w;
        }
    for (int i = 0; i < FN(FEW_TILE); i++)
        for (int v = 0; v < FEW_VECTORS; v++) FN(store)(out[i] + c + v * LANES, sum[i][v]);
}

/* Tiles of dense rows [first, end); what they leave, rows and outputs, is the caller's: *rows and *outputs
 * are how many they serve. */
static void FN(few_tiles)(const struct ki_few_rows *few, int64_t first, int64_t end, int64_t *rows,
                          int64_t *outputs) {
    const kiln_row_model *model = few->model;
    const int64_t across = FEW_VECTORS * LANES, n = model->inputs, own = few->columns - model->outputs;
    *rows = (end - first) / FN(FEW_TILE) * FN(FEW_TILE);
    *outputs = model->output_step == 1 ? model->outputs / across * across : 0;
    for (int64_t c = 0; c < *outputs; c += across)
        for (int64_t row = first; row < first + *rows; row += FN(FEW_TILE)) {
            real *out[FN(FEW_TILE)];
            const real *x[FN(FEW_TILE)];
            for (int i = 0; i < FN(FEW_TILE); i++) {
                out[i] = (real *)few->out + (row + i) * few->columns + own;
                x[i] = (const real *)few->X->values + (row + i) * n;
            }
            FN(few_tile)(out, x, model, c);
        }
}

/* eta of one row from output `from` on; out holds b. */
static void FN(few_row)(real *out, const struct ki_few_rows *few, int64_t row, int64_t from) {
    const kiln_row_model *model = few->model;
    const kiln_memory *X = few->X;
    const int64_t at = X->row_start ? ki_memory_start(X, row) : row * model->inputs;
    const int64_t count = X->row_start ? ki_memory_start(X, row + 1) - at : model->inputs;
    const real *x = (const real *)X->values + at;
    const int32_t *col = X->row_start ? X->col + at : NULL;
    if (model->output_step == 1 && model->outputs > 1) {
        kiln_row_model rest = *model;
        rest.W = (const real *)model->W + from;
        rest.outputs -= from;
        FN(few_sum)(out + from, x, col, count, &rest);
        return;
    }
    for (int64_t c = from; c < model->outputs; c++)
        out[c] += FN(few_dot)(x, col, count, (const real *)model->W + c * model->output_step);
}

static void FN(few_mean)(real *out, int64_t columns, const kiln_row_model *model) {
    if (model->kind == KILN_LOSS_LOGISTIC || model->kind == KILN_LOSS_SOFTMAX)
        FN(softmax_row)(out, (int)columns, 0);
    else
        for (int64_t c = 0; c < columns; c++)
            out[c] = FN(mean_row)((int)model->kind, (int)model->link, (real)model->link_power, out[c]);
}

static void FN(few_range)(void *of, int64_t first, int64_t end) {
    const struct ki_few_rows *few = of;
    const kiln_row_model *model = few->model;
    const real *b = model->b;
    const int64_t own = few->columns - model->outputs;
    int64_t rows = 0, outputs = 0;
    for (int64_t row = first; row < end; row++) {
        real *out = (real *)few->out + row * few->columns;
        if (own) out[0] = 0;
        for (int64_t c = 0; c < model->outputs; c++) out[own + c] = b ? b[c] : 0;
    }
    if (!few->X->row_start) FN(few_tiles)(few, first, end, &rows, &outputs);
    for (int64_t row = first; row < end; row++) {
        real *out = (real *)few->out + row * few->columns;
        FN(few_row)(out + own, few, row, row < first + rows ? outputs : 0);
        if (model->has_mean) FN(few_mean)(out, few->columns, model);
    }
}

/* Parts begin at multiples of a tile, so that a row's sums are added up alike whoever has it. */
static void FN(few_part)(void *of, int64_t first, int64_t end) {
    const struct ki_few_rows *few = of;
    const int64_t last = end * FN(FEW_TILE);
    FN(few_range)(of, first * FN(FEW_TILE), last < few->X->rows ? last : few->X->rows);
}

void FN(few_rows)(struct ki_few_rows *few) {
    enum { PRODUCTS_WORTH_A_PART = 1 << 20 };
    const kiln_memory *X = few->X;
    const int64_t entries = X->row_start ? ki_memory_start(X, X->rows) : X->rows * X->cols;
    const int64_t tiles = (X->rows + FN(FEW_TILE) - 1) / FN(FEW_TILE);
    const double tile = (double)entries * (double)few->model->outputs / (double)(tiles ? tiles : 1);
    const int64_t grain = (int64_t)(PRODUCTS_WORTH_A_PART / (tile + 1)) + 1;
    ki_parallel_ranges(few->threads, tiles, grain, FN(few_part), few);
}
