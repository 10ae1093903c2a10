/* Loads and stores of W adjacent numbers at once, for kernels that say W: 1, 2 or 4. */
#ifndef WIDE_LOADS_H
#define WIDE_LOADS_H
#if W == 1 || W == 2 || W == 4

/* W elements in one load, where the address is a multiple of it. */
#if W == 4
#ifdef REAL_F64
#define WIDE_REAL double4
#else
#define WIDE_REAL float4
#endif
#define TAKE_WIDE(to, all) ((to)[0] = (all).x, (to)[1] = (all).y, (to)[2] = (all).z, (to)[3] = (all).w)
#elif W == 2
#ifdef REAL_F64
#define WIDE_REAL double2
#else
#define WIDE_REAL float2
#endif
#define TAKE_WIDE(to, all) ((to)[0] = (all).x, (to)[1] = (all).y)
#endif

DEVICE_FN void load_wide(real *to, __global const real *from) {
#if W == 1
    to[0] = from[0];
#else
    const WIDE_REAL all = *(__global const WIDE_REAL *)from;
    TAKE_WIDE(to, all);
#endif
}

DEVICE_FN void store_wide(__global real *to, const real *from) {
#if W == 4
    WIDE_REAL all = {from[0], from[1], from[2], from[3]};
    *(__global WIDE_REAL *)to = all;
#elif W == 2
    WIDE_REAL all = {from[0], from[1]};
    *(__global WIDE_REAL *)to = all;
#else
    to[0] = from[0];
#endif
}

#endif
#endif
