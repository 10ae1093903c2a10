/* The kernel dialect where the compiler speaks OpenCL C 1.2: the kernels' own language, so only what differs
 * from CUDA gets a name here. */
#define KILN_OPENCL 1

/* Tests give PoCL the declarations of what kernels call, in place of all that it has and reads for each
 * (tests/pocl_header.py). */
#ifdef KILN_FEW_DECLARATIONS
#include <opencl-few.h>
#endif

#ifdef REAL_F64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

/* Inlined without fail: where a function that gets local memory stays a function, PoCL 3.1 leaves that memory
 * to all work-groups in common, and those on other threads overwrite it. */
#define DEVICE_FN static inline __attribute__((unused, always_inline))
#define LOCAL __local     /* of an array in a kernel: LOCAL real scratch[BS]; */
#define LOCAL_PTR __local /* of what a pointer points to: LOCAL_PTR real *scratch */
/* Local memory whose size the launch decides (ki_arg_local), one piece a kernel: behind the last parameter,
 * and at the start of the body. NVIDIA's driver aligns it as what the parameter points to, so that doubles
 * would not be where they must in a piece for floats. */
#define LOCAL_PARAMETER(name) , __local uint4 *name##_memory
#define LOCAL_BEGIN(name) __local real *const name = (__local real *)name##_memory;
#define GROUP_OF(threads)                                                                                    \
    __attribute__((reqd_work_group_size(threads, 1, 1))) /* __kernel GROUP_OF(BS) void f(...) */

/* PoCL 3.1 takes a branch straight behind a barrier for one that all threads of a group take alike, also
 * where the optimiser has only moved a thread's own condition before the barrier: then all do what the last
 * one does. An instruction in between tells it better. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define barrier(flags)                                                                                       \
    do {                                                                                                     \
        barrier(flags);                                                                                      \
        __asm__ volatile("");                                                                                \
    } while (0)
#endif

#define GROUP_BESIDE(threads, groups) GROUP_OF(threads)

/* *address += value. OpenCL 1.2 has no floating-point atomics, so the sum goes through an integer of the same
 * size: compare and swap until nobody came between. */
#ifdef REAL_F64
#define REAL_BITS ulong
#define BITS_OF(x) as_ulong(x)
#define REAL_OF(bits) as_double(bits)
#define COMPARE_AND_SWAP atom_cmpxchg
#else
#define REAL_BITS uint
#define BITS_OF(x) as_uint(x)
#define REAL_OF(bits) as_float(bits)
#define COMPARE_AND_SWAP atomic_cmpxchg
#endif

#define ATOMIC_ADD_LOOP(SPACE)                                                                               \
    volatile SPACE REAL_BITS *word = (volatile SPACE REAL_BITS *)address;                                    \
    REAL_BITS seen = *word, expected;                                                                        \
    do {                                                                                                     \
        expected = seen;                                                                                     \
        seen = COMPARE_AND_SWAP(word, expected, BITS_OF(REAL_OF(expected) + value));                         \
    } while (seen != expected)

DEVICE_FN void atomic_add_local(volatile __local real *address, real value) {
    ATOMIC_ADD_LOOP(__local);
}

/* NVIDIA's OpenCL passes PTX through, and the instruction is far faster than the loop. The OpenCL backend
 * defines KILN_NVIDIA as the compute capability times ten; f64 came with 6.0. */
DEVICE_FN void atomic_add_global(volatile __global real *address, real value) {
#if defined(KILN_NVIDIA) && defined(REAL_F64) && KILN_NVIDIA >= 60
    __asm__ volatile("red.global.add.f64 [%0], %1;" : : "l"(address), "d"(value) : "memory");
#elif defined(KILN_NVIDIA) && !defined(REAL_F64)
    __asm__ volatile("red.global.add.f32 [%0], %1;" : : "l"(address), "f"(value) : "memory");
#else
    ATOMIC_ADD_LOOP(__global);
#endif
}

/* *address = the larger one of two numbers that are not negative, whose bits are in the same order; the
 * result is the same in any order. Most often a load shows that there is nothing to do. Of 64 bits OpenCL 1.2
 * promises no maximum beside compare and swap. */
DEVICE_FN void atomic_max_global(volatile __global real *address, real value) {
#ifdef REAL_F64
    volatile __global ulong *word = (volatile __global ulong *)address;
    ulong seen = *word, expected;
    while (as_double(seen) < value) {
        expected = seen;
        seen = atom_cmpxchg(word, expected, as_ulong(value));
        if (seen == expected) break;
    }
#else
    if (*address < value) atomic_max((volatile __global uint *)address, as_uint(value));
#endif
}

DEVICE_FN void atomic_add_int(volatile __global int *address, int value) {
    atomic_add(address, value);
}

/* One more, and how many there were. */
DEVICE_FN int count_up(volatile __global int *address) {
    return atomic_inc(address);
}

/* Adds so many more in local memory, and returns how many there were. */
DEVICE_FN int count_local(volatile __local int *address, int more) {
    return atomic_add(address, more);
}

/* Sets bits of a word in local memory. */
DEVICE_FN void set_bits(volatile __local uint *address, uint bits) {
    atomic_or(address, bits);
}

/* The bits are not all 0. */
DEVICE_FN int lowest_bit(uint bits) {
    return 31 - (int)clz(bits & -bits);
}

/* Other groups see what this thread wrote before, before what it writes after; the same for what it reads.
 * Only NVIDIA's OpenCL 1.2 promises that. */
DEVICE_FN void memory_fence(void) {
#ifdef KILN_NVIDIA
    __asm__ volatile("membar.gl;" : : : "memory");
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
}

/* The 32 threads of a warp have come here and see each other's stores, where threads exchange registers;
 * elsewhere such kernels count on one thread at a time. */
DEVICE_FN void warp_sync(void) {
#if defined(KILN_NVIDIA) && KILN_NVIDIA >= 70
    __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory");
#endif
}

#define FLOAT_OF(bits) as_float(bits)

/* The number that 16 bits are in IEEE 754's half precision. Its exponent moves to where f32 has it and is 112
 * too small, which a product mends, also where it is 0; infinities keep the largest one. */
DEVICE_FN float float_of_f16(uint bits) {
#ifdef KILN_NVIDIA
    float x;
    __asm__("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tcvt.f32.f16 %0, low;\n\t}"
            : "=f"(x)
            : "r"(bits));
    return x;
#else
    const uint size = as_uint(as_float((bits & 0x7fffu) << 13) * 0x1p112f);
    return as_float(size | (bits & 0x8000u) << 16 | ((bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u));
#endif
}

/* 1 / sqrt(x), to 2 units in the last place, of a number in the normal range; with NVIDIA as in the other
 * dialect. */
DEVICE_FN real inverse_sqrt(real x) {
#ifndef KILN_NVIDIA
    return rsqrt(x);
#else
    real y;
#ifdef REAL_F64
    __asm__("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const real rest = fma(-x * y, y, 1.0);
    return fma(y * rest, fma(rest, 0.375, 0.5), y);
#else
    __asm__("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
#endif
}

/* A thread's own copies of W elements into local memory, which it goes on without: those of all but the last
 * `pending` commits have come when it has waited (PTX ISA, "cp.async"). */
#define ALIGNED_16 __attribute__((aligned(16)))
#if defined(KILN_NVIDIA) && KILN_NVIDIA >= 80
#define COPY_AS(how, to, from)                                                                               \
    __asm__ volatile("cp.async." how ";" : : "r"((uint)(ulong)(to)), "l"(from) : "memory")
#define COPY_16(to, from) COPY_AS("cg.shared.global [%0], [%1], 16", to, from)
#define COPY_8(to, from) COPY_AS("ca.shared.global [%0], [%1], 8", to, from)
#define COPY_4(to, from) COPY_AS("ca.shared.global [%0], [%1], 4", to, from)
#define COPY_ASYNC(to, from)                                                                                 \
    do {                                                                                                     \
        if (W * sizeof(real) == 16)                                                                          \
            COPY_16(to, from);                                                                               \
        else if (W * sizeof(real) == 8)                                                                      \
            COPY_8(to, from);                                                                                \
        else                                                                                                 \
            COPY_4(to, from);                                                                                \
    } while (0)
#define COPY_ASYNC_ONE(to, from) /* of one element */                                                        \
    do {                                                                                                     \
        if (sizeof(real) == 8)                                                                               \
            COPY_8(to, from);                                                                                \
        else                                                                                                 \
            COPY_4(to, from);                                                                                \
    } while (0)
#define copies_commit() __asm__ volatile("cp.async.commit_group;" : : : "memory")
#define copies_wait(pending) __asm__ volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory")
#endif

/* Hints to caches, which this language has not. */
DEVICE_FN real load_once(__global const real *address) {
    return *address;
}

DEVICE_FN int load_once_int(__global const int *address) {
    return *address;
}

DEVICE_FN real load_kept(__global const real *address) {
    return *address;
}
