/* Scalar formulas shared by CPU bodies and GPU kernels, written in what C11, OpenCL C 1.2 and CUDA C++ have
 * in common. Include it after the dialect; on the CPU it stands alone. */
#ifndef SCALAR_MATH_H
#define SCALAR_MATH_H

#if defined(KILN_OPENCL) || defined(KILN_CUDA)
#define SCALAR_FN DEVICE_FN
#define LOG_GAMMA lgamma
#else
#include <stdint.h>
#define SCALAR_FN static inline
typedef uint32_t uint32;
typedef uint64_t uint64;

/* C's lgamma also writes the global signgam, which threads would race for. The declaration is here as strict C hides it. */
double lgamma_r(double x, int *sign);
SCALAR_FN double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}
#define LOG_GAMMA log_gamma
#endif

/* Philox4x32-10: ten rounds of multiply-and-swap on the counter, the key growing by the golden ratio and
 * sqrt(3)-1 each round. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. */
SCALAR_FN void philox(uint32 out[4], uint64 seed, uint64 stream, uint64 index) {
    uint32 c0 = (uint32)index, c1 = (uint32)(index >> 32), c2 = (uint32)stream, c3 = (uint32)(stream >> 32);
    uint32 k0 = (uint32)seed, k1 = (uint32)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64 a = (uint64)0xD2511F53u * c0, b = (uint64)0xCD9E8D57u * c2;
        c0 = (uint32)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32)b;
        c2 = (uint32)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The type that reductions add up in: double, except on devices that have none. */
#ifdef NO_F64
typedef float wide;
#else
typedef double wide;
#endif

/* One step and the joining of partial results of the column reductions: the kinds of ops/reduce.h. */
SCALAR_FN wide reduce_join(wide a, wide b, int kind) {
    if (kind != 3) return a + b;
    return b > a || b != b ? b : a; /* NaN, once there, stays: no comparison with it is true */
}

SCALAR_FN wide reduce_step(wide sum, wide x, wide y, int kind, wide scale) {
    switch (kind) {
    case 0: return sum + x * y;
    case 1: return sum + (x < 0 ? -x : x);
    case 2: return sum + (x * scale) * (x * scale);
    default: return reduce_join(sum, x < 0 ? -x : x, kind);
    }
}

/* The state of a conjugate gradient recurrence, a column of it: see kiln_cg_step in kiln.h. */
#define CG_RHO 0      /* G . (inverse .* G) */
#define CG_ACTIVE 1   /* 1 while the recurrence runs */
#define CG_GOAL 2     /* it is finished at rho <= goal */
#define CG_DECREASE 3 /* the sum of alpha * rho / 2: how far the objective has come down */
#define CG_PENALTY 4  /* P . L P */
#define CG_ROWS 5

/* The step's length; 0 for a column that is finished, or whose direction is of no use. */
SCALAR_FN wide cg_alpha(wide rho, wide active, wide curvature) {
    const wide alpha = rho / curvature;
    return active != 0 && curvature > 0 && alpha - alpha == 0 ? alpha : 0;
}

SCALAR_FN int cg_goes_on(wide rho, wide next, wide goal) {
    const wide beta = next / rho;
    return next > goal && beta - beta == 0;
}

SCALAR_FN void cg_settle_column(wide *state, wide curvature, wide next) {
    const wide rho = state[CG_RHO], alpha = cg_alpha(rho, state[CG_ACTIVE], curvature);
    state[CG_ACTIVE] = alpha != 0 && cg_goes_on(rho, next, state[CG_GOAL]) ? 1 : 0;
    if (alpha == 0) return;
    state[CG_DECREASE] += alpha * rho / 2;
    state[CG_RHO] = next;
}

#endif
