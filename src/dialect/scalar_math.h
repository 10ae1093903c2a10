/* Scalar formulas shared by CPU bodies and GPU kernels, written in what C11, OpenCL C 1.2 and CUDA C++ have
 * in common. Include it after the dialect; on the CPU it stands alone. */
#ifndef SCALAR_MATH_H
#define SCALAR_MATH_H

#if defined(KILN_OPENCL) || defined(KILN_CUDA)
#ifdef SCALAR_CALLS /* for tests that build kernels by the hundred: the compiler translates one copy of
                     * each, not one a call */
#define SCALAR_FN static __attribute__((unused))
#else
#define SCALAR_FN DEVICE_FN
#endif
#else
#include <math.h>
#include <stdint.h>
#define SCALAR_FN static inline
typedef uint32_t uint32;
typedef uint64_t uint64;
typedef double wide; /* as in types.h */
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

/* digamma(x) and log(gamma(x)) for x > 0: x is moved up by eight, psi(x) = psi(x + 8) - p'/p and log gamma(x)
 * = log gamma(x + 8) - log p with p = x (x + 1) ... (x + 7), and there the asymptotic series ends below
 * rounding (Abramowitz and Stegun 6.3.18, 6.1.41). Errors: below 16 units in the last place of the larger of
 * 1 and the result (tests/core/gamma.c). */
SCALAR_FN wide gamma_shift(wide x, wide *product, wide *slope) {
    wide p = 1, q = 0;
    if (x >= 8) {
        *product = 1;
        *slope = 0;
        return x;
    }
    for (int i = 0; i < 8; i++) {
        q = q * (x + i) + p;
        p = p * (x + i);
    }
    *product = p;
    *slope = q;
    return x + 8;
}

SCALAR_FN wide digamma(wide x) {
    wide p, q;
    const wide y = gamma_shift(x, &p, &q), z = 1 / (y * y);
    wide sum = (wide)3617 / 8160;
    sum = (wide)1 / 12 - sum * z;
    sum = (wide)691 / 32760 - sum * z;
    sum = (wide)1 / 132 - sum * z;
    sum = (wide)1 / 240 - sum * z;
    sum = (wide)1 / 252 - sum * z;
    sum = (wide)1 / 120 - sum * z;
    sum = (wide)1 / 12 - sum * z;
    return log(y) - 1 / (2 * y) - sum * z - q / p;
}

/* trigamma(x), x > 0: sum of 1 / (x + i)^2 over the steps of such a move, and the series (6.4.12), whose
 * first term that is left out is below 6e-17 at 8; errors below 16 units in the last place. */
SCALAR_FN wide trigamma(wide x) {
    wide moved = 0;
    for (int i = 0; i < 8 && x < 8; i++) {
        moved += 1 / (x * x);
        x += 1;
    }
    const wide z = 1 / (x * x);
    wide sum = (wide)43867 / 798;
    sum = (wide)3617 / 510 - sum * z;
    sum = (wide)7 / 6 - sum * z;
    sum = (wide)691 / 2730 - sum * z;
    sum = (wide)5 / 66 - sum * z;
    sum = (wide)1 / 30 - sum * z;
    sum = (wide)1 / 42 - sum * z;
    sum = (wide)1 / 30 - sum * z;
    sum = (wide)1 / 6 - sum * z;
    return moved + (1 / x + z / 2 + sum * z / x);
}

SCALAR_FN wide log_gamma_positive(wide x) {
    const wide half_log_2pi = (wide)9189385332046727 / (wide)10000000000000000;
    wide p, q;
    const wide y = gamma_shift(x, &p, &q), z = 1 / (y * y);
    wide sum = (wide)3617 / 122400;
    sum = (wide)1 / 156 - sum * z;
    sum = (wide)691 / 360360 - sum * z;
    sum = (wide)1 / 1188 - sum * z;
    sum = (wide)1 / 1680 - sum * z;
    sum = (wide)1 / 1260 - sum * z;
    sum = (wide)1 / 360 - sum * z;
    sum = (wide)1 / 12 - sum * z;
    return ((y - (wide)1 / 2) * log(y) - y) + (half_log_2pi + sum / y - log(p));
}

/* One step and the joining of partial results of the column reductions: the kinds of ops/vectors/reduce.h. */
SCALAR_FN wide reduce_join(wide a, wide b, int kind) {
    if (kind != 3) return a + b;
    return b > a || b != b ? b : a; /* NaN, once there, stays: no comparison with it is true */
}

SCALAR_FN wide reduce_step(wide sum, wide x, wide y, int kind, wide scale) {
    switch (kind) {
    case 0: return sum + x * y;
    case 4: return sum + x;
    case 5: return x == 0 || x == 1 ? sum + x : (wide)NAN;
    case 6: return x == 1 || x == -1 ? sum + (x > 0 ? 1 : 0) : (wide)NAN;
    case 1: return sum + (x < 0 ? -x : x);
    case 2: return sum + (x * scale) * (x * scale);
    case 7: return x >= 0 ? sum + x : (wide)NAN;
    case 8: return x > 0 ? sum + (x * log(x) - x) : sum;
    case 9: return sum + log_gamma_positive(x + 1);
    default: return reduce_join(sum, x < 0 ? -x : x, kind);
    }
}

/* Returns what squares are scaled by whose largest is `largest`: a power of two, so that scaling rounds
 * nothing, and not so far from 1 that it is no normal number itself. */
SCALAR_FN wide reduce_scale(wide largest) {
#ifdef NO_F64
    const int most = 120;
#else
    const int most = 1000;
#endif
    if (!(largest > 0) || largest - largest != 0) return 1;
    const int power = -ilogb(largest);
    return ldexp((wide)1, power > most ? most : power < -most ? -most : power);
}

/* Returns what kiln_ratio says. */
SCALAR_FN wide ratio_value(wide factor, wide over, wide under) {
    return under == 0 ? 0 : factor * over / under;
}

/* ---- vectors of a batch (ops/batch/batch.h) ----
 * What is known of some of a vector's elements, by kind; `at` counts them for the variance, and is an
 * element's number, or BATCH_NOWHERE, for the places of the largest and the smallest. The kinds are those of
 * kiln_batch_kind. */
#define BATCH_SUM 1
#define BATCH_SQUARES 2
#define BATCH_L1 3
#define BATCH_L2 4
#define BATCH_MAX 5
#define BATCH_MIN 6
#define BATCH_ARGMAX 7
#define BATCH_ARGMIN 8
#define BATCH_MEAN 9
#define BATCH_VARIANCE 10
#define BATCH_NOWHERE ((uint64)1 << 62)

struct batch_part {
    wide a, b, c;
    uint64 at;
};

/* Blue's three sums of squares: c of numbers above BATCH_BIG, scaled down, b of those below BATCH_SMALL,
 * scaled up, a of the rest: none of 2^31 squares overflows, and none that counts vanishes. ACM TOMS 4 (1978),
 * 15. */
#ifdef NO_F64
#define BATCH_BIG 0x1p45f
#define BATCH_SMALL 0x1p-45f
#define BATCH_UP 0x1p85f
#define BATCH_DOWN 0x1p-85f
#else
#define BATCH_BIG 0x1p480
#define BATCH_SMALL 0x1p-480
#define BATCH_UP 0x1p600
#define BATCH_DOWN 0x1p-600
#endif

/* The smallest is the largest of -x. */
SCALAR_FN int batch_negates(int kind) {
    return kind == BATCH_MIN || kind == BATCH_ARGMIN;
}

SCALAR_FN struct batch_part batch_none(int kind) {
    struct batch_part none = {0, 0, 0, 0};
    if (kind == BATCH_MAX || kind == BATCH_MIN) none.a = -(wide)INFINITY;
    if (kind == BATCH_ARGMAX || kind == BATCH_ARGMIN) none.at = BATCH_NOWHERE;
    return none;
}

/* a + b, and, in float, what rounding took from it in p->b (Neumaier). */
SCALAR_FN void batch_add(struct batch_part *p, wide x) {
#ifdef NO_F64
    const wide sum = p->a + x, more = p->a < 0 ? -p->a : p->a, less = x < 0 ? -x : x;
    const wide lost = more >= less ? (p->a - sum) + x : (x - sum) + p->a;
    if (lost - lost == 0) p->b += lost;
    p->a = sum;
#else
    p->a += x;
#endif
}

/* One more element, number `at`, which is larger than those before. A NaN, once there, stays. L2: x is of the
 * type that sums are of, or else BATCH_SQUARES does. */
SCALAR_FN void batch_step(struct batch_part *p, wide x, uint64 at, int kind) {
    wide size, d;
    if (batch_negates(kind)) x = -x;
    switch (kind) {
    case BATCH_SUM:
    case BATCH_MEAN: batch_add(p, x); break;
    case BATCH_SQUARES: batch_add(p, x * x); break;
    case BATCH_L1: batch_add(p, x < 0 ? -x : x); break;
    case BATCH_L2:
        size = x < 0 ? -x : x;
        if (size > BATCH_BIG)
            p->c += (x * BATCH_DOWN) * (x * BATCH_DOWN);
        else if (size < BATCH_SMALL)
            p->b += (x * BATCH_UP) * (x * BATCH_UP);
        else
            p->a += x * x;
        break;
    case BATCH_MAX:
    case BATCH_MIN: p->a = x > p->a || x != x ? x : p->a; break;
    case BATCH_ARGMAX:
    case BATCH_ARGMIN:
        if (p->at != BATCH_NOWHERE && !(x > p->a) && !(x != x && p->a == p->a)) break;
        p->a = x;
        p->at = at;
        break;
    default: /* Welford */
        p->at++;
        d = x - p->a;
        p->a += d / (wide)p->at;
        p->b += d * (x - p->a);
    }
}

/* p and q as one, in any order. */
SCALAR_FN void batch_join(struct batch_part *p, struct batch_part q, int kind) {
    int later;
    wide d, share;
    switch (kind) {
    case BATCH_MAX:
    case BATCH_MIN: p->a = q.a > p->a || q.a != q.a ? q.a : p->a; break;
    case BATCH_ARGMAX:
    case BATCH_ARGMIN:
        if (q.at == BATCH_NOWHERE) break;
        later = q.at > p->at;
        if (p->at != BATCH_NOWHERE) {
            if (p->a > q.a || (p->a != p->a && q.a == q.a)) break;
            if (later && (p->a == q.a || p->a != p->a)) break;
        }
        p->a = q.a;
        p->at = q.at;
        break;
    case BATCH_VARIANCE: /* Chan, Golub and LeVeque */
        if (q.at == 0) break;
        if (p->at == 0) {
            *p = q;
            break;
        }
        d = q.a - p->a;
        share = (wide)q.at / (wide)(p->at + q.at);
        p->b += q.b + d * d * share * (wide)p->at;
        p->a += d * share;
        p->at += q.at;
        break;
    case BATCH_L2:
        p->a += q.a;
        p->b += q.b;
        p->c += q.c;
        break;
    default: batch_add(p, q.a); p->b += q.b;
    }
}

SCALAR_FN wide batch_value(struct batch_part p, int kind, wide length) {
    const wide sum = p.a - p.a == 0 ? p.a + p.b : p.a; /* b is what rounding took, or 0 */
    switch (kind) {
    case BATCH_L2:
        if (p.c != 0) return sqrt(p.c + p.a * BATCH_DOWN * BATCH_DOWN) * BATCH_UP;
        if (p.b == 0) return sqrt(p.a);
        return p.a != 0 ? sqrt(p.a + p.b * BATCH_DOWN * BATCH_DOWN) : sqrt(p.b) * BATCH_DOWN;
    case BATCH_MAX: return p.a;
    case BATCH_MIN: return -p.a;
    case BATCH_ARGMAX:
    case BATCH_ARGMIN: return p.at == BATCH_NOWHERE ? -1 : (wide)p.at;
    case BATCH_MEAN: return sum / length;
    case BATCH_VARIANCE: return p.b / (wide)p.at;
    default: return sum;
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

/* The state of PageRank's power iteration: see kiln_ranks in kiln.h. */
#define RANKS_COLUMNS 64 /* at most */
#define RANKS_MASS 0
#define RANKS_GOAL 1
#define RANKS_TAKEN 2
#define RANKS_ACTIVE 3
#define RANKS_ROWS 4

#endif
