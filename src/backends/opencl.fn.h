/* The functions of OpenCL 1.2 that Kiln calls: FUNCTION(result, member, symbol, parameters). */
FUNCTION(int, platforms, clGetPlatformIDs, (unsigned room, cl_object *platforms, unsigned *count))
FUNCTION(int, platform_info, clGetPlatformInfo,
         (cl_object platform, unsigned what, size_t room, void *value, size_t *bytes))
FUNCTION(int, devices, clGetDeviceIDs,
         (cl_object platform, uint64_t type, unsigned room, cl_object *devices, unsigned *count))
FUNCTION(int, device_info, clGetDeviceInfo,
         (cl_object device, unsigned what, size_t room, void *value, size_t *bytes))
FUNCTION(cl_object, create_context, clCreateContext,
         (const intptr_t *properties, unsigned count, const cl_object *devices, void *notify, void *user,
          int *code))
FUNCTION(int, release_context, clReleaseContext, (cl_object context))
FUNCTION(cl_object, create_queue, clCreateCommandQueue,
         (cl_object context, cl_object device, uint64_t properties, int *code))
FUNCTION(int, release_queue, clReleaseCommandQueue, (cl_object queue))
FUNCTION(cl_object, create_buffer, clCreateBuffer,
         (cl_object context, uint64_t flags, size_t bytes, void *host, int *code))
FUNCTION(cl_object, create_view, clCreateSubBuffer,
         (cl_object buffer, uint64_t flags, unsigned kind, const void *region, int *code))
FUNCTION(int, release_buffer, clReleaseMemObject, (cl_object buffer))
FUNCTION(int, write, clEnqueueWriteBuffer,
         (cl_object queue, cl_object buffer, unsigned blocking, size_t offset, size_t bytes, const void *from,
          unsigned waits, const cl_object *wait, cl_object *event))
FUNCTION(int, read, clEnqueueReadBuffer,
         (cl_object queue, cl_object buffer, unsigned blocking, size_t offset, size_t bytes, void *to,
          unsigned waits, const cl_object *wait, cl_object *event))
FUNCTION(cl_object, program_source, clCreateProgramWithSource,
         (cl_object context, unsigned count, const char **texts, const size_t *lengths, int *code))
FUNCTION(cl_object, program_binary, clCreateProgramWithBinary,
         (cl_object context, unsigned count, const cl_object *devices, const size_t *lengths,
          const unsigned char **binaries, int *binary_codes, int *code))
FUNCTION(int, build, clBuildProgram,
         (cl_object program, unsigned count, const cl_object *devices, const char *options, void *notify,
          void *user))
FUNCTION(int, program_info, clGetProgramInfo,
         (cl_object program, unsigned what, size_t room, void *value, size_t *bytes))
FUNCTION(int, build_info, clGetProgramBuildInfo,
         (cl_object program, cl_object device, unsigned what, size_t room, void *value, size_t *bytes))
FUNCTION(int, release_program, clReleaseProgram, (cl_object program))
FUNCTION(cl_object, create_kernel, clCreateKernel, (cl_object program, const char *name, int *code))
FUNCTION(int, release_kernel, clReleaseKernel, (cl_object kernel))
FUNCTION(int, argument, clSetKernelArg, (cl_object kernel, unsigned index, size_t bytes, const void *value))
FUNCTION(int, launch, clEnqueueNDRangeKernel,
         (cl_object queue, cl_object kernel, unsigned dimensions, const size_t *offset, const size_t *threads,
          const size_t *group, unsigned waits, const cl_object *wait, cl_object *event))
FUNCTION(int, finish, clFinish, (cl_object queue))
FUNCTION(int, mark, clEnqueueMarkerWithWaitList,
         (cl_object queue, unsigned waits, const cl_object *wait, cl_object *event))
FUNCTION(int, release_event, clReleaseEvent, (cl_object event))
FUNCTION(int, flush, clFlush, (cl_object queue))
