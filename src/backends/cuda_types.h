/* This header says what passes between Kiln and libcuda.so.1, or the tests' stub of it. */
#ifndef KI_CUDA_TYPES_H
#define KI_CUDA_TYPES_H

#include <stdint.h>

typedef struct cuda_context_opaque *cuda_context;
typedef struct cuda_stream_opaque *cuda_stream;
typedef struct cuda_event_opaque *cuda_event;
typedef struct cuda_module_opaque *cuda_module;
typedef struct cuda_function_opaque *cuda_function;

/* CUlaunchAttribute and CUlaunchConfig of cuda.h. */
struct cuda_attribute {
    int number;
    union {
        int32_t i32;
        uint64_t all[8];
    } value;
};

struct cuda_config {
    unsigned grid[3], group[3], local_bytes;
    cuda_stream stream;
    const struct cuda_attribute *attributes;
    unsigned attribute_count;
};

#endif
