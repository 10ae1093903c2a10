/* The area under the curve of rows that all count once: pairs are counted, in integers.
 *
 * A row's score is a key, and whether it is of the class a bit. Rows are dealt into bins by the highest bits
 * of their keys; within a bin a row is what is left of its key, and that bit: 4 bytes where scores are
 * floats, 8 of doubles. A bin lies in a cache, where two digits put it in order. The parts of the first
 * level, which all threads share, follow from the number of rows alone. */
#include "metrics/counts.h"

#include <math.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"

enum {
    FEW = 24,       /* rows that are inserted */
    DIGIT_MOST = 9, /* bits */
    BIN_BITS = 15,
    PARTS_MOST = 16,
    ROWS_A_PART = 16384
};

/* Rows of the class, other ones, and the pairs of one of each of which the former is above, of ties half. */
struct counted {
    uint64_t own, others;
    double pairs;
};

#define element uint32_t
#define OF(name) name##_narrow
#include "metrics/counted.h"
#undef element
#undef OF
#define element uint64_t
#define OF(name) name##_wide
#include "metrics/counted.h"
#undef element
#undef OF

struct counting {
    const struct ki_labelled_rows *from;
    int64_t rows, kept, bins; /* kept: those that have a score */
    int parts, shift;         /* shift: of a key to its bin */
    uint64_t least, most, leasts[PARTS_MOST], mosts[PARTS_MOST];
    int64_t *ends; /* parts x bins: how many, then where the next one goes */
    bool narrow;
    void *elements;
    struct counted *of_bin;
    bool failed[PARTS_MOST];
};

/* Rows are made three times rather than kept. */
#define EACH_CHUNK(counting, part, chunk)                                                                    \
    for (int64_t at = ki_part_begin((counting)->rows, part, (counting)->parts),                              \
                 end = ki_part_begin((counting)->rows, (part) + 1, (counting)->parts);                       \
         at < end && make_chunk(chunk, counting, at, end); at += KI_LABELLED)

static bool make_chunk(struct ki_labelled *chunk, const struct counting *counting, int64_t at, int64_t end) {
    counting->from->make(counting->from->user, at, ki_min(KI_LABELLED, end - at), chunk);
    return true;
}

static void look_at(void *user, int part) {
    struct counting *counting = user;
    struct ki_labelled chunk;
    uint64_t least = UINT64_MAX, most = 0;
    EACH_CHUNK(counting, part, &chunk) {
        for (int64_t i = 0; i < chunk.count; i++) {
            least = chunk.key[i] < least ? chunk.key[i] : least;
            most = chunk.key[i] > most ? chunk.key[i] : most;
        }
    }
    counting->leasts[part] = least;
    counting->mosts[part] = most;
}

static void count_part(void *user, int part) {
    const struct counting *counting = user;
    int64_t *own = counting->ends + part * counting->bins;
    struct ki_labelled chunk;
    EACH_CHUNK(counting, part, &chunk) {
        for (int64_t i = 0; i < chunk.count; i++) own[(chunk.key[i] - counting->least) >> counting->shift]++;
    }
}

static void deal_part(void *user, int part) {
    const struct counting *counting = user;
    int64_t *own = counting->ends + part * counting->bins;
    const uint64_t mask = (UINT64_C(1) << counting->shift) - 1;
    uint32_t *narrow = counting->elements;
    uint64_t *wide = counting->elements;
    struct ki_labelled chunk;
    EACH_CHUNK(counting, part, &chunk) {
        for (int64_t i = 0; i < chunk.count; i++) {
            const uint64_t above = chunk.key[i] - counting->least;
            const uint64_t row = (above & mask) << 1 | chunk.own[i];
            const int64_t to = own[above >> counting->shift]++;
            if (counting->narrow)
                narrow[to] = (uint32_t)row;
            else
                wide[to] = row;
        }
    }
}

/* Finds where each part's rows of each bin begin. */
static void add_up(struct counting *counting) {
    int64_t sum = 0;
    for (int64_t b = 0; b < counting->bins; b++)
        for (int p = 0; p < counting->parts; p++) {
            int64_t *at = &counting->ends[p * counting->bins + b], here = *at;
            *at = sum;
            sum += here;
        }
    counting->kept = sum;
}

/* Returns where bin b ends, once the rows have been dealt: the last part's rows are the last of it. */
static int64_t bin_end(const struct counting *counting, int64_t b) {
    return b < 0 ? 0 : counting->ends[(counting->parts - 1) * counting->bins + b];
}

/* The bins that begin among the part's rows. */
static void order_part(void *user, int part) {
    struct counting *counting = user;
    const int64_t begin = ki_part_begin(counting->kept, part, counting->parts),
                  end = ki_part_begin(counting->kept, part + 1, counting->parts);
    int64_t first = 0, last, largest = 1;
    while (first < counting->bins && bin_end(counting, first - 1) < begin) first++;
    for (last = first; last < counting->bins && bin_end(counting, last - 1) < end; last++)
        largest = ki_max(largest, bin_end(counting, last) - bin_end(counting, last - 1));
    void *spare = ki_alloc((size_t)largest * (counting->narrow ? sizeof(uint32_t) : sizeof(uint64_t)));
    counting->failed[part] = !spare;
    for (int64_t b = first; spare && b < last; b++) {
        const int64_t at = bin_end(counting, b - 1), rows = bin_end(counting, b) - at;
        uint32_t *narrow = (uint32_t *)counting->elements + at;
        uint64_t *wide = (uint64_t *)counting->elements + at;
        if (counting->narrow)
            order_narrow(narrow, spare, rows, counting->shift + 1);
        else
            order_wide(wide, spare, rows, counting->shift + 1);
        counting->of_bin[b] = counting->narrow ? count_narrow(narrow, rows) : count_wide(wide, rows);
    }
    ki_free(spare);
}

static double area_of(const struct counting *counting) {
    double own = 0, others = 0, pairs = 0;
    for (int64_t b = 0; b < counting->bins; b++) {
        const struct counted *of = &counting->of_bin[b];
        pairs += of->pairs + (double)of->own * others;
        own += (double)of->own;
        others += (double)of->others;
    }
    return own > 0 && others > 0 ? pairs / (own * others) : (double)NAN;
}

/* The highest bits in which keys differ, but fewer than rows have use for. */
static void choose_bins(struct counting *counting) {
    int differ = 0, useful = 1;
    uint64_t least = UINT64_MAX, most = 0;
    for (int p = 0; p < counting->parts; p++) {
        least = counting->leasts[p] < least ? counting->leasts[p] : least;
        most = counting->mosts[p] > most ? counting->mosts[p] : most;
    }
    const uint64_t range = most < least ? 0 : most - least; /* 0 where no row has a score */
    while (differ < 64 && range >> differ) differ++;
    while (useful < BIN_BITS && (counting->rows >> useful) > FEW) useful++;
    counting->least = least;
    counting->shift = (int)ki_max(differ - useful, 0);
    counting->bins = (int64_t)(range >> counting->shift) + 1;
    counting->narrow = counting->shift < 32;
}

kiln_status ki_count_area(double *area, const struct ki_labelled_rows *from, int64_t rows, int threads) {
    struct counting counting = {.from = from, .rows = rows};
    kiln_status status = KILN_OK;
    bool failed = false;
    counting.parts = (int)ki_max(1, ki_min(PARTS_MOST, rows / ROWS_A_PART));
    ki_parallel(threads, counting.parts, look_at, &counting);
    choose_bins(&counting);
    const size_t width = counting.narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    counting.ends = ki_calloc((size_t)(counting.parts * counting.bins) * sizeof *counting.ends);
    counting.of_bin = ki_calloc((size_t)counting.bins * sizeof *counting.of_bin);
    counting.elements = ki_alloc((size_t)ki_max(rows, 1) * width);
    failed = !counting.ends || !counting.of_bin || !counting.elements;
    if (!failed) {
        ki_parallel(threads, counting.parts, count_part, &counting);
        add_up(&counting);
        ki_parallel(threads, counting.parts, deal_part, &counting);
        ki_parallel(threads, counting.parts, order_part, &counting);
    }
    for (int p = 0; p < counting.parts; p++) failed |= counting.failed[p];
    if (failed)
        status = ki_fail_nomem((size_t)rows * width, "the ranks");
    else
        *area = area_of(&counting);
    ki_free(counting.ends);
    ki_free(counting.of_bin);
    ki_free(counting.elements);
    return status;
}
