/* A model file's bytes. */
#ifndef KI_MODEL_BYTES_H
#define KI_MODEL_BYTES_H

#include "core/status.h"

/* Reads the whole file. What cannot be a model is refused after its first bytes, with a guess at what it is
 * instead. On success *bytes belongs to the caller (ki_free). */
kiln_status ki_model_bytes(unsigned char **bytes, int64_t *size, const char *path);

#endif
