/* Sums over VS adjacent threads of a work-group of BS, the same bits in all of them and from run to run.
 * VS <= BS are powers of two. Every thread of the work-group must make the call.
 *
 * NVIDIA: butterflies of shuffles within a warp, then local memory between warps; its OpenCL passes the
 * instruction through. OpenCL C 1.2 has no shuffles: a tree in local memory, four to one at each level, and
 * at the end each thread adds up the last few for itself: where barriers are dear (a CPU behind OpenCL),
 * halving the levels halves the time. */
#ifndef GROUP_SUM_H
#define GROUP_SUM_H
#if defined(VS) && defined(BS) /* kernels without group sums define neither */

#if defined(KILN_CUDA)
#define SHUFFLES
DEVICE_FN real shuffle_xor(uint mask, real x, int step) {
    return __shfl_xor_sync(mask, x, step);
}

DEVICE_FN double shuffle_double(uint mask, double x, int step) {
    return __shfl_xor_sync(mask, x, step);
}

/* The lane `step` before has this, the first lanes their own; all lanes of a warp make the call. */
DEVICE_FN wide shuffle_up(wide x, int step) {
    return __shfl_up_sync(0xffffffffu, x, step);
}

DEVICE_FN int shuffle_up_int(int x, int step) {
    return __shfl_up_sync(0xffffffffu, x, step);
}
#elif defined(KILN_NVIDIA) && KILN_NVIDIA >= 70
#define SHUFFLES
DEVICE_FN double shuffle_double(uint mask, double x, int step) {
    double other;
    __asm__ volatile("{\n\t.reg .b32 low, high;\n\t"
                     "mov.b64 {low, high}, %1;\n\t"
                     "shfl.sync.bfly.b32 low, low, %2, 31, %3;\n\t"
                     "shfl.sync.bfly.b32 high, high, %2, 31, %3;\n\t"
                     "mov.b64 %0, {low, high};\n\t}"
                     : "=d"(other)
                     : "d"(x), "r"(step), "r"(mask));
    return other;
}

DEVICE_FN real shuffle_xor(uint mask, real x, int step) {
#ifdef REAL_F64
    return shuffle_double(mask, x, step);
#else
    real other;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, %3;" : "=f"(other) : "f"(x), "r"(step), "r"(mask));
    return other;
#endif
}

DEVICE_FN int shuffle_up_int(int x, int step) {
    int other;
    __asm__ volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(other) : "r"(x), "r"(step));
    return other;
}

DEVICE_FN double shuffle_up(double x, int step) {
    const int2 halves = as_int2(x);
    return as_double((int2)(shuffle_up_int(halves.x, step), shuffle_up_int(halves.y, step)));
}
#endif

#ifdef SHUFFLES
/* One exchange: of `count` numbers a lane keeps half, or, of one, all. */
DEVICE_FN void halve(real *p, const int count, const int step) {
    const bool upper = ((int)get_local_id(0) & step) != 0;
    if (step == 0) return;
    if (count <= 1) p[0] += shuffle_xor(0xffffffffu, p[0], step);
#pragma unroll
    for (int s = 0; s < count / 2; s++) {
        const real low = p[s], high = p[s + count / 2]; /* loaded before the choice: p has no address */
        p[s] = (upper ? high : low) + shuffle_xor(0xffffffffu, upper ? low : high, step);
    }
}

/* `numbers` sums over groups of `lanes` lanes, in place: each exchange halves the numbers that a lane is in
 * charge of, while there are several. A lane ends with those from lane * numbers / lanes on; lanes in charge
 * of the same number have the same bits.
 * Five calls and no loop, so that every compiler keeps p in registers. */
DEVICE_FN void halving_sums(real *p, const int numbers, const int lanes) {
    halve(p, numbers, lanes / 2);
    halve(p, numbers / 2, lanes / 4);
    halve(p, numbers / 4, lanes / 8);
    halve(p, numbers / 8, lanes / 16);
    halve(p, numbers / 16, lanes / 32);
}

DEVICE_FN void group_sums(real *x, int count, LOCAL_PTR real *scratch) {
    const unsigned warp = BS < 32 ? (1u << (BS & 31)) - 1 : 0xffffffffu;
#pragma unroll
    for (int r = 0; r < count; r++)
#pragma unroll
        for (int step = (VS < 32 ? VS : 32) / 2; step > 0; step /= 2)
            x[r] += shuffle_xor(warp, x[r], step);
#if VS > 32
    const int id = (int)get_local_id(0), first = id / VS * (VS / 32);
    if (id % 32 == 0)
        for (int r = 0; r < count; r++) scratch[r * (BS / 32) + id / 32] = x[r];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < count; r++) {
        x[r] = scratch[r * (BS / 32) + first];
        for (int w = 1; w < VS / 32; w++) x[r] += scratch[r * (BS / 32) + first + w];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}
#else
DEVICE_FN void group_sums(real *x, int count, LOCAL_PTR real *scratch) {
#if VS > 1
    const int id = (int)get_local_id(0), lane = id % VS;
    int left = VS;
    for (int r = 0; r < count; r++) scratch[r * BS + id] = x[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (; left > 8; left /= 4) {
        const int step = left / 4;
        if (lane < step)
            for (int r = 0; r < count; r++) {
                LOCAL_PTR real *mine = scratch + r * BS + id;
                *mine = (mine[0] + mine[step]) + (mine[2 * step] + mine[3 * step]);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = 0; r < count; r++) {
        LOCAL_PTR const real *first = scratch + r * BS + id - lane;
        x[r] = first[0];
        for (int i = 1; i < left; i++) x[r] += first[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}
#endif

/* The sum of x. scratch has BS elements, and is free for other use again on return. */
DEVICE_FN real group_sum(real x, LOCAL_PTR real *scratch) {
    group_sums(&x, 1, scratch);
    return x;
}

/* R sums at once, in place, for the barriers of one: real x[R]. scratch has R * BS elements. */
#ifdef R
DEVICE_FN void group_sum_n(real *x, LOCAL_PTR real *scratch) {
    group_sums(x, R, scratch);
}

/* The same where each sum is wanted by one thread: of VS, thread l ends with those from l * R / VS on in
 * x[0], x[1], ... R is a power of two. */
DEVICE_FN void own_sums(real *x, LOCAL_PTR real *scratch) {
#if defined(SHUFFLES) && VS <= 32
    halving_sums(x, R, VS);
#else
    const int own = (int)get_local_id(0) % VS * R / VS;
    group_sums(x, R, scratch);
#pragma unroll
    for (int i = 0; i < (R > VS ? R / VS : 1); i++)
#pragma unroll
        for (int r = i; r < R; r++) /* no number of a register can be told at run time */
            if (own + i == r) x[i] = x[r];
#endif
}
#endif

#endif

/* A sum in twice the digits of `wide`, high + low: of terms that cancel. Products are those of fused
 * multiplications, which no compiler contracts with what follows, and what each rounding leaves out goes into
 * low. */
struct twice {
    wide high, low;
};

DEVICE_FN void add_to(struct twice *to, wide by) {
    const wide sum = to->high + by, came = sum - to->high;
    to->low += (to->high - (sum - came)) + (by - came);
    to->high = sum;
}

DEVICE_FN void add_product(struct twice *to, wide x, wide y) {
    const wide product = fma(x, y, (wide)0);
    to->low += fma(x, y, -product);
    add_to(to, product);
}

/* to += s x^2. */
DEVICE_FN void add_square(struct twice *to, wide s, wide x) {
    const wide square = fma(x, x, (wide)0), rest = fma(x, x, -square);
    to->low += s * rest;
    add_product(to, s, square);
}

#ifdef BS
/* The sum over all threads of a group of BS in the widest type, the same bits in all. shared has BS
 * places. */
DEVICE_FN wide group_total(wide sum, LOCAL_PTR wide *shared) {
    const int id = (int)get_local_id(0);
#if defined(SHUFFLES) && BS >= 32 && !defined(NO_F64)
    for (int step = 16; step > 0; step /= 2) sum += shuffle_double(0xffffffffu, sum, step);
    if (id % 32 == 0) shared[id / 32] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = shared[0];
    for (int warp = 1; warp < BS / 32; warp++) sum += shared[warp];
#else
    shared[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = BS / 2; reach > 0; reach /= 2) {
        if (id < reach) shared[id] += shared[id + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = shared[0];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
#endif
#endif
