/* The functions of the CUDA driver that Kiln calls: FUNCTION(member, symbol, parameters). */
FUNCTION(init, cuInit, (unsigned flags))
FUNCTION(driver_version, cuDriverGetVersion, (int *version))
FUNCTION(error_name, cuGetErrorName, (int code, const char **text))
FUNCTION(error_string, cuGetErrorString, (int code, const char **text))
FUNCTION(device_count, cuDeviceGetCount, (int *count))
FUNCTION(device_get, cuDeviceGet, (int *device, int ordinal))
FUNCTION(device_name, cuDeviceGetName, (char *name, int bytes, int device))
FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, int device))
FUNCTION(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))
FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (cuda_context * context, int device))
FUNCTION(context_release, cuDevicePrimaryCtxRelease_v2, (int device))
FUNCTION(context_set, cuCtxSetCurrent, (cuda_context context))
FUNCTION(stream_create, cuStreamCreate, (cuda_stream * stream, unsigned flags))
FUNCTION(stream_destroy, cuStreamDestroy_v2, (cuda_stream stream))
FUNCTION(stream_wait, cuStreamSynchronize, (cuda_stream stream))
FUNCTION(memory_info, cuMemGetInfo_v2, (size_t * left, size_t *total))
FUNCTION(alloc, cuMemAlloc_v2, (uint64_t * memory, size_t bytes))
FUNCTION(release, cuMemFree_v2, (uint64_t memory))
FUNCTION(upload, cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, cuda_stream stream))
FUNCTION(download, cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, cuda_stream stream))
FUNCTION(module_load, cuModuleLoadData, (cuda_module * module, const void *image))
FUNCTION(module_unload, cuModuleUnload, (cuda_module module))
FUNCTION(module_function, cuModuleGetFunction,
         (cuda_function * function, cuda_module module, const char *name))
FUNCTION(resident, cuOccupancyMaxActiveBlocksPerMultiprocessor,
         (int *blocks, cuda_function function, int block_size, size_t local_bytes))
FUNCTION(launch, cuLaunchKernel,
         (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
          unsigned block_y, unsigned block_z, unsigned local_bytes, cuda_stream stream, void **parameters,
          void **extra))
