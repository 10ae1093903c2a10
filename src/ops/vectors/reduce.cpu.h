/* CPU body of the column reductions (reduce.h). The rows are cut into a fixed number of parts whose sums are
 * added in order, so the result does not depend on the number of threads. A part has up to SIDE sums side by
 * side, of several rows where the columns are few: the compiler makes vectors of them, and a walk over X
 * serves all of its columns. */
#include "ops/vectors/reduce.h"

enum { FN(PARTS) = 64, FN(SIDE) = 64 };

struct FN(reduction) {
    const kiln_matrix *X, *Y;
    int kind;
    int64_t column, width; /* columns from `column` on; all of X's, or so many of them as are side by side */
    double scale[FN(SIDE)], part[FN(PARTS)][FN(SIDE)];
};

/* The kind is a constant wherever this is called. */
ALWAYS_INLINE void FN(reduce_rows)(const struct FN(reduction) * r, int64_t first, int64_t end, double *sums,
                                   int kind) {
    const int64_t k = r->X->cols, width = r->width, at_once = width == k ? FN(SIDE) / width : 1;
    const kiln_matrix *Y = r->Y ? r->Y : r->X;
    const bool alike = Y->cols == k; /* else one column of Y serves all of X's */
    for (int64_t i = first; i < end; i += at_once) {
        const int64_t count = ki_min(at_once, end - i) * width;
        const real *x = VALUES(r->X) + i * k + r->column;
        const real *y = VALUES(Y) + (alike ? i * k + r->column : i);
        if (alike)
            for (int64_t j = 0; j < count; j++) sums[j] = reduce_step(sums[j], x[j], y[j], kind, r->scale[j]);
        else
            for (int64_t row = 0; row < count; row += width, y++)
                for (int64_t j = row; j < row + width; j++)
                    sums[j] = reduce_step(sums[j], x[j], *y, kind, r->scale[j]);
    }
}

static void FN(reduce_part)(void *arg, int part) {
    struct FN(reduction) *r = arg;
    const int64_t first = ki_part_begin(r->X->rows, part, FN(PARTS)),
                  end = ki_part_begin(r->X->rows, part + 1, FN(PARTS));
    double sums[FN(SIDE)] = {0};
    switch (r->kind) {
    case KI_REDUCE_DOT: FN(reduce_rows)(r, first, end, sums, KI_REDUCE_DOT); break;
    case KI_REDUCE_ABS: FN(reduce_rows)(r, first, end, sums, KI_REDUCE_ABS); break;
    case KI_REDUCE_SQUARES: FN(reduce_rows)(r, first, end, sums, KI_REDUCE_SQUARES); break;
    case KI_REDUCE_MAX: FN(reduce_rows)(r, first, end, sums, KI_REDUCE_MAX); break;
    case KI_REDUCE_SUM: FN(reduce_rows)(r, first, end, sums, KI_REDUCE_SUM); break;
    default: FN(reduce_rows)(r, first, end, sums, r->kind);
    }
    for (int64_t j = r->width; j < FN(SIDE); j++)
        sums[j % r->width] = reduce_join(sums[j % r->width], sums[j], r->kind);
    memcpy(r->part[part], sums, sizeof sums);
}

/* As on a GPU: of squares the root of their sum, scaled by what `result` holds where they are to be. */
void FN(reduce)(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, bool scaled) {
    const int threads = X->nnz > 32768 ? X->device->threads : 1;
    struct FN(reduction) r = {.X = X, .Y = Y, .kind = kind};
    for (; r.column < X->cols; r.column += r.width, result += r.width) {
        r.width = ki_min(X->cols - r.column, FN(SIDE));
        for (int64_t j = 0; j < FN(SIDE); j++) r.scale[j] = scaled ? reduce_scale(result[j % r.width]) : 1;
        ki_parallel(threads, FN(PARTS), FN(reduce_part), &r);
        for (int64_t c = 0; c < r.width; c++) {
            result[c] = 0;
            for (int p = 0; p < FN(PARTS); p++) result[c] = reduce_join(result[c], r.part[p][c], kind);
            if (kind == KI_REDUCE_SQUARES) result[c] = sqrt(result[c]) / r.scale[c];
        }
    }
}
