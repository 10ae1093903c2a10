/* One layer of decompression, fed and drained in pieces of any size. */
#ifndef KI_DECODE_H
#define KI_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct ki_decoder;

/* Looks at the first bytes of a file. NULL: plain data; else "gzip", "zstd", or a format that is not read.
 */
const char *ki_compression(const unsigned char *bytes, size_t size);
kiln_status ki_decoder_new(struct ki_decoder **decoder, const char *compression, const char *name);
void ki_decoder_free(struct ki_decoder *decoder); /* NULL is allowed */

/* A step takes *used of the input and makes *made of the output; it stops when one of them is exhausted. */
struct ki_step {
    const unsigned char *in;
    size_t in_size, used;
    unsigned char *out;
    size_t out_size, made;
};
kiln_status ki_decoder_step(struct ki_decoder *decoder, struct ki_step *step);
/* The input is over: fine between two members, truncated elsewhere. */
kiln_status ki_decoder_end(const struct ki_decoder *decoder);

/* Another one of the same compression and name. */
kiln_status ki_decoder_again(struct ki_decoder **again, const struct ki_decoder *decoder);
/* Returns whether a member has begun and not ended. */
bool ki_decoder_within(const struct ki_decoder *decoder);
/* Forgets the member that was begun: the next one begins at this place of the file. */
void ki_decoder_restart(struct ki_decoder *decoder, int64_t at);
/* Returns how long the member that begins at `in` seems to be, and the text that it becomes; `size` bytes are
 * there, which are the file's last if `whole`. For gzip a guess, which decoding has to prove. false: that is
 * not known. */
bool ki_decoder_member(const struct ki_decoder *decoder, const unsigned char *in, size_t size, bool whole,
                       size_t *bytes, int64_t *text);

#endif
