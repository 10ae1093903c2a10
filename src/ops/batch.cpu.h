/* CPU body of kiln_batch_reduce: a vector is one thread's. */
struct FN(batch) {
    const kiln_matrix *X, *result;
    int kind;
};

static void FN(batch_rows)(void *of, int64_t first, int64_t end) {
    const struct FN(batch) *b = of;
    const int64_t n = b->X->cols;
    for (int64_t v = first; v < end; v++) {
        const real *x = VALUES(b->X) + v * n;
        double a = b->kind == KILN_BATCH_SUM ? 0 : -(double)INFINITY;
        for (int64_t i = 0; i < n; i++)
            a = b->kind == KILN_BATCH_SUM ? a + x[i] : x[i] > a || x[i] != x[i] ? x[i] : a;
        VALUES(b->result)[v] = (real)a;
    }
}

static void FN(batch_reduce)(kiln_matrix *result, int kind, const kiln_matrix *X) {
    struct FN(batch) b = {.X = X, .result = result, .kind = kind};
    ki_parallel_ranges(X->device->threads, X->rows, 1 + 32768 / (X->cols + 1), FN(batch_rows), &b);
}
