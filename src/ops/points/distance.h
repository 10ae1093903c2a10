/* The squared distance of a dense row from a centre, for CPU bodies; included once per element type, after
 * simd_math.h. */

typedef real FN(vfour) __attribute__((vector_size(4 * real_bytes)));

/* ||x - y||^2: whole vectors, then fours, then single columns, as a load of some lanes costs more than they
 * do. */
ALWAYS_INLINE real FN(assign_distance)(const real *x, const real *y, int64_t n) {
    FN(vreal) sum[4] = {{0}};
    FN(vfour) four = {0};
    real few = 0;
    int64_t j = 0;
    for (; n - j >= 4 * LANES; j += 4 * LANES)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const FN(vreal) apart = FN(load)(x + j + i * LANES) - FN(load)(y + j + i * LANES);
            sum[i] += apart * apart;
        }
    for (; n - j >= LANES; j += LANES) {
        const FN(vreal) apart = FN(load)(x + j) - FN(load)(y + j);
        sum[0] += apart * apart;
    }
    for (; n - j >= 4; j += 4) {
        FN(vfour) a, b;
        memcpy(&a, x + j, sizeof a);
        memcpy(&b, y + j, sizeof b);
        four += (a - b) * (a - b);
    }
    for (; j < n; j++) few += (x[j] - y[j]) * (x[j] - y[j]);
    const real rest = ((four[0] + four[2]) + (four[1] + four[3])) + few;
    return n < LANES ? rest : FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}
