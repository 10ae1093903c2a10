/* The kernel dialect where the compiler is NVRTC (CUDA C++): OpenCL C's words for the kernels to be written
 * in. There are no system headers at run time, so nothing may be included here. */
#define KILN_CUDA 1

typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(sizeof(long) == 8, "offsets are long, as in OpenCL C");

#define DEVICE_FN static __device__ __forceinline__ __attribute__((unused))
#define LOCAL __shared__ /* of an array in a kernel: LOCAL real scratch[BS]; */
#define LOCAL_PTR        /* of what a pointer points to: LOCAL_PTR real *scratch */
/* Local memory whose size the launch decides (ki_arg_local), one piece a kernel: behind the last parameter,
 * and at the start of the body. */
#define LOCAL_PARAMETER(name)
#define LOCAL_BEGIN(name)                                                                                    \
    extern __shared__ double name##_memory[];                                                                \
    real *const name = (real *)name##_memory;
#define GROUP_OF(threads) __launch_bounds__(threads) /* __kernel GROUP_OF(BS) void f(...) */
#define GROUP_BESIDE(threads, groups) __launch_bounds__(threads, groups) /* so many at once */

#define __kernel extern "C" __global__
#define __global
#define __constant __constant__ const /* of a table at file scope, not of what a pointer points to */
#define restrict __restrict__

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

/* Kernels run in one dimension, so that only number 0 is ever asked for. */
DEVICE_FN size_t get_group_id(int) {
    return blockIdx.x;
}

DEVICE_FN size_t get_num_groups(int) {
    return gridDim.x;
}

DEVICE_FN size_t get_local_id(int) {
    return threadIdx.x;
}

DEVICE_FN size_t get_local_size(int) {
    return blockDim.x;
}

DEVICE_FN size_t get_global_id(int) {
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

DEVICE_FN size_t get_global_size(int) {
    return (size_t)gridDim.x * blockDim.x;
}

/* __syncthreads orders shared and global memory alike within the work-group. */
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
DEVICE_FN void barrier(int) {
    __syncthreads();
}

/* *address += value. In hardware from compute capability 6.0 on, which the backend asks for. */
DEVICE_FN void atomic_add_global(volatile real *address, real value) {
    atomicAdd((real *)address, value);
}

/* Four adjacent ones, the address a multiple of their size, by one operation of the memory (PTX ISA, "red",
 * from 8.1 on). */
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201 && !defined(REAL_F64)
#define SUMS_TOGETHER 4
DEVICE_FN void atomic_add_together(float *address, const float *x) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(address), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}
#endif

DEVICE_FN void atomic_add_local(volatile real *address, real value) {
    atomicAdd((real *)address, value);
}

DEVICE_FN void atomic_add_int(int *address, int value) {
    atomicAdd(address, value);
}

/* One more, and how many there were. */
DEVICE_FN int count_up(volatile int *address) {
    return atomicAdd((int *)address, 1);
}

/* Adds so many more in local memory, and returns how many there were. */
DEVICE_FN int count_local(volatile int *address, int more) {
    return atomicAdd((int *)address, more);
}

/* Sets bits of a word in local memory. */
DEVICE_FN void set_bits(uint *address, uint bits) {
    atomicOr(address, bits);
}

/* The bits are not all 0. */
DEVICE_FN int lowest_bit(uint bits) {
    return __ffs((int)bits) - 1;
}

/* Other groups see what this thread wrote before, before what it writes after; the same for what it reads. */
DEVICE_FN void memory_fence() {
    __threadfence();
}

DEVICE_FN void warp_sync() {
    __syncwarp();
}

#ifdef REAL_F64
#define REAL_BITS unsigned long long
#define BITS_OF(x) (ulong) __double_as_longlong(x)
#define REAL_OF(bits) __longlong_as_double((long)(bits))
#else
#define REAL_BITS uint
#define BITS_OF(x) __float_as_uint(x)
#define REAL_OF(bits) __uint_as_float(bits)
#endif

/* *address = the larger one of two numbers that are not negative, whose bits are in the same order; the
 * result is the same in any order. Most often a load shows that there is nothing to do. */
DEVICE_FN void atomic_max_global(volatile real *address, real value) {
    if (*address < value) atomicMax((REAL_BITS *)address, (REAL_BITS)BITS_OF(value));
}

#define FLOAT_OF(bits) __uint_as_float(bits)

/* The number that 16 bits are in IEEE 754's half precision. */
DEVICE_FN float float_of_f16(uint bits) {
    float x = 0;
#ifdef __CUDA_ARCH__ /* or a compiler that only checks the syntax */
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tcvt.f32.f16 %0, low;\n\t}"
        : "=f"(x)
        : "r"(bits));
#endif
    return x;
}

/* 1 / sqrt(x), to 2 units in the last place, of a number in the normal range: the hardware's estimate, in f64
 * with a step of Halley's method, which triples its 20 bits. */
DEVICE_FN real inverse_sqrt(real x) {
    real y;
#ifndef __CUDA_ARCH__ /* a compiler that only checks the syntax */
    y = 1 / sqrt(x);
    return y;
#elif defined(REAL_F64)
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const real rest = fma(-x * y, y, 1.0);
    return fma(y * rest, fma(rest, 0.375, 0.5), y);
#else
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* A thread's own copies of W elements into local memory, which it goes on without: those of all but the last
 * `pending` commits have come when it has waited (PTX ISA, "cp.async"). */
#define ALIGNED_16 __attribute__((aligned(16)))
#if __CUDA_ARCH__ >= 800
#define COPY_ASYNC(to, from)                                                                                 \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"                                                 \
                 :                                                                                           \
                 : "r"((uint)__cvta_generic_to_shared(to)), "l"(from), "n"(W * sizeof(real))                 \
                 : "memory")
#define COPY_ASYNC_ONE(to, from) /* of one element */                                                        \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"                                                 \
                 :                                                                                           \
                 : "r"((uint)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(real))                     \
                 : "memory")
#define copies_commit() asm volatile("cp.async.commit_group;" : : : "memory")
#define copies_wait(pending) asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory")
#endif

/* Caches need not keep what is read once and in order, and should keep what is gathered from here and there,
 * again and again (PTX ISA, "createpolicy"): where y and w fill half of the second level, half of the gathers
 * missed it beside the entries that stream through. */
DEVICE_FN real load_once(const real *address) {
    return __ldcs(address);
}

DEVICE_FN int load_once_int(const int *address) {
    return __ldcs(address);
}

DEVICE_FN real load_kept(const real *address) {
#if __CUDA_ARCH__ >= 800
    real value;
    unsigned long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#ifdef REAL_F64
    asm("ld.global.nc.L1::no_allocate.L2::cache_hint.f64 %0, [%1], %2;"
        : "=d"(value)
        : "l"(address), "l"(policy));
#else
    asm("ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;"
        : "=f"(value)
        : "l"(address), "l"(policy));
#endif
    return value;
#else
    return *address;
#endif
}

#ifdef SUMS_TOGETHER
/* Zeros where it is not wanted. */
DEVICE_FN void load_kept_together(float *x, const float *address, bool wanted) {
    asm("{\n\t.reg .pred wanted;\n\t.reg .b64 policy;\n\t"
        "createpolicy.fractional.L2::evict_last.b64 policy, 1.0;\n\t"
        "setp.ne.u32 wanted, %5, 0;\n\t"
        "mov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
        "mov.f32 %2, 0f00000000;\n\tmov.f32 %3, 0f00000000;\n\t"
        "@wanted ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy;\n\t}"
        : "=&f"(x[0]), "=&f"(x[1]), "=&f"(x[2]), "=&f"(x[3])
        : "l"(address), "r"((uint)wanted));
}
#endif
