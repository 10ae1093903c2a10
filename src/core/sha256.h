/* SHA-256 (FIPS 180-4): names, keys and integrity of kernel cache entries, integrity of models. */
#ifndef KI_SHA256_H
#define KI_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct ki_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void ki_sha256_start(struct ki_sha256 *hash);
void ki_sha256_add(struct ki_sha256 *hash, const void *bytes, size_t size);
void ki_sha256_finish(struct ki_sha256 *hash, uint8_t digest[32]);
/* The digest of one piece of memory as 64 hexadecimal digits and a '\0'. */
void ki_sha256_hex(char hex[65], const void *bytes, size_t size);

#endif
