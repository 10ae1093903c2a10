/* Rows in order of 64-bit keys: by the highest bits in which they differ, and each bin of those that agree
 * the same way again. A level halves the bits by 11 or 14, so that even keys that agree in most of theirs
 * need few, and bins soon lie in the cache. The parts of the first level, which all threads share, follow
 * from the number of rows alone. */
#include <string.h>

#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "metrics/metrics.h"

enum {
    FEW = 24,              /* rows that are inserted */
    BIN_BITS = 11,         /* of a level within the cache */
    FIRST_BITS = 14,       /* of the first level */
    SLICES = 5,            /* of many rows, where they are handed over in order and forgotten */
    ROWS_WORTH_IT = 32768, /* for a first level that threads share */
    PARTS_MOST = 16,
    CHUNK = 256 /* rows that are made at once */
};

static void insert(struct ki_ranked *rows, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const struct ki_ranked row = rows[i];
        int64_t at = i;
        for (; at > 0 && rows[at - 1].key > row.key; at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

struct digit {
    uint64_t least;
    int shift;
    int64_t bins; /* 0: all keys are equal */
};

/* The highest `bits` in which keys from least to most differ, but fewer than rows have use for. */
static struct digit digit_of(uint64_t least, uint64_t most, int64_t count, int bits) {
    int differ = 0, useful = 1;
    while (differ < 64 && (most - least) >> differ) differ++;
    while (useful < bits && (count >> useful) > 4) useful++;
    const int shift = differ > useful ? differ - useful : 0;
    return (struct digit){least, shift, differ ? (int64_t)((most - least) >> shift) + 1 : 0};
}

static inline int64_t bin_of(const struct digit *digit, uint64_t key) {
    return (int64_t)((key - digit->least) >> digit->shift);
}

/* In place; spare has room for as many. */
static void order_here(struct ki_ranked *rows, struct ki_ranked *spare, int64_t count) {
    int64_t ends[(1 << BIN_BITS) + 1];
    uint64_t least = UINT64_MAX, most = 0;
    if (count <= FEW) {
        insert(rows, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        least = rows[i].key < least ? rows[i].key : least;
        most = rows[i].key > most ? rows[i].key : most;
    }
    const struct digit digit = digit_of(least, most, count, BIN_BITS);
    if (!digit.bins) return;
    memset(ends, 0, (size_t)(digit.bins + 1) * sizeof *ends);
    for (int64_t i = 0; i < count; i++) ends[bin_of(&digit, rows[i].key) + 1]++;
    for (int64_t b = 0; b < digit.bins; b++) ends[b + 1] += ends[b];
    memcpy(spare, rows, (size_t)count * sizeof *rows);
    for (int64_t i = 0; i < count; i++) rows[ends[bin_of(&digit, spare[i].key)]++] = spare[i];
    for (int64_t b = 0, begin = 0; b < digit.bins && digit.shift > 0; begin = ends[b++])
        if (ends[b] - begin > 1) order_here(rows + begin, spare + begin, ends[b] - begin);
}

/* Bins first ... end - 1 are at work: a slice, whose rows are begin ... begin + rows - 1 of all and go to
 * `to`. */
struct first_level {
    struct ki_ranked *to;
    int64_t first, end, begin, rows;
    int64_t count;
    const struct ki_unordered *from;
    int parts;
    struct digit digit;
    uint64_t least[PARTS_MOST], most[PARTS_MOST];
    int64_t *ends; /* parts x bins: how many, then where the next one goes */
    bool failed[PARTS_MOST];
};

/* Rows are made three times rather than kept twice: memory that nobody has touched before takes longer. */
#define EACH_ROW(level, part, row)                                                                           \
    for (int64_t at = ki_part_begin((level)->count, part, (level)->parts),                                   \
                 end = ki_part_begin((level)->count, (part) + 1, (level)->parts), until;                     \
         at < end; at = until)                                                                               \
        for (struct ki_ranked chunk[CHUNK], *row = make_chunk(chunk, level, at, end, &until);                \
             row < chunk + (until - at); row++)

static struct ki_ranked *make_chunk(struct ki_ranked *chunk, const struct first_level *level, int64_t at,
                                    int64_t end, int64_t *until) {
    *until = ki_min(at + CHUNK, end);
    level->from->make(level->from->user, at, *until, chunk);
    return chunk;
}

static void look_at(void *user, int part) {
    struct first_level *level = user;
    uint64_t least = UINT64_MAX, most = 0;
    EACH_ROW(level, part, row) {
        least = row->key < least ? row->key : least;
        most = row->key > most ? row->key : most;
    }
    level->least[part] = least;
    level->most[part] = most;
}

static void count_part(void *user, int part) {
    const struct first_level *level = user;
    int64_t *own = level->ends + part * level->digit.bins;
    EACH_ROW(level, part, row) own[bin_of(&level->digit, row->key)]++;
}

static void deal_part(void *user, int part) {
    const struct first_level *level = user;
    int64_t *own = level->ends + part * level->digit.bins;
    EACH_ROW(level, part, row) {
        const int64_t b = bin_of(&level->digit, row->key);
        if (b >= level->first && b < level->end) level->to[own[b]++ - level->begin] = *row;
    }
}

/* Finds where each part's rows of each bin begin. */
static void add_up(struct first_level *level) {
    int64_t sum = 0;
    for (int64_t b = 0; b < level->digit.bins; b++)
        for (int p = 0; p < level->parts; p++) {
            int64_t *at = &level->ends[p * level->digit.bins + b], here = *at;
            *at = sum;
            sum += here;
        }
}

/* Returns where bin b ends, once the rows have been dealt: the last part's rows are the last of it. */
static int64_t bin_end(const struct first_level *level, int64_t b) {
    return b < 0 ? 0 : level->ends[(level->parts - 1) * level->digit.bins + b];
}

/* The bins that begin among the part's rows. */
static void order_part(void *user, int part) {
    struct first_level *level = user;
    const int64_t begin = level->begin + ki_part_begin(level->rows, part, level->parts),
                  end = level->begin + ki_part_begin(level->rows, part + 1, level->parts);
    int64_t first = level->first, last, largest = 0;
    while (first < level->end && bin_end(level, first - 1) < begin) first++;
    for (last = first; last < level->end && bin_end(level, last - 1) < end; last++)
        largest = ki_max(largest, bin_end(level, last) - bin_end(level, last - 1));
    struct ki_ranked *spare = ki_alloc((size_t)largest * sizeof *spare);
    level->failed[part] = !spare;
    for (int64_t b = first; spare && b < last; b++) {
        const int64_t at = bin_end(level, b - 1);
        order_here(level->to + (at - level->begin), spare, bin_end(level, b) - at);
    }
    ki_free(spare);
}

static kiln_status no_memory(int64_t count) {
    return ki_fail_nomem((size_t)count * sizeof(struct ki_ranked), "the order of rows");
}

/* All rows in one part of their own. */
static kiln_status order_few(struct ki_ranked *rows, int64_t count, const struct ki_unordered *from) {
    struct ki_ranked *spare = ki_alloc((size_t)count * sizeof *spare);
    if (!spare) return no_memory(count);
    from->make(from->user, 0, count, rows);
    order_here(rows, spare, count);
    ki_free(spare);
    return KILN_OK;
}

/* Counts the rows of each bin, and finds where they go. */
static kiln_status begin(struct first_level *level, int threads) {
    uint64_t least = UINT64_MAX, most = 0;
    level->parts = (int)ki_min(PARTS_MOST, level->count / (ROWS_WORTH_IT / 2));
    ki_parallel(threads, level->parts, look_at, level);
    for (int p = 0; p < level->parts; p++) {
        least = level->least[p] < least ? level->least[p] : least;
        most = level->most[p] > most ? level->most[p] : most;
    }
    level->digit = digit_of(least, most, level->count, FIRST_BITS);
    level->digit.bins = ki_max(level->digit.bins, 1); /* of keys that are all equal there is one */
    level->ends = ki_calloc((size_t)(level->parts * level->digit.bins) * sizeof *level->ends);
    if (!level->ends) return no_memory(level->count);
    ki_parallel(threads, level->parts, count_part, level);
    add_up(level);
    return KILN_OK;
}

/* Returns where a bin that has not been dealt begins. */
static int64_t bin_begin(const struct first_level *level, int64_t b) {
    return b < level->digit.bins ? level->ends[b] : level->count;
}

/* The next bins, at least one, of up to `most` rows. */
static void next_slice(struct first_level *level, int64_t most) {
    level->first = level->end;
    level->begin = bin_begin(level, level->first);
    do level->end++;
    while (level->end < level->digit.bins && bin_begin(level, level->end + 1) - level->begin <= most);
    level->rows = bin_begin(level, level->end) - level->begin;
}

static kiln_status order_slice(struct first_level *level, int threads) {
    bool failed = false;
    ki_parallel(threads, level->parts, deal_part, level);
    if (level->digit.shift > 0) ki_parallel(threads, level->parts, order_part, level);
    for (int p = 0; p < level->parts; p++) failed |= level->failed[p];
    return failed ? no_memory(level->count) : KILN_OK;
}

kiln_status ki_order(struct ki_ranked *rows, int64_t count, const struct ki_unordered *from, int threads) {
    struct first_level level = {.to = rows, .count = count, .from = from};
    kiln_status status;
    if (count < ROWS_WORTH_IT) return order_few(rows, count, from);
    TRY(begin(&level, threads));
    next_slice(&level, count);
    TRY(order_slice(&level, threads));
done:
    ki_free(level.ends);
    return status;
}

/* The rows of the largest slice: of one bin they may be all. */
static int64_t room_for(const struct first_level *level, int64_t most) {
    for (int64_t b = 0; b < level->digit.bins; b++)
        most = ki_max(most, bin_begin(level, b + 1) - bin_begin(level, b));
    return most;
}

kiln_status ki_order_slices(int64_t count, const struct ki_unordered *from, int threads,
                            void (*take)(void *user, const struct ki_ranked *rows, int64_t count),
                            void *user) {
    struct first_level level = {.count = count, .from = from};
    const int64_t most = ki_min(count, ki_max(ki_limits.ordered_rows, count / SLICES));
    kiln_status status = KILN_OK;
    if (count >= ROWS_WORTH_IT) TRY(begin(&level, threads));
    const int64_t room = level.ends ? room_for(&level, most) : count;
    level.to = ki_alloc((size_t)room * sizeof *level.to);
    if (!level.to) TRY(no_memory(room));
    if (!level.ends) {
        TRY(order_few(level.to, count, from));
        take(user, level.to, count);
    }
    while (level.end < level.digit.bins) {
        next_slice(&level, most);
        TRY(order_slice(&level, threads));
        take(user, level.to, level.rows);
    }
done:
    ki_free(level.ends);
    ki_free(level.to);
    return status;
}
