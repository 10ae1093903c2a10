/* CPU body of the column reductions (reduce.h). The rows are cut into a fixed number of parts whose sums are
 * added in order, so the result does not depend on the number of threads. */
#include "ops/vectors/reduce.h"

enum { FN(PARTS) = 64 };

struct FN(reduction) {
    const kiln_matrix *X, *Y;
    int kind;
    int64_t column, y_column;
    double scale, part[FN(PARTS)];
};

static void FN(reduce_part)(void *arg, int part) {
    struct FN(reduction) *r = arg;
    const int64_t k = r->X->cols, y_cols = r->Y ? r->Y->cols : 1;
    const int64_t end = ki_part_begin(r->X->rows, part + 1, FN(PARTS));
    double sum = 0;
    for (int64_t i = ki_part_begin(r->X->rows, part, FN(PARTS)); i < end; i++) {
        double x = VALUES(r->X)[i * k + r->column], y = r->Y ? VALUES(r->Y)[i * y_cols + r->y_column] : x;
        sum = reduce_step(sum, x, y, r->kind, r->scale);
    }
    r->part[part] = sum;
}

/* As on a GPU: of squares the root of their sum, scaled by what `result` holds where they are to be. */
void FN(reduce)(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, bool scaled) {
    const int threads = X->rows > 32768 ? X->device->threads : 1;
    for (int64_t c = 0; c < X->cols; c++) {
        struct FN(reduction)
            r = {.X = X, .Y = Y, .kind = kind, .column = c, .scale = scaled ? reduce_scale(result[c]) : 1};
        r.y_column = Y && Y->cols > 1 ? c : 0; /* one column of Y serves all of X's */
        ki_parallel(threads, FN(PARTS), FN(reduce_part), &r);
        result[c] = 0;
        for (int p = 0; p < FN(PARTS); p++) result[c] = reduce_join(result[c], r.part[p], kind);
        if (kind == KI_REDUCE_SQUARES) result[c] = sqrt(result[c]) / r.scale;
    }
}
