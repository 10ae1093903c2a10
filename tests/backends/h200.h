/* An H200 as CUDA and as NVIDIA's OpenCL describe it, and a small GPU but for its units, for tests of plans
 * on a machine without one. */
#ifndef TEST_H200_H
#define TEST_H200_H

#define H200_BY_CUDA                                                                                         \
    .is_gpu = true, .compute_units = 132, .warp = 32, .shuffles = true, .group_max = 1024,                   \
    .local_bytes = 49152, .local_max = 232448, .registers = 65536, .architecture = 90
#define H200_BY_OPENCL                                                                                       \
    .is_gpu = true, .compute_units = 132, .warp = 1, .shuffles = true, .group_max = 1024,                    \
    .local_bytes = 49152, .local_max = 49152, .local_declared = 226 * 1024
#define SMALL_BY_CUDA                                                                                        \
    .is_gpu = true, .warp = 32, .shuffles = true, .group_max = 1024, .local_bytes = 49152,                   \
    .local_max = 65536, .registers = 65536, .unit_threads = 1024, .unit_groups = 16, .architecture = 75

#endif
