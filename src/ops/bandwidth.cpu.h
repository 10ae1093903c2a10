/* CPU body of the bandwidth measurement: each part is summed with vector loads, as many parts as sums has
 * room for. */

struct FN(reading) {
    const kiln_matrix *A, *sums;
    int parts;
};

static void FN(read_part)(void *arg, int part) {
    const struct FN(reading) *r = arg;
    const int64_t vectors = r->A->nnz / LANES, end = ki_part_begin(vectors, part + 1, r->parts);
    FN(vreal) sum[4] = {{0}};
    int64_t i = ki_part_begin(vectors, part, r->parts);
    for (; i + 4 <= end; i += 4)
        for (int u = 0; u < 4; u++) sum[u] += FN(load)(VALUES(r->A) + (i + u) * LANES);
    for (; i < end; i++) sum[0] += FN(load)(VALUES(r->A) + i * LANES);
    VALUES(r->sums)[part] = FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static void FN(read)(const kiln_matrix *A, const kiln_matrix *sums) {
    struct FN(reading) r = {.A = A, .sums = sums, .parts = A->device->threads};
    ki_parallel(r.parts, r.parts, FN(read_part), &r);
}
