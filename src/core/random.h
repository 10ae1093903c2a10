/* Random numbers that are drawn one after the other on the host: the words of kiln_random in their order. A
 * seed gives the same numbers on every machine, and a checkpoint keeps how many words were drawn. */
#ifndef KI_RANDOM_H
#define KI_RANDOM_H

#include <stdint.h>

#include "kiln.h"

/* A purpose has a stream of its own: two that share a seed draw different numbers. kiln_mds takes stream 1,
 * and 2 t for its t-th random start; the tool has 0x57a7 and those behind it (cli/random.h). */
enum ki_stream {
    KI_STREAM_LDA = 0x1da,       /* topics to begin with */
    KI_STREAM_LDA_ORDER = 0x1db, /* of documents, online */
    KI_STREAM_GAP_START = 0x55d, /* of the singular vectors */
    KI_STREAM_SFA = 0x5fa,       /* factors; the other side has the next number */
    KI_STREAM_GAP_A = 0x9a9,
    KI_STREAM_GAP_B = 0x9aa,
    KI_STREAM_ALS = 0xa15,
    KI_STREAM_SPLIT = 0x5713, /* which entries are held out */
    KI_STREAM_KMEANS = 0x6b00,
    KI_STREAM_DUAL,    /* the order of rows */
    KI_STREAM_DESCENT, /* the order of columns */
    KI_STREAM_SIGNS,   /* of the models of a path that are checked together */
    KI_STREAM_RANK,    /* a vector that tells whether X makes nothing of some */
    KI_STREAM_ACROSS,  /* a direction that a cone leaves free */
    KI_STREAM_SPREAD,  /* places of points in a dimension that has none */
    KI_STREAM_SAMPLE,  /* entries of X that are looked at */
    KI_STREAM_SVD,     /* vectors to begin with; later blocks have 2^16 more, each */
    KI_STREAM_MADE     /* data to measure a device with */
};

struct ki_draws {
    uint64_t seed, stream;
    int64_t count;    /* words drawn */
    int64_t blocks;   /* word[] is the last of so many blocks; 0: none is there */
    uint32_t word[4]; /* of a block */
};

static inline uint32_t ki_draw_word(struct ki_draws *draws) {
    const int64_t block = draws->count / 4;
    if (draws->blocks != block + 1) {
        kiln_random(draws->word, draws->seed, draws->stream, (uint64_t)block);
        draws->blocks = block + 1;
    }
    return draws->word[draws->count++ % 4];
}

/* In [0, 1), with 53 bits. */
static inline double ki_draw(struct ki_draws *draws) {
    const uint64_t high = ki_draw_word(draws), low = ki_draw_word(draws);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

/* 0, ..., count - 1; count is at most 2^32. */
static inline int64_t ki_draw_below(struct ki_draws *draws, int64_t count) {
    return (int64_t)((uint64_t)ki_draw_word(draws) * (uint64_t)count >> 32);
}

#endif
