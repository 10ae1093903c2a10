/* Running the parts of a loop on several threads. */
#ifndef KI_THREADS_H
#define KI_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Calls body(arg, part) once for each part in [0, parts), on up to `threads` threads, the caller among them;
 * returns when all are done. Which thread runs a part is chance: results must depend on the part alone.
 * Cannot fail: with fewer threads than asked for, down to the caller alone, the work is the same. body may
 * call ki_parallel, which finds other threads for the inner loop. */
void ki_parallel(int threads, int parts, void (*body)(void *arg, int part), void *arg);

/* The beginning of part `part` when [0, count) is cut into `parts` parts of about equal length; part == parts
 * gives count. */
static inline int64_t ki_part_begin(int64_t count, int part, int parts) {
    int64_t rest = count % parts;
    return count / parts * part + (part < rest ? part : rest);
}

/* The first row before which there is `goal` of work or more, where an entry counts as 1 and a row by
 * itself as `own`; `rows` if there is none. start: the entries before each row. */
static inline int64_t ki_row_at(const int64_t *start, int64_t rows, int64_t goal, int64_t own) {
    int64_t low = 0, high = rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (start[middle] + own * middle < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Like ki_parallel with body(arg, begin, end) for ranges that together are [0, count), each of `grain` items
 * or more unless there is but one. How they are cut depends on the number of threads: results must not. */
void ki_parallel_ranges(int threads, int64_t count, int64_t grain,
                        void (*body)(void *arg, int64_t begin, int64_t end), void *arg);

/* *least = min(*least, value), from any thread. */
static inline void ki_lower(_Atomic int64_t *least, int64_t value) {
    int64_t before = atomic_load(least);
    while (value < before)
        if (atomic_compare_exchange_weak(least, &before, value)) return;
}

#endif
