/* First the threads deal the entries to bins, runs of rows: each takes a share of the entries, and counts
 * before it writes, so that a bin has them in their order. A bin fits the second-level cache. One thread
 * sorts it: by columns, some bits at a time, the lowest first, then by rows; each step keeps the order of the
 * one before. Columns that are in order already, as in files by columns, are left. */
#include "io/coordinate/bins.h"

#include "core/seams.h"
#include "core/threads.h"
#include "io/bytes.h"

enum {
    BIN = 1 << 15,       /* entries of a bin, about */
    BINS_MOST = 1 << 11, /* whose ends the caches hold while entries are dealt */
    DIGIT = 11,          /* bits of a column that are sorted by at a time */
    WORTH_A_SHARE = 1 << 14
};

/* An entry's row above its column, and its value in an array beside it, if there are any. */
struct dealt {
    uint64_t *key;
    double *value;
};

struct work {
    struct ki_binning *b;
    int shift, shares;
    int64_t bins;
    int64_t *at; /* for each share, then each bin: where its next entry goes */
    struct dealt dealt;
    _Atomic int64_t next; /* bin */
    atomic_bool no_memory;
};

static void count_share(void *of, int share) {
    const struct work *w = of;
    const struct ki_binning *b = w->b;
    int64_t *at = w->at + share * w->bins;
    const int64_t end = ki_part_begin(b->count, share + 1, w->shares);
    for (int64_t e = ki_part_begin(b->count, share, w->shares); e < end; e++) {
        at[b->row[e] >> w->shift]++;
        if (b->symmetry != KI_GENERAL && b->row[e] != (uint32_t)b->col[e])
            at[(uint32_t)b->col[e] >> w->shift]++;
    }
}

static void put(const struct work *w, int64_t *at, uint32_t row, uint32_t col, double value) {
    const int64_t to = at[row >> w->shift]++;
    w->dealt.key[to] = (uint64_t)row << 32 | col;
    if (w->dealt.value) w->dealt.value[to] = value;
}

static void deal_share(void *of, int share) {
    const struct work *w = of;
    const struct ki_binning *b = w->b;
    int64_t *at = w->at + share * w->bins;
    const int64_t end = ki_part_begin(b->count, share + 1, w->shares);
    for (int64_t e = ki_part_begin(b->count, share, w->shares); e < end; e++) {
        const uint32_t row = b->row[e], col = (uint32_t)b->col[e];
        const double value = b->value ? b->value[e] : 1;
        put(w, at, row, col, value);
        if (b->symmetry != KI_GENERAL && row != col) put(w, at, col, row, b->symmetry * value);
    }
}

/* Counts become places. */
static void add_up(struct work *w) {
    int64_t sum = 0;
    for (int64_t bin = 0; bin < w->bins; bin++)
        for (int share = 0; share < w->shares; share++) {
            const int64_t count = w->at[share * w->bins + bin];
            w->at[share * w->bins + bin] = sum;
            sum += count;
        }
}

/* Sorts by one digit, from one place to the other; false if all have the same, and none has moved. */
static bool sort_digit(const struct dealt *to, const struct dealt *from, int64_t count, int shift) {
    enum { VALUES = 1 << DIGIT };
    int64_t at[VALUES] = {0};
    for (int64_t i = 0; i < count; i++) at[from->key[i] >> shift & (VALUES - 1)]++;
    if (at[from->key[0] >> shift & (VALUES - 1)] == count) return false;
    for (int64_t d = 0, sum = 0; d < VALUES; d++) {
        const int64_t more = at[d];
        at[d] = sum;
        sum += more;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = at[from->key[i] >> shift & (VALUES - 1)]++;
        to->key[place] = from->key[i];
        if (to->value) to->value[place] = from->value[i];
    }
    return true;
}

/* By columns: the bin is then in *from or in *other, which change places. */
static void sort_columns(struct dealt *from, struct dealt *other, int64_t count) {
    uint32_t all = 0;
    int64_t falls = 0;
    for (int64_t i = 0; i < count; i++) all |= (uint32_t)from->key[i];
    for (int64_t i = 1; i < count; i++) falls += (uint32_t)from->key[i] < (uint32_t)from->key[i - 1];
    for (int shift = 0; falls > 0 && shift < 32 && all >> shift; shift += DIGIT) {
        if (!sort_digit(other, from, count, shift)) continue;
        const struct dealt was = *from;
        *from = *other;
        *other = was;
    }
}

/* By rows, to where they stay. start[r] moves on to where row r + 1 starts. */
static void place_rows(struct ki_binning *b, const struct dealt *from, int64_t begin, int64_t count,
                       int64_t first, int64_t last) {
    int64_t *start = b->row_start, same = 0;
    for (int64_t i = 0; i < count; i++) start[from->key[i] >> 32]++;
    for (int64_t r = first, sum = begin; r < last; r++) {
        const int64_t more = start[r];
        start[r] = sum;
        sum += more;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)(from->key[i] >> 32), at = start[row]++;
        const int32_t col = (int32_t)(uint32_t)from->key[i];
        b->to_col[at] = col;
        b->to_value[at] = from->value ? from->value[i] : 1;
    }
    for (int64_t r = first, at = begin; r < last; at = start[r++])
        for (int64_t i = at + 1; i < start[r]; i++) same += b->to_col[i] == b->to_col[i - 1];
    if (same > 0) b->repeats = true;
}

/* The end of a bin is where the last share's next entry would go. */
static int64_t end_of(const struct work *w, int64_t bin) {
    return bin < 0 ? 0 : w->at[(w->shares - 1) * w->bins + bin];
}

static bool sort_bin(struct work *w, int64_t bin, struct ki_bytes *scratch) {
    const int64_t begin = end_of(w, bin - 1), count = end_of(w, bin) - begin;
    const bool valued = w->dealt.value;
    if (count == 0) {
        for (int64_t r = bin << w->shift; r < ki_min(w->b->rows, (bin + 1) << w->shift); r++)
            w->b->row_start[r] = begin;
        return true;
    }
    if (!ki_bytes_room(scratch, count * (valued ? 16 : 8))) return false;
    struct dealt from = {w->dealt.key + begin, valued ? w->dealt.value + begin : NULL};
    struct dealt other = {(uint64_t *)(void *)scratch->data, NULL};
    if (valued) other.value = (double *)(void *)(other.key + count);
    sort_columns(&from, &other, count);
    place_rows(w->b, &from, begin, count, bin << w->shift, ki_min(w->b->rows, (bin + 1) << w->shift));
    return true;
}

static void sort_bins(void *of, int thread) {
    struct work *w = of;
    struct ki_bytes scratch = {0};
    (void)thread;
    for (int64_t bin; (bin = atomic_fetch_add(&w->next, 1)) < w->bins && !w->no_memory;)
        if (!sort_bin(w, bin, &scratch)) w->no_memory = true;
    ki_bytes_free(&scratch);
}

bool ki_bin_entries(struct ki_binning *b) {
    const int64_t wanted = ki_min(ki_max(b->placed / BIN, 1), BINS_MOST);
    struct work w = {.b = b, .shares = (int)ki_max(ki_min(b->threads, b->count / WORTH_A_SHARE), 1)};
    while ((b->rows - 1) >> w.shift >= wanted) w.shift++;
    w.bins = b->rows > 0 ? ((b->rows - 1) >> w.shift) + 1 : 0;
    w.at = ki_calloc((size_t)(w.shares * w.bins) * sizeof *w.at);
    w.dealt.key = ki_alloc((size_t)b->placed * sizeof *w.dealt.key);
    if (b->value) w.dealt.value = ki_alloc((size_t)b->placed * sizeof *w.dealt.value);
    w.no_memory = !w.at || !w.dealt.key || (b->value && !w.dealt.value);
    if (!w.no_memory) {
        ki_parallel(b->threads, w.shares, count_share, &w);
        add_up(&w);
        ki_parallel(b->threads, w.shares, deal_share, &w);
        ki_parallel(b->threads, (int)ki_min(b->threads, w.bins), sort_bins, &w);
        memmove(b->row_start + 1, b->row_start, (size_t)b->rows * sizeof *b->row_start);
        b->row_start[0] = 0;
    }
    ki_free(w.at);
    ki_free(w.dealt.key);
    ki_free(w.dealt.value);
    return !w.no_memory;
}
