/* CPU body of kiln_rows. */
void FN(copy_rows)(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows) {
    const int64_t n = X->cols;
    const int64_t *start = X->format == KILN_CSR ? ki_host(&X->row_start) : NULL;
    const int32_t *col = start ? ki_host(&X->col) : NULL;
    for (int64_t i = 0; i < R->rows; i++) {
        real *to = VALUES(R) + i * n;
        if (!start) {
            memcpy(to, VALUES(X) + rows[i] * n, (size_t)n * sizeof(real));
            continue;
        }
        memset(to, 0, (size_t)n * sizeof(real));
        for (int64_t e = start[rows[i]]; e < start[rows[i] + 1]; e++) to[col[e]] = VALUES(X)[e];
    }
}
