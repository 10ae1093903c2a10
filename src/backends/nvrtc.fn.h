/* The functions of NVRTC, CUDA's run-time compiler, that Kiln calls: FUNCTION(member, symbol, parameters). */
FUNCTION(version, nvrtcVersion, (int *major, int *minor))
FUNCTION(architecture_count, nvrtcGetNumSupportedArchs, (int *count))
FUNCTION(architectures, nvrtcGetSupportedArchs, (int *architectures))
FUNCTION(create, nvrtcCreateProgram,
         (nvrtc_program * program, const char *source, const char *name, int headers,
          const char *const *header_texts, const char *const *header_names))
FUNCTION(destroy, nvrtcDestroyProgram, (nvrtc_program * program))
FUNCTION(compile, nvrtcCompileProgram, (nvrtc_program program, int count, const char *const *options))
FUNCTION(cubin_size, nvrtcGetCUBINSize, (nvrtc_program program, size_t *bytes))
FUNCTION(cubin, nvrtcGetCUBIN, (nvrtc_program program, char *cubin))
FUNCTION(ptx_size, nvrtcGetPTXSize, (nvrtc_program program, size_t *bytes))
FUNCTION(ptx, nvrtcGetPTX, (nvrtc_program program, char *ptx))
FUNCTION(log_size, nvrtcGetProgramLogSize, (nvrtc_program program, size_t *bytes))
FUNCTION(log, nvrtcGetProgramLog, (nvrtc_program program, char *log))
