/* This header says whether numbers in memory are those that were sent last. Operations of the CPU write to
 * vectors without telling anybody, so that looking is the only way to know; it reads 8 bytes a cycle, which
 * is little beside a pass over X. */
#ifndef KI_DIGEST_H
#define KI_DIGEST_H

#include <stdint.h>

/* 64 bits of `bytes`, a multiple of 4: the rounds of XXH64 (Collet, 2014), four lanes of words side by
 * side. */
uint64_t ki_digest(const void *memory, int64_t bytes);

#endif
