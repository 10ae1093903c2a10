/* What groups that share rows, a team, leave for each other in global memory, which is as far as the second cache level. Every
 * 64-bit word tells by itself whether it has come, so that no fence is needed: beside an f32 number stands its step; the last bit
 * of an f64 number gives way to one that changes each time that its place is used.
 *
 * A group sends step i when it has all parts of a step LAG + 1 before it at the latest, which the others sent when they had those
 * of LAG + 1 before that: with PLACES places the one of that step is free again.
 *
 * Groups wait for others. A group's number is the order in which it began to run, so that all teams but the last to begin are
 * complete, come to their end and make room: C groups that run at once are enough. */
#ifndef EXCHANGE_H
#define EXCHANGE_H
#if defined(C) && C > 1 && !defined(CLUSTERS)
#define TEAM_PARAMETERS , __global real *work_space, long exchange_at
#else
#define TEAM_PARAMETERS
#endif

#if defined(C) && C > 1 && defined(LAG)
#define PLACES (2 * LAG + 2)
#define EXCHANGE_HEAD 16 /* words before the places: the count of the groups that have begun */

/* What tells a word of this step from all that was in its place before; the places begin with zeros. */
DEVICE_FN ulong mark_of(int step) {
#ifdef REAL_F64
    return ((uint)step / PLACES + 1) & 1;
#else
    return (ulong)(uint)(step + 1) << 32;
#endif
}

DEVICE_FN ulong word_of(real number, int step) {
#ifdef REAL_F64
    return (BITS_OF(number) & ~(ulong)1) | mark_of(step);
#else
    return mark_of(step) | BITS_OF(number);
#endif
}

DEVICE_FN bool is_of_step(ulong word, int step) {
#ifdef REAL_F64
    return (word & 1) == mark_of(step);
#else
    return word >> 32 == mark_of(step) >> 32;
#endif
}

DEVICE_FN real number_of(ulong word) {
#ifdef REAL_F64
    return REAL_OF(word & ~(ulong)1);
#else
    return REAL_OF((uint)word);
#endif
}
#endif
#endif
