/* Exponential and logarithm of vectors, for CPU bodies; included once per element type, after simd.h.
 *
 * Taylor polynomials on short intervals about 0, long enough that what is cut off is below rounding: no
 * tables, no branches, and the same source for every instruction set. Errors stay below 2 units in the last
 * place (tests/core/simd_math.c). */

/* a where the mask is set, else b. */
ALWAYS_INLINE FN(vreal) FN(select)(FN(vmask) mask, FN(vreal) a, FN(vreal) b) {
    return (FN(vreal))(((FN(vmask))a & mask) | ((FN(vmask))b & ~mask));
}

ALWAYS_INLINE FN(vreal) FN(all)(real x) {
    return (FN(vreal)){0} + x;
}

/* The first `count` numbers at `from`, zeros behind them. */
ALWAYS_INLINE FN(vreal) FN(load_some)(const real *from, int64_t count) {
    FN(vreal) v = {0};
    if (count >= LANES) return FN(load)(from);
    memcpy(&v, from, (size_t)count * sizeof(real));
    return v;
}

/* 2^n for whole n whose bits are given, as far as it is a normal number. */
#undef MANTISSA_BITS
#undef EXPONENT_BIAS
#undef WHOLE
#undef LOG2_HIGH
#undef LOG2_LOW
#if real_bytes == 8
#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1023
#define WHOLE 0x1.8p52            /* added to a number, leaves it rounded to a whole one in the lowest bits */
#define LOG2_HIGH 0x1.62e42feep-1 /* log(2) = high + low; the product of high and a whole number is exact */
#define LOG2_LOW 0x1.a39ef35793c76p-33
#else
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define WHOLE 0x1.8p23f
#define LOG2_HIGH 0x1.62e4p-1f
#define LOG2_LOW 0x1.7f7d1cp-20f
#endif
ALWAYS_INLINE FN(vreal) FN(power_of_2)(FN(vmask) n) {
    return (FN(vreal))((n + EXPONENT_BIAS) << MANTISSA_BITS);
}

/* e^x = 2^n e^r = (less + 1) low high, |r| <= log(2)/2. 2^n = low high in two factors, so that results beyond
 * the normal numbers round to infinity, 0 or what is between 0 and the normal ones. */
struct FN(exp_parts) {
    FN(vreal) less, low, high;
};

ALWAYS_INLINE struct FN(exp_parts) FN(vexp_parts)(FN(vreal) x) {
#if real_bytes == 8
    const real least = -746, most = 710;
    enum { TERMS = 13 };
    static const real term[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
#else
    const real least = -104, most = 89;
    enum { TERMS = 7 };
    static const real term[] = {1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040};
#endif
    x = FN(select)(x < least, FN(all)(least), x); /* NaN is neither less nor more, and stays */
    x = FN(select)(x > most, FN(all)(most), x);
    const FN(vreal) shifted = x * (real)1.4426950408889634 + (real)WHOLE, n = shifted - (real)WHOLE;
    const FN(vreal) r = (x - n * (real)LOG2_HIGH) - n * (real)LOG2_LOW;
    FN(vreal) sum = FN(all)(term[TERMS - 2]);
    for (int i = TERMS - 3; i >= 0; i--) sum = sum * r + term[i];
    sum = (sum * r) * r + r;
    const FN(vmask) whole = (FN(vmask))shifted - (FN(vmask))FN(all)((real)WHOLE), half = whole >> 1;
    return (struct FN(exp_parts)){sum, FN(power_of_2)(half), FN(power_of_2)(whole - half)};
}

ALWAYS_INLINE FN(vreal) FN(vexp)(FN(vreal) x) {
    const struct FN(exp_parts) of = FN(vexp_parts)(x);
    return ((of.less + (real)1) * of.low) * of.high;
}

/* e^x - 1, with the digits of x where that is near 0. */
ALWAYS_INLINE FN(vreal) FN(vexpm1)(FN(vreal) x) {
    const struct FN(exp_parts) of = FN(vexp_parts)(x);
    return (of.less * of.low) * of.high + (of.low * of.high - (real)1);
}

/* u - log(1 + u) for -0.2929 < u < 0.4143: s = u / (2 + u) is at most 0.172, and log(1 + u) = 2 atanh(s)
 * = u - s (u - sum), the sum over s^2k 2/(2k+1). */
ALWAYS_INLINE FN(vreal) FN(vlog_bend)(FN(vreal) u) {
#if real_bytes == 8
    enum { TERMS = 10 };
#else
    enum { TERMS = 5 };
#endif
    const FN(vreal) s = u / (u + (real)2), z = s * s;
    FN(vreal) sum = FN(all)((real)2 / (2 * TERMS + 1));
    for (int k = TERMS - 1; k >= 1; k--) sum = sum * z + (real)2 / (2 * k + 1);
    return s * (u - sum * z);
}

/* log(1 + x) for x in [0, 1]: of x, or of (x - 1) / 2 and log(2) apart. */
ALWAYS_INLINE FN(vreal) FN(vlog1p)(FN(vreal) x) {
    const FN(vmask) large = x > (real)0.41421356237309505;
    const FN(vreal) u = FN(select)(large, (x - (real)1) * (real)0.5, x), log = u - FN(vlog_bend)(u);
    return log + FN(select)(large, FN(all)((real)0.6931471805599453094), (FN(vreal)){0});
}

/* A normal number x > 0 is 2^n (1 + u), with n = 0 about 1, where nothing cancels. */
ALWAYS_INLINE FN(vreal) FN(vlog_split)(FN(vreal) x, FN(vreal) * u) {
    const FN(vmask) bits = (FN(vmask))x, n = (bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    const FN(vreal) f = (FN(vreal))(bits - (n << MANTISSA_BITS)) - (real)1;
    const FN(vmask) large = f > (real)0.41421356237309505; /* -1 where it is */
    *u = FN(select)(large, (f - (real)1) * (real)0.5, f);
    return (FN(vreal))((FN(vmask))FN(all)((real)WHOLE) + n - large) - (real)WHOLE;
}

ALWAYS_INLINE FN(vreal) FN(vlog)(FN(vreal) x) {
    FN(vreal) u;
    const FN(vreal) n = FN(vlog_split)(x, &u), log = u - FN(vlog_bend)(u);
    return n * (real)LOG2_HIGH + (log + n * (real)LOG2_LOW);
}

/* log r and t - log r >= 0 of r = 1 + t, with the digits of t where that is small, else of r, a normal
 * number; what is left within 13 units in the last place. */
struct FN(logs) {
    FN(vreal) log, excess;
};

ALWAYS_INLINE struct FN(logs) FN(vlogs)(FN(vreal) t, FN(vreal) r) {
    const FN(vmask) near = (t < (real)0.41421356237309505) & (t > (real)-0.29289321881345248);
    FN(vreal) u;
    const FN(vreal) n = FN(vlog_split)(r, &u);
    u = FN(select)(near, t, u);
    const FN(vreal) bend = FN(vlog_bend)(u), log = u - bend;
    const FN(vreal) far = n * (real)LOG2_HIGH + (log + n * (real)LOG2_LOW);
    return (struct FN(logs)){FN(select)(near, log, far), FN(select)(near, bend, t - far)};
}

/* digamma(x), x > 0: scalar_math.h's, in the vector's own precision; f32 needs fewer terms. */
ALWAYS_INLINE FN(vreal) FN(vdigamma)(FN(vreal) x) {
#if real_bytes == 8
    enum { TERMS = 8 };
#else
    enum { TERMS = 3 };
#endif
    static const real term[] = {(real)(1.0 / 12),  (real)(1.0 / 120),    (real)(1.0 / 252),
                                (real)(1.0 / 240), (real)(1.0 / 132),    (real)(691.0 / 32760),
                                (real)(1.0 / 12),  (real)(3617.0 / 8160)};
    const FN(vmask) small = x < (real)8;
    const FN(vreal) low = FN(select)(small, x, FN(all)(1));
    FN(vreal) p = FN(all)(1), q = {0};
    for (int i = 0; i < 8; i++) {
        q = q * (low + (real)i) + p;
        p = p * (low + (real)i);
    }
    const FN(vreal) y = FN(select)(small, x + (real)8, x), inverse = (real)1 / y, z = inverse * inverse;
    FN(vreal) sum = FN(all)(term[TERMS - 1]);
    for (int i = TERMS - 2; i >= 0; i--) sum = term[i] - sum * z;
    return FN(vlog)(y) - (real)0.5 * inverse - sum * z - FN(masked)(q / p, small);
}

#undef LEAST_NORMAL
#define LEAST_NORMAL (real_bytes == 8 ? 0x1p-1022 : 0x1p-126)
/* 1 / sqrt(x), and 0 below the normal numbers and for NaN; off by less than 4 units in the last place. From
 * an estimate by Newton's method where the processor has one, as square roots and divisions take several
 * times as long; x y before y, for y^2 overflows where x is small. */
ALWAYS_INLINE FN(vreal) FN(vrsqrt)(FN(vreal) x) {
    FN(vreal) y = {0};
#if defined(__AVX512F__) && real_bytes == 4
    y = (FN(vreal))_mm512_rsqrt14_ps((__m512)x);
    enum { STEPS = 1 };
#elif defined(__AVX512F__)
    y = (FN(vreal))_mm512_rsqrt14_pd((__m512d)x);
    enum { STEPS = 2 };
#elif defined(__AVX2__) && real_bytes == 4
    y = (FN(vreal))_mm256_rsqrt_ps((__m256)x);
    enum { STEPS = 1 };
#else
    for (int i = 0; i < LANES; i++) y[i] = (real)1 / (real)sqrt(x[i]);
    enum { STEPS = 0 };
#endif
    for (int i = 0; i < STEPS; i++) y = y * ((real)1.5 - ((real)0.5 * x * y) * y);
    return FN(masked)(y, x >= (real)LEAST_NORMAL);
}
