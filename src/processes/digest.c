#include "processes/digest.h"

#include <string.h>

enum { LANES = 4 };
static const uint64_t PRIME_1 = 11400714785074694791u, PRIME_2 = 14029467366897019727u;

static uint64_t turn(uint64_t word, int by) {
    return word << by | word >> (64 - by);
}

/* Words count, and where they stand: a sum of them would not notice two that change places. */
static uint64_t add(uint64_t lane, uint64_t word) {
    return turn(lane + word * PRIME_2, 31) * PRIME_1;
}

uint64_t ki_digest(const void *memory, int64_t bytes) {
    const char *at = memory;
    uint64_t lane[LANES] = {1, 2, 3, 4}, word[LANES], digest = (uint64_t)bytes;
    int64_t left = bytes;
    for (; left >= (int64_t)sizeof word; left -= (int64_t)sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int i = 0; i < LANES; i++) lane[i] = add(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    if (left > 0) memcpy(word, at, (size_t)left);
    for (int i = 0; i < LANES; i++) digest = add(digest, add(lane[i], word[i]));
    return digest;
}
