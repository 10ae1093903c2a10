/* Narrow values become wide ones in other memory, for operations whose kernels load no narrow values. A
 * thread has W of them at a time. */

#define ARGUMENTS_widen(FIRST, NEXT)                                                                         \
    FIRST(SPACE, real, to)                                                                                   \
    NEXT(TABLE, stored, from)                                                                                \
    NEXT(VALUE, long, count)

#ifndef KI_HOST
#define W 4
#include "dialect/stored.h"

#if ELEMENT == 8 /* one number for all */
#define AT(i) 0
#else
#define AT(i) (i)
#endif

__kernel GROUP_OF(256) void widen(PARAMETERS(widen)) {
    for (long i = (long)get_global_id(0) * W; i < count; i += (long)get_global_size(0) * W) {
        real all[W];
        if (i + W <= count) {
            load_stored(all, from + AT(i));
            store_wide(to + i, all);
        } else {
            for (long e = i; e < count; e++) to[e] = NUMBER_OF(from[AT(e)]);
        }
    }
}

/* The variants that differ in text, as the tests build them. */
// build ELEMENT=1
// build ELEMENT=2
// build ELEMENT=3
// build ELEMENT=4
// build ELEMENT=5
// build ELEMENT=6
// build ELEMENT=7
// build ELEMENT=8
#endif
