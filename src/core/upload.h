/* Large uploads, from wherever their bytes come. */
#ifndef KI_UPLOAD_H
#define KI_UPLOAD_H

#include "core/device.h"

/* Bytes [offset, offset + bytes) of what is to be uploaded, to host memory; from any thread, pieces in any
 * order. */
typedef kiln_status ki_fill(void *of, void *to, int64_t offset, int64_t bytes);

/* The first `bytes` bytes of a buffer. Of several pieces that cannot be had the error is that of the
 * first. */
kiln_status ki_upload_filled(kiln_device *device, struct ki_buffer *to, int64_t bytes, ki_fill *fill,
                             void *of);

#endif
