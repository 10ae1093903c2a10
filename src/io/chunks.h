/* An array's elements in chunks, by several threads: each is read, checked and converted while it is in the
 * cache. */
#ifndef KI_CHUNKS_H
#define KI_CHUNKS_H

#include "io/input.h"

enum { KI_CHUNK_BYTES = 2 << 20 }; /* of a chunk, but the last, of elements whose size is a power of two */

struct ki_chunks {
    const struct ki_file *file; /* where the elements lie, from `offset` on; or NULL: */
    int64_t offset;
    const unsigned char *memory; /* they lie here */
    int64_t count, element;      /* bytes of one in the file */
    int threads;
    void *straight; /* where their bytes go as they are; NULL: they are only looked at */
    /* From any thread, for elements [first, first + count) whose bytes are at raw; NULL: nothing. */
    void (*use)(void *of, const unsigned char *raw, int64_t first, int64_t count);
    void *of;
    bool checked; /* crc, as of what comes before the elements, becomes that of all (CRC-32 as in zip) */
    uint32_t crc;
    const struct ki_watch *watch; /* may be NULL */
};

/* Which thread reads what is chance; the error is that of the first chunk that could not be read. */
kiln_status ki_chunks_run(struct ki_chunks *chunks);

#endif
