/* CPU body of the bandwidth measurement: each part is summed with vector loads, as many parts as sums has
 * room for. Four stretches of a part are read side by side: from a single one a core reads some 6 % less. */

struct FN(reading) {
    const kiln_matrix *A, *sums;
    int parts;
};

static void FN(read_part)(void *arg, int part) {
    const struct FN(reading) *r = arg;
    const int64_t stretches = 4 * (int64_t)r->parts, all = r->A->nnz / LANES / stretches;
    const real *from = VALUES(r->A) + part * 4 * all * LANES;
    FN(vreal) sum[4] = {{0}};
    for (int64_t i = 0; i < all; i++)
        for (int u = 0; u < 4; u++) sum[u] += FN(load)(from + (u * all + i) * LANES);
    VALUES(r->sums)[part] = FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

void FN(read)(const kiln_matrix *A, const kiln_matrix *sums) {
    struct FN(reading) r = {.A = A, .sums = sums, .parts = A->device->threads};
    ki_parallel(r.parts, r.parts, FN(read_part), &r);
}
