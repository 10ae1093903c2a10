/* NVRTC, CUDA's run-time compiler: kernel source to machine code for one architecture. */
#ifndef KI_NVRTC_H
#define KI_NVRTC_H

#include "core/status.h"

/* Finds NVRTC, once in a process; ERR_DEVICE with a hint if there is none, or it does not know the
 * architecture (90 for compute capability 9.0). */
kiln_status ki_nvrtc_load(int architecture);
/* "13.0", once loaded. */
const char *ki_nvrtc_version(void);
/* Machine code, or PTX with its final zero where the architecture has the bit KI_PACK_PTX. *result comes from
 * ki_resize and belongs to the caller. options are separated by spaces. ERR_BUILD with the start of the
 * compiler's log. */
kiln_status ki_nvrtc_compile(void **result, size_t *bytes, const char *source, const char *options,
                             int architecture);

#endif
