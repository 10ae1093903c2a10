/* The tool's random numbers: kiln_random's, by the seed, in a stream for each purpose. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

#include "kiln.h"

enum stream {
    STREAM_NEW_USERS = 0x57a7, /* their factors; items have the next number */
    STREAM_FOLDS = 0x57a9,     /* the order in which rows, or groups, are dealt out */
    STREAM_MADE_COLUMNS,       /* of a sparse matrix to measure with */
    STREAM_MADE_VALUES,
    STREAM_MADE /* a dense one; operands beside it have the next numbers */
};

/* In [0, 1), with 53 bits. */
static inline double random_unit(int64_t seed, enum stream stream, int64_t index) {
    uint32_t words[4];
    kiln_random(words, (uint64_t)seed, (uint64_t)stream, (uint64_t)index);
    return (double)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
}

#endif
