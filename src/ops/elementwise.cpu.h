/* CPU bodies of the element-wise operations: combine, times, map, fill, fill_random. */

/* Element i of an operand that may have one column used for each of k. */
#define AT(A, i, k) VALUES(A)[(A)->cols == 1 ? (i) / (k) : (i)]
#define FOR_EACH_ELEMENT(W)                                                                                  \
    const int64_t count = (W)->nnz, k = ki_max((W)->cols, 1);                                                \
    const int threads = count > 65536 ? (W)->device->threads : 1;                                            \
    real *out = VALUES(W);                                                                                   \
    _Pragma("omp parallel for num_threads(threads) schedule(static) if (threads > 1)")                       \
    for (int64_t i = 0; i < count; i++)

static void FN(combine)(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                        const kiln_matrix *Y) {
    FOR_EACH_ELEMENT(W) {
        int64_t c = i % k;
        real sum = a[c] != 0 ? (real)a[c] * AT(X, i, k) : 0;
        if (Y && b[c] != 0) sum += (real)b[c] * AT(Y, i, k);
        out[i] = sum;
    }
}

static void FN(times)(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y) {
    FOR_EACH_ELEMENT(W) {
        out[i] = AT(X, i, k) * AT(Y, i, k);
    }
}

static void FN(map)(kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X) {
    FOR_EACH_ELEMENT(W) {
        (void)k;
        out[i] = FN(map_value)(VALUES(X)[i], kind);
    }
}

static void FN(fill)(kiln_matrix *W, double value) {
    FOR_EACH_ELEMENT(W) {
        (void)k;
        out[i] = (real)value;
    }
}

static void FN(fill_random)(kiln_matrix *W, kiln_distribution distribution, uint64_t seed, uint64_t stream) {
    FOR_EACH_ELEMENT(W) {
        (void)k;
        out[i] = distribution == KILN_NORMAL ? FN(random_normal)(seed, stream, (uint64_t)i)
                                             : FN(random_uniform)(seed, stream, (uint64_t)i);
    }
}
