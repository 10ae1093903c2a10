/* A libnvrtc.so.13 that compiles nothing: its machine code is "CUBIN", its PTX "PTX", and a source with
 * "#error" in it is refused. */
#include <stdlib.h>
#include <string.h>

#include "stub.h"

typedef struct nvrtc_program_opaque *nvrtc_program;
#define FUNCTION(member, symbol, parameters) int symbol parameters;
#include "backends/nvrtc.fn.h"
#undef FUNCTION

#define STUB stub_nvrtc
extern struct stub stub_nvrtc;
struct stub stub_nvrtc;

#define COMPLAINT "kernel.cu(1): error: #error directive: stub"
static int refused;

int nvrtcVersion(int *major, int *minor) {
    CALL("nvrtcVersion");
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count) {
    CALL("nvrtcGetNumSupportedArchs");
    *count = 2;
    return 0;
}

int nvrtcGetSupportedArchs(int *architectures) {
    CALL("nvrtcGetSupportedArchs");
    architectures[0] = 80;
    architectures[1] = 90;
    return 0;
}

int nvrtcCreateProgram(nvrtc_program *program, const char *source, const char *name, int headers,
                       const char *const *header_texts, const char *const *header_names) {
    CALL("nvrtcCreateProgram");
    if (headers || header_texts || header_names || !name) return 3;
    refused = strstr(source, "#error") != NULL;
    *program = malloc(1);
    STUB.live++;
    return 0;
}

int nvrtcDestroyProgram(nvrtc_program *program) {
    free(*program);
    *program = NULL;
    STUB.live--;
    CALL("nvrtcDestroyProgram");
    return 0;
}

int nvrtcCompileProgram(nvrtc_program program, int count, const char *const *options) {
    CALL("nvrtcCompileProgram");
    for (int i = 0; i < count; i++)
        if (options[i][0] != '-' || strchr(options[i], ' ')) return 5;
    return !program ? 4 : refused ? 6 : 0;
}

int nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes) {
    CALL("nvrtcGetCUBINSize");
    *bytes = sizeof "CUBIN";
    return program ? 0 : 4;
}

int nvrtcGetCUBIN(nvrtc_program program, char *cubin) {
    CALL("nvrtcGetCUBIN");
    memcpy(cubin, "CUBIN", sizeof "CUBIN");
    return program ? 0 : 4;
}

int nvrtcGetPTXSize(nvrtc_program program, size_t *bytes) {
    CALL("nvrtcGetPTXSize");
    *bytes = sizeof "PTX";
    return program ? 0 : 4;
}

int nvrtcGetPTX(nvrtc_program program, char *ptx) {
    CALL("nvrtcGetPTX");
    memcpy(ptx, "PTX", sizeof "PTX");
    return program ? 0 : 4;
}

int nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes) {
    CALL("nvrtcGetProgramLogSize");
    *bytes = sizeof COMPLAINT;
    return program ? 0 : 4;
}

#ifndef STUB_INCOMPLETE
int nvrtcGetProgramLog(nvrtc_program program, char *log) {
    CALL("nvrtcGetProgramLog");
    memcpy(log, COMPLAINT, sizeof COMPLAINT);
    return program ? 0 : 4;
}
#endif
