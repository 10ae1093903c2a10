/* A linear congruential generator (Knuth's MMIX), for orders and made data that no other device has to
 * repeat. */
#ifndef KI_RANDOM_H
#define KI_RANDOM_H

#include <stdint.h>

/* The next state, of which the upper bits are to be used. */
static inline uint64_t ki_next_random(uint64_t *state) {
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

/* The same as a number in [0, 1). */
static inline double ki_next_uniform(uint64_t *state) {
    return (double)(ki_next_random(state) >> 11) * 0x1p-53;
}

#endif
