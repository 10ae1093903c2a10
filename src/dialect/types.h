/* The types that kernels are written in, before either dialect. The build defines REAL_F32 or REAL_F64, and
 * INDEX64 where 32-bit offsets do not reach. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef unsigned int uint32;
typedef unsigned long uint64; /* offsets are long, 64 bits as in OpenCL C */

#ifdef REAL_F64
typedef double real;
#define REAL(x) x
#define REAL_SMALLEST 2.2250738585072014e-308 /* with all its digits */
#else
typedef float real;
#define REAL(x) x##f /* REAL(0.5), with a decimal point or an exponent */
#define REAL_SMALLEST 1.17549435e-38f
#endif

#define REAL_INFINITY ((real)INFINITY)
#define FN(name) name /* the name of a function that the CPU has for each type */

/* The type that reductions add up in: double, except on devices that have none. */
#ifdef NO_F64
typedef float wide;
#else
typedef double wide;
#endif

#ifdef INDEX64
typedef long index_t;
#else
typedef int index_t;
#endif

/* Each thread walks over elements a grid apart. */
#define FOR_EACH(i, count)                                                                                   \
    for (index_t i = (index_t)get_global_id(0); i < (index_t)(count); i += (index_t)get_global_size(0))
