/* Loops of readers over the parts of a block. */
#ifndef KI_PARALLEL_H
#define KI_PARALLEL_H

#include "core/size.h"

/* Calls body(user, i) for each i in 0..count-1, on up to `threads` threads with the caller among them, in any
 * order; returns when all calls have. If the system gives no thread, fewer do the work. */
void ki_parallel(int threads, int count, void (*body)(void *user, int i), void *user);

/* Where the i-th of `shares` nearly equal shares of `count` items begins. */
static inline int64_t ki_share(int64_t count, int i, int shares) {
    return count / shares * i + ki_min(count % shares, i);
}

#endif
