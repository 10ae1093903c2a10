/* This header has what groups that share rows, a team, leave for each other in global memory, which is as far
 * as the second cache level. Every 64-bit word tells by itself whether it has come, so that no fence is
 * needed: beside an f32 number stands its step; the last bit of an f64 number, or of the first of two f32
 * numbers, gives way to one that changes each time that its place is used.
 *
 * A group sends step i when it has all parts of a step LAG + 1 before it at the latest, which the others sent
 * when they had those of LAG + 1 before that: with PLACES places the one of that step is free again. Nobody
 * waits for a word of step i before all of step i - PLACES have come.
 *
 * Groups wait for others. A group's number is the order in which it began to run, so that all teams but the
 * last to begin are complete, come to their end and make room: C groups that run at once are enough. */
#ifndef EXCHANGE_H
#define EXCHANGE_H
#include "dialect/bulk.h"
#include "dialect/chain_arguments.h"
#if defined(C) && C > 1
#define TEAM_PARAMETERS MORE_PARAMETERS(team)
#else
#define TEAM_PARAMETERS
#endif

#if defined(C) && C > 1 && defined(LAG)
#define PLACES (2 * LAG + 2)
#define EXCHANGE_HEAD 16 /* words before the places: the count of the groups that have begun */

#if defined(REAL_F64) || defined(JOINT)
#define LAST_BIT /* is the mark */
#endif

/* The mark tells a word of this step from all that was in its place before; the places begin with zeros. */
DEVICE_FN uint mark_of(int step) {
#ifdef LAST_BIT
    return ((uint)step / PLACES + 1) & 1;
#else
    return (uint)(step + 1);
#endif
}

DEVICE_FN ulong word_of(real number, int step) {
#ifdef REAL_F64
    return (BITS_OF(number) & ~(ulong)1) | mark_of(step);
#else
    return (ulong)mark_of(step) << 32 | BITS_OF(number);
#endif
}

/* Returns how a word differs from those of this mark. What is awaited together is put together by | and then
 * judged: branches would take more time than the way through the cache leaves. */
DEVICE_FN uint difference(ulong word, uint mark) {
#ifdef LAST_BIT
    return (uint)word ^ mark;
#else
    return (uint)(word >> 32) ^ mark;
#endif
}

DEVICE_FN bool none_differs(uint differences) {
#ifdef LAST_BIT
#ifdef JOINT /* or the compiler takes the last bit of each word by itself, four instructions for one */
    PTX_PURE("" : "+r"(differences));
#endif
    return (differences & 1) == 0;
#else
    return differences == 0;
#endif
}

DEVICE_FN real number_of(ulong word) {
#ifdef REAL_F64
    return REAL_OF(word & ~(ulong)1);
#else
    return REAL_OF((uint)word);
#endif
}

#ifdef JOINT
/* Two numbers side by side, as a lane has them of eight rows (dialect/tile.h), move at once: two words of
 * f64, and one of f32, the first number of which gives its last bit. */
#ifdef REAL_F64
#define PAIR_WORDS 2

DEVICE_FN void send_pair(__global ulong *to, const real *pair, int step) {
    PTX("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};"
        :
        : "l"(to), "l"(word_of(pair[0], step)), "l"(word_of(pair[1], step))
        : "memory");
}

DEVICE_FN void ask_pair(ulong *word, __global const ulong *from) {
    PTX("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[1]) : "l"(from) : "memory");
}

DEVICE_FN uint difference_of_pair(const ulong *word, uint mark) {
    return difference(word[0], mark) | difference(word[1], mark);
}

DEVICE_FN real number_of_pair(const ulong *word, int s) {
    return number_of(word[s]);
}
#else
#define PAIR_WORDS 1

DEVICE_FN void send_pair(__global ulong *to, const real *pair, int step) {
    const ulong word = (ulong)BITS_OF(pair[1]) << 32 | (BITS_OF(pair[0]) & ~1u) | mark_of(step);
    PTX("st.relaxed.gpu.global.b64 [%0], %1;" : : "l"(to), "l"(word) : "memory");
}

DEVICE_FN void ask_pair(ulong *word, __global const ulong *from) {
    PTX("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word[0]) : "l"(from) : "memory");
}

DEVICE_FN uint difference_of_pair(const ulong *word, uint mark) {
    return difference(word[0], mark);
}

DEVICE_FN real number_of_pair(const ulong *word, int s) {
    return REAL_OF(s ? (uint)(word[0] >> 32) : (uint)word[0] & ~1u);
}
#endif
#endif
#endif
#endif
