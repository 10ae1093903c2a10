/* libOpenCL.so.1 as Kiln sees it: its functions, its devices, and what its error codes mean for us. */
#ifndef KI_OPENCL_LIBRARY_H
#define KI_OPENCL_LIBRARY_H

#include "core/device.h"

typedef void *cl_object; /* platform, device, context, queue, buffer, program, kernel: OpenCL has opaque
                            pointers for all */

struct ki_opencl_library {
#define FUNCTION(result, member, symbol, parameters) result(*member) parameters;
#include "backends/opencl.fn.h"
#undef FUNCTION
};
extern struct ki_opencl_library ki_opencl; /* filled when devices are first asked for */

struct ki_opencl_device {
    cl_object platform, id;
    int platform_number, number;
    bool is_gpu, is_cpu;
};
/* All devices of all platforms, in the loader's order; *devices comes from ki_resize and belongs to the
 * caller. ERR_DEVICE with a hint if there is none. */
kiln_status ki_opencl_find(struct ki_opencl_device **devices, int *count);

/* Records a failed call. Codes that end a context mark the device (which may be NULL) lost. */
kiln_status ki_opencl_fail(kiln_device *device, int code, const char *call);

/* ki_opencl.<member>(...), of those that return a code, as a status. */
#define KI_OPENCL(device, member, ...) ki_opencl_check(device, ki_opencl.member(__VA_ARGS__), #member)

static inline kiln_status ki_opencl_check(kiln_device *device, int code, const char *call) {
    return code ? ki_opencl_fail(device, code, call) : KILN_OK;
}

#endif
