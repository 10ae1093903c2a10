/* This header says how results of parts of the rows are joined, on the host and on GPUs: compensated sums,
 * spreads and ranks. Include it after the dialect; on the CPU it stands alone. */
#ifndef JOINS_H
#define JOINS_H

#include "dialect/scalar_math.h"

/* Neumaier's compensated sum. */
struct ki_sum {
    wide sum, lost;
};

SCALAR_FN void ki_sum_add(struct ki_sum *to, wide value) {
    const wide sum = to->sum + value;
    to->lost += fabs(to->sum) >= fabs(value) ? (to->sum - sum) + value : (value - sum) + to->sum;
    to->sum = sum;
}

SCALAR_FN wide ki_sum_of(const struct ki_sum *sum) {
    return sum->sum - sum->sum == 0 ? sum->sum + sum->lost : sum->sum; /* infinity, NaN */
}

/* The spread of weighted numbers is sum s (y - their mean)^2. The mean is known by what it is above one of
 * the numbers, so that what is far from 0 but close together keeps its digits. */
struct ki_variation {
    wide weight, level, above, spread;
};

SCALAR_FN wide ki_variation_mean(const struct ki_variation *of) {
    return of->level + of->above;
}

/* Chan, Golub and LeVeque's formula: nothing cancels. */
SCALAR_FN void ki_variation_join(struct ki_variation *to, const struct ki_variation *next) {
    if (next->weight == 0) return;
    if (to->weight == 0) {
        *to = *next;
        return;
    }
    const wide total = to->weight + next->weight, share = next->weight / total;
    const wide apart = (next->level - to->level) + (next->above - to->above);
    to->spread += next->spread + apart * apart * (to->weight * share);
    to->above += apart * share;
    to->weight = total;
}

/* Weights of rows of one score: of the class, and of others. */
struct ki_tied {
    uint64 key;
    wide positive, negative;
};

/* A piece of rows that are sorted by score, the highest first. Its first and its last score may go on in the
 * pieces beside it; of what lies between, the weights are added up, and `pairs` are the products of the
 * weights of a row of the class and another row below it, of a tie half of that. */
struct ki_ranking {
    int scores; /* in it: 0, 1 (then it is `first`), or 2 for more */
    struct ki_tied first, last;
    wide positive, negative, pairs;
};

/* `tied` comes behind what lies between. */
SCALAR_FN void ki_ranking_close(struct ki_ranking *to, const struct ki_tied *tied) {
    to->pairs += tied->negative * (to->positive + tied->positive / 2);
    to->positive += tied->positive;
    to->negative += tied->negative;
}

/* Another score below all, or more rows of the last one. */
SCALAR_FN void ki_ranking_add(struct ki_ranking *to, const struct ki_tied *tied) {
    struct ki_tied *end = to->scores == 2 ? &to->last : &to->first;
    if (to->scores && end->key == tied->key) {
        end->positive += tied->positive;
        end->negative += tied->negative;
        return;
    }
    if (to->scores == 2) ki_ranking_close(to, &to->last);
    if (to->scores)
        to->last = *tied;
    else
        to->first = *tied;
    to->scores = to->scores ? 2 : 1;
}

/* The piece behind it. */
SCALAR_FN void ki_ranking_join(struct ki_ranking *to, const struct ki_ranking *next) {
    if (next->scores == 0) return;
    if (to->scores == 0) {
        *to = *next;
        return;
    }
    ki_ranking_add(to, &next->first);
    if (next->scores == 1) return;
    if (to->scores == 2) ki_ranking_close(to, &to->last);
    to->pairs += next->pairs + to->positive * next->negative;
    to->positive += next->positive;
    to->negative += next->negative;
    to->last = next->last;
    to->scores = 2;
}

/* The ranking is that of all rows: nothing goes on beside them. */
SCALAR_FN struct ki_ranking ki_ranking_whole(const struct ki_ranking *of) {
    struct ki_ranking whole = {0, {0, 0, 0}, {0, 0, 0}, 0, 0, 0};
    if (of->scores > 0) ki_ranking_close(&whole, &of->first);
    if (of->scores < 2) return whole;
    whole.pairs += of->pairs + whole.positive * of->negative;
    whole.positive += of->positive;
    whole.negative += of->negative;
    ki_ranking_close(&whole, &of->last);
    return whole;
}

/* The share of the pairs in which the row of the class is above; NaN without a pair. */
SCALAR_FN wide ki_ranking_area(const struct ki_ranking *whole) {
    const wide all = whole->positive * whole->negative;
    return whole->positive > 0 && whole->negative > 0 ? whole->pairs / all : (wide)NAN;
}

#endif
