/* CPU body of the column reductions (reduce.h). The rows are cut into a fixed number of parts whose sums are added in
 * order, so the result does not depend on the number of threads. */

enum { FN(PARTS) = 64 };

static void FN(reduce)(double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, const double *scale) {
    const int64_t rows = X->rows, k = X->cols;
    const int threads = X->nnz > 65536 ? X->device->threads : 1;
    const int64_t y_cols = Y ? Y->cols : 1;
    for (int64_t c = 0; c < k; c++) {
        const int64_t y_column = y_cols == 1 ? 0 : c; /* one column of Y serves all of X's */
        double part[FN(PARTS)];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int p = 0; p < FN(PARTS); p++) {
            const int64_t first = rows / FN(PARTS) * p + ki_min(rows % FN(PARTS), p);
            const int64_t end = first + rows / FN(PARTS) + (p < rows % FN(PARTS));
            double sum = 0;
            for (int64_t i = first; i < end; i++) {
                double x = VALUES(X)[i * k + c], y = Y ? VALUES(Y)[i * y_cols + y_column] : x;
                sum = reduce_step(sum, x, y, kind, scale ? scale[c] : 1.0);
            }
            part[p] = sum;
        }
        result[c] = 0;
        for (int p = 0; p < FN(PARTS); p++) result[c] = reduce_join(result[c], part[p], kind);
    }
}
