/* libcuda.so.1 as Kiln sees it: its functions, and what its error codes mean for us. */
#ifndef KI_CUDA_DRIVER_H
#define KI_CUDA_DRIVER_H

#include "backends/cuda_types.h"
#include "core/device.h"

struct ki_cuda_driver {
#define FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "backends/cuda.fn.h"
#undef FUNCTION
};
extern struct ki_cuda_driver ki_cuda; /* filled by ki_cuda_load */

/* Loads and initialises the driver, once in a process; ERR_DEVICE with a hint if there is none that works. */
kiln_status ki_cuda_load(void);

enum ki_cuda_class {
    KI_CUDA_REFUSED,       /* this call did nothing; the device goes on */
    KI_CUDA_NO_MEMORY,     /* likewise, for want of device memory */
    KI_CUDA_CONFIGURATION, /* driver, device and program do not suit each other on this machine */
    KI_CUDA_FATAL          /* the context is gone, or its results can no longer be trusted */
};
enum ki_cuda_class ki_cuda_classify(int code);

/* Records a failed driver call. A fatal code marks the device (which may be NULL) lost. */
kiln_status ki_cuda_fail(kiln_device *device, int code, const char *call);

/* ki_cuda.<member>(...) as a status. */
#define KI_CUDA(device, member, ...) ki_cuda_check(device, ki_cuda.member(__VA_ARGS__), #member)

static inline kiln_status ki_cuda_check(kiln_device *device, int code, const char *call) {
    return code ? ki_cuda_fail(device, code, call) : KILN_OK;
}

#endif
