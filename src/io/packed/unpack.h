/* A compressed file's text, made by threads of its own ahead of who reads it. */
#ifndef KI_UNPACK_H
#define KI_UNPACK_H

#include "core/file.h"
#include "io/packed/decode.h"

struct ki_unpack;

/* Begins with the file's first byte. decoder: one that has not decoded yet, which stays the caller's and is
 * not touched until the end. NULL where there is no thread or no memory for it: then the caller decodes. */
struct ki_unpack *ki_unpack_start(const struct ki_file *file, struct ki_decoder *decoder, int threads);
/* Up to `bytes` further bytes of the text, waiting for the first of them; *got = 0 at its end. *taken: bytes
 * of the file that have been decoded for what was handed out so far. The text before damage comes before its
 * error. */
kiln_status ki_unpack_take(struct ki_unpack *unpack, char *to, size_t bytes, size_t *got, int64_t *taken);
void ki_unpack_stop(struct ki_unpack *unpack); /* NULL is allowed */

#endif
