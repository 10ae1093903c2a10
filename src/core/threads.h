/* Running the parts of a loop on several threads. */
#ifndef KI_THREADS_H
#define KI_THREADS_H

#include <stdint.h>

/* Calls body(arg, part) once for each part in [0, parts), on up to `threads` threads, the caller among them;
 * returns when all are done. Which thread runs a part is chance: results must depend on the part alone.
 * Cannot fail: with fewer threads than asked for, down to the caller alone, the work is the same. body must
 * not call ki_parallel. */
void ki_parallel(int threads, int parts, void (*body)(void *arg, int part), void *arg);

/* The beginning of part `part` when [0, count) is cut into `parts` parts of about equal length; part == parts
 * gives count. */
static inline int64_t ki_part_begin(int64_t count, int part, int parts) {
    int64_t rest = count % parts;
    return count / parts * part + (part < rest ? part : rest);
}

#endif
