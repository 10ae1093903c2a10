/* This header says what a C++ compiler must be told to read CUDA kernels, for a check of their syntax and
 * types where there is no NVRTC. */
#define __global__
#define __device__
#define __shared__ thread_local
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

/* Kernels for GPUs that have them use these; cuda.h has the instructions. */
#define copies_commit() ((void)0)
#define copies_wait(pending) ((void)(pending))

using size_t = decltype(sizeof 0);

struct uint3 {
    unsigned x, y, z;
};
extern const uint3 blockIdx, threadIdx, gridDim, blockDim;

struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct double2 {
    double x, y;
};
struct double4 {
    double x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct int2 {
    int x, y;
};
struct int4 {
    int x, y, z, w;
};

void __syncthreads();
void __syncwarp();
void __threadfence();
float __int_as_float(int);
float __uint_as_float(unsigned);
unsigned __float_as_uint(float);
double __longlong_as_double(long);
long __double_as_longlong(double);
float __shfl_sync(unsigned, float, int);
double __shfl_sync(unsigned, double, int);
int __shfl_sync(unsigned, int, int);
float __shfl_up_sync(unsigned, float, int);
double __shfl_up_sync(unsigned, double, int);
int __shfl_up_sync(unsigned, int, int);
float __shfl_xor_sync(unsigned, float, int);
double __shfl_xor_sync(unsigned, double, int);
int __all_sync(unsigned, int);
float atomicAdd(float *, float);
double atomicAdd(double *, double);
int atomicAdd(int *, int);
unsigned atomicOr(unsigned *, unsigned);
unsigned atomicMax(unsigned *, unsigned);
unsigned long long atomicMax(unsigned long long *, unsigned long long);
int __ffs(int);
float __ldcs(const float *);
double __ldcs(const double *);
int __ldcs(const int *);

#define OF_ONE(name)                                                                                         \
    float name(float);                                                                                       \
    double name(double)
#define OF_TWO(name)                                                                                         \
    float name(float, float);                                                                                \
    double name(double, double)
OF_ONE(fabs);
OF_ONE(sqrt);
OF_ONE(exp);
OF_ONE(log);
OF_ONE(floor);
OF_ONE(ceil);
OF_ONE(log1p);
OF_ONE(expm1);
OF_ONE(tanh);
OF_ONE(erfc);
OF_ONE(atan);
OF_ONE(lgamma);
OF_TWO(fmin);
OF_TWO(fmax);
OF_TWO(pow);
OF_TWO(copysign);
float fma(float, float, float);
double fma(double, double, double);
int ilogb(float);
int ilogb(double);
float ldexp(float, int);
double ldexp(double, int);
bool isnan(float);
bool isnan(double);
int min(int, int);
int max(int, int);
long min(long, long);
long max(long, long);
