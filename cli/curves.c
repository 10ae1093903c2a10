/* Curves of predictions: each is one sweep over the rows in order. */
#include "curves.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------- ROC */

enum {
    MANY = 2048, /* rows from which on digits are faster than qsort */
    DIGIT = 11,  /* bits of one */
    DIGITS = 3,  /* sign, exponent and 21 bits more: few rows of different scores agree in them */
    LOW = 64 - DIGIT * DIGITS,
    FEW = 16 /* rows that agree, and are inserted */
};

/* The bits of a score, so that they rank as it does, the highest first. */
static uint64_t rank_of(double score) {
    uint64_t bits;
    const double one_zero = score + 0.0; /* -0 ranks as 0 */
    memcpy(&bits, &one_zero, sizeof bits);
    return bits >> 63 ? bits : ~(bits | UINT64_C(1) << 63);
}

/* From `rows` to `other`, in the order of the digit at `shift`; rows of one digit keep theirs. False where all have the same one. */
static bool deal_digit(struct scored *other, const struct scored *rows, int64_t count, int shift) {
    int64_t at[1 << DIGIT] = {0}, sum = 0;
    const uint64_t mask = (UINT64_C(1) << DIGIT) - 1;
    for (int64_t i = 0; i < count; i++) at[rank_of(rows[i].score) >> shift & mask]++;
    if (at[rank_of(rows[0].score) >> shift & mask] == count) return false;
    for (int d = 0; d < 1 << DIGIT; d++) {
        const int64_t here = at[d];
        at[d] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++) other[at[rank_of(rows[i].score) >> shift & mask]++] = rows[i];
    return true;
}

static int by_score(const void *a, const void *b) {
    const double left = ((const struct scored *)a)->score, right = ((const struct scored *)b)->score;
    return (left < right) - (left > right);
}

static bool in_order(const struct scored *rows, int64_t count) {
    for (int64_t i = 1; i < count; i++)
        if (rows[i].score > rows[i - 1].score) return false;
    return true;
}

static void insert(struct scored *rows, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const struct scored row = rows[i];
        int64_t at = i;
        for (; at > 0 && rows[at - 1].score < row.score; at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* Rows in the order of their digits, each run of those that agree in them. */
static void order_runs(struct scored *rows, int64_t count) {
    for (int64_t begin = 0, end; begin < count; begin = end) {
        const uint64_t digits = rank_of(rows[begin].score) >> LOW;
        for (end = begin + 1; end < count && rank_of(rows[end].score) >> LOW == digits;) end++;
        if (end - begin <= FEW)
            insert(rows + begin, end - begin);
        else if (!in_order(rows + begin, end - begin))
            qsort(rows + begin, (size_t)(end - begin), sizeof *rows, by_score);
    }
}

/* The highest score first. Of many rows by their highest digits, the last of these first, where there is room for a copy. */
static void sort_scores(struct scored *rows, int64_t count) {
    struct scored *copy = count < MANY ? NULL : malloc((size_t)count * sizeof *copy), *now = rows,
                  *next = copy;
    if (!copy) {
        qsort(rows, (size_t)count, sizeof *rows, by_score);
        return;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        if (!deal_digit(next, now, count, LOW + digit * DIGIT)) continue;
        struct scored *former = now;
        now = next;
        next = former;
    }
    if (now != rows) memcpy(rows, now, (size_t)count * sizeof *rows);
    free(copy);
    order_runs(rows, count);
}

/* Weights of rows of one score: of what is of the class, and of what is not. */
struct group {
    double positive, negative;
};

/* Adds up the rows of one score, from *i on. */
static struct group next_group(const struct scored *rows, int64_t count, int64_t *i) {
    struct group group = {0, 0};
    const double score = rows[*i].score;
    for (; *i < count && rows[*i].score == score; ++*i) {
        group.positive += fmax(rows[*i].weight, 0);
        group.negative += fmax(-rows[*i].weight, 0);
    }
    return group;
}

double roc_area(struct scored *rows, int64_t count) {
    double above = 0, pairs = 0, negatives = 0;
    sort_scores(rows, count);
    for (int64_t i = 0; i < count;) {
        const struct group group = next_group(rows, count, &i);
        pairs += group.negative * (above + group.positive / 2);
        above += group.positive;
        negatives += group.negative;
    }
    return above > 0 && negatives > 0 ? pairs / (above * negatives) : (double)NAN;
}

void roc_make(struct roc *roc, struct scored *rows, int64_t count) {
    double positives = 0, negatives = 0, x = 0, y = 0;
    *roc = (struct roc){.area = roc_area(rows, count)};
    if (isnan(roc->area)) return;
    for (int64_t i = 0; i < count; i++) {
        positives += fmax(rows[i].weight, 0);
        negatives += fmax(-rows[i].weight, 0);
    }
    roc->count = 1; /* (0, 0) */
    for (int64_t i = 0; i < count;) {
        const struct group group = next_group(rows, count, &i);
        x += group.negative / negatives;
        y += group.positive / positives;
        /* Both shares grow, by 2 together. */
        const double last = roc->false_share[roc->count - 1] + roc->true_share[roc->count - 1];
        if (x + y - last < 2.0 / ROC_POINTS && i < count) continue;
        roc->false_share[roc->count] = i < count ? fmin(x, 1) : 1; /* not above 1 by rounding */
        roc->true_share[roc->count++] = i < count ? fmin(y, 1) : 1;
    }
}

/* ------------------------------------------------------------------------------------ calibration */

static int by_prediction(const void *a, const void *b) {
    const double left = ((const struct judged *)a)->predicted, right = ((const struct judged *)b)->predicted;
    return (left > right) - (left < right);
}

static double residual(const struct judged *row) {
    return row->observed - row->predicted;
}

static int by_residual(const void *a, const void *b) {
    const double left = residual(a), right = residual(b);
    return (left > right) - (left < right);
}

static void take_residuals(struct bin *bin, struct judged *rows, int64_t count) {
    static const double shares[] = {0.1, 0.5, 0.9};
    double below = 0;
    int next = 0;
    qsort(rows, (size_t)count, sizeof *rows, by_residual);
    for (int64_t i = 0; i < count; i++) {
        below += rows[i].weight;
        while (next < 3 && (below >= shares[next] * bin->weight || i == count - 1))
            bin->residuals[next++] = residual(&rows[i]);
    }
}

/* The weights' sum over the sum of their squares stands for the number of rows. */
static void take_bin(struct bin *bin, struct judged *rows, int64_t count) {
    double squares = 0, spread = 0;
    *bin = (struct bin){.least = rows[0].predicted, .most = rows[count - 1].predicted};
    for (int64_t i = 0; i < count; i++) bin->weight += rows[i].weight;
    for (int64_t i = 0; i < count; i++) {
        const double share = rows[i].weight / bin->weight;
        bin->predicted += share * rows[i].predicted;
        bin->observed += share * rows[i].observed;
        squares += share * share;
    }
    for (int64_t i = 0; i < count; i++) {
        const double off = rows[i].observed - bin->observed;
        spread += rows[i].weight / bin->weight * off * off;
    }
    bin->error = squares < 1 ? sqrt(spread * squares / (1 - squares)) : (double)NAN;
    take_residuals(bin, rows, count);
}

int calibrate(struct bin bins[BINS], struct judged *rows, int64_t count) {
    double total = 0, passed = 0, next;
    int64_t kept = 0, begin = 0;
    int used = 0;
    for (int64_t i = 0; i < count; i++)
        if (rows[i].weight > 0 && isfinite(rows[i].predicted)) rows[kept++] = rows[i];
    for (int64_t i = 0; i < kept; i++) total += rows[i].weight;
    qsort(rows, (size_t)kept, sizeof *rows, by_prediction);
    next = total / BINS;
    for (int64_t i = 0; i < kept; i++) {
        passed += rows[i].weight;
        const bool tied = i + 1 < kept && rows[i + 1].predicted == rows[i].predicted;
        if (i + 1 < kept && (tied || passed < next * (1 - 1e-12) || used == BINS - 1)) continue;
        next = total / BINS * (floor(passed / total * BINS + 1e-9) + 1);
        take_bin(&bins[used++], rows + begin, i + 1 - begin);
        begin = i + 1;
    }
    return used;
}
