/* CPU body of the bandwidth measurement: each thread sums its share with vector loads. */
static void FN(read)(const kiln_matrix *A, const kiln_matrix *sums) {
    const int threads = A->device->threads;
    const int64_t vectors = A->nnz / LANES;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++) {
        const int64_t first = vectors / threads * t, end = t == threads - 1 ? vectors : vectors / threads * (t + 1);
        FN(vreal) sum[4] = {{0}};
        int64_t i = first;
        for (; i + 4 <= end; i += 4)
            for (int u = 0; u < 4; u++) sum[u] += FN(load)(VALUES(A) + (i + u) * LANES);
        for (; i < end; i++) sum[0] += FN(load)(VALUES(A) + i * LANES);
        VALUES(sums)[t] = FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
}
